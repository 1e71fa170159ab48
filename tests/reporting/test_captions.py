from dataclasses import replace

import matplotlib.image
import numpy as np
import pytest

from rnnlab import plots
from rnnlab.data import Vocabulary
from rnnlab.data.caption_inputs import CaptionInputs
from rnnlab.decoding import Hypothesis
from rnnlab.reporting import captions as captions_module
from rnnlab.reporting.captions import (
    attended_words,
    attention_picture,
    captions_picture,
    captions_text,
    coco_image_ids,
)


@pytest.fixture
def inputs(tmp_path):
    words = ["<NULL>", "<START>", "<END>", "<UNK>", "a", "red", "square"]
    return CaptionInputs(Vocabulary(words), None, tmp_path)


def hypothesis(*tokens, score=-1.0, alignment=None):
    return Hypothesis(tokens, score, score, True, alignment)


def test_one_line_for_each_image_or_for_each_caption(inputs):
    text = captions_text(["1.png", "2.png"], [[hypothesis(4, 5, 6)], [hypothesis(4, 6)]], inputs)
    assert text.splitlines() == ["1.png: a red square", "2.png: a square"]
    n_best = [hypothesis(4, 5, score=-0.5), hypothesis(4, score=-12.25)]
    lines = captions_text(["1.png", "2.png"], [n_best, n_best[:1]], inputs, lists=True).splitlines()
    first = ["1.png:", "    -0.500  a red", "   -12.250  a"]
    assert lines == [*first, "2.png:", "    -0.500  a red"]


def test_coco_s_ids_are_in_its_file_names():
    names = ["COCO_val2014_000000391895.jpg", "images/000000000139.jpg", "COCO_test2015_000000000001.png"]
    assert coco_image_ids(names) == [391895, 139, 1]
    for name in ("val_00003.png", "391895.jpg", "COCO_000000391895", "http://a/2970773875_164f0c0b83_z.jpg"):
        with pytest.raises(ValueError, match=f"'{name}' is no file name of COCO"):
            coco_image_ids([*names, name])


def test_each_image_of_coco_has_one_caption():
    names = ["a/000000000139.jpg", "COCO_val2014_000000000139.jpg"]
    with pytest.raises(
        ValueError, match=f"'{names[0]}' and '{names[1]}' both have COCO's id 139, expected each"
    ):
        coco_image_ids(names)


def test_images_are_those_of_the_data_s_folder(inputs, tmp_path, monkeypatch):
    """Addresses are fetched where it is asked for."""
    asked, missing = [], np.zeros((2, 2, 3), np.uint8)

    def read(*arguments, **options):
        asked.append((arguments, options))
        return missing

    monkeypatch.setattr(captions_module, "named_image", read)
    captions = [[hypothesis(4, alignment=np.eye(4)[:2])]]
    for draw in (captions_picture, attention_picture):
        draw(tmp_path / "p.png", ["../1.png"], captions, inputs)
        draw(tmp_path / "p.png", ["http://a/b.png"], captions, replace(inputs, image_dir=None), download=True)
        draw(tmp_path / "p.png", ["1.png"], captions, inputs, images=[missing])
        assert asked == [
            (("../1.png", tmp_path), {"download": False}),
            (("http://a/b.png", None), {"download": True}),
        ]
        asked.clear()


def test_pictures_with_captions_and_with_attention(inputs, tmp_path):
    names = ["missing.png", "too.png"]
    captions = [[hypothesis(4, 5, alignment=np.full((3, 4), 0.25))], [hypothesis(4, alignment=np.eye(4)[:2])]]
    captions_picture(tmp_path / "captions.png", names, captions, inputs)
    attention_picture(tmp_path / "attention.png", names, captions, inputs)
    for name in ("captions.png", "attention.png"):
        assert matplotlib.image.imread(tmp_path / name).ndim == 3
    with pytest.raises(ValueError, match="the caption has no alignment"):
        attention_picture(tmp_path / "attention.png", names[:1], [[hypothesis(4)]], inputs)


def test_photographs_are_read_one_by_one_and_shrunk(inputs, tmp_path, monkeypatch):
    """Of large ones only what is drawn stays in memory."""
    drawn, grid = [], plots.caption_grid

    def watched(images, *rest, **options):
        drawn.extend(images)
        return grid(images, *rest, **options)

    monkeypatch.setattr(plots, "caption_grid", watched)
    photographs = (np.full(shape, 9, np.uint8) for shape in ((1000, 2000, 3), (40, 30, 3)))
    captions_picture(tmp_path / "p.png", ["a", "b"], [[hypothesis(4)]] * 2, inputs, images=photographs)
    assert [image.shape for image in drawn] == [(256, 512, 3), (40, 30, 3)]
    assert (drawn[0] == 9).all()


def test_the_words_of_a_caption_have_their_attention(inputs):
    weights = np.arange(12.0).reshape(3, 4)  # the last row is that of <END>
    words, attention = attended_words(hypothesis(4, 5, alignment=weights), inputs)
    assert words == ["a", "red"]
    np.testing.assert_array_equal(attention, weights[:2])
