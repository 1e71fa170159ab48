"""``rnnlab serve``: which page a run gets, errors before the server starts, and the command as a whole."""

import json
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from importlib.metadata import PackageNotFoundError
from types import SimpleNamespace

import h5py
import pytest

from rnnlab import cli
from rnnlab.decoding import Ensemble
from rnnlab.recipes.recipe import load_recipe
from rnnlab.serving.captioning import PhotographCaptioner, PictureCaptioner
from rnnlab.serving.translation import Translator

from .. import quick_runs
from ..tasks.letters import RECIPE, write_letters

pytest.importorskip("gradio")

# The command with a record of the machines that it connects to or whose addresses it asks for.
WATCHED = """
import sys

def watch(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.sendto"):
        print(f"{event} {arguments}", file=sys.stderr)

sys.addaudithook(watch)
from rnnlab.cli import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture
def serve(monkeypatch, capsys):
    """A function that runs the command up to the server, and returns what is served and what was printed."""
    served = []

    def stand_in(answerer, listener, *, max_upload, announce):
        announce()
        served.append(SimpleNamespace(answerer=answerer, max_upload=max_upload))

    monkeypatch.setattr("rnnlab.cli.serve.serve", stand_in)

    def run(*words):
        capsys.readouterr()
        assert cli.main(["serve", *map(str, words), "--port", "0"]) == 0
        served[-1].printed = capsys.readouterr().out
        return served[-1]

    return run


@pytest.fixture
def error(capsys):
    """A function that runs the command, which fails, and returns the message."""

    def run(*words):
        capsys.readouterr()
        assert cli.main(["serve", *map(str, words)]) == 2
        message = capsys.readouterr().err.strip()
        assert message.startswith("rnnlab serve: ")
        return message.removeprefix("rnnlab serve: ")

    return run


@pytest.fixture(scope="module")
def letters(tmp_path_factory):
    folder = tmp_path_factory.mktemp("letters")
    write_letters(folder)
    (folder / "letters.toml").write_text(RECIPE.format(directory=folder))
    for seed in ("0", "1"):
        changes = ["training.num_epochs=1", f"training.seed={seed}"]
        quick_runs.train(folder / "letters.toml", folder / f"run{seed}", *changes)
    return folder


@pytest.fixture(scope="module")
def photographs(tmp_path_factory):
    """A run on features that record their encoder, and one on the same features without the record."""
    pytest.importorskip("onnxruntime")
    from .photographs import train, write_photographs

    album = write_photographs(tmp_path_factory.mktemp("album"))
    features, plain = album.folder / "features.h5", album.folder / "plain.h5"
    command = ["features", str(album.photographs), "--encoder", str(album.network), "--out", str(features)]
    assert cli.main([*command, "--no-progress"]) == 0
    with h5py.File(features) as source, h5py.File(plain, "w") as target:
        for name in ("features", "filenames"):
            target[name] = source[name][()]
    album.recorded = train(album, features, album.folder / "recorded", "training.num_epochs=1")
    album.unrecorded = train(album, plain, album.folder / "unrecorded", "training.num_epochs=1")
    return album


@pytest.mark.slow
def test_a_run_on_photographs(serve, photographs):
    found = serve(photographs.recorded, "--max-upload-mb", "0.5")
    assert type(found.answerer) is PhotographCaptioner
    assert found.answerer.caption(photographs.photographs / "photo_1.png", 2).captions
    assert found.max_upload == 2**19
    assert found.printed.startswith(f"Serving {photographs.recorded} at http://127.0.0.1:")


def test_an_encoder_that_the_features_do_not_record(serve, error, photographs):
    message = error(photographs.unrecorded)
    assert "do not record which encoder made them: give its ONNX file with --encoder" in message
    found = serve(photographs.unrecorded, "--encoder", photographs.network)
    assert found.answerer.caption(photographs.photographs / "photo_1.png", 2).captions
    assert (
        error(photographs.unrecorded, "--encoder", "no.onnx")
        == "no.onnx: found no such file, expected the ONNX file of --encoder"
    )
    assert error(photographs.unrecorded, "--size", "8").startswith("--size is given without --encoder")


def test_an_encoder_that_is_gone(error, photographs, tmp_path):
    network = shutil.move(photographs.network, tmp_path / "moved.onnx")
    try:
        assert "which is no longer there: give the file with --encoder" in error(photographs.recorded)
    finally:
        shutil.move(network, photographs.network)


def test_a_run_on_scenes_captions_its_own_pictures(serve, error, run, photographs):
    found = serve(run)
    assert type(found.answerer) is PictureCaptioner
    assert list(found.answerer.splits) == ["val", "test"]
    message = error(run, "--encoder", photographs.network)
    assert message == f"--encoder is for photographs, and {run} reads none"


@pytest.mark.slow
def test_a_run_that_translates(serve, error, letters, photographs):
    found = serve(letters / "run0")
    assert type(found.answerer) is Translator
    assert found.answerer.translate("a b", 2).translations
    assert "reads none" in error(letters / "run0", "--encoder", photographs.network)


def test_several_runs_are_an_ensemble(serve, error, run, attending_run, letters):
    found = serve(run, attending_run, "--average", "log_probabilities")
    assert type(found.answerer.run.model) is Ensemble
    assert found.answerer.caption("val", 0, 2).attention is not None
    assert found.printed.startswith(f"Serving {run} {attending_run} at ")
    found = serve(letters / "run0", letters / "run1")
    assert found.answerer.translate("a b", 2).alignment is not None
    assert "--average is given with one run, expected several runs" in error(
        run, "--average", "probabilities"
    )
    assert "have the same task" in error(run, letters / "run0")


def test_the_options_of_the_search_are_defaults(serve, error, run, letters):
    decoding = serve(letters / "run0").answerer.decoding
    assert (decoding.beam_size, decoding.max_length) == (2, 8)  # of the recipe
    options = ["--beam", "12", "--max-length", "5", "--length-penalty", "0.5", "--groups", "3"]
    found = serve(run, *options).answerer
    assert found.widest_beam == 12
    assert found.decoding.max_length == 5
    assert found.about_scores == "The score is log-probability / (words + 1)^0.5, in nats."
    assert "num_groups is 2" in error(run, "--groups", "2")  # the beam of the recipe is 3
    for wrong in (["--method", "sample"], ["--port", "65536"]):
        with pytest.raises(SystemExit):
            cli.main(["serve", str(run), *wrong])


@pytest.mark.slow
def test_other_searches_and_lists_of_a_recipe_do_not_matter(serve, recipe, tmp_path):
    for name, keys, options, width in (
        ("greedy", ["method=greedy"], [], 3),
        ("list", ["beam_size=4", "n_best=4"], ["--beam", "2"], 2),
    ):
        command = ["train", str(recipe), "--out", str(tmp_path / name), "--no-progress", "--epochs", "1"]
        words = [word for key in keys for word in ("--set", f"decoding.{key}")]
        assert cli.main([*command, *words]) == 0
        decoding = serve(tmp_path / name, *options).answerer.decoding
        assert (decoding.method, decoding.beam_size) == ("beam", width)


def test_a_classifier_is_not_served(error, monkeypatch):
    digits = SimpleNamespace(directory="the runs/digits", recipe=load_recipe("digits_lstm"))
    monkeypatch.setattr("rnnlab.cli.serve.open_runs", lambda *arguments, **options: digits)
    assert error("the runs/digits") == (
        "the runs/digits holds a model that classifies: rnnlab evaluate 'the runs/digits'; a page is for "
        "models that caption or translate"
    )


def test_errors_of_the_address(error, run, tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert error(run, "--port", port).startswith(f"--port {port}: Address already in use")
    assert error(run, "--host", "192.0.2.1") == "--host 192.0.2.1 is not an address of this machine"
    assert "holds no run" in error(tmp_path)


def test_without_gradio(error, run, monkeypatch):
    def missing(name):
        raise PackageNotFoundError(name)

    monkeypatch.setattr("rnnlab.serving.server.version", missing)
    assert error(run) == 'serving a run needs Gradio: pip install "rnnlab[serve]"'


def test_the_browser_is_opened_on_request(serve, run, monkeypatch, capsys):
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    serve(run)
    assert opened == []
    printed = serve(run, "--open").printed
    assert f" at {opened[0]} " in printed
    assert cli.main(["serve", str(run), "--port", "0", "--open"]) == 0
    assert capsys.readouterr().err.startswith("rnnlab serve: found no browser to open http://127.0.0.1:")


@pytest.mark.slow
def test_the_command_serves_until_it_is_interrupted(letters):
    """It connects to no machine, and says nothing when it ends."""
    command = [sys.executable, "-c", WATCHED, "serve", str(letters / "run0"), "--port", "0"]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(
            signal.SIGINT, signal.SIG_DFL
        ),  # the tests may run where it is ignored
    )
    try:
        words = process.stdout.readline().split()
        assert words[:3] == ["Serving", str(letters / "run0"), "at"]
        call = f"{words[3]}/gradio_api/call/translate"
        content = json.dumps({"data": ["a b", 2]}).encode()
        with urllib.request.urlopen(
            urllib.request.Request(call, content, {"Content-Type": "application/json"}), timeout=60
        ) as started:
            event = json.loads(started.read())["event_id"]
        with urllib.request.urlopen(f"{call}/{event}", timeout=60) as answer:
            assert b"event: complete" in answer.read()
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        out, errors = process.communicate(timeout=30)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == 130
    assert out == ""
    *connections, last = errors.splitlines()
    assert last == "rnnlab serve: interrupted"
    assert connections  # to its own address
    assert [line for line in connections if "'127.0.0.1'" not in line] == []
