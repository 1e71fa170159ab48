"""The pages in a browser: see tests/browsing.py."""

import functools

import numpy as np
import pytest
from PIL import Image

from rnnlab.serving.captioning import PhotographCaptioner, PictureCaptioner
from rnnlab.serving.translation import Translated, Translator

from ..browsing import DESKTOP, PHONE

pytest.importorskip("playwright.sync_api")  # before anything is trained for the pages
# Gradio uses an option of pandas that is deprecated.
pytestmark = pytest.mark.filterwarnings("ignore:.*no_silent_downcasting")
VIEWPORTS = pytest.mark.parametrize("viewport", [DESKTOP, PHONE], ids=["desktop", "phone"])


@pytest.fixture
def opened(browse):
    """A function that opens a page. Gradio logs warnings of its own, which are no failure."""
    return functools.partial(browse, tolerated=("warning", "info"))


@pytest.fixture(scope="module")
def captioning(album, answerer, served_to_all):
    return served_to_all(answerer(PhotographCaptioner, album.folder / "grids"), max_upload=200_000)


@pytest.fixture(scope="module")
def translating(letters, answerer, served_to_all):
    return served_to_all(answerer(Translator, letters))


def fits(page):
    return page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def best(page):
    return page.locator(".answer .best").text_content()


@VIEWPORTS
def test_a_photograph_in_and_captions_with_attention_out(opened, captioning, album, answerer, viewport):
    page = opened(captioning, viewport)
    photo = album.photographs / "photo_14.png"
    page.locator("input[type=file]").set_input_files(photo)
    page.locator(".answer").wait_for()
    expected = answerer(PhotographCaptioner, album.folder / "grids").caption(photo, 3)
    assert best(page) == expected.captions[0][0]
    assert page.locator(".answer tbody tr").count() == 3
    assert page.locator(".answer figcaption").count() == len(expected.attention.words)
    box = page.locator(".answer figure div").first.bounding_box()
    assert box["width"] >= 80
    assert box["height"] == pytest.approx(box["width"], rel=0.02)  # of the square that the encoder saw
    assert page.locator(".answer figure img").first.evaluate("image => image.naturalWidth") == 4
    assert fits(page)


def test_the_beam_and_another_photograph_change_the_answer(opened, captioning, album):
    page = opened(captioning)
    page.locator("input[type=file]").set_input_files(album.photographs / "photo_14.png")
    page.locator(".answer").wait_for()
    page.locator("input[type=number]").fill("7")
    page.locator("input[type=number]").press("Enter")
    page.wait_for_function("document.querySelectorAll('.answer tbody tr').length == 7")
    page.get_by_label("Remove Image").click()
    page.locator(".answer").wait_for(state="detached")


def test_a_photograph_is_dropped(opened, captioning, album):
    page = opened(captioning)
    content = list((album.photographs / "photo_14.png").read_bytes())
    page.locator("input[type=file]").evaluate(
        """(input, content) => {
            const data = new DataTransfer();
            data.items.add(new File([new Uint8Array(content)], "photo.png", {type: "image/png"}));
            for (const name of ["dragenter", "dragover", "drop"]) {
                const event = new DragEvent(name, {dataTransfer: data, bubbles: true, cancelable: true});
                input.closest("button").dispatchEvent(event);
            }
        }""",
        content,
    )
    page.locator(".answer").wait_for()


def test_a_photograph_is_pasted(opened, captioning):
    page = opened(captioning, permissions=["clipboard-read", "clipboard-write"])
    page.evaluate(
        """async () => {
            const canvas = document.createElement("canvas");
            canvas.getContext("2d").fillRect(0, 0, 50, 50);
            const blob = await new Promise(done => canvas.toBlob(done, "image/png"));
            await navigator.clipboard.write([new ClipboardItem({"image/png": blob})]);
        }"""
    )
    page.get_by_label("Paste from clipboard").click()
    page.locator(".answer").wait_for()


