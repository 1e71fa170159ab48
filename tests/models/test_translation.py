"""Seq2Seq: gradients of every combination, likelihood, decoding, options and errors."""

from itertools import product

import numpy as np
import pytest

from rnnlab import decoding
from rnnlab.gradcheck import check_model, projected_check
from rnnlab.gradcheck.cases import CELLS
from rnnlab.models import Seq2Seq

SOURCE = {"<NULL>": 0, "<UNK>": 1, "x": 2, "y": 3, "z": 4}
TARGET = {"<NULL>": 0, "<START>": 1, "<END>": 2, "a": 3, "b": 4, "c": 5}
NULL, START, END = 0, 1, 2
W, H = 3, 4
DROPOUT = {"word_dropout": 0.2, "output_dropout": 0.3}

COMBINATIONS = [
    {"cell_type": cell, "bidirectional": both, "num_layers": layers}
    for cell, both, layers in product(CELLS, (True, False), (1, 2))
]
COMBINATIONS += [
    {"cell_type": cell, "attention": attention, "target_attention": target, "output": output}
    for cell in ("gru", "lstm")
    for attention in (None, "additive", "bilinear")
    for target in (False, True)
    for output in ("deep", "linear", "concat")
]
COMBINATIONS += [
    {"cell_type": cell, "decoder_layers": layers, "attention": attention}
    for cell, layers, attention in zip(CELLS, (2, 3, 2, 2), (None, "additive", None, "bilinear"), strict=True)
]
COMBINATIONS += [{"tied_embeddings": True}, {"tied_embeddings": True, "output": "linear", "hidden_dim": W}]
COMBINATIONS += [{"encoder_dim": 2, "attention": "dot"}, {"encoder_dim": 3, "attention_dim": 5}]
COMBINATIONS += [
    {"target_attention": True, "target_delay": 2, "attention": each} for each in (None, "additive")
]
COMBINATIONS += [
    {"regularisation": {"zoneout_h": 0.2, "recurrent_dropout": 0.3, "weight_dropout": 0.2}},
    {"cell_type": "lstm", "attention": None, "num_layers": 2, "regularisation": {"zoneout_c": 0.3}},
]
RECONSTRUCTING = [
    {"cell_type": cell, "bidirectional": both, "num_layers": layers, "attention": attention}
    | {"reconstruction": 0.3, "encoder_reconstruction": 0.2, "encoder_reconstructor_dim": 3}
    for cell, both, layers, attention in product(CELLS, (True, False), (1, 2), (None, "additive"))
]
reconstructing = pytest.mark.parametrize(
    "options", RECONSTRUCTING, ids=lambda options: "-".join(str(value) for value in options.values())
)
SMOOTHED = [{"label_smoothing": 0.1, "attention": None}, {"label_smoothing": 0.2, "output": "linear"}]


def name_of(options):
    return "-".join(f"{key}={value}" for key, value in options.items())


every_combination = pytest.mark.parametrize("options", COMBINATIONS, ids=name_of)


def with_dropout(options):
    """The options with all dropout that they allow."""
    stacked = options.get("num_layers", 1) > 1 or "decoder_layers" in options
    return options | DROPOUT | ({"layer_dropout": 0.3} if stacked else {})


def build(**options):
    model = Seq2Seq(SOURCE, TARGET, W, **{"hidden_dim": H, "dtype": np.float64} | options)
    model.params.flat[...] = np.random.default_rng(5).uniform(-0.8, 0.8, model.params.flat.size)
    return model


def batch():
    """Long, short, with <NULL> inside, of one word, and empty sentences."""
    source = [[2, 3, 4, 2], [3, 2, 0, 0], [2, 0, 3, 0], [4, 0, 0, 0], [0, 0, 0, 0]]
    target = [[1, 3, 4, 5, 2], [1, 2, 0, 0, 0], [1, 5, 2, 0, 0], [0, 0, 0, 0, 0], [1, 4, 4, 2, 0]]
    return np.array(source), np.array(target)


