"""Runs that are served, and a server with a page."""

import asyncio
import contextlib
import dataclasses
import functools
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from rnnlab import cli
from rnnlab.data import write_shapes
from rnnlab.recipes.tables import DecodingTable
from rnnlab.runs import load_run
from rnnlab.serving.server import gradio_settings, listen

from .. import quick_runs
from ..tasks.letters import RECIPE as LETTERS
from ..tasks.letters import write_letters

SHAPES = """
[data]
kind = "shapes"
directory = "{directory}"
features = "local"
[model]
hidden_dim = 16
wordvec_dim = 8
attention = "additive"
[training]
num_epochs = 1
[decoding]
max_length = 8
[evaluation]
metrics = ["BLEU"]
"""


@pytest.fixture(scope="package")
def album(tmp_path_factory):
    """Photographs, and runs on their vectors and on their grids."""
    pytest.importorskip("onnxruntime")
    from ..cli import photographs

    album = photographs.write_photographs(tmp_path_factory.mktemp("album"))
    for name, options, changes in (
        ("pooled", (), ()),
        ("grids", ("--grid",), ("model.attention=additive",)),
    ):
        features = album.folder / f"{name}.h5"
        command = ["features", str(album.photographs), "--encoder", str(album.network), "--out"]
        assert cli.main([*command, str(features), "--no-progress", *options]) == 0
        photographs.train(album, features, album.folder / name, "training.num_epochs=5", *changes)
    return album


@pytest.fixture(scope="package")
def shapes(tmp_path_factory):
    """A run on the built-in scenes, with attention."""
    folder = tmp_path_factory.mktemp("shapes")
    write_shapes(folder / "data", {"train": 60, "val": 30, "test": 12})
    (folder / "shapes.toml").write_text(SHAPES.format(directory=folder / "data"))
    return quick_runs.train(folder / "shapes.toml", folder / "run")


@pytest.fixture(scope="package")
def letters(tmp_path_factory):
    """A run that translates letters, with attention."""
    folder = tmp_path_factory.mktemp("letters")
    write_letters(folder)
    (folder / "letters.toml").write_text(LETTERS.format(directory=folder))
    return quick_runs.train(folder / "letters.toml", folder / "run")


@pytest.fixture(scope="module")
def answerer():
    """A function that makes an answerer of a run, by the decoding of its recipe, with changes."""

    def make(kind, directory, *, with_data=False, **changes):
        run = load_run(directory, with_data=with_data)
        return kind(run, dataclasses.replace(run.recipe.decoding, **changes))

    return make


@pytest.fixture
def fixed():
    """A function that makes an answerer without a model, which answers as it is told to."""

    def make(kind, **methods):
        found = kind.__new__(kind)
        run = SimpleNamespace(directory="runs/fixed", members=(), recipe=SimpleNamespace(data=None))
        found.run, found.decoding, found.widest_beam = run, DecodingTable(), 10
        for name, method in methods.items():
            setattr(found, name, method)
        return found

    return make


@pytest.fixture(scope="module")
def gradio():
    """Gradio, with its settings."""
    with gradio_settings():
        yield pytest.importorskip("gradio")


def in_loop(function, *arguments):
    """The result of a function that is called in an event loop. Gradio would leave others of its own open."""

    async def call():
        return function(*arguments)

    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, call()).result()


@pytest.fixture
def page_of(gradio):
    """The function :func:`rnnlab.serving.pages.page_of`."""
    from rnnlab.serving import pages

    return functools.partial(in_loop, pages.page_of)


@pytest.fixture
def served(gradio):
    """A function that serves an answerer until the end of the test, and returns the address of its page."""
    with serving() as serve:
        yield serve


@pytest.fixture(scope="module")
def served_to_all(gradio):
    """The same until the end of the module."""
    with serving() as serve:
        yield serve


@contextlib.contextmanager
def serving():
    from rnnlab.serving.application import Application, PageServer

    with contextlib.ExitStack() as stack:

        def serve(answerer, max_upload=1_000_000):
            listener = stack.enter_context(listen("127.0.0.1", 0))
            server = PageServer(in_loop(Application, answerer, listener, max_upload))
            thread = threading.Thread(target=server.run, args=([listener],))
            thread.start()
            stack.callback(thread.join)
            stack.callback(server.handle_exit, signal.SIGTERM, None)
            return f"http://127.0.0.1:{listener.getsockname()[1]}"

        yield serve
