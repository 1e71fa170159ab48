import pytest

from rnnlab.models import CaptioningRNN, Seq2Seq
from rnnlab.models.parts.losses import LOSSES, check_sampled_losses
from rnnlab.recipes.derived import arguments_of


def test_weights_and_sizes_are_options_of_models():
    options = arguments_of(CaptioningRNN) | arguments_of(Seq2Seq)
    for name, loss in LOSSES.items():
        assert name in options
        assert loss.part is None or loss.part.size in options


@pytest.mark.parametrize("name", ["label_smoothing", "discriminative"])
def test_losses_of_true_sentences_are_refused_for_samples(name):
    weights = dict.fromkeys(LOSSES, 0.0)
    check_sampled_losses("", weights)
    check_sampled_losses("", weights | {"reconstruction": 0.1, "doubly_stochastic": 1.0})
    with pytest.raises(ValueError, match=rf"^losses\.{name} is 0\.1, expected 0 in self-critical training"):
        check_sampled_losses("losses.", weights | {name: 0.1})
