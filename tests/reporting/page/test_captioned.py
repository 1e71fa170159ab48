import base64
import io

import numpy as np
import pytest
from PIL import Image

from rnnlab.reporting.page.captioned import caption_cards
from rnnlab.reporting.results import Results
from rnnlab.tasks.search import decode


def test_captions_have_pictures_references_and_the_attention_of_decoding(captioned, scored):
    results = scored(captioned())
    cards, notes = caption_cards([results], 40)
    assert notes == ["12 of 12 images are shown."]
    assert [card.name for card in cards] == list(results.evaluation.names)
    run = results.run
    features = run.data.split("val").model_inputs
    found = decode(run.model, features, run.recipe.decoding, return_alignments=True)
    for k, card in enumerate(cards):
        (caption,) = card.captions
        assert " ".join(word.text for word in caption.words) == results.evaluation.sentences[k]
        assert card.references == results.evaluation.references[k]
        assert caption.side == 6
        for word, expected in zip(caption.words, found[k][0].alignment, strict=False):
            weights = np.frombuffer(bytes.fromhex(word.weights), np.uint8)
            np.testing.assert_allclose(weights, 255 * expected / expected.max(), atol=1)
    header, _, content = cards[0].picture.partition(",")
    assert header == "data:image/jpeg;base64"
    with Image.open(io.BytesIO(base64.b64decode(content))) as picture:
        assert max(picture.size) <= 320


def test_the_best_the_worst_and_some_between_are_chosen(captioned, scored):
    cards, notes = caption_cards([scored(captioned())], 8)
    scores = {float(card.captions[0].score): card.rank for card in cards}
    assert {11.0, 10.0, 0.0, 1.0} <= set(scores)
    assert len(scores) == 8
    assert [scores[score] for score in sorted(scores, reverse=True)] == list(range(8))  # ranks: best first
    assert notes[0].startswith("8 of 12 images are shown. A quarter have the best captions")


def test_images_on_the_disk_go_first(captioned, scored, tmp_path, monkeypatch):
    monkeypatch.delenv("RNNLAB_DATA", raising=False)
    monkeypatch.setenv("RNNLAB_SHAPES", str(tmp_path / "none"))  # whose images may have these names
    results = scored(captioned())
    data = results.run.data
    for name in data.split("val").names[3:5]:
        (tmp_path / name).write_bytes((data.image_dir / name).read_bytes())
    data.image_dir = tmp_path
    cards, notes = caption_cards([results], 40)
    assert [card.name for card in cards] == list(data.split("val").names[3:5])
    assert notes == ["2 of the 12 images are on the disk; 2 of these are shown."]
    data.image_dir = tmp_path / "nowhere"
    cards, notes = caption_cards([results], 5)
    assert [card.picture for card in cards] == [""] * 5
    assert notes[0].startswith("None of the 12 images is on the disk")


def test_without_scores_the_first_images_are_captioned(captioned):
    results = captioned()
    cards, _ = caption_cards([results], 3)
    assert [card.name for card in cards] == list(results.run.data.split("val").names[:3])
    assert [card.rank for card in cards] == [0, 1, 2]
    assert all(card.captions[0].score == "" for card in cards)


def test_captions_of_several_runs_are_side_by_side(captioned, scored):
    runs = [scored(captioned()), scored(captioned("two", attention=None, seed=1))]
    cards, notes = caption_cards([Results(None, "", None), *runs], 40)
    assert [[caption.run for caption in card.captions] for card in cards] == [[1, 2]] * 12
    assert all(card.captions[1].side == 0 for card in cards)
    assert notes[-1] == "two: its model does not attend to regions, so there are no maps."


def test_a_run_without_some_of_the_images_has_no_captions_of_them(captioned, scored):
    cards, _ = caption_cards([scored(captioned()), scored(captioned("two"), count=7)], 40)
    assert [len(card.captions) for card in cards] == [2] * 7 + [1] * 5


@pytest.mark.parametrize("count", [0, 40])
def test_nothing_is_shown_where_nothing_captions(captioned, translated, count):
    results = [translated()] if count else [captioned()]
    assert caption_cards(results, count) == ([], [])
