"""LanguageModel: gradients, likelihoods, prompts, searches, training, options and errors."""

import pickle

import numpy as np
import pytest

from rnnlab.data import ArrayData
from rnnlab.decoding import Ensemble, beam_search, greedy, sample
from rnnlab.gradcheck import check_model, projected_check
from rnnlab.gradcheck.cases import CELLS
from rnnlab.models import CaptioningRNN, LanguageModel
from rnnlab.training import SelfCritical, Solver
from rnnlab.training.checkpoint import load_checkpoint, model_of

WORDS = {"<NULL>": 0, "<START>": 1, "<END>": 2, "a": 3, "b": 4, "c": 5}
NULL, START, END = 0, 1, 2
W, H = 3, 4
DROPOUT = {"word_dropout": 0.2, "output_dropout": 0.3}

COMBINATIONS = [{"cell_type": cell, "decoder_layers": layers} for cell in CELLS for layers in (1, 2)]
COMBINATIONS += [{"target_attention": True, "output": output} for output in ("linear", "concat", "deep")]
COMBINATIONS += [
    {"cell_type": "gru", "target_attention": True, "attention_dim": 5, "decoder_layers": 2},
    {"cell_type": "rnn", "target_attention": True, "target_delay": 2},
    {"tied_embeddings": True, "hidden_dim": W},
    {"tied_embeddings": True, "output": "deep"},
    {"reconstruction": 0.3, "reconstructor_dim": 3},
    {"label_smoothing": 0.2, "loss_average": "batch"},
    {"regularisation": {"zoneout_h": 0.2, "zoneout_c": 0.3, "recurrent_dropout": 0.3, "weight_dropout": 0.2}},
]


def name_of(options):
    return "-".join(f"{key}={value}" for key, value in options.items())


every_combination = pytest.mark.parametrize("options", COMBINATIONS, ids=name_of)


def build(**options):
    model = LanguageModel(WORDS, W, **{"hidden_dim": H, "dtype": np.float64} | options)
    model.params.flat[...] = np.random.default_rng(5).uniform(-0.8, 0.8, model.params.flat.size)
    return model


def batch():
    """Long, short, with <NULL> inside, empty, and without <END>."""
    return np.array([[1, 3, 4, 5, 2], [1, 2, 0, 0, 0], [1, 0, 5, 2, 0], [0, 0, 0, 0, 0], [1, 4, 4, 3, 5]])


TOKENS = 4 + 1 + 2 + 0 + 4


# ---------------------------------------------------------------- training


@every_combination
def test_along_a_random_direction(options, rng):
    model = build(
        **options, **DROPOUT, **({"layer_dropout": 0.3} if options.get("decoder_layers") == 2 else {})
    )

    def loss():
        return model.loss(batch(), rng=np.random.default_rng(3))

    _, grads = loss()
    assert all(grad.any() for grad in grads.values())
    assert projected_check(lambda: loss()[0], model.params.flat, grads.flat, rng=rng) < 1e-7


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"cell_type": cell, "output": "deep"} for cell in CELLS], ids=name_of)
def test_every_parameter(options):
    for row in check_model(build(**options, target_attention=True), (batch(),), seed=3, verbose=False):
        assert row.error < 1e-7 or row.error * row.grad_norm < 1e-10, row


@every_combination
def test_nll_is_the_loss_summed(options):
    model = build(**{**options, "label_smoothing": 0.0, "reconstruction": 0.0})
    total, tokens = model.nll(batch())
    assert tokens == TOKENS
    divisor = len(batch()) if options.get("loss_average") == "batch" else tokens
    assert model.loss(batch())[0] == pytest.approx(total / divisor)


@pytest.mark.parametrize("cell", CELLS)
def test_a_captioning_model_whose_image_is_zero(cell):
    """The same losses and gradients, because its initial state is zero."""
    model = build(cell_type=cell)
    captioning = CaptioningRNN(WORDS, 2, W, H, cell, np.float64, loss_average="token")
    for name, array in captioning.params.items():
        captioning.params[name] = model.params[name] if name in model.params else np.zeros_like(array)
    loss, grads = model.loss(batch())
    expected, others = captioning.loss(np.zeros((len(batch()), 2)), batch())
    assert loss == expected
    for name, grad in grads.items():
        np.testing.assert_array_equal(grad, others[name])


