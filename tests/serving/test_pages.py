import asyncio
import json
import os
from types import SimpleNamespace

import numpy as np
import pytest

from rnnlab.recipes.data import HabeasTable
from rnnlab.serving.answerer import Answerer
from rnnlab.serving.captioning import Captioned, PhotographCaptioner, PictureCaptioner
from rnnlab.serving.translation import Translated, Translator


@pytest.fixture
def components(page_of):
    """A function that returns the settings of the components of a page, by their kinds."""

    def of(answerer):
        found = {}
        for each in page_of(answerer).get_config_file()["components"]:
            found.setdefault(each["type"], []).append(each["props"])
        return found

    return of


def test_a_page_for_photographs(fixed, components):
    found = components(fixed(PhotographCaptioner))
    (image,) = found["image"]
    assert image["sources"] == ["upload", "clipboard"]
    (slider,) = found["slider"]
    assert (slider["minimum"], slider["maximum"], slider["value"], slider["step"]) == (1, 10, 3, 1)
    assert any("Captions by runs/fixed" in each["value"] for each in found["html"])


def test_a_page_for_pictures_of_the_data(shapes, answerer, components):
    found = components(answerer(PictureCaptioner, shapes, with_data=True, num_groups=2, beam_size=4))
    assert [name for name, _ in found["radio"][0]["choices"]] == ["val", "test"]
    assert found["radio"][0]["value"] == "val"
    (pictures,) = [each["value"] for each in found["html"] if isinstance(each.get("value"), list)]
    assert [each["name"] for each in pictures] == [f"val_{number:05}.png" for number in range(12)]
    assert all(each["url"].startswith("data:image/jpeg;base64,") for each in pictures)
    (slider,) = found["slider"]
    assert (slider["minimum"], slider["maximum"], slider["value"], slider["step"]) == (2, 10, 4, 2)


@pytest.mark.slow
def test_a_page_for_sentences_and_one_for_code(fixed, components):
    translator = fixed(Translator)
    found = components(translator)
    assert found["textbox"][0]["label"] == "Text"
    assert found["button"][0]["value"] == "Translate"
    translator.run.recipe.data = HabeasTable("habeascorpus", "nowhere")
    translator.run.members = ("runs/a", "runs/<b>")
    found = components(translator)
    assert found["textbox"][0]["label"] == "Code"
    assert found["button"][0]["value"] == "Comment"
    assert "Comments by runs/a, runs/&lt;b&gt;" in json.dumps(found["html"])


def test_no_page_for_anything_else(fixed, page_of):
    with pytest.raises(TypeError, match="answerer is a Answerer, and there is no page for it"):
        page_of(fixed(Answerer))


@pytest.fixture
def ask(page_of):
    """A function that calls the function of a page that answers."""

    def call(answerer, *inputs):
        functions = page_of(answerer).fns.values()
        return next(each for each in functions if each.api_name in ("caption", "translate")).fn(*inputs)

    return call


@pytest.fixture
def photo(gradio):
    """The path of an upload."""
    return os.path.join(gradio.Image().GRADIO_CACHE, "x", "photo.jpg")


def test_a_photograph_is_read_from_its_file_with_the_beam_of_the_slider(fixed, ask, photo):
    asked = []

    def caption(path, beam_size):
        asked.append((path, beam_size))
        return Captioned([("a red ball", -1.0)])

    captioner = fixed(PhotographCaptioner, caption=caption)
    page = ask(captioner, {"path": photo, "orig_name": "photo.jpg"}, 4.0)
    assert "a red ball" in page
    assert "The score is the log-probability" in page
    assert asked == [(photo, 4)]
    assert ask(captioner, None, 4) == ""


@pytest.mark.parametrize("error", [OSError, ValueError])
def test_wrong_input_is_an_error_with_the_name_of_the_file(fixed, gradio, ask, photo, error):
    def caption(path, beam_size):
        raise error(f"{path}: found no <b>image</b>")

    with pytest.raises(gradio.Error) as caught:
        ask(fixed(PhotographCaptioner, caption=caption), {"path": photo}, 4)
    assert caught.value.message == "photo.jpg: found no &lt;b&gt;image&lt;/b&gt;"
    assert not caught.value.print_exception


def test_a_bug_is_not_taken_for_wrong_input(fixed, ask):
    def translate(text, beam_size):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        ask(fixed(Translator, translate=translate), "a", 3)


