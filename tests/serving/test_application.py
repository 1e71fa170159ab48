"""A server with the page of a small run, asked as a program would."""

import contextlib
import html
import json
import threading
import time
import urllib.error
import urllib.request
import uuid

import pytest
from PIL import Image

from rnnlab.serving.captioning import PhotographCaptioner
from rnnlab.serving.translation import Translator

# Gradio uses an option of pandas that is deprecated.
pytestmark = pytest.mark.filterwarnings("ignore:.*no_silent_downcasting")


@pytest.fixture
def translating(letters, answerer, served):
    return served(answerer(Translator, letters))


@pytest.fixture(scope="module")
def captioning(album, answerer, served_to_all):
    return served_to_all(answerer(PhotographCaptioner, album.folder / "grids"), max_upload=100_000)


def get(address):
    with urllib.request.urlopen(address, timeout=60) as response:
        return response.read().decode(), response.headers


def post(address, content, kind="application/json"):
    """The answer to a request, as JSON; an error of the server as its status."""
    request = urllib.request.Request(address, content, {"Content-Type": kind})
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            return json.loads(response.read())
    except urllib.error.HTTPError as error:
        return error.code


def ask(address, name, *data):
    """The events that answer a call: the last one is "complete" or "error", with its data."""
    event = post(f"{address}/gradio_api/call/{name}", json.dumps({"data": data}).encode())
    answer, _ = get(f"{address}/gradio_api/call/{name}/{event['event_id']}")
    kind, data = [line.partition(": ")[2] for line in answer.strip().splitlines()[-2:]]
    return kind, json.loads(data)


def upload(address, content, name="photo.png"):
    boundary = uuid.uuid4().hex
    head = f'--{boundary}\r\nContent-Disposition: form-data; name="files"; filename="{name}"\r\n\r\n'
    body = head.encode() + content + f"\r\n--{boundary}--\r\n".encode()
    return post(f"{address}/gradio_api/upload", body, f"multipart/form-data; boundary={boundary}")


def file(path):
    return {"path": str(path), "meta": {"_type": "gradio.FileData"}}


def test_a_photograph_is_captioned(captioning, album, answerer):
    photo = album.photographs / "photo_14.png"
    (path,) = upload(captioning, photo.read_bytes())
    kind, (page,) = ask(captioning, "caption", file(path), 4)
    assert kind == "complete"
    expected = answerer(PhotographCaptioner, album.folder / "grids").caption(photo, 4)
    assert expected.captions[0][0] in page
    assert page.count("<tr>") == 1 + 4
    assert page.count("<figure>") == len(expected.attention.words)


def test_wrong_input_is_answered_and_the_server_lives_on(captioning, album, tmp_path):
    (path,) = upload(captioning, b"no image", "broken.jpg")
    kind, error = ask(captioning, "caption", file(path), 4)
    assert kind == "error"
    assert error["error"].startswith("broken.jpg: found no image of a format that is read")
    photo = (album.photographs / "photo_14.png").read_bytes()
    (path,) = upload(captioning, photo)
    kind, error = ask(captioning, "caption", file(path), 1000)
    assert (kind, error["error"]) == ("error", "the beam width is 1000, expected 1 to 10")
    for wrong, shown in (("wide", "'wide'"), (2.5, "2.5"), (True, "True"), (None, "None"), ([1], "[1]")):
        kind, error = ask(captioning, "caption", file(path), wrong)
        expected = f"the beam width is {html.escape(shown)}, expected an integer"
        assert (kind, error["error"]) == ("error", expected)
    assert ask(captioning, "caption", file(path), 2)[0] == "complete"


def test_uploads_are_limited(captioning):
    assert upload(captioning, b"x" * 100_001) == 413
    assert upload(captioning, b"x" * 99_000) != 413