@every_combination
def test_a_padded_batch_and_parts_have_the_same_loss(options):
    model = build(**options)
    loss, grads = model.loss(batch())
    padded = model.params.zeros_like()
    assert model.padded_loss(model.padded(batch()), grads=padded) == pytest.approx(loss, rel=1e-12)
    np.testing.assert_allclose(padded.flat, grads.flat, rtol=1e-9, atol=1e-13)
    parts, whole = model.params.zeros_like(), {"part_of": (len(batch()), TOKENS)}
    total = sum(model.loss(part, grads=parts, **whole)[0] for part in (batch()[:2], batch()[2:]))
    assert total == pytest.approx(loss, rel=1e-12)
    np.testing.assert_allclose(parts.flat, grads.flat, rtol=1e-9, atol=1e-13)


WINDOWS = [slice(0, 4), slice(3, 5), slice(4, 5), slice(4, 9)]  # of 3, 1, 0 and 4 steps


def windows():
    """A text for each of three rows, and its windows; the last row is shorter, the third window is empty."""
    text = np.random.default_rng(8).integers(3, len(WORDS), (3, 9))
    text[:, 0], text[2, 7:] = START, NULL
    rows = [text[:, window] for window in WINDOWS]
    rows[2] = np.column_stack([rows[2], np.full(3, NULL)])
    return text, rows


@pytest.mark.parametrize(
    "options", [each for each in COMBINATIONS if not each.get("target_attention")], ids=name_of
)
def test_windows_of_a_text_have_its_likelihood(options):
    """Each window begins at the state that the one before has left."""
    model, (text, rows) = build(**{**options, "reconstruction": 0.0, "label_smoothing": 0.0}), windows()
    total, tokens = model.nll(text)
    state, found, counted, loss = None, 0.0, 0, 0.0
    for window in rows:
        whole = {"state": state, "return_state": True}
        nats, count, after = model.nll(window, **whole)
        part, _, state = model.loss(window, **whole, part_of=(len(text), tokens))
        for one, other in zip(after, state, strict=True):
            np.testing.assert_array_equal(one, other)
        found, counted, loss = found + nats, counted + count, loss + part
    assert counted == tokens
    assert found == pytest.approx(total, rel=1e-12)
    assert loss == pytest.approx(model.loss(text)[0], rel=1e-12)
    np.testing.assert_allclose(state[-model.decoder.num_states], model.last_states(text), rtol=1e-12)


@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize("cell", CELLS)
def test_the_gradient_of_a_window_ends_at_its_beginning(cell, layers, rng):
    """It is that of the loss with a constant state, which ARNet reconstructs, too."""
    model = build(cell_type=cell, decoder_layers=layers, reconstruction=0.4)
    _, rows = windows()
    *_, state = model.loss(rows[0], return_state=True)
    state = [each + 0.3 for each in state]

    def loss():
        return model.loss(rows[-1], state=state, input_gradients=True, return_state=True)

    _, grads, inputs, after = loss()
    assert projected_check(lambda: loss()[0], model.params.flat, grads.flat, rng=rng) < 1e-7
    assert inputs.hidden.shape == (3, 4, H)
    assert len(after) == len(state) == layers * model.decoder.num_states
    assert loss()[0] != model.loss(rows[-1])[0]


def test_scheduled_sampling_starts_at_the_state():
    """Words are drawn from the distributions that the state gives."""
    model, (_, rows) = build(decoder_layers=2), windows()
    states = [[np.full((3, H), value)] * 4 for value in (-0.9, 0.9)]
    losses = [
        model.loss(rows[-1], state=state, rng=np.random.default_rng(0), sampling=1.0)[0] for state in states
    ]
    assert losses[0] != losses[1]


@pytest.mark.parametrize("options", [{}, {"decoder_layers": 2}], ids=name_of)
def test_windows_on_a_device(options, device):
    model, (_, rows) = build(**options), windows()
    expected, grads, state = model.loss(rows[0], return_state=True)
    further, _ = model.loss(rows[-1], state=state)
    model.to("gpu")
    loss, found, after = model.loss(rows[0], return_state=True)
    assert float(loss) == pytest.approx(expected)
    np.testing.assert_allclose(model._ops.asnumpy(found.flat), grads.flat, rtol=1e-9, atol=1e-12)
    for given in (state, after):
        assert float(model.loss(rows[-1], state=given)[0]) == pytest.approx(further)


