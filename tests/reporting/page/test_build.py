import base64
import hashlib
import html
import os
import re
from importlib.resources import files

import numpy as np
import pytest

from rnnlab.reporting.page import build
from rnnlab.reporting.page.axes import NUM_COLORS
from rnnlab.reporting.page.build import JINJA, write_report
from rnnlab.reporting.record import read_records
from rnnlab.reporting.results import Results
from rnnlab.tasks.classification import ClassificationEvaluation

pytest.importorskip("jinja2")


def classified(confusion, notes=()):
    labels = np.zeros(2, int)
    evaluation = ClassificationEvaluation("val", labels, labels, 0.5, 0.75, np.array(confusion))
    return Results(None, "val", evaluation, list(notes))


def page_of(tmp_path, records, results=(), **options):
    path = tmp_path / "out" / "report.html"
    write_report(path, records, results, **options)
    return path.read_text(encoding="utf-8")


def test_a_run_whose_name_is_not_utf_8(write_run, tmp_path):
    page = page_of(tmp_path, read_records([write_run(os.fsdecode(b"\xffx"))]))
    assert "<title>\\udcffx: report</title>" in page


def test_a_page_of_one_run(write_run, tmp_path):
    page = page_of(tmp_path, read_records([write_run()]), [classified([[5, 1], [0, 0]], ["seen"])])
    text = html.unescape(re.sub(r"<[^>]+>", " ", page))
    for said in (
        "Loss (nats per token)",
        "Both losses are in nats per token",
        "All ",
        "Scores of val",
        "0.7500",
        "seen",
        "Most frequent mistakes: 0 as 1 (1).",
        "83.3%",
    ):
        assert said in text, said
    assert "Images and captions" not in text
    assert "Recipes: what differs" not in text


def test_a_page_of_language_models(write_run, writing, tmp_path):
    runs = [write_run("one"), write_run("two", changes={"model.hidden_dim": 9})]
    page = page_of(tmp_path, read_records(runs), [writing(), writing(kind="running_text")])
    text = page.partition('<section id="written">')[2]
    assert [name for name in re.findall("<h3>(.*)</h3>", text)] == ["one", "two"]
    assert text.count('<p class="text">') == 16
    assert "&lt;" in text
    assert '<a href="#written">Text</a>' in page


def test_a_page_of_several_runs(write_run, tmp_path):
    one, two = write_run("one"), write_run("two", changes={"model.hidden_dim": 9})
    results = [classified([[1, 0], [0, 1]], ["both", "own"]), Results(None, "", None, ["both"])]
    page = page_of(tmp_path, read_records([one, two]), results)
    assert "<title>one and two: report</title>" in page
    assert "Recipes: what differs" in page
    assert "model.hidden_dim" in page
    assert "<li>both</li>" in page
    assert "<li>one: own</li>" in page
    assert "There are no mistakes." in page
    assert page.count('class="line c0 training"') >= 1
    assert page.count('class="line c1 training"') >= 1


def test_images_and_sentences_are_on_the_page(write_run, captioned, scored, translated, tmp_path):
    records = read_records([write_run("one"), write_run("two")])
    page = page_of(tmp_path, records, [scored(captioned()), translated()], examples=3)
    assert page.count("data:image/jpeg;base64,") == 3
    assert page.count('<article class="card"') == 6
    assert '<button type="button" class="word"' in page
    assert "best CIDEr first" in page


def test_the_page_is_complete_in_itself(write_run, captioned, scored, tmp_path):
    page = page_of(tmp_path, read_records([write_run()]), [scored(captioned())])
    assert not re.search(r"https?://|//[a-z]+\.|@import|url\(", page)
    assert all(source.startswith("data:") for source in re.findall(r'src="([^"]*)"', page))
    assert all(target.startswith("#") for target in re.findall(r'href="([^"]*)"', page))
    (script,) = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in page
    assert "default-src 'none'" in page


def test_every_text_is_escaped(write_run, captioned, scored, tmp_path):
    attack = "<img src=x onerror=alert(1)>\"'&"
    run = write_run("<b>run", changes={"data.directory": attack})
    results = scored(captioned())
    results.evaluation.references[0][0] = attack
    results.run.data.vocabulary.idx_to_word[results.evaluation.captions[0][0].tokens[0]] = attack
    results.notes.append(attack)
    page = page_of(tmp_path, read_records([run]), [results])
    assert "<img src=x" not in page
    assert "<b>" not in page
    assert page.count("&lt;img src=x onerror=alert(1)&gt;&#34;&#39;&amp;") >= 4


def test_what_a_run_lacks_is_said(write_run, tmp_path):
    page = page_of(tmp_path, read_records([write_run(rows=[])]))
    assert "There are no curves: no epoch is finished." in page
    assert "the report was made with --no-scores" in page
    page = page_of(tmp_path, read_records([write_run("two")]), [Results(None, "", None, ["no data"])])
    assert "Nothing could be scored." in page
    assert "<li>no data</li>" in page


def test_a_page_that_fails_leaves_the_former_one(write_run, tmp_path, monkeypatch):
    path = tmp_path / "report.html"
    path.write_text("former")
    monkeypatch.setattr(build, "_render", lambda content: 7)  # cannot be written
    with pytest.raises(TypeError):
        write_report(path, read_records([write_run()]))
    assert path.read_text() == "former"
    assert [each.name for each in tmp_path.iterdir() if each.is_file()] == ["report.html"]


def test_jinja_is_an_extra(write_run, tmp_path, monkeypatch):
    monkeypatch.setattr("rnnlab.extras.find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r'pip install "rnnlab\[report\]"'):
        JINJA.require()
    with pytest.raises(ImportError):
        write_report(tmp_path / "report.html", read_records([write_run()]))
    assert not (tmp_path / "report.html").exists()


def luminance(color):
    channels = [int(color[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    """As WCAG defines it."""
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_colors_have_the_contrast_that_wcag_asks_for(theme):
    style = files("rnnlab.reporting.page").joinpath("style.css").read_text(encoding="utf-8")
    block = re.findall(r":root \{(.*?)\}", style, re.DOTALL)[theme]
    colors = dict(re.findall(r"--(\w+): (#\w{6})", block))
    for text in ("ink", "soft", "accent"):
        assert contrast(colors[text], colors["paper"]) >= 4.5
        assert contrast(colors[text], colors["panel"]) >= 4.5
    for number in range(NUM_COLORS):
        assert contrast(colors[f"c{number}"], colors["paper"]) >= 3
