"""The text stays short, imports NumPy alone, and has the names and arguments of the layers."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import pytest

from rnnlab import layers, plain

from .cases import MODULES, PLAIN

FILES = sorted(Path(plain.__path__[0]).glob("*.py"))
SHARED = sorted(name for name in vars(PLAIN) if name in layers.__all__)
OWN = {  # what rnnlab.layers has under another name, or in rnnlab.models and rnnlab.decoding
    "attend_backward",
    "attend_forward",
    "attentive_step_backward",
    "attentive_step_forward",
    "beam_search",
    "factored_lstm_backward",
    "factored_lstm_forward",
    "parts_of_step",
    "real_steps",
    "regularised_lstm_backward",
    "regularised_lstm_forward",
    "sigmoid",
}


def test_it_is_read_in_an_evening():
    lines = {file.name: len(file.read_text().splitlines()) for file in FILES}
    assert sum(lines.values()) < 1000, lines
    assert max(lines.values()) <= 125, lines


@pytest.mark.parametrize("file", FILES, ids=[file.stem for file in FILES])
def test_it_imports_numpy_alone(file):
    for node in ast.walk(ast.parse(file.read_text())):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        for name in names:
            assert name == "numpy" or name.split(".")[:2] == ["rnnlab", "plain"], name


@pytest.mark.parametrize("name", SHARED)
def test_a_layer_has_the_arguments_of_its_namesake(name):
    """Positional arguments are the same from the first on; the others are options of the layer, too."""
    own = inspect.signature(getattr(PLAIN, name)).parameters.values()
    public = inspect.signature(getattr(layers, name)).parameters
    positional = [each.name for each in own if each.kind is each.POSITIONAL_OR_KEYWORD]
    assert positional == list(public)[: len(positional)]
    assert {each.name for each in own} <= set(public)
    required = [each.name for each in public.values() if each.default is each.empty]
    assert set(required) <= {each.name for each in own}


def test_every_layer_has_its_text():
    """Except what computes no gradient of its own, and the loop over cells of any kind."""
    without = {name for name in layers.__all__ if name.endswith("_shapes")} | {
        "Cell", "Regularisation", "attentive_start", "attentive_step", "cell_names", "frequent_words",
        "recurrent_backward", "recurrent_forward", "register_cell", "reversed_in_time",
    }  # fmt: skip
    assert set(layers.__all__) - without == set(SHARED)
    assert {name for name in vars(PLAIN) if not name.startswith("_")} - set(SHARED) == OWN


def test_equations_have_a_source():
    """Each layer's docstring names the paper or the course that its equations are from."""
    for module in MODULES:
        docstring = module.__doc__ or ""
        named = any(
            year in docstring for year in ("2013", "2014", "2015", "2016", "2017", "2018", "2020", "cs231n")
        )
        assert named or module.__name__.endswith((".activation", ".padding")), module.__name__
