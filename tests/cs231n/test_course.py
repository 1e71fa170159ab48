"""The course's notebook, cell by cell in short: what it imports, what it calls, what it expects."""

import numpy as np
import pytest

from rnnlab.cs231n.captioning_solver import CaptioningSolver
from rnnlab.cs231n.classifiers.rnn import CaptioningRNN
from rnnlab.cs231n.coco_utils import decode_captions, load_coco_data, sample_coco_minibatch
from rnnlab.cs231n.gradient_check import eval_numerical_gradient_array, rel_error
from rnnlab.cs231n.image_utils import image_from_url
from rnnlab.cs231n.layer_utils import affine_relu_backward, affine_relu_forward
from rnnlab.cs231n.layers import affine_forward
from rnnlab.cs231n.rnn_layers import lstm_step_backward, lstm_step_forward
from rnnlab.data import write_shapes


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data") / "shapes"
    write_shapes(folder, {"train": 400, "val": 10})
    return folder


def test_an_lstm_step_passes_the_course_check():
    state = np.random.RandomState(590)
    N, D, H = 4, 6, 8
    shapes = {
        "x": (N, D),
        "prev_h": (N, H),
        "prev_c": (N, H),
        "Wx": (D, 4 * H),
        "Wh": (H, 4 * H),
        "b": (4 * H,),
    }
    inputs = {name: state.randn(*shape) for name, shape in shapes.items()}
    next_h, next_c, cache = lstm_step_forward(**inputs)
    dnext_h, dnext_c = state.randn(*next_h.shape), state.randn(*next_c.shape)
    gradients = lstm_step_backward(dnext_h, dnext_c, cache)
    for array, gradient in zip(inputs.values(), gradients, strict=True):
        by_h = eval_numerical_gradient_array(lambda _: lstm_step_forward(**inputs)[0], array, dnext_h)
        by_c = eval_numerical_gradient_array(lambda _: lstm_step_forward(**inputs)[1], array, dnext_c)
        assert rel_error(by_h + by_c, gradient) < 1e-6


@pytest.mark.slow
def test_the_model_has_the_loss_that_the_course_expects():
    N, D, W, H, T = 20, 18, 30, 48, 16
    word_to_idx = {"<NULL>": 0, "cat": 2, "dog": 3}
    model = CaptioningRNN(
        word_to_idx, input_dim=D, wordvec_dim=W, hidden_dim=H, cell_type="lstm", dtype=np.float64
    )
    for name, value in model.params.items():
        model.params[name] = np.linspace(-1.4, 1.3, num=value.size).reshape(*value.shape)
    features = np.linspace(-0.5, 1.7, num=N * D).reshape(N, D)
    captions = (np.arange(N * T) % len(word_to_idx)).reshape(N, T)
    loss, _ = model.loss(features, captions)
    assert abs(loss - 12.304967965) < 1e-9


@pytest.mark.slow
def test_a_small_model_overfits_small_data_and_captions_it(folder, capsys):
    data = load_coco_data(folder, max_train=50)
    model = CaptioningRNN(
        cell_type="lstm",
        word_to_idx=data["word_to_idx"],
        input_dim=data["train_features"].shape[1],
        hidden_dim=128,
        wordvec_dim=64,
        dtype=np.float32,
    )
    solver = CaptioningSolver(
        model,
        data,
        update_rule="adam",
        num_epochs=50,
        batch_size=25,
        optim_config={"learning_rate": 1e-2},
        lr_decay=0.995,
        verbose=True,
        print_every=10,
    )
    solver.train()
    printed = capsys.readouterr().out.splitlines()
    assert printed[0].startswith("(Iteration 1 / 100) loss: ")
    assert len(solver.loss_history) == 100
    assert np.mean(solver.loss_history[-10:]) < 0.5

    captions, features, urls = sample_coco_minibatch(
        data, split="train", batch_size=8, rng=np.random.default_rng(0)
    )
    sampled = decode_captions(model.sample(features), data["idx_to_word"])
    written = [sentence.removesuffix(" <END>") for sentence in sampled]
    true = [
        sentence.removeprefix("<START> ").removesuffix(" <END>")
        for sentence in decode_captions(captions, data["idx_to_word"])
    ]
    assert (
        sum(one == other for one, other in zip(written, true, strict=True)) >= 4
    )  # five captions share a picture
    image = image_from_url(urls[0], image_dir=folder / "images")
    assert image.shape == (96, 96, 3)
    assert image.dtype == np.uint8


def test_affine_and_relu_go_together(rng):
    x, w, b = rng.standard_normal((3, 2, 4)), rng.standard_normal((8, 5)), rng.standard_normal(5)
    out, cache = affine_relu_forward(x, w, b)
    np.testing.assert_array_equal(out, np.maximum(affine_forward(x, w, b)[0], 0))
    dout = rng.standard_normal(out.shape)
    for array, gradient in zip((x, w, b), affine_relu_backward(dout, cache), strict=True):
        numerical = eval_numerical_gradient_array(lambda _: affine_relu_forward(x, w, b)[0], array, dout)
        assert rel_error(numerical, gradient) < 1e-7
