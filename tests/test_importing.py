"""Objects by the path of their module and their name."""

import pytest

from rnnlab.importing import created, imported
from rnnlab.layers.recurrent.lstm import LSTM


def test_an_object():
    assert imported("cell_type", "rnnlab.layers.recurrent.lstm:LSTM") is LSTM


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("nowhere.module:Name", "No module named 'nowhere'; install the package or add .* to PYTHONPATH"),
        ("rnnlab.errors:Missing", "module 'rnnlab.errors' has no attribute 'Missing'"),
        (":Name", "Empty module name"),
        ("broken_module:Name", r"invalid syntax \(broken_module.py, line 1\)"),
    ],
)
def test_what_cannot_be_imported(path, reason, tmp_path, monkeypatch):
    (tmp_path / "broken_module.py").write_text("def f(:\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ValueError, match=f"^cell_type is '{path}', which cannot be imported: {reason}$"):
        imported("cell_type", path)


def test_an_object_of_a_class():
    assert created("own", "m:Free", _Free).size == 3
    with pytest.raises(TypeError, match="^own is 'm:_Sized', which needs size, expected a class that is "):
        created("own", "m:_Sized", _Sized)


class _Free:
    def __init__(self, size=3, *others, **options):
        self.size = size


class _Sized:
    def __init__(self, size, depth=2):
        pass


def test_the_name_of_a_module_is_its_full_name():
    with pytest.raises(ValueError, match=r"^cell_type is '\.cells:Name', expected the full name of a module"):
        imported("cell_type", ".cells:Name")
