"""The page in a browser: see tests/browsing.py."""

import functools

import pytest

from rnnlab.reporting.page.build import write_report
from rnnlab.reporting.record import read_records

from ...browsing import DESKTOP, PHONE

pytest.importorskip("jinja2")


@pytest.fixture
def address(write_run, captioned, scored, translated, tmp_path):
    """A report about two runs that caption images, and one that translates."""
    records = read_records([write_run(name) for name in ("one", "two", "three")])
    results = [scored(captioned()), scored(captioned("two", seed=1)), translated()]
    results[0].evaluation.references[0][0] = "<img src=x onerror=\"document.title = 'attacked'\">"
    path = tmp_path / "report.html"
    write_report(path, records, results, examples=6)
    return path.as_uri()


@pytest.fixture
def opened(browse, address):
    return functools.partial(browse, address)


def shown(page):
    return page.locator(".word.shown").all_text_contents()


@pytest.mark.parametrize("viewport", [DESKTOP, PHONE], ids=["desktop", "phone"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_fits_and_has_the_reader_s_theme(opened, viewport, scheme):
    page = opened(viewport, color_scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= viewport["width"]
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert paper == ("rgb(255, 255, 255)" if scheme == "light" else "rgb(21, 24, 28)")
    for text in page.locator(".axes span").all()[:4]:
        assert text.evaluate("element => parseFloat(getComputedStyle(element).fontSize)") >= 12
    assert page.locator(".plot").first.bounding_box()["height"] > 150
    assert page.title() == "one, two and three: report"


def test_a_word_shows_its_map_by_keyboard_alone(opened):
    page = opened()
    page.locator("#images select").focus()
    page.keyboard.press("Tab")
    card = page.locator("#images .card").first
    words = card.locator(".sentence").first.locator(".word").all_text_contents()
    assert shown(page) == words[:1]
    assert card.locator(".picture.mapped").count() == 1
    assert "greatest weight" in card.locator(".peak").text_content()
    page.keyboard.press("ArrowRight")
    assert shown(page) == words[1:2]
    page.keyboard.press("Home")
    page.keyboard.press("ArrowLeft")
    assert shown(page) == words[-1:]
    page.keyboard.press("Escape")
    assert shown(page) == []
    assert card.locator(".picture.mapped").count() == 0
    page.keyboard.press("Tab")  # to the caption of the other run: a caption is one stop
    assert page.evaluate("document.activeElement.closest('.sentence').dataset.side") == "6"
    others = card.locator(".sentence").nth(1).locator(".word").all_text_contents()
    assert shown(page) == others[:1]


def test_the_picture_keeps_some_of_its_brightness_everywhere(opened):
    page = opened()
    page.locator("#images .word").first.focus()
    alphas = page.evaluate(
        """() => {
            const canvas = document.querySelector(".mapped canvas");
            const {data} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
            return [canvas.width, canvas.height, ...data.filter((_, k) => k % 4 == 3)];
        }"""
    )
    assert alphas[:2] == [6, 6]
    assert min(alphas[2:]) == 0
    assert max(alphas[2:]) <= 0.72 * 255 + 1


def test_pointing_shows_a_map_and_a_click_pins_it(opened):
    page = opened()
    first, second = (page.locator("#images .card").first.locator(".word").nth(k) for k in (0, 1))
    first.hover()
    assert shown(page) == [first.text_content()]
    page.locator("h1").hover()
    assert shown(page) == []
    second.click()
    first.hover()
    assert shown(page) == [first.text_content()]
    page.locator("h1").hover()
    assert shown(page) == [second.text_content()]
    assert second.get_attribute("aria-pressed") == "true"
    second.click()
    page.locator("h1").click()
    assert shown(page) == []


def test_a_tap_shows_a_map(opened):
    page = opened(PHONE, has_touch=True, is_mobile=True)
    word = page.locator("#images .word").nth(1)
    word.tap()
    assert shown(page) == [word.text_content()]
    other = page.locator("#images .card").nth(1).locator(".word").first
    other.tap()
    assert shown(page) == [other.text_content()]


def test_images_are_filtered_and_ordered(opened):
    page = opened()
    cards = page.locator("#list-images .card")
    ranks = [int(card.get_attribute("data-rank")) for card in cards.all()]
    assert ranks == sorted(ranks)
    page.locator("#images select").select_option("-rank")
    assert [int(card.get_attribute("data-rank")) for card in cards.all()] == sorted(ranks, reverse=True)
    page.locator("#images select").select_option("place")
    assert [int(card.get_attribute("data-place")) for card in cards.all()] == list(range(6))
    page.locator("#images input").fill("ONERROR")  # of the reference above
    assert page.locator("#list-images .card:visible").count() == 1
    assert page.locator("#images output").text_content() == "1 of 6 images"
    page.locator("#images input").fill("")
    assert page.locator("#list-images .card:visible").count() == 6


def test_translations_shade_their_source_and_have_a_matrix(opened):
    page = opened()
    card = page.locator("#list-sentences .card:has(.word)").first  # a model may write no words
    card.locator(".word").first.focus()
    weights = card.locator(".source span").evaluate_all(
        "all => all.map(e => +e.style.getPropertyValue('--w'))"
    )
    assert max(weights) == 1
    assert "attends most to" in card.locator(".peak").text_content()
    card.locator("summary").focus()
    page.keyboard.press("Enter")
    card.locator("table").wait_for()
    assert card.locator("tbody tr").count() == card.locator(".word").count()
    assert card.locator("thead th").all_text_contents() == card.locator(".source span").all_text_contents()


@pytest.mark.parametrize("motion", ["reduce", "no-preference"])
def test_nothing_moves_for_readers_who_want_that(opened, motion):
    page = opened(reduced_motion=motion)
    duration = page.evaluate("getComputedStyle(document.querySelector('canvas')).transitionDuration")
    assert duration == ("0s" if motion == "reduce" else "0.12s")


def test_without_script_words_curves_and_numbers_are_there(opened):
    page = opened(java_script_enabled=False)
    assert page.locator(".plot").count() >= 2
    assert page.locator("#images .word").first.is_visible()
    assert not page.locator(".controls").first.is_visible()
    page.locator(".chart summary").first.click()
    assert page.locator(".chart table").first.is_visible()
