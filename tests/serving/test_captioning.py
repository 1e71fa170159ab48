import dataclasses
import shutil

import numpy as np
import pytest
from PIL import Image

from rnnlab import cli
from rnnlab.ensembles import load_ensemble
from rnnlab.runs import load_run
from rnnlab.serving import captioning
from rnnlab.serving.captioning import PhotographCaptioner, PictureCaptioner


def printed(capsys, *words):
    """The sentences and scores that ``rnnlab caption`` prints for one image."""
    capsys.readouterr()
    assert cli.main(["caption", *map(str, words)]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()[1:]]
    return [(" ".join(words), float(score)) for score, *words in lines]


def rounded(captions):
    return [(text, round(score, 3)) for text, score in captions]


@pytest.mark.parametrize("run", ["pooled", "grids"])
def test_a_photograph_has_the_captions_of_the_command(run, album, answerer, tmp_path, capsys):
    photo = shutil.copy(album.photographs / "photo_14.png", tmp_path / "new.png")
    found = answerer(PhotographCaptioner, album.folder / run).caption(photo, 4)
    expected = printed(capsys, album.folder / run, photo, "--beam", "4", "--n-best", "4")
    assert rounded(found.captions) == expected
    assert len(expected) == 4
    assert list(found.notes) == []
    assert found.references == ()


def test_an_ensemble_of_vectors_and_grids(album, answerer, capsys):
    runs = [album.folder / "pooled", album.folder / "grids"]
    photo = album.photographs / "photo_14.png"
    ensemble = load_ensemble(runs, with_data=False)
    found = PhotographCaptioner(ensemble, ensemble.recipe.decoding).caption(photo, 3)
    assert rounded(found.captions) == printed(capsys, *runs, photo, "--beam", "3", "--n-best", "3")
    alone = answerer(PhotographCaptioner, runs[1]).caption(photo, 3)
    np.testing.assert_array_equal(found.attention.picture, alone.attention.picture)


def test_the_attention_is_over_what_the_encoder_saw(album, answerer, tmp_path):
    """Of a photograph of 40 x 16 pixels, the encoder sees the centre."""
    pixels = np.zeros((16, 40, 3), np.uint8)
    pixels[:, 12:28] = 200
    Image.fromarray(pixels).save(tmp_path / "wide.png")
    found = answerer(PhotographCaptioner, album.folder / "grids").caption(tmp_path / "wide.png", 2)
    np.testing.assert_array_equal(found.attention.picture, np.full((16, 16, 3), 200))
    assert found.attention.words == found.captions[0][0].split()
    assert found.attention.weights.shape == (len(found.attention.words), 16)
    np.testing.assert_allclose(found.attention.weights.sum(axis=1), 1, rtol=1e-5)
    assert answerer(PhotographCaptioner, album.folder / "pooled").caption(tmp_path / "wide.png", 2)[1] is None


def test_a_photograph_is_upright_as_its_exif_data_say(album, answerer, tmp_path, rng):
    upright = Image.fromarray(rng.integers(0, 256, (8, 8, 3), np.uint8)).resize((80, 60))
    upright.save(tmp_path / "upright.png")
    exif = Image.Exif()
    exif[274] = 6  # a camera that was held upright
    upright.rotate(90, expand=True).save(tmp_path / "turned.png", exif=exif)
    captioner = answerer(PhotographCaptioner, album.folder / "grids")
    expected, found = (captioner.caption(tmp_path / name, 3) for name in ("upright.png", "turned.png"))
    assert found.captions == expected.captions
    np.testing.assert_array_equal(found.attention.picture, expected.attention.picture)


def test_encoders_are_opened_once(album, answerer, monkeypatch):
    captioner = answerer(PhotographCaptioner, album.folder / "grids")
    monkeypatch.setattr("rnnlab.data.caption_inputs.ImageEncoder", None)
    assert captioner.caption(album.photographs / "photo_1.png", 1).captions


def test_features_unlike_those_of_training_are_noted(album, tmp_path):
    run = load_run(album.folder / "pooled", with_data=False)
    saved = run.inputs.encodings["features"]
    bright = dataclasses.replace(saved.preprocessing, scale=(1.0, 1.0, 1.0))
    encodings = {"features": dataclasses.replace(saved, preprocessing=bright)}
    wrong = dataclasses.replace(run, inputs=dataclasses.replace(run.inputs, encodings=encodings))
    found = PhotographCaptioner(wrong, run.recipe.decoding).caption(album.photographs / "photo_1.png", 1)
    (note,) = found.notes
    assert note.startswith("photo_1.png: its features are ")


def test_what_is_no_photograph_is_named(album, answerer, tmp_path):
    captioner = answerer(PhotographCaptioner, album.folder / "pooled")
    (tmp_path / "broken.jpg").write_text("no image")
    with pytest.raises(OSError, match=r"broken.jpg: found no image of a format that is read"):
        captioner.caption(tmp_path / "broken.jpg", 1)
    with pytest.raises(ValueError, match="the beam width is 99"):
        captioner.caption(album.photographs / "photo_1.png", 99)


def test_an_encoder_that_is_not_known_is_an_error_at_the_start(album):
    run = load_run(album.folder / "pooled", with_data=False)
    unknown = dataclasses.replace(run, inputs=dataclasses.replace(run.inputs, encodings={}))
    with pytest.raises(ValueError, match="do not record which encoder made them: give its ONNX file"):
        PhotographCaptioner(unknown, run.recipe.decoding)


def test_a_picture_of_the_data_has_the_captions_of_the_command(shapes, answerer, capsys):
    captioner = answerer(PictureCaptioner, shapes, with_data=True)
    assert {split: len(names) for split, names in captioner.splits.items()} == {"val": 30, "test": 12}
    name = captioner.splits["test"][3]
    found = captioner.caption("test", 3, 3)
    assert rounded(found.captions) == printed(capsys, shapes, name, "--beam", "3", "--n-best", "3")
    assert found.references == captioner.run.data.split("test").references[3]
    np.testing.assert_array_equal(found.attention.picture, captioner.picture(name))
    assert captioner.picture(name).shape == (96, 96, 3)


def test_pictures_of_the_training_split_if_there_is_no_other(shapes):
    run = load_run(shapes)
    for split in ("val", "test"):
        del run.data.splits[split]
    assert list(PictureCaptioner(run, run.recipe.decoding).splits) == ["train"]


def test_regions_that_are_no_square_grid_have_no_maps(shapes, answerer, monkeypatch):
    monkeypatch.setattr(captioning, "attended_words", lambda best, inputs: (["a"], np.ones((1, 6))))
    found = answerer(PictureCaptioner, shapes, with_data=True).caption("val", 0, 1)
    assert found.attention is None
    assert list(found.notes) == ["The regions are not a square grid, so there are no attention maps."]


@pytest.mark.parametrize(
    ("split", "number", "message"),
    [
        ("train", 0, "split is 'train', expected one of val, test"),
        ("test", -1, "number is -1, expected a picture of test, from 0 to "),
        ("test", 10**6, "number is 1000000, expected a picture"),
        ("test", 1.5, "number is 1.5"),
    ],
)
def test_pictures_that_do_not_exist(shapes, answerer, split, number, message):
    with pytest.raises(ValueError, match=message):
        answerer(PictureCaptioner, shapes, with_data=True).caption(split, number, 1)