# every kind of part at least once; all combinations are checked along a random direction
NUMBER_BY_NUMBER = [
    {"cell_type": "rnn", "target_attention": True, "output": "linear"},
    {"cell_type": "simplified_gru", "bidirectional": False, "num_layers": 2, "attention": None},
    {"cell_type": "lstm", "bidirectional": False, "attention": "bilinear", "target_attention": True},
    {"cell_type": "gru", "num_layers": 2, "label_smoothing": 0.2},
    {"cell_type": "lstm", "num_layers": 2, "decoder_layers": 2, "target_attention": True},
    {"encoder_dim": 2, "attention": "dot", "output": "linear"},
    {"encoder_dim": 3, "attention_dim": 5, "bidirectional": False},
    {"regularisation": {"zoneout_h": 0.2, "recurrent_dropout": 0.3, "weight_dropout": 0.2}},
]


@pytest.mark.slow
@pytest.mark.parametrize("options", NUMBER_BY_NUMBER, ids=name_of)
def test_every_parameter(options):
    # 2 units make it fast, and larger weights let attention differ between slots; encoder_dim needs H units
    model = build(**with_dropout(options), **({} if "encoder_dim" in options else {"hidden_dim": 2}))
    model.params.flat[...] *= 2
    for row in check_model(model, batch(), seed=3, verbose=False):
        assert row.error < 1e-7 or row.error * row.grad_norm < 1e-10, row  # relative, or absolute where tiny
        assert row.grad_norm > 1e-6, f"{row.name} has no gradient: a vacuous check"


@pytest.mark.one_in(2)
@reconstructing
def test_along_a_random_direction_with_reconstruction(options, rng):
    check_direction(build(**with_dropout(options)), rng, seed=3)


@pytest.mark.slow
def test_every_parameter_with_reconstruction():
    test_every_parameter(RECONSTRUCTING[1])


@pytest.mark.parametrize("options", COMBINATIONS + SMOOTHED, ids=name_of)
def test_along_a_random_direction(options, rng):
    check_direction(build(**with_dropout(options)), rng, seed=3)


@pytest.mark.one_in(6)
@pytest.mark.parametrize("options", COMBINATIONS + SMOOTHED, ids=name_of)
def test_along_a_random_direction_without_dropout(options, rng):
    check_direction(build(**options, loss_average="batch"), rng)


def check_direction(model, rng, seed=None):
    def loss():
        return model.loss(*batch(), rng=None if seed is None else np.random.default_rng(seed))

    _, grads = loss()
    assert all(grad.any() for grad in grads.values())
    assert projected_check(lambda: loss()[0], model.params.flat, grads.flat, rng=rng) < 1e-7


@pytest.mark.one_in(3)
@every_combination
def test_nll_is_the_loss_summed(options):
    total, tokens = build(**with_dropout(options)).nll(*batch())
    assert tokens == 4 + 1 + 2 + 0 + 3
    assert build(**options).loss(*batch())[0] == pytest.approx(total / tokens)
    assert build(**options, loss_average="batch").loss(*batch())[0] == pytest.approx(total / 5)


@pytest.mark.one_in(3)
@every_combination
def test_padding_and_order_change_nothing(options, rng):
    model, (source, target) = build(**options), batch()
    expected, grads = model.loss(source, target)
    longer = np.pad(source, ((0, 0), (0, 3))), np.pad(target, ((0, 0), (0, 2)))
    loss, padded = model.loss(*longer)
    assert loss == pytest.approx(expected, rel=1e-13)
    np.testing.assert_allclose(padded.flat, grads.flat, rtol=1e-9, atol=1e-13)
    order = rng.permutation(5)
    loss, permuted = model.loss(source[order], target[order])
    assert loss == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(permuted.flat, grads.flat, rtol=1e-9, atol=1e-12)


@pytest.mark.one_in(6)
@every_combination
def test_it_decodes_as_it_trains(options):
    """Greedy and beam search: every sentence has the probability that the likelihood gives it."""
    model, (source, _) = build(**options), batch()
    for found in (
        decoding.greedy(model, source, max_length=4, forbid=(NULL, START)),
        decoding.beam_search(model, source, beam_size=3, n_best=2, max_length=4, forbid=(NULL, START)),
    ):
        for row, hypotheses in enumerate(found):
            for hypothesis in hypotheses:
                sentence = [START, *hypothesis.tokens, *([END] if hypothesis.finished else [])]
                total, _ = model.nll(source[row : row + 1], [sentence])
                assert hypothesis.log_prob == pytest.approx(-total)


