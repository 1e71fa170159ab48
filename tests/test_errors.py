import inspect

import pytest

import rnnlab
from rnnlab import errors
from rnnlab.errors import InputError, InputTypeError, MissingDataError, NotInstalledError, OutOfRangeError

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


def test_all_errors_are_tried():
    classes = {kind for _, kind in inspect.getmembers(errors, inspect.isclass)}
    assert classes == {rnnlab.RnnlabError, *BUILT_IN}


def test_missing_data_is_wrong_input_too():
    with pytest.raises(InputError):
        raise MissingDataError("found no split 'dev'")
