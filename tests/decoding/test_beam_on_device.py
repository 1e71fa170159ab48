"""Beam search on a GPU, or CuPy's stand-in: the hypotheses of a CPU, and what the host waits for."""

import numpy as np
import pytest

from rnnlab.decoding import Ensemble, beam_search
from rnnlab.models import CaptioningRNN
from rnnlab.ops import ops_on

from .toys import END, START, AttendingModel, TableModel

OPTIONS = [
    {"beam_size": 1},
    {"beam_size": 3, "n_best": 2, "length_penalty": 0.7},
    {"beam_size": 5, "n_best": 5, "min_length": 2, "normalisation": "gnmt", "length_penalty": 1.0},
    {"beam_size": 4, "n_best": 4, "num_groups": 2, "no_repeat_ngram": 2, "forbid": (START,)},
    {"beam_size": 40, "n_best": 40, "forbid": (START,)},
    {"beam_size": 3, "n_best": 3, "num_groups": 3, "diversity": 0.3, "return_alignments": True},
]


class OnDevice(AttendingModel):
    """The table, the state and the log-probabilities are on a device."""

    def __init__(self, table):
        super().__init__(table)
        self.ops = ops_on("gpu")
        self.on_device = self.ops.asarray(table)

    def start(self, source):
        sources = self.ops.asarray(np.asarray(source))
        return (
            sources,
            None,
            (self.ops.asarray(np.zeros(len(source), int)), self.ops.asarray(np.zeros(len(source), int))),
        )

    def advance(self, state, tokens):
        source, nothing, (position, _) = state
        tokens = self.ops.asarray(tokens)
        self.rows.append(len(source))
        return self.on_device[source, position, tokens], (source, nothing, (position + 1, tokens))

    def attention(self, state):
        source, _, (position, tokens) = state
        columns = [self.ops.asnumpy(each)[:, None] for each in (source, position - 1, tokens)]
        return self.ops.asarray(np.hstack(columns).astype(float))


def described(found):
    return [
        [(*h[:4], None if h.alignment is None else h.alignment.tolist()) for h in hypotheses]
        for hypotheses in found
    ]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("style", ["random", "equal", "impossible"])
def test_the_same_as_on_the_cpu(style, options, device, rng):
    table = AttendingModel.random(rng, sources=4, words=4).table
    if style == "equal":
        table = np.round(table)
    if style == "impossible":
        table[rng.random(table.shape) < 0.4] = -np.inf
    given = {"max_length": 4} | options
    expected = beam_search(AttendingModel(table), [2, 0, 1, 3, 0], **given)
    assert described(beam_search(OnDevice(table), [2, 0, 1, 3, 0], **given)) == described(expected)


def test_in_single_precision(device, rng):
    table = AttendingModel.random(rng, sources=4, words=300).table.astype(np.float32)
    given = {"max_length": 4, "beam_size": 5, "n_best": 5}
    expected = beam_search(TableModel(table), range(4), **given)
    assert described(beam_search(OnDevice(table), range(4), **given)) == described(expected)


@pytest.mark.parametrize("position", [0, 1, 2, 4])
@pytest.mark.parametrize(
    ("number", "message"),
    [(np.nan, "log-probabilities hold NaN"), (0.5, "log-probabilities hold 0.5, expected")],
)
def test_numbers_that_are_no_log_probabilities_are_found_late(number, message, position, device, rng):
    table = np.full((2, 5, 4, 4), -2.0)
    table[1, position] = number
    with pytest.raises(ValueError, match=f"beam_search: the model's {message}"):
        beam_search(OnDevice(table), [0, 1], beam_size=2, n_best=2, max_length=4, min_length=4)


def test_a_number_that_is_none_at_a_forbidden_token(device, rng):
    table = np.full((2, 5, 4, 4), -2.0)
    table[1, 1, :, END] = np.nan
    with pytest.raises(ValueError, match="beam_search: the model's log-probabilities hold NaN"):
        beam_search(OnDevice(table), [0, 1], beam_size=2, max_length=4, min_length=4)


def test_beams_that_are_over_are_advanced_once_more(device, rng):
    model = OnDevice(AttendingModel.random(rng, sources=2, words=2).table)
    table = model.ops.asnumpy(model.on_device).copy()
    table[0, ..., END] = np.log(1 - 1e-9)
    table[0, ..., [START, 2, 3]] = np.log(1e-9 / 3)
    table[1, ..., END] = -np.inf
    model = OnDevice(table)
    beam_search(model, [0, 1], beam_size=2, max_length=4)
    assert model.rows == [2, 4, 2, 2, 2]
    model = OnDevice(table[:1])
    found = beam_search(model, [0], beam_size=2, max_length=4)
    assert found[0][0].tokens == ()
    assert model.rows == [1, 2]


# ---------------------------------------------------------------- what a step costs the host

SPECIAL = ("<NULL>", "<START>", "<END>")
WORDS = {word: index for index, word in enumerate([*SPECIAL, *"abcdefgh"])}


def captioner(rng=0):
    model = CaptioningRNN(WORDS, 4, 5, 6, "lstm", rng=rng)
    model.params["b_vocab"][WORDS["<END>"]] -= 3
    return model


def counted(simulated, model, features, steps, **options):
    """What the search of captions with that many words launches and copies."""
    given = {"beam_size": 3, "max_length": steps, "min_length": steps, "forbid": (0, 1)} | options
    beam_search(model, features, **given)  # compiles
    simulated.launches.clear()
    simulated.transfers.reset()
    beam_search(model, features, **given)
    return dict(simulated.launches), dict(vars(simulated.transfers))


@pytest.mark.parametrize("members", [1, 2])
def test_a_step_reads_one_array_and_copies_none(members, simulated, rng):
    models = [captioner(k).to("gpu") for k in range(members)]
    model = models[0] if members == 1 else Ensemble(models)
    features = rng.standard_normal((4, 4)).astype(np.float32)
    launches, transfers = zip(*(counted(simulated, model, features, steps) for steps in (5, 15)), strict=True)
    of_steps = {name: launches[1][name] - launches[0][name] for name in launches[1]}
    # word vectors, their products, which are a table by now; the cell, log_softmax and the step
    assert of_steps.pop("take") <= 2 * members * 10
    assert of_steps == {
        "lstm_forward": members * 10,
        "log_softmax": members * 10,
        "beam_step": 10,
        "beam_words": 0,
    }
    assert transfers[1]["to_host"] - transfers[0]["to_host"] == 10
    assert transfers[1]["synchronisations"] - transfers[0]["synchronisations"] == 10
    assert transfers[1]["to_device"] == transfers[0]["to_device"]


def test_beams_that_end_cost_one_copy_more(simulated, rng):
    model = captioner().to("gpu")
    features = rng.standard_normal((40, 4)).astype(np.float32)
    options = {"min_length": 0, "forbid": ()}
    launches, transfers = counted(simulated, model, features, 12, **options)
    assert launches["beam_step"] <= 13
    assert transfers["to_device"] <= 10 + launches["beam_step"]
    assert transfers["to_host"] <= 8 + launches["beam_step"]
