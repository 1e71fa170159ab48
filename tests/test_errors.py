import inspect
import pickle
from pathlib import Path

import pytest

import rnnlab
from rnnlab import errors
from rnnlab.errors import InputError, InputTypeError, MissingDataError, NotInstalledError, OutOfRangeError
from rnnlab.files import WriteError
from rnnlab.training import NonFiniteError
from rnnlab.training.checkpoint import CheckpointError

BUILT_IN = {
    InputError: ValueError,
    InputTypeError: TypeError,
    MissingDataError: KeyError,
    OutOfRangeError: IndexError,
    NotInstalledError: ImportError,
}


@pytest.mark.parametrize(("error", "built_in"), BUILT_IN.items())
def test_an_error_is_also_an_error_of_python(error, built_in):
    for kind in (built_in, rnnlab.RnnlabError):
        with pytest.raises(kind, match=r"^H is 0, expected at least 1$"):
            raise error("H is 0, expected at least 1")


def test_an_error_of_another_process_is_the_same():
    with pytest.raises(FloatingPointError) as raised:
        raise NonFiniteError("epoch 2: val_loss is nan")
    for error in (
        WriteError(Path("runs/last.h5"), OSError(28, "No space left on device")),
        CheckpointError("last.h5", "losses", "nothing", "an array"),
        MissingDataError("found no split 'dev'"),
        raised.value,
    ):
        copied = pickle.loads(pickle.dumps(error))
        assert type(copied) is type(error)
        assert str(copied) == str(error)
        assert vars(copied) == vars(error)


def test_all_errors_are_tried():
    classes = {kind for _, kind in inspect.getmembers(errors, inspect.isclass)}
    assert classes == {rnnlab.RnnlabError, *BUILT_IN}


def test_missing_data_is_wrong_input_too():
    with pytest.raises(InputError):
        raise MissingDataError("found no split 'dev'")
