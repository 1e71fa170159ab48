"""Cells of one's own in the models: their parameters are their own."""

import numpy as np
import pytest

from rnnlab.layers import register_cell
from rnnlab.layers.recurrent import cell
from rnnlab.models import CaptioningRNN, Seq2Seq, SequenceClassifier

from ..layers.recurrent.peephole import Projected

WORDS = {word: token for token, word in enumerate(["<NULL>", "<START>", "<END>", "<UNK>", "a", "dog"])}


@pytest.fixture
def projected(monkeypatch):
    """A function that registers a cell with a parameter of a name, as "projected"."""
    monkeypatch.setattr(cell, "_CELLS", dict(cell._CELLS))

    def register(name):
        register_cell("projected", Projected(name))
        return "projected"

    return register


@pytest.mark.parametrize("name", ["W_proj", "W_embed", "W_vocab"])
def test_a_name_of_the_captioner_is_taken(name, projected):
    """Else one array would be two parameters, and their gradients would be added up."""
    with pytest.raises(
        ValueError, match=f"^CaptioningRNN: two parts have a parameter '{name}', expected other"
    ):
        CaptioningRNN(WORDS, 4, 4, 4, projected(name))


@pytest.mark.parametrize("name", ["source_Wm", "selector_w"])
def test_a_name_of_attention_is_taken(name, projected):
    with pytest.raises(ValueError, match=f"two parts have a parameter '{name}'"):
        CaptioningRNN(WORDS, 4, 4, 4, projected(name), attention="additive", selector=True)


@pytest.mark.parametrize("name", ["W_source", "W_class"])
def test_names_of_other_models_are_taken(name, projected):
    own = projected(name)
    with pytest.raises(ValueError, match=f"two parts have a parameter '{name}'"):
        SequenceClassifier(3, 4, 4, own) if name == "W_class" else Seq2Seq(WORDS, WORDS, 4, 4, own)


def test_any_other_name_is_free(projected):
    model = CaptioningRNN(WORDS, 4, 4, 4, projected("W_own"), dtype=np.float64)
    assert model.params["W_own"].shape == (4, 4)
