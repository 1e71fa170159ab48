import pytest

from rnnlab.errors import MissingDataError


def test_it_is_a_key_error_and_a_value_error_whose_text_is_its_message():
    for kind in (KeyError, ValueError):
        with pytest.raises(kind, match=r"^found no split 'dev'$"):
            raise MissingDataError("found no split 'dev'")
