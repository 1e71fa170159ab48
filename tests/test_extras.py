import json

import pytest

from rnnlab.extras import Library


def test_a_library_that_is_missing_says_what_to_install():
    missing = Library("no_such_package", "eval", "scoring")
    assert not missing.installed
    for use in (missing.require, lambda: missing.module("part")):
        with pytest.raises(ImportError, match=r'scoring needs no_such_package: pip install "rnnlab\[eval\]"'):
            use()


def test_an_error_names_the_library_by_its_title():
    with pytest.raises(ImportError, match="^a picture needs No Such: pip install"):
        Library("no_such_package", "eval", "a picture", "No Such").require()


def test_a_library_that_is_there():
    present = Library("json", "eval", "scoring")
    assert present.installed
    present.require()
    assert present.module() is json
    assert present.module("decoder").JSONDecoder().decode("[1]") == [1]