@pytest.mark.parametrize("place", [0, 1], ids=["photograph", "beam width"])
def test_files_of_the_machine_and_addresses_are_not_read(captioning, album, tmp_path, place):
    """Gradio itself would copy the file or load the address."""
    private = tmp_path / "private.png"
    Image.new("RGB", (20, 20), "red").save(private)
    for wanted in (private, "http://127.0.0.1:9/private.png", "https://example.org/private.png"):
        data = [None, 3]
        data[place] = file(wanted)
        started = time.monotonic()
        kind, error = ask(captioning, "caption", *data)
        assert (kind, error["error"]) == ("error", "Upload the file itself.")
        assert time.monotonic() - started < 30


def test_files_that_are_not_declared_as_such_are_not_read_either(captioning, tmp_path):
    """Gradio does not look at these."""
    private = tmp_path / "private.png"
    Image.new("RGB", (20, 20), "red").save(private)
    path = str(private)
    for photograph in ({"path": path}, {**file(path), "is_stream": True}, {"path": None, "url": path}):
        kind, error = ask(captioning, "caption", photograph, 3)
        assert (kind, error["error"]) == ("error", "Upload the file itself.")
    for photograph in ({"path": 3}, [path], path):
        assert ask(captioning, "caption", photograph, 3)[0] == "error"


def test_files_of_the_machine_are_not_served(captioning, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "private.txt").write_text("private")
    for path in (tmp_path / "private.txt", "private.txt"):
        with pytest.raises(urllib.error.HTTPError, match="HTTP Error 40[34]"):
            get(f"{captioning}/gradio_api/file={path}")


@pytest.mark.slow
def test_texts_are_translated(translating, letters, answerer):
    kind, (page,) = ask(translating, "translate", "a b zebra", 2)
    assert kind == "complete"
    assert answerer(Translator, letters).translate("a b zebra", 2).translations[0][0] in page
    assert "read as &lt;UNK&gt;: zebra" in page
    kind, error = ask(translating, "translate", " ", 2)
    assert (kind, error["error"]) == ("error", "there is no text to translate: write some first")


@pytest.mark.slow
def test_several_people_at_once(translating):
    """Each gets the answer to the own sentence."""
    texts = [" ".join("abcdefgh"[k % 8] for k in range(first, first + 3)) for first in range(12)]
    expected = [ask(translating, "translate", text, 3) for text in texts]
    found = [None] * len(texts)

    def work(k):
        found[k] = ask(translating, "translate", texts[k], 3)

    people = [threading.Thread(target=work, args=(k,)) for k in range(len(texts))]
    for each in people:
        each.start()
    for each in people:
        each.join()
    assert found == expected


def test_a_bug_is_not_shown(fixed, served, capfd):
    def translate(text, beam_size):
        raise ZeroDivisionError("secret")

    kind, error = ask(served(fixed(Translator, translate=translate)), "translate", "a", 1)
    assert (kind, error["error"]) == ("error", None)
    assert "ZeroDivisionError: secret" in capfd.readouterr().err  # for the one who serves


def test_the_page_allows_no_other_source_and_names_none(translating):
    page, headers = get(translating)
    policy = headers["content-security-policy"]
    assert policy.startswith("default-src 'self'; ")
    assert "http" not in policy
    assert "*" not in policy
    config = json.loads(get(f"{translating}/config")[0])
    assert config["analytics_enabled"] is False
    assert config["run_history"] is False
    assert config["stylesheets"] == []  # fonts of other servers would be here
    assert "fonts.googleapis" not in page


def test_the_page_has_its_style_and_no_links_of_gradio(translating):
    config = json.loads(get(f"{translating}/config")[0])
    assert ".answer" in config["css"]
    assert config["footer_links"] == []
    assert not config["pwa"]


def test_the_server_ends_while_a_page_is_open(translating):
    """The fixture waits for its end. A page keeps this connection as long as it is open."""
    opened = threading.Event()

    def keep():
        with (
            contextlib.suppress(OSError),
            urllib.request.urlopen(f"{translating}/gradio_api/heartbeat/page") as stream,
        ):
            stream.readline()
            opened.set()
            stream.read()

    threading.Thread(target=keep, daemon=True).start()
    assert opened.wait(30)