@pytest.mark.parametrize(
    ("state", "error", "message"),
    [
        (
            np.zeros((3, H)),
            TypeError,
            r"state is ndarray, expected a tuple of 2 arrays of shape \(N, H\) = \(3, 4\)",
        ),
        ((np.zeros((3, H)),), TypeError, "state is 1 arrays, expected a tuple of 2 arrays"),
        (
            (np.zeros((3, H)), np.zeros((2, H))),
            ValueError,
            r"state\[1\] has shape \(2, 4\), expected .* = \(3, 4\)",
        ),
        ((np.zeros((3, H)), [["a"] * H] * 3), TypeError, r"state\[1\] has dtype"),
    ],
)
@pytest.mark.parametrize("method", ["loss", "nll"])
def test_wrong_states(method, state, error, message):
    with pytest.raises(error, match=f"LanguageModel.{method}: {message}"):
        getattr(build(), method)(windows()[1][0], state=state)


@pytest.mark.parametrize("given", [{"return_state": True}, {"state": (np.zeros((3, H)),) * 2}], ids=name_of)
@pytest.mark.parametrize("options", [{}, {"target_delay": 2}], ids=name_of)
def test_attention_to_the_past_has_no_state(options, given):
    model = build(target_attention=True, **options)
    with pytest.raises(ValueError, match="expected neither: this model attends to all its past states"):
        model.loss(windows()[1][0], **given)


@pytest.mark.parametrize("shape", [(0, 5), (1, 2), (3, 2)])
def test_small_batches(shape):
    """No sentence, and sentences of one token."""
    sentences = np.full(shape, START)
    sentences[:, 1:] = END
    loss, grads = build().loss(sentences)
    assert np.isfinite(loss)
    assert np.isfinite(grads.flat).all()
    assert LanguageModel.num_examples((sentences,)) == len(sentences)


def test_a_batch_of_padding_alone():
    loss, grads = build().loss(np.zeros((2, 3), int))
    assert loss == 0
    assert not grads.flat.any()


@pytest.mark.parametrize("options", [{}, {"target_attention": True, "decoder_layers": 2}], ids=name_of)
def test_scheduled_sampling_draws_words(options):
    model = build(**options)
    plain, _ = model.loss(batch(), rng=np.random.default_rng(0))
    sampled, grads = model.loss(batch(), rng=np.random.default_rng(0), sampling=0.9)
    assert sampled != plain
    assert np.isfinite(grads.flat).all()


def test_a_solver_trains_it(tmp_path):
    """Alternating words are learned; the checkpoint has the model, and resuming continues to the bit."""
    rows = np.array([[START, *([3, 4] * 3), END, NULL], [START, *([5, 4] * 2), END, NULL, NULL, NULL]] * 8)
    data = ArrayData({"train": (rows,), "val": (rows[:2],)}, null_token=NULL)

    def solver(epochs, directory):
        options = {"optim_config": {"learning_rate": 0.05}, "batch_size": 4, "verbose": False}
        return Solver(
            LanguageModel(WORDS, 4, 8, rng=1), data, num_epochs=epochs, run_dir=directory, **options
        )

    whole = solver(12, tmp_path / "whole")
    whole.train()
    assert whole.history[-1]["val_perplexity"] < 1.5
    first = solver(5, tmp_path / "parts")
    first.train()
    resumed = Solver.resume(
        tmp_path / "parts", LanguageModel(WORDS, 4, 8, rng=1), data, num_epochs=12, verbose=False
    )
    resumed.train()
    np.testing.assert_array_equal(resumed.model.params.flat, whole.model.params.flat)
    path = tmp_path / "whole" / "best.h5"
    again = model_of(path, load_checkpoint(path))
    assert isinstance(again, LanguageModel)
    found = [found.tokens for (found,) in greedy(again, [[START, 3], [START, 5]])]
    assert found == [(4, 3, 4, 3, 4), (4, 5, 4)]


