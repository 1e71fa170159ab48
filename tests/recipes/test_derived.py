from __future__ import annotations

import copy
import pickle
from dataclasses import FrozenInstanceError, asdict, fields
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
import pytest

from rnnlab.models import Seq2Seq
from rnnlab.options import Count, FloatType, Probability, Stored
from rnnlab.recipes.derived import UNSET, Table, arguments_of, derived_from, help_of, help_texts
from rnnlab.recipes.recipe import load_recipe
from rnnlab.recipes.schema import Place, RecipeError, from_table, to_table


class Dropout(NamedTuple):
    """Dropout of two kinds.

    Attributes
    ----------
    units, weights : float in [0, 1)
        Probability of dropping one.
    """

    units: Probability = 0.0
    weights: Probability = 0.0


class Layer:
    """A layer.

    Parameters
    ----------
    data : array
    size : int, optional
        Number of units,
        at least one.
    kind, other : str
        Two choices.

    Returns
    -------
    nothing : None
        Not a parameter.
    """

    def __init__(
        self,
        data: Any,
        size: Count = 3,
        *,
        kind: Literal["a", "b"] = "a",
        other: Literal["c"] | None = None,
        dropout: Annotated[Dropout | dict | None, Stored(Dropout)] = None,
        dtype: FloatType = np.float64,
    ) -> None:
        pass


class Wider(Layer):
    """A wider layer.

    Parameters
    ----------
    width : int
        Of the layer.
    """

    def __init__(self, *, width: Count = 2, size: Count = 7, **options: Any) -> None:
        super().__init__(None, size, **options)


@derived_from(Layer, without=("data",))
class LayerTable(Table):
    """The table [layer]."""

    path: str = "here"


def read(table, **keys):
    return from_table(table, keys, Place("recipe"))


def test_keys_are_the_arguments_with_types_and_defaults():
    assert [field.name for field in fields(LayerTable)] == [
        "path",
        "size",
        "kind",
        "other",
        "dropout",
        "dtype",
    ]
    assert asdict(read(LayerTable)) == {
        "path": "here",
        "size": 3,
        "kind": "a",
        "other": None,
        "dropout": {"units": 0.0, "weights": 0.0},
        "dtype": "float64",
    }
    table = read(LayerTable, size=4, kind="b", dropout={"units": 0.5})
    assert (table.size, table.kind, table.dropout.units, table.dropout.weights) == (4, "b", 0.5, 0.0)
    assert table.with_changes(size=5) == read(LayerTable, size=5, kind="b", dropout={"units": 0.5})
    with pytest.raises(FrozenInstanceError):
        table.size = 5


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"size": 0}, "recipe: size is 0, expected an integer of at least 1"),
        ({"kind": "c"}, "recipe: kind is 'c', expected one of 'a', 'b'"),
        ({"sise": 1}, "recipe: sise is unknown; did you mean size?"),
        ({"data": 1}, "recipe: data is unknown; there are path, size, kind, other, dropout, dtype"),
        ({"dropout": {"units": 1}}, r"recipe: dropout.units is 1, expected a probability in [0, 1)"),
        ({"dtype": "int"}, "recipe: dtype is 'int', expected one of 'float32', 'float64'"),
    ],
)
def test_errors_name_the_key(keys, message):
    with pytest.raises(RecipeError) as error:
        read(LayerTable, **keys)
    assert str(error.value) == message


def test_an_option_added_to_a_subclass_is_a_key():
    @derived_from(Wider, without=("data",))
    class WiderTable(Table):
        pass

    assert [field.name for field in fields(WiderTable)][:3] == ["width", "size", "kind"]
    assert (read(WiderTable).width, read(WiderTable).size) == (2, 7)
    assert help_of(WiderTable)["width"] == "Of the layer."


def test_an_option_added_to_a_model_is_a_key():
    class Coverage(Seq2Seq):
        """With a coverage penalty.

        Parameters
        ----------
        coverage : float in [0, 1)
            Weight of the penalty.
        """

        def __init__(self, *words: Any, coverage: Probability = 0.25, **options: Any) -> None:
            super().__init__(*words, **options)

    @derived_from(Coverage, without=("source_word_to_idx", "word_to_idx", "rng", "device"))
    class CoverageTable(Table):
        pass

    assert (read(CoverageTable).coverage, read(CoverageTable).hidden_dim) == (0.25, 512)
    with pytest.raises(RecipeError, match="coverage is 2, expected a probability"):
        read(CoverageTable, coverage=2)


def test_a_name_that_is_left_out_has_to_be_there():
    with pytest.raises(ValueError, match="without has extent; Layer has data, size"):
        derived_from(Layer, without=("extent",))


def test_keys_that_are_left_out_stay_unset():
    @derived_from(Layer, without=("data", "dropout"), unset=True)
    class Changes(Table):
        pass

    table = read(Changes, size=4, other="none")
    assert (table.size, table.kind, table.other) == (4, UNSET, None)
    assert to_table(table) == {"size": 4, "other": None}
    assert read(Changes, **to_table(table)) == table


@pytest.mark.parametrize("copied", [lambda each: pickle.loads(pickle.dumps(each)), copy.deepcopy])
def test_nested_tables_in_other_processes(copied):
    recipe = load_recipe("shapes_rnm")
    assert recipe.model.reviewer.blocks == 2
    assert copied(recipe) == recipe
    assert type(copied(recipe.model.reviewer)) is type(recipe.model.reviewer)


def test_help_is_the_docstring_s():
    assert help_texts(Layer.__doc__) == {
        "data": "",
        "size": "Number of units, at least one.",
        "kind": "Two choices.",
        "other": "Two choices.",
    }
    assert help_texts(None) == {}
    assert arguments_of(Dropout)["weights"].help == "Probability of dropping one."
    assert help_of(LayerTable)["size"] == "Number of units, at least one."
