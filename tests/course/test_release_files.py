"""The files beside a released notebook."""

import importlib.metadata as metadata
import os
import re
import zipfile
from importlib import import_module
from pathlib import Path
from unittest import mock

import pytest

import rnnlab
from rnnlab.course import release_files
from rnnlab.course.release_files import (
    archive,
    check_wheel,
    config,
    installed_from_index,
    licences,
    readme,
    requirements,
)

from .small_notebook import cell, write_wheel

ROOT = Path(__file__).parents[2]


def notebook(*codes):
    return {"cells": [cell("markdown", "import nothing"), *(cell("code", each) for each in codes)]}


def lines(*codes, wheel=None):
    return requirements(notebook(*codes), wheel).splitlines()


def test_requirements_are_the_installed_versions():
    found = lines(
        "%matplotlib inline\n!ls\nimport json, numpy.random as r",
        "def f():\n    from PIL import Image\nfrom rnnlab.data import open_shapes",
    )
    versions = [f"{name}=={metadata.version(name)}" for name in ("numpy", "pillow")]
    assert found == [f"rnnlab=={rnnlab.__version__}", *versions]


def test_requirements_of_cells_in_several_languages():
    found = lines("%%bash\nls -l foo", "%%time\nimport numpy", "data = !cat file\nimport PIL")
    assert [line.partition("==")[0] for line in found] == ["rnnlab", "numpy", "pillow"]


def test_requirements_behind_functions_of_rnnlab():
    if not metadata.packages_distributions().get("sklearn"):
        pytest.skip("scikit-learn is not installed")
    found = lines("from rnnlab.data import open_digits\ndata = open_digits()")
    assert found[1:] == [f"scikit-learn=={metadata.version('scikit-learn')}"]


def test_the_functions_with_other_requirements_exist():
    places = {
        "open_digits": "data",
        "state_map": "plots",
        "score_captions": "metrics",
        "corpus_bleu": "metrics",
    }
    assert places.keys() == release_files._NEEDS.keys()
    assert all(callable(getattr(import_module(f"rnnlab.{module}"), name)) for name, module in places.items())


def test_a_package_that_is_not_installed():
    with pytest.raises(ValueError, match="the notebook imports no_such_package, which is not installed"):
        lines("import no_such_package.part")


def test_a_wheel_is_required_by_its_path(tmp_path):
    wheel = write_wheel(tmp_path)
    check_wheel(wheel)
    assert lines("import rnnlab", wheel=wheel) == [f"./{wheel.name}"]


@pytest.mark.parametrize(
    "name", ["rnnlab-0.0.0-py3-none-any.whl", f"rnnlab-{rnnlab.__version__}-py3-none-any.whl"]
)
def test_a_file_that_is_no_wheel(tmp_path, name):
    (tmp_path / name).write_text("text")
    with pytest.raises(ValueError, match=f"expected a file rnnlab-{re.escape(rnnlab.__version__)}-py3"):
        check_wheel(tmp_path / name)
    with pytest.raises(FileNotFoundError, match="which does not exist"):
        check_wheel(tmp_path / "absent.whl")


def test_licences():
    found = licences()
    assert found["LICENSE"] == (ROOT / "LICENSE").read_text("utf8")
    assert {word for word in ("notebooks", "pictures", "data") if word in found["NOTICE"]} == {
        "notebooks", "pictures", "data"
    }  # fmt: skip


def test_licences_of_an_installed_package(tmp_path, monkeypatch):
    monkeypatch.setattr(rnnlab, "__file__", str(tmp_path / "site-packages" / "rnnlab" / "__init__.py"))

    class Distribution:
        def read_text(self, name):
            return {"licenses/LICENSE": "one"}.get(name)

    monkeypatch.setattr(metadata, "distribution", {"rnnlab": Distribution()}.__getitem__)
    with pytest.raises(FileNotFoundError, match="the installed rnnlab has no NOTICE"):
        licences()
    monkeypatch.setattr(Distribution, "read_text", lambda self, name: name)
    assert licences() == {"LICENSE": "licenses/LICENSE", "NOTICE": "licenses/NOTICE"}


def test_where_rnnlab_was_installed_from(tmp_path, monkeypatch):
    assert not installed_from_index()  # the tests run in a clone
    monkeypatch.setattr(rnnlab, "__file__", str(tmp_path / "site-packages" / "rnnlab" / "__init__.py"))
    info = tmp_path / "rnnlab-1.dist-info"
    info.mkdir()
    monkeypatch.setattr(metadata, "distribution", lambda name: metadata.PathDistribution(info))
    assert installed_from_index()
    (info / "direct_url.json").write_text('{"url": "file:///dist/rnnlab-1-py3-none-any.whl"}')
    assert not installed_from_index()
    monkeypatch.setattr(metadata, "distribution", mock.Mock(side_effect=metadata.PackageNotFoundError))
    assert not installed_from_index()


def test_the_readme_names_the_modules_that_functions_may_use():
    text = readme("1_a")
    assert "`abc`, `bisect`, `cmath`" in text
    assert "`typing`, `unicodedata` and `warnings`." in " ".join(text.split())
    assert "typing_extensions" not in text
    assert all(len(line) <= 110 for line in text.splitlines())


def test_the_readme_says_what_to_do():
    text = readme("1_a")
    assert "jupyter lab 1_a.ipynb" in text
    assert "unzip -qo 1_a.zip && cd 1_a && pip install -q -r requirements.txt" in text


def test_the_config_is_python():
    class Settings:
        def __getattr__(self, name):
            self.__dict__[name] = Settings()
            return self.__dict__[name]

    settings = Settings()
    with mock.patch.dict(os.environ):
        exec(config("it's"), {"get_config": lambda: settings})
        assert os.environ["RNNLAB_KERNELS_ANNOUNCED"] == "1"
    assert settings.CourseDirectory.course_id == "it's"
    assert settings.CourseDirectory.directory_structure == "{nbgrader_step}/{student_id}/{assignment_id}"
    assert settings.Execute.timeout == 900


def test_an_archive_holds_the_folder(tmp_path):
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "c.txt").write_text("text")
    archive(tmp_path / "a", tmp_path / "a.zip")
    with zipfile.ZipFile(tmp_path / "a.zip") as made:
        assert made.namelist() == ["a/b/", "a/b/c.txt"]
        assert made.read("a/b/c.txt") == b"text"