def test_self_critical_training_needs_a_source():
    def reward(sources, tokens, lengths):
        return lengths

    data = ArrayData({"train": (np.full((4, 1), START), np.arange(4))})
    with pytest.raises(TypeError, match=r"LanguageModel.*sentence_weights"):
        Solver(build(), data, objective=SelfCritical(reward))


# ---------------------------------------------------------------- prompts and searches


@every_combination
def test_steps_have_the_probabilities_of_the_loss(options):
    """A sentence costs what its prompt costs, and what a search that continues the prompt adds."""
    model, sentence = build(**options), [START, 3, 4, 5, 3, END]
    total = model.nll([sentence])[0]
    for length in range(1, len(sentence)):
        state, last = model.start([sentence[:length]] * 2), START
        continued = 0.0
        for token in sentence[length:]:
            log_probs, state = model.advance(state, np.full(2, last))
            continued -= log_probs[1, token]
            last = token
        before = model.nll([sentence[:length]])[0] if length > 1 else 0.0
        assert before + continued == pytest.approx(total)


@pytest.mark.parametrize("options", [{}, {"target_attention": True}, {"decoder_layers": 3}], ids=name_of)
def test_searches_continue_prompts(options):
    model, prompts = build(**options), np.array([[START, 3, 4], [START, 5, 5], [START, 3, 4]])
    searches = [
        lambda model: greedy(model, prompts, max_length=4),
        lambda model: beam_search(model, prompts, beam_size=3, n_best=2, max_length=4),
        lambda model: sample(model, prompts, rng=0, count=2, max_length=4),
    ]
    for search in searches:
        found = search(model)
        for prompt, sentences in zip(prompts, found, strict=True):
            for each in sentences:
                written = [*prompt, *each.tokens, *[END] * each.finished]
                expected = model.nll([written])[0] - model.nll([prompt])[0]
                if NULL not in each.tokens:  # which nll does not score
                    assert each.log_prob == pytest.approx(-expected)
        for one, other in zip(search(Ensemble([model, model])), found, strict=True):
            assert [each.tokens for each in one] == [each.tokens for each in other]
    assert greedy(model, prompts)[0] == greedy(model, prompts)[2]


def test_a_state_of_a_prompt_reads_its_last_token():
    """By ``read`` as by ``advance``, whatever token is given."""
    model = build()
    state = model.start([[START, 3, 4]])
    read, _ = model.read(state, np.array([5]))
    np.testing.assert_allclose(read.hidden, model.hidden_states([[START, 3, 4, END]])[:, -1], rtol=1e-12)


def test_sentences_from_nothing(rng):
    """Samples follow the model's distribution of the first word."""
    model = build()
    log_probs, _ = model.advance(model.start([[START]]), np.array([START]))
    (drawn,) = sample(model, [[START]], rng=rng, count=4000, max_length=1)
    firsts = np.bincount([(*each.tokens, END)[0] for each in drawn], minlength=len(WORDS)) / len(drawn)
    np.testing.assert_allclose(firsts, np.exp(log_probs[0]), atol=0.04)


@pytest.mark.parametrize("options", [{}, {"target_attention": True, "decoder_layers": 2}], ids=name_of)
def test_searches_on_a_device(options, device):
    model, prompts = build(**options), [[START, 3], [START, 4]]
    searches = [
        lambda: greedy(model, prompts, max_length=5),
        lambda: beam_search(model, prompts, beam_size=3, n_best=2, max_length=5),
        lambda: sample(model, prompts, rng=3, max_length=5),
    ]
    on_cpu = [search() for search in searches]
    model.to("gpu")
    for search, expected in zip(searches, on_cpu, strict=True):
        found = search()
        assert [[each.tokens for each in row] for row in found] == [
            [e.tokens for e in row] for row in expected
        ]


def test_hidden_states_and_the_past():
    model = build(target_attention=True)
    hidden, last = model.hidden_states(batch()[[0, 4]]), model.last_states(batch()[[0, 4]])
    assert hidden.shape == (2, 4, H)
    np.testing.assert_array_equal(last, hidden[:, -1])
    weights = model.align_past(batch()[[0, 4]])
    np.testing.assert_allclose(weights.sum(axis=2), [[0, 1, 1, 1]] * 2, rtol=1e-12)
    assert not model.attends_to_source


# ---------------------------------------------------------------- options and errors


