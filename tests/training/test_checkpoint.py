from __future__ import annotations

import json
import pickle

import h5py
import numpy as np
import pytest

import rnnlab
from rnnlab.models import CaptioningRNN
from rnnlab.parameters import Parameters
from rnnlab.training.checkpoint import (
    Checkpoint,
    CheckpointError,
    describe_model,
    load_checkpoint,
    load_model,
    load_parameters,
    save_checkpoint,
    save_model,
)


@pytest.fixture
def checkpoint(model, rng):
    words = ["<NULL>", "<START>", "<END>", "<UNK>", *(f"wörd{i}" for i in range(20_000))]  # more than 64 KiB
    return Checkpoint(
        parameters=model.params,
        model=describe_model(model),
        vocabulary=words,
        config={"train": {"seed": 3}, "name": "é"},
        optimiser={"steps": 5, "m": rng.standard_normal(18), "v": rng.random(18)},
        losses=rng.random(100),
        history=[{"epoch": 1, "val_loss": 1 / 3}, {"epoch": 2, "val_loss": 0.1, "CIDEr": 1e-300}],
        solver={"rng": np.random.default_rng(3).bit_generator.state},
        preprocessing={
            "features_mean": rng.random(3, np.float32),
            "tokenizer": "text",
            "white": np.uint8(255),
        },
        fingerprint={"train captions": "5 ab"},
    )


@pytest.fixture
def path(tmp_path, checkpoint):
    path = tmp_path / "run" / "last.h5"
    save_checkpoint(path, checkpoint)
    return path


def test_repr_is_one_line(checkpoint):
    """Not the 20,000 words of the vocabulary."""
    size = checkpoint.parameters.flat.size
    name = checkpoint.model["class"]
    assert repr(checkpoint) == (
        f"Checkpoint({name}, {size} {checkpoint.parameters.dtype} parameters; 2 epochs, 100 iterations; "
        f"rnnlab {rnnlab.__version__})"
    )


def test_everything_comes_back_bit_for_bit(path, checkpoint):
    found = load_checkpoint(path)
    assert found.parameters.shapes == checkpoint.parameters.shapes
    assert found.parameters.dtype == checkpoint.parameters.dtype
    np.testing.assert_array_equal(found.parameters.flat, checkpoint.parameters.flat)
    np.testing.assert_array_equal(
        found.preprocessing.pop("features_mean"), checkpoint.preprocessing.pop("features_mean")
    )
    for name in ("model", "vocabulary", "config", "history", "solver", "preprocessing", "fingerprint"):
        assert getattr(found, name) == getattr(checkpoint, name)
    assert found.version == rnnlab.__version__
    np.testing.assert_array_equal(found.losses, checkpoint.losses)
    assert found.optimiser["steps"] == 5
    assert set(found.optimiser) == {"steps", "m", "v"}
    for name in "mv":
        np.testing.assert_array_equal(found.optimiser[name], checkpoint.optimiser[name])


def test_little_is_enough(tmp_path, model):
    save_checkpoint(tmp_path / "little.h5", Checkpoint(model.params, describe_model(model)))
    found = load_checkpoint(tmp_path / "little.h5")
    assert (found.vocabulary, found.config, found.history, found.solver) == (None, None, [], {})
    assert found.optimiser == {"steps": 0}
    assert found.losses.shape == (0,)


def test_float32_and_an_empty_parameter(tmp_path, model):
    params = Parameters({"none": (0, 3), "scalar": (), "b": (2,)}, np.float32)
    params["scalar"] = 1 / 3
    save_checkpoint(tmp_path / "x.h5", Checkpoint(params, describe_model(model)))
    found = load_checkpoint(tmp_path / "x.h5").parameters
    assert found.shapes == params.shapes
    np.testing.assert_array_equal(found.flat, params.flat)
    assert found.dtype == np.float32


