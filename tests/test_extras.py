import ast
import configparser
import json
from pathlib import Path

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


def test_every_library_is_in_the_extra_that_its_error_names():
    root = Path(__file__).parents[1]
    setup = configparser.ConfigParser()
    setup.read(root / "setup.cfg", encoding="utf8")
    extras = setup["options.extras_require"]
    found = {}
    for path in (root / "rnnlab").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Library":
                package, extra, *_ = map(ast.literal_eval, node.args)
                found[package] = extra
    assert {"sacrebleu", "onnx", "nbgrader"} <= found.keys()
    names = {"sklearn": "scikit-learn", "otter": "otter-grader"}
    for package, extra in found.items():
        assert names.get(package, package) in extras[extra], extra