def test_config_and_pickle():
    model = build(decoder_layers=2, tied_embeddings=True, output="deep", reconstruction=0.2)
    again = LanguageModel.from_config(model.config())
    assert again.params.shapes == model.params.shapes
    assert pickle.loads(pickle.dumps(model)).nll(batch()) == model.nll(batch())
    assert repr(model).startswith(
        "LanguageModel(cell_type='lstm', wordvec_dim=3, hidden_dim=4, decoder_layers=2, tied_embeddings=True;"
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"attention_dim": 3}, "attention_dim is 3, which needs attention or target_attention"),
        ({"target_delay": 2}, "target_delay is 2, which needs target_attention"),
        ({"layer_dropout": 0.2}, r"layer_dropout is 0\.2, which needs decoder_layers of at least 2"),
        ({"tied_embeddings": True}, "needs hidden_dim and wordvec_dim to be equal"),
        ({"cell_type": "gru", "forget_bias": 1.0}, "cell 'gru' has no forget gate"),
        ({"detach_target": True}, "detach_target is True, which needs an ARNet"),
        ({"decoder_layers": 0}, "decoder_layers is 0"),
    ],
)
def test_options_that_do_not_fit(options, message):
    with pytest.raises(ValueError, match=f"^LanguageModel: .*{message}"):
        LanguageModel(WORDS, W, H, **options)


@pytest.mark.parametrize(
    ("sentences", "error", "message"),
    [
        ([1, 2], ValueError, r"sentences has shape \(2,\), expected \(N, L\) with L of at least 2"),
        ([[1]], ValueError, r"sentences has shape \(1, 1\), expected \(N, L\) with L of at least 2"),
        ([[[1, 2]]], ValueError, r"sentences has shape \(1, 1, 2\), expected \(N, L\) with L"),
        ([[1, 6]], IndexError, "sentences.* 6"),
        ([[1, -1]], IndexError, "sentences.* -1"),
        ([[1, 2.5]], TypeError, "sentences has dtype float64"),
        (
            [[1, 2], [1]],
            ValueError,
            "sentences has rows of different lengths, expected rows padded with <NULL>",
        ),
    ],
)
@pytest.mark.parametrize("method", ["loss", "nll", "padded", "hidden_states"])
def test_wrong_sentences(method, sentences, error, message):
    with pytest.raises(error, match=f"LanguageModel.{method}: {message}"):
        getattr(build(), method)(sentences)


@pytest.mark.parametrize(
    ("prompts", "error", "message"),
    [
        ([START], ValueError, r"prompts has shape \(1,\), expected \(N, P\) with P of at least 1"),
        ([[]], ValueError, r"prompts has shape \(1, 0\)"),
        (
            [[3, 4]],
            ValueError,
            r"prompts has the row \[3, 4\], expected the model's <START> first, the token 1",
        ),
        ([[START, 3], [START, NULL]], ValueError, r"prompts has the row \[1, 0\], .* without <NULL>"),
        ([[START, 3, END]], ValueError, r"prompts has the row \[1, 3, 2\], .* without <NULL> and <END>"),
        (
            [[START, 3], [START]],
            ValueError,
            "prompts has rows of different lengths, expected equally many tokens in each, without <NULL>",
        ),
        ("a b", ValueError, r"prompts has shape \(\), .* such as data.prompt\(text\)"),
        ([[START, 9]], IndexError, "prompts.* 9"),
        ([[1.0]], TypeError, "prompts has dtype float64"),
    ],
)
def test_wrong_prompts(prompts, error, message):
    with pytest.raises(error, match=f"LanguageModel.start: {message}"):
        greedy(build(), prompts)


def test_a_vocabulary_without_a_start():
    model = LanguageModel({"<NULL>": 0, "a": 1}, W, H)
    with pytest.raises(ValueError, match="LanguageModel.start: word_to_idx has no <START>"):
        model.start([[1]])


def test_the_arguments_of_other_models():
    features = np.zeros((5, 3))
    with pytest.raises(
        TypeError, match=r"LanguageModel.hidden_states: found 2 arguments, expected sentences"
    ):
        build().hidden_states(features, batch())
    with pytest.raises(TypeError, match=r"CaptioningRNN.last_states: found 1 arguments, expected the source"):
        CaptioningRNN(WORDS, 3, W, H).last_states(batch())