def test_alignments_are_over_the_source(rng):
    source = np.array([[2, 3, 4, 0], [3, 0, 0, 0]])
    (long,), (short,) = decoding.beam_search(build(), source, max_length=3, return_alignments=True)
    np.testing.assert_allclose(long.alignment.sum(axis=1), 1)
    assert not long.alignment[:, 3:].any()
    np.testing.assert_allclose(short.alignment[:, 0], 1)
    with pytest.raises(ValueError, match="does not attend to its source"):
        decoding.greedy(build(attention=None), source, return_alignments=True)


def test_a_model_from_its_configuration():
    model = build(cell_type="lstm", target_attention=True, num_layers=2)
    again = Seq2Seq.from_config(model.config())
    assert again.params.shapes == model.params.shapes
    assert repr(model).startswith("Seq2Seq(cell_type='lstm'")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"hidden_dim": 0}, "hidden_dim is 0, expected an integer of at least 1"),
        ({"num_layers": 0}, "num_layers is 0, expected an integer of at least 1"),
        ({"layer_dropout": 1.0}, "layer_dropout is 1.0"),
        ({"label_smoothing": 1.0}, "label_smoothing is 1.0"),
        ({"output": "wide"}, "output is 'wide', expected one of 'linear', 'concat', 'deep'"),
        ({"attention": "loud"}, "attention is 'loud'"),
        ({"attention": "dot"}, "Seq2Seq: attention is 'dot', .* found 4 and 8"),
        ({"cell_type": "tree"}, "cell_type is 'tree'"),
        ({"loss_average": "word"}, "loss_average is 'word'"),
        ({"dtype": np.float16}, "dtype is 'float16'"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        Seq2Seq(SOURCE, TARGET, **{"wordvec_dim": W, "hidden_dim": H} | options)


def test_bad_batches():
    model, (source, target) = build(), batch()
    with pytest.raises(ValueError, match=r"Seq2Seq\.loss: source has shape \(4,\)"):
        model.loss(source[0], target)
    with pytest.raises(
        ValueError,
        match=r"Seq2Seq\.loss: target has shape \(4, 5\), expected \(N, L\) or \(N, S, L\) with N = 5",
    ):
        model.loss(source, target[:4])
    with pytest.raises(IndexError, match="source holds the token 5, the vocabulary has 5 words"):
        model.loss(source + (source == 4), target)
    with pytest.raises(ValueError, match="source_word_to_idx has no <NULL>"):
        Seq2Seq({"x": 0}, TARGET)


# ---------------------------------------------------------------- alignments


@pytest.mark.parametrize("target_attention", [False, True])
def test_alignments_are_those_of_the_steps(target_attention):
    """Teacher forcing at once gives what decoding gives step by step."""
    model, (source, target) = build(target_attention=target_attention), batch()
    weights = model.align(source, target)
    assert weights.shape == (5, 4, 4)
    state = model.start(source)
    for t in range(4):
        _, state = model.advance(state, target[:, t])
        real = (target[:, t + 1 :] != NULL).any(axis=1)
        np.testing.assert_allclose(weights[real, t], model.attention(state)[real], rtol=1e-12)
        assert not weights[~real, t].any()


def test_alignments_need_an_attention():
    with pytest.raises(ValueError, match="does not attend to its source"):
        build(attention=None).align(*batch())
    with pytest.raises(ValueError, match="Seq2Seq.align: target has shape"):
        build().align(batch()[0], np.zeros((5, 1), int))


def test_an_ensemble_attends_if_one_of_its_members_does():
    attends, does_not = build(), build(attention=None)
    assert decoding.Ensemble([does_not, attends]).attention is not None
    assert decoding.Ensemble([does_not, does_not]).attention is None
    with pytest.raises(
        ValueError, match="greedy: return_alignments is True, but this Seq2Seq does not attend"
    ):
        decoding.greedy(does_not, batch()[0], return_alignments=True)


@pytest.mark.parametrize("attention", ["none", "soft", True])
def test_an_attention_that_there_is_not(attention):
    message = f"attention is {attention!r}, expected one of 'additive', 'dot', 'bilinear' or None"
    with pytest.raises(ValueError, match=f"Seq2Seq: {message}"):
        build(attention=attention)
