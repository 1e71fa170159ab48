import json

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


def test_a_photograph_is_read_from_its_file_with_the_beam_of_the_slider(fixed, ask):
    asked = []

    def caption(path, beam_size):
        asked.append((path, beam_size))
        return Captioned([("a red ball", -1.0)])

    captioner = fixed(PhotographCaptioner, caption=caption)
    assert "a red ball" in ask(captioner, {"path": "/tmp/x/photo.jpg", "orig_name": "photo.jpg"}, 4.0)
    assert asked == [("/tmp/x/photo.jpg", 4)]
    assert ask(captioner, None, 4) == ""


@pytest.mark.parametrize("error", [OSError, ValueError])
def test_wrong_input_is_an_error_with_the_name_of_the_file(fixed, gradio, ask, error):
    def caption(path, beam_size):
        raise error(f"{path}: found no <b>image</b>")

    with pytest.raises(gradio.Error) as caught:
        ask(fixed(PhotographCaptioner, caption=caption), {"path": "/tmp/x/photo.jpg"}, 4)
    assert caught.value.message == "photo.jpg: found no &lt;b&gt;image&lt;/b&gt;"
    assert not caught.value.print_exception


def test_a_bug_is_not_taken_for_wrong_input(fixed, ask):
    def translate(text, beam_size):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        ask(fixed(Translator, translate=translate), "a", 3)


def test_a_sentence_is_translated(fixed, ask):
    translator = fixed(Translator, translate=lambda text, beam: Translated([(text * beam, -1.0)], [], None))
    assert "ababab" in ask(translator, "ab", 3)