def test_parameters_by_name(path, model):
    """Any HDF5 reader finds a parameter by its name, and there is one copy of the numbers."""
    with h5py.File(path) as file:
        assert set(file["parameters"]) == set(model.params)
        for name in model.params:
            np.testing.assert_array_equal(file["parameters"][name][()], model.params[name])
        assert sum(each.size for each in file["parameters"].values()) == model.params.flat.size


def test_a_run_directory_has_a_checkpoint(path, checkpoint, make_model):
    assert load_checkpoint(path.parent).history == checkpoint.history
    checkpoint.history.append({"epoch": 3})
    save_checkpoint(path.with_name("best.h5"), checkpoint)
    assert load_checkpoint(path.parent).history == checkpoint.history
    assert type(load_model(path.parent, {"LinearModel": make_model})) is make_model
    with h5py.File(path.with_name("best.h5"), "a") as file:
        del file["optimiser"]
    with pytest.raises(CheckpointError, match=r"best\.h5: optimiser: found nothing"):
        load_checkpoint(path.parent)


def test_a_directory_without_a_checkpoint(tmp_path):
    with pytest.raises(FileNotFoundError, match="holds no run: found neither best.h5 nor last.h5, expected"):
        load_model(tmp_path)


def test_an_earlier_format(path):
    with h5py.File(path, "a") as file:
        file.attrs["format"] = np.bytes_("rnnlab checkpoint 1")
    with pytest.raises(CheckpointError, match="found rnnlab checkpoint 1, expected .* 3: an earlier version"):
        load_checkpoint(path)


def test_saving_again_replaces_and_leaves_nothing_else(path, checkpoint):
    checkpoint.parameters["b"] = [1, 2, 3]
    save_checkpoint(path, checkpoint)
    assert [file.name for file in path.parent.iterdir()] == ["last.h5"]
    np.testing.assert_array_equal(load_checkpoint(path).parameters["b"], [1, 2, 3])


def test_a_failed_save_keeps_the_previous_file(path, checkpoint):
    before = path.read_bytes()
    checkpoint.history.append({"epoch": object()})
    with pytest.raises(TypeError, match=r"checkpoint: history holds <object .*, expected texts, numbers"):
        save_checkpoint(path, checkpoint)
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == ["last.h5"]


def test_numbers_of_numpy_in_the_history(path, checkpoint):
    checkpoint.history.append({"epoch": np.int64(3), "val_loss": np.float32(0.5), "best": np.bool_(True)})
    save_checkpoint(path, checkpoint)
    assert load_checkpoint(path).history[-1] == {"epoch": 3, "val_loss": 0.5, "best": True}


# ------------------------------------------------------------------ models


def test_load_model_by_its_class(path, model, make_model):
    found = load_model(path, {"LinearModel": make_model})
    assert type(found) is make_model
    assert found.config() == model.config()
    np.testing.assert_array_equal(found.params.flat, model.params.flat)
    assert found.params.flat is not model.params.flat


def test_load_model_of_the_models_floor(tmp_path, rng):
    words = {word: i for i, word in enumerate(["<NULL>", "<START>", "<END>", "<UNK>", "a", "dog"])}
    model = CaptioningRNN(words, 7, 5, 6, "lstm", word_dropout=0.5, rng=rng)
    save_checkpoint(tmp_path / "m.h5", Checkpoint(model.params, describe_model(model)))
    found = load_model(tmp_path / "m.h5")
    features = rng.standard_normal((3, 7))
    captions = rng.integers(0, 6, (3, 8))
    assert found.loss(features, captions)[0] == model.loss(features, captions)[0]
    assert found.config() == model.config()


class Scaled(CaptioningRNN):
    """A subclass with an argument of its own, which its config has."""

    def __init__(self, *arguments, scale=1.0, **options):
        super().__init__(*arguments, **options)
        self.scale = scale

    def config(self):
        return {**super().config(), "scale": self.scale}


class Lost(Scaled):
    config = CaptioningRNN.config


class Fixed(CaptioningRNN):
    def __init__(self, word_to_idx):
        super().__init__(word_to_idx, 3, 2, 4)


class Unchanged(CaptioningRNN):
    """A subclass without arguments of its own."""


