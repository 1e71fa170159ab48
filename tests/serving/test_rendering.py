import re
from html.parser import HTMLParser

import numpy as np
import pytest

from rnnlab.reporting.translations import Alignment
from rnnlab.serving.captioning import Attention, Captioned
from rnnlab.serving.translation import Translated

pytest.importorskip("jinja2")
from rnnlab.serving.rendering import captions_html, translations_html

ATTACK = "<img src=x onerror='attack()'>"


class Tags(HTMLParser):
    """The tags of a page, and its text by the innermost tag."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.texts = [], {}
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_data(self, data):
        if data.strip():
            self.texts.setdefault(self.tags[-1][0], []).append(data.strip())


def all_of(page, tag):
    return [attributes for name, attributes in Tags(page).tags if name == tag]


def test_captions_with_their_scores():
    page = captions_html(Captioned([("a red ball", -1.25), ("", -2.0)], notes=["far"]), "Scores are scores.")
    texts = Tags(page).texts
    assert texts["p"] == ["a red ball", "far", "Scores are scores."]
    assert texts["td"] == ["-1.250", "a red ball", "-2.000"]
    assert texts["i"] == ["no words"]
    assert "Reference captions" not in page
    assert "Attention" not in page


def test_references():
    texts = Tags(captions_html(Captioned([("a", -1.0)], references=["one", "two"]), "")).texts
    assert texts["li"] == ["one", "two"]


def test_a_tile_for_each_word_is_clear_where_the_attention_is():
    weights = np.array([[0.1, 0.2, 0.3, 0.4], [0.7, 0.1, 0.1, 0.1]])
    picture = np.zeros((30, 40, 3), np.uint8)
    page = captions_html(Captioned([("red ball", -1.0)], Attention(picture, ["red", "ball"], weights)), "")
    assert Tags(page).texts["small"] == ["0.40", "0.70"]
    assert [image["alt"] for image in all_of(page, "img")] == ["Attention of red", "Attention of ball"]
    assert "--shape: 40 / 30" in page
    assert "equal weights would be 0.25" in page
    shades = [decoded(image["src"])[..., 3] for image in all_of(page, "img")]
    darkest = 0.72 * 255
    np.testing.assert_allclose(shades[0], darkest * (1 - np.array([[0.25, 0.5], [0.75, 1]])), atol=0.5)
    np.testing.assert_allclose(shades[1], darkest * (1 - np.array([[7, 1], [1, 1]]) / 7), atol=0.5)


def decoded(url):
    """The pixels of a data URL."""
    import base64
    import io

    from PIL import Image

    kind, _, data = url.partition(",")
    assert kind == "data:image/png;base64"
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(data))))


def test_a_caption_without_words_has_no_tiles():
    attention = Attention(np.zeros((4, 4, 3), np.uint8), [], np.zeros((0, 4)))
    assert "Attention" not in captions_html(Captioned([("", -1.0)], attention), "")


def test_translations_with_unknown_words_and_attention():
    weights = np.array([[0.9, 0.05, 0.05], [0, 0.25, 0.75]])
    alignment = Alignment(["A", "<END>"], ["a", "ox", "<END>"], weights)
    page = translations_html(Translated([("A", -0.5)], ["ox"], alignment), "Scores.")
    texts = Tags(page).texts
    assert "Not in the vocabulary, so read as <UNK>: ox" in texts["p"]
    assert texts["span"] == ["a", "ox", "<END>"]
    assert texts["th"] == ["Score", "Translation", "A", "<END>"]
    shares = [cell["style"] for cell in all_of(page, "td") if "style" in cell]
    assert shares == [f"--weight: {share}" for share in ("0.90", "0.05", "0.05", "0.00", "0.25", "0.75")]


def test_translations_without_attention():
    page = translations_html(Translated([("A", -0.5)], [], None), "Scores.")
    assert "UNK" not in page
    assert "Attention" not in page


def test_every_text_is_escaped():
    attention = Attention(np.zeros((4, 4, 3), np.uint8), [ATTACK], np.ones((1, 4)))
    captions = captions_html(Captioned([(ATTACK, -1.0)], attention, [ATTACK], [ATTACK]), ATTACK)
    alignment = Alignment([ATTACK], [ATTACK], np.ones((1, 1)))
    translations = translations_html(Translated([(ATTACK, -1.0)], [ATTACK], alignment), ATTACK)
    for page in (captions, translations):
        assert not re.search(r"<img src=x", page)
        assert not any("onerror" in attributes for _, attributes in Tags(page).tags)
