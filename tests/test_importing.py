"""Objects by the path of their module and their name."""

import pytest

from rnnlab.importing import imported
from rnnlab.layers.recurrent.lstm import LSTM


def test_an_object():
    assert imported("cell_type", "rnnlab.layers.recurrent.lstm:LSTM") is LSTM


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("nowhere.module:Name", "No module named 'nowhere'"),
        ("rnnlab.errors:Missing", "has no attribute 'Missing'"),
        (":Name", "Empty module name"),
        ("broken_module:Name", "invalid syntax"),
    ],
)
def test_what_cannot_be_imported(path, reason, tmp_path, monkeypatch):
    (tmp_path / "broken_module.py").write_text("def f(:\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(
        ValueError, match=f"^cell_type is '{path}', which cannot be imported: .*{reason}.*PYTHONPATH$"
    ):
        imported("cell_type", path)