WORDS = {"<NULL>": 0, "<START>": 1, "<END>": 2, "a": 3}


@pytest.mark.parametrize(
    ("made", "options"), [(Scaled, {"scale": 3.0}), (Unchanged, {}), (CaptioningRNN, {})]
)
def test_a_saved_model_is_loaded_as_it_was(made, options, tmp_path):
    model = made(WORDS, 3, 2, 4, cell_type="gru", rng=5, **options)
    save_model(tmp_path / "model.h5", model)
    found = load_model(tmp_path / "model.h5", known={made.__name__: made})
    assert type(found) is made
    assert vars(found).get("scale") == options.get("scale")
    np.testing.assert_array_equal(found.params.flat, model.params.flat)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (
            Lost(WORDS, 3, 2, 4),
            r"Lost: config\(\) leaves out scale, expected the arguments of __init__ by name",
        ),
        (Fixed(WORDS), r"Fixed: config\(\) has attention, .*wordvec_dim, expected the arguments"),
    ],
)
def test_a_model_that_could_not_be_loaded_is_not_saved(model, message, tmp_path):
    with pytest.raises(TypeError, match=message):
        save_model(tmp_path / "model.h5", model)
    assert not list(tmp_path.iterdir())


def test_load_model_of_an_unknown_class(path):
    with pytest.raises(
        CheckpointError, match="last.h5: model: class: found 'LinearModel', expected one of .*RNN"
    ):
        load_model(path)


@pytest.mark.parametrize(
    ("size", "message"),
    [
        ("hidden_dim", r"parameters: W_proj: found shape \(2, 4\), expected \(2, 1000000\)"),
        ("wordvec_dim", r"parameters: W_embed: found shape \(4, 3\), expected \(4, 1000000\)"),
    ],
)
def test_the_shapes_are_compared_before_memory_is_allocated(tmp_path, size, message):
    words = {word: token for token, word in enumerate(["<NULL>", "<START>", "<END>", "dog"])}
    model = CaptioningRNN(words, input_dim=2, wordvec_dim=3, hidden_dim=4)
    described = describe_model(model)
    described["config"][size] = 1_000_000
    save_checkpoint(tmp_path / "m.h5", Checkpoint(parameters=model.params, model=described))
    with pytest.raises(CheckpointError, match=message):
        load_model(tmp_path / "m.h5")


def test_load_model_with_a_config_of_another_version(path, make_model):
    edit(path, "model", {"class": "LinearModel", "config": {"inputs": 5, "depth": 3}})
    with pytest.raises(CheckpointError, match="last.h5: model: config: found TypeError.*depth"):
        load_model(path, {"LinearModel": make_model})


def test_load_model_with_parameters_of_another_shape(path, make_model):
    edit(path, "model", {"class": "LinearModel", "config": {"inputs": 6}})
    with pytest.raises(CheckpointError, match=r"parameters: W: found shape \(5, 3\), expected \(6, 3\)"):
        load_model(path, {"LinearModel": make_model})


def test_load_parameters_into_another_dtype(path, model, make_model):
    other = make_model(dtype="float32")
    load_parameters(path, other)
    np.testing.assert_array_equal(other.params.flat, model.params.flat.astype(np.float32))


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ({"W": (5, 3), "b": (4,)}, r"parameters: b: found shape \(3,\), expected \(4,\)"),
        ({"W": (5, 3), "b": (3,), "c": (1,)}, "parameters: found W, b, expected one called c"),
        ({"W": (5, 3)}, "parameters: found b, expected only W"),
    ],
)
def test_load_parameters_checks_names_and_shapes(path, shapes, message):
    class Other:
        params = Parameters(shapes)

    with pytest.raises(CheckpointError, match=message):
        load_parameters(path, Other())
    np.testing.assert_array_equal(Other.params.flat, 0)


# ------------------------------------------------------------------ bad files


def edit(path, name, value):
    with h5py.File(path, "a") as file:
        del file[name]
        if value is not None:
            file[name] = value if isinstance(value, np.ndarray) else np.bytes_(json.dumps(value))