def test_wrong_files_have_messages_and_the_page_goes_on(opened, captioning, album, tmp_path, rng):
    page = opened(captioning, tolerated=("warning", "info", "error"))  # a refused upload is one
    photo = album.photographs / "photo_14.png"
    page.locator("input[type=file]").set_input_files(photo)
    page.locator(".answer").wait_for()
    (tmp_path / "broken.jpg").write_text("no image")
    (tmp_path / "notes.txt").write_text("no image")
    Image.fromarray(rng.integers(0, 256, (300, 300, 3), np.uint8)).save(tmp_path / "large.png")
    for name, message in (
        ("broken.jpg", "broken.jpg: found no image of a format that is read"),
        ("notes.txt", "Invalid file type"),
        ("large.png", "exceed the maximum allowed size"),
    ):
        page.get_by_label("Remove Image").click()
        page.locator(".answer").wait_for(state="detached")
        page.locator("input[type=file]").set_input_files(tmp_path / name)
        page.locator(".toast-body", has_text=message).wait_for()
        assert page.locator(".answer").count() == 0
        page.locator(".toast-close").first.click()
        page.reload()
        page.locator("input[type=file]").set_input_files(photo)
        page.locator(".answer").wait_for()


@VIEWPORTS
def test_a_picture_of_the_data_is_chosen(opened, shapes, answerer, served, viewport):
    captioner = answerer(PictureCaptioner, shapes, with_data=True)
    page = opened(served(captioner), viewport)
    pictures = page.locator(".pictures button")
    pictures.nth(11).wait_for()
    assert pictures.count() == 12
    edge = page.locator(".pictures").bounding_box()
    for picture in pictures.all():  # none is cut off
        box = picture.bounding_box()
        assert box["x"] + box["width"] <= edge["x"] + edge["width"]
    pictures.nth(5).click()
    page.locator(".answer").wait_for()
    assert page.locator("[aria-pressed=true] img").get_attribute("alt") == "val_00005.png"
    assert best(page) == (captioner.caption("val", 5, 3).captions[0][0] or "no words")
    assert fits(page)
    page.get_by_role("button", name="Other pictures").click()
    page.locator(".answer").wait_for(state="detached")
    pictures.nth(2).click()
    page.locator(".answer li", has_text=captioner.caption("val", 14, 3).references[0]).first.wait_for()
    page.get_by_label("test").click()
    page.locator(".answer").wait_for(state="detached")
    pictures.nth(2).click()
    page.locator(".answer li", has_text=captioner.caption("test", 2, 3).references[0]).first.wait_for()


@VIEWPORTS
def test_a_translation(opened, translating, letters, answerer, viewport):
    page = opened(translating, viewport)
    page.get_by_label("Text").fill("a b zebra")
    page.get_by_role("button", name="Translate").click()
    page.locator(".answer").wait_for()
    expected = answerer(Translator, letters).translate("a b zebra", 2)
    assert best(page) == (expected.translations[0][0] or "no words")
    assert page.locator(".note").text_content() == "Not in the vocabulary, so read as <UNK>: zebra"
    assert page.locator(".matrix thead th").all_text_contents() == expected.alignment.source
    assert page.locator(".matrix tbody th").all_text_contents() == expected.alignment.words
    assert fits(page)
    page.get_by_label("Text").fill(" ")
    page.get_by_role("button", name="Translate").click()
    page.locator(".toast-body", has_text="there is no text to translate: write some first").wait_for()
    page.locator(".answer").wait_for(state="detached")


def test_a_long_text_scrolls_its_matrix_and_not_the_page(opened, translating):
    page = opened(translating, PHONE)
    page.get_by_label("Text").fill("a b c d e f g h " * 10)
    page.get_by_role("button", name="Translate").click()
    page.locator(".answer").wait_for()
    assert page.locator(".matrix").evaluate("matrix => matrix.scrollWidth > matrix.clientWidth")
    assert fits(page)


def test_nothing_in_an_answer_is_run(opened, fixed, served):
    """Neither as HTML nor as a template of Gradio's component."""
    attack = "<img src=x onerror=\"document.title = 'attacked'\"> ${document.title = 'attacked'} {{value}}"
    found = Translated([(attack, -1.0)], [attack], None)
    page = opened(served(fixed(Translator, translate=lambda text, beam_size: found)))
    page.get_by_label("Text").fill("a")
    page.get_by_role("button", name="Translate").click()
    page.locator(".answer").wait_for()
    assert best(page) == attack
    assert page.title() == "Translations by runs/fixed"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_has_the_reader_s_theme(opened, translating, scheme):
    page = opened(translating, color_scheme=scheme)
    page.get_by_label("Text").wait_for()
    red = page.evaluate("parseInt(getComputedStyle(document.body).backgroundColor.match(/\\d+/)[0])")
    assert red > 200 if scheme == "light" else red < 60
    font = page.evaluate("getComputedStyle(document.querySelector('h1')).fontFamily")
    assert font.startswith("system-ui")