def test_a_sentence_is_translated(fixed, ask):
    translator = fixed(Translator, translate=lambda text, beam: Translated([(text * beam, -1.0)], [], None))
    page = ask(translator, "ab", 3)
    assert "ababab" in page
    assert "The score is the log-probability" in page


@pytest.fixture
def pictures(fixed):
    """An answerer for 24 pictures of one split and one of another; its captions say what was asked."""

    def caption(split, number, beam_size):
        if number == 3:
            raise ValueError("<no> caption")
        return Captioned([(f"{split} {number} by {beam_size}", -1.0)])

    splits = {"val": [f"v{k}" for k in range(24)], "test": ["t0"]}
    return fixed(
        PictureCaptioner, splits=splits, picture=lambda name: np.zeros((2, 2, 3), np.uint8), caption=caption
    )


@pytest.fixture
def events(page_of):
    """A function that returns the functions of a page by the component and the event that call them."""

    def of(answerer):
        page = page_of(answerer)
        return {
            (page.blocks[block].get_block_name(), event): function
            for function in page.fns.values()
            for block, event in function.targets
            if block is not None
        }

    return of


def test_other_pictures_and_another_split(pictures, events):
    found = events(pictures)
    others, change = found["button", "click"].fn, found["radio", "change"].fn
    first, shown, chosen, answer = others("val", 0)
    assert (first, chosen, answer) == (12, None, "")
    assert [each["name"] for each in shown] == [f"v{k}" for k in range(12, 24)]
    assert others("val", 12)[0] == 0  # after the last come the first
    assert [each["name"] for each in others("test", 0)[1]] == ["t0"]
    first, shown, chosen, answer = change("test")
    assert (first, chosen, answer) == (0, None, "")
    assert [each["name"] for each in shown] == ["t0"]


def test_a_chosen_picture_is_captioned(pictures, events, gradio):
    found = events(pictures)
    choose, answer = found["html", "select"], found["slider", "change"]
    number, page = choose.fn("val", 12, 4.0, SimpleNamespace(place=2))
    assert number == 14
    assert "val 14 by 4" in page
    assert "The score is the log-probability" in page
    assert "val 0 by 5" in answer.fn("val", 0, 5)
    assert answer.fn("val", None, 5) == ""
    with pytest.raises(gradio.Error) as caught:
        answer.fn("val", 3, 5)
    assert caught.value.message == "&lt;no&gt; caption"
    first, _, chosen, result = found["button", "click"].outputs
    assert choose.inputs[1] is first
    assert answer.inputs[1] is chosen
    assert choose.outputs == [chosen, result]
    assert answer.outputs == [result]


def test_a_text_is_translated_again_with_another_beam(fixed, events, gradio):
    translator = fixed(Translator, translate=lambda text, beam: Translated([(text * beam, -1.0)], [], None))
    found = events(translator)
    assert found["button", "click"] is found["textbox", "submit"]
    assert "ababab" in found["slider", "change"].fn("ab", 3)
    assert [found["slider", "change"].fn(empty, 3) for empty in (" ", "", None)] == [""] * 3
    with pytest.raises(gradio.Error, match="the text is 5, expected a string"):
        found["button", "click"].fn(5, 3)


def test_a_photograph_is_captioned_after_each_change(fixed, events):
    found = events(fixed(PhotographCaptioner))
    assert found.keys() == {("image", "upload"), ("image", "clear"), ("slider", "change")}
    assert {id(function) for function in found.values()} == {id(found["image", "upload"])}


@pytest.mark.parametrize(
    ("kind", "made", "public"),
    [
        (PhotographCaptioner, "Captions", {"caption"}),
        (PictureCaptioner, "Captions", set()),
        (Translator, "Translations", {"translate"}),
    ],
)
def test_what_a_page_lets_a_client_do(kind, made, public, fixed, pictures, page_of, gradio, tmp_path):
    """It names its functions for programs, reads no file of the machine, and deletes uploads in the end."""
    page = page_of(pictures if kind is PictureCaptioner else fixed(kind))
    assert page.title == f"{made} by runs/fixed"
    assert page.delete_cache == (3600, 3600)
    functions = page.fns.values()
    assert {each.api_name for each in functions if each.api_visibility == "public"} == public
    for component in {part for each in functions for part in each.inputs}:
        if not isinstance(component, gradio.State):
            with pytest.raises(gradio.Error, match="Upload the file itself"):
                asyncio.run(component.async_move_resource_to_block_cache(tmp_path / "private.png"))