def test_no_parameters_are_drawn_for_a_loaded_model(tmp_path, monkeypatch):
    model = CaptioningRNN({"<NULL>": 0, "<START>": 1, "<END>": 2}, 3, 2, 4)
    save_model(tmp_path / "x.h5", model)
    drawn = []
    monkeypatch.setattr("rnnlab.models.base.initialise", lambda *_, **options: drawn.append(options))
    assert load_model(tmp_path / "x.h5").config() == model.config()
    assert drawn == []
    CaptioningRNN.from_config(model.config())
    assert len(drawn) == 1


def test_a_loaded_model_keeps_nothing_of_the_file(tmp_path):
    model = CaptioningRNN({"<NULL>": 0, "<START>": 1, "<END>": 2}, 3, 2, 4)
    save_checkpoint(tmp_path / "x.h5", Checkpoint(model.params, describe_model(model)))
    loaded = load_model(tmp_path / "x.h5")
    assert vars(loaded).keys() == vars(model).keys()
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(loaded)).params.flat, model.params.flat)


def test_no_file(tmp_path):
    for load in (load_checkpoint, load_model):
        with pytest.raises(FileNotFoundError, match="none.h5: no such checkpoint"):
            load(tmp_path / "none.h5")


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"", "an empty file"),
        (b"PK\x03\x04 something else entirely", "a file of another kind"),
        (b"\x89HDF\r\n\x1a\n", "content that HDF5 cannot read .*"),
    ],
)
def test_not_hdf5(tmp_path, content, found):
    (tmp_path / "x.h5").write_bytes(content)
    with pytest.raises(CheckpointError, match=f"x.h5: file: found {found}, expected a whole checkpoint"):
        load_checkpoint(tmp_path / "x.h5")


def test_truncated_anywhere(path):
    whole = path.read_bytes()
    for size in np.linspace(1, len(whole) - 1, 60).astype(int):
        path.write_bytes(whole[:size])
        with pytest.raises(
            CheckpointError, match=r"last.h5: file: found (a file|content that HDF5 cannot read)"
        ):
            load_checkpoint(path)


@pytest.mark.slow
def test_a_changed_byte_is_an_error_or_in_a_gap_of_the_file(tmp_path, model, rng):
    path = tmp_path / "x.h5"
    save_checkpoint(path, Checkpoint(model.params, describe_model(model), preprocessing={"white": 255}))
    whole, saved, refused = path.read_bytes(), content(load_checkpoint(path)), 0
    for place in rng.permutation(len(whole))[:400]:
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1 << rng.integers(8)]) + whole[place + 1 :])
        try:
            assert content(load_checkpoint(path)) == saved
        except CheckpointError:
            refused += 1
    assert refused > 300


def content(checkpoint):
    """All values of a checkpoint, for comparison."""
    values = vars(checkpoint) | {
        "parameters": (checkpoint.parameters.shapes, checkpoint.parameters.flat.tolist()),
        "losses": checkpoint.losses.tolist(),
    }
    return json.dumps(values, sort_keys=True)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("parameters: W", lambda saved: saved.parameters["W"]),
        ("optimiser: v", lambda saved: saved.optimiser["v"]),
        ("losses", lambda saved: saved.losses),
        ("preprocessing: features_mean", lambda saved: saved.preprocessing["features_mean"]),
        ("vocabulary", lambda saved: np.bytes_("w\\u00f6rd77")),
    ],
)
def test_the_damaged_array_is_named(path, checkpoint, name, values):
    whole = bytearray(path.read_bytes())
    place = whole.index(np.asarray(values(checkpoint)).tobytes())
    whole[place + 3] ^= 1
    path.write_bytes(whole)
    with pytest.raises(CheckpointError, match=f"last.h5: {name}: found damaged values .*those that were wr"):
        load_checkpoint(path)


def test_another_librarys_file(tmp_path):
    with h5py.File(tmp_path / "weights.h5", "w") as file:
        file["model_weights"] = np.zeros(3)
    with pytest.raises(CheckpointError, match="attribute format: found None, expected rnnlab checkpoint 3"):
        load_checkpoint(tmp_path / "weights.h5")


@pytest.mark.parametrize(
    "name",
    [
        "parameters",
        "preprocessing",
        "optimiser",
        "losses",
        "model",
        "vocabulary",
        "config",
        "history",
        "solver",
    ],
)
def test_missing_field_is_named(path, name):
    edit(path, name, None)
    with pytest.raises(CheckpointError, match=f"last.h5: {name}: found nothing, expected an HDF5"):
        load_checkpoint(path)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("parameters", np.zeros(18), "parameters: found <HDF5 dataset .*expected an HDF5 Group"),
        ("optimiser", np.zeros(18), "optimiser: found <HDF5 dataset .*expected an HDF5 Group"),
        ("losses", np.zeros((3, 3)), r"losses: found float64 \(3, 3\), expected floats in one dimension"),
        ("losses", np.zeros(3, "S4"), r"losses: found \|S4 \(3,\), expected floats"),
        ("history", {"epoch": 1}, "history: found dict as JSON, expected list"),
        ("model", None, "model: found nothing"),
        ("model", [], "model: found list as JSON, expected dict"),
        ("solver", np.zeros(3), "solver: found no JSON"),
        ("vocabulary", np.frombuffer(b"[1, 2", np.uint8), "vocabulary: found no JSON"),
    ],
)
def test_bad_field_is_named(path, name, value, message):
    edit(path, name, value)
    with pytest.raises(CheckpointError, match=f"last.h5: {message}"):
        load_checkpoint(path)


@pytest.mark.parametrize(
    ("index", "message"),
    [
        (
            b'[["W", [5, 3]], ["b", [4]]]',
            r"parameters: b: found float64 \(3,\), expected floats \(4,\), as the index",
        ),
        (b'[["W", [5, 3]], ["c", [3]]]', "parameters: c: found nothing, expected an HDF5 Dataset"),
        (b"no JSON", "parameters: attribute index: found JSONDecodeError"),
        (b'{"W": 1}', "parameters: attribute index: found ValueError"),
    ],
)
def test_bad_index(path, index, message):
    with h5py.File(path, "a") as file:
        file["parameters"].attrs["index"] = np.bytes_(index)
    with pytest.raises(CheckpointError, match=message):
        load_checkpoint(path)


def test_parameters_of_two_dtypes(path):
    with h5py.File(path, "a") as file:
        del file["parameters"]["b"]
        file["parameters"]["b"] = np.zeros(3, np.float32)
    with pytest.raises(CheckpointError, match="parameters: W: found float64"):
        load_checkpoint(path)


def test_bad_attributes(path):
    with h5py.File(path, "a") as file:
        file["optimiser"].attrs["steps"] = "many"
    with pytest.raises(CheckpointError, match="optimiser: attribute steps: found many, expected a number of"):
        load_checkpoint(path)
    with h5py.File(path, "a") as file:
        del file.attrs["rnnlab_version"]
    with pytest.raises(CheckpointError, match="attribute rnnlab_version: found nothing, expected a version"):
        load_checkpoint(path)


def test_known_classes_have_names(path):
    with pytest.raises(
        TypeError, match=r"load_model: known is \[.*\], expected a mapping of names to classes"
    ):
        load_model(path, known=[dict])


@pytest.mark.parametrize("load", [load_model, load_checkpoint])
def test_a_model_instead_of_a_path(load):
    with pytest.raises(
        TypeError, match=f"{load.__name__}: path is a Parameters, expected the path of a check"
    ):
        load(Parameters({}))


def test_exchanged_arguments_write_nothing(tmp_path):
    with pytest.raises(
        TypeError, match="save_model: path is a Parameters, expected the path of a checkpoint"
    ):
        save_model(Parameters({}), tmp_path / "model.h5")
    with pytest.raises(TypeError, match="save_model: model is a str without params, expected a model"):
        save_model(tmp_path / "model.h5", "model.h5")
    assert not [*tmp_path.iterdir()]
