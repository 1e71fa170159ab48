import pytest

from rnnlab.layers import register_cell
from rnnlab.layers.recurrent import cell
from rnnlab.layers.recurrent.cell import cell_for
from rnnlab.layers.recurrent.lstm import LSTM

from .peephole import PeepholeLSTM, Projected


def test_names_of_cells():
    assert isinstance(cell_for("f", "lstm"), LSTM)
    cell = PeepholeLSTM()
    assert cell_for("f", cell) is cell
    assert isinstance(cell_for("f", "rnnlab.layers.recurrent.lstm:LSTM"), LSTM)


@pytest.mark.parametrize(
    ("cell", "error", "message"),
    [
        (
            "lsmt",
            ValueError,
            "f: cell is 'lsmt', expected one of rnn, lstm, gru, simplified_gru, or 'package.mod",
        ),
        (
            "nowhere:Cell",
            ValueError,
            "f: cell is 'nowhere:Cell', which cannot be imported: No module named 'nowhere'",
        ),
        ("json:Missing", ValueError, "f: cell is 'json:Missing', which cannot be imported"),
        ("json:dumps", TypeError, "f: cell is 'json:dumps', found <function dumps.*, expected a subclass"),
        (3, TypeError, "f: cell is 3, expected one of"),
        ("lsmt", ValueError, r"f: cell is 'lsmt', .* of a Cell; did you mean 'lstm'\?"),
        ("LSTM", ValueError, r"did you mean 'lstm'\?"),
        (
            "tree",
            ValueError,
            "of a Cell; the module of a cell of your own registers it with ",
        ),
    ],
)
def test_cells_that_there_are_not(cell, error, message):
    with pytest.raises(error, match=message):
        cell_for("f", cell)


def test_what_cannot_be_registered(monkeypatch):
    with pytest.raises(ValueError, match="register_cell: name is 'my cell', expected an identifier"):
        register_cell("my cell", PeepholeLSTM())
    with pytest.raises(ValueError, match="register_cell: name is 'lstm', which is already the name of LSTM"):
        register_cell("lstm", PeepholeLSTM())
    with pytest.raises(
        TypeError, match=r"register_cell: cell is <class .*PeepholeLSTM'>, .*: give an object of the"
    ):
        register_cell("peephole", PeepholeLSTM)
    gateless = type("Gateless", (PeepholeLSTM,), {"forget_gate": 4})()
    with pytest.raises(ValueError, match="has forget_gate 4, expected None or a place among its 4 gates"):
        register_cell("gateless", gateless)
    for name, value in (
        ("forget_gate", "x"),
        ("forget_gate", True),
        ("carries_h", "no"),
        ("drops_candidate", 0),
    ):
        wrong = type("Wrong", (PeepholeLSTM,), {name: value})()
        with pytest.raises(TypeError, match=f"register_cell: cell has {name} {value!r}, expected "):
            register_cell("wrong", wrong)
    last = type("Last", (PeepholeLSTM,), {"forget_gate": 3})()
    monkeypatch.setattr(cell, "_CELLS", dict(cell._CELLS))
    register_cell("last", last)
    assert cell_for("f", "last") is last
    broken = type("Broken", (PeepholeLSTM,), {"num_gates": 2.5})()
    with pytest.raises(
        TypeError, match=r"register_cell: cell has num_gates 2.5, expected an integer of at least 1"
    ):
        register_cell("broken", broken)


def test_a_module_with_a_mistake(tmp_path, monkeypatch):
    (tmp_path / "mistaken.py").write_text("class Own(:\n")
    (tmp_path / "unfinished.py").write_text(
        "from rnnlab.layers import Cell\nfrom rnnlab.layers.recurrent.lstm import LSTM\n"
        "class Own(Cell):\n    pass\n"
        "class Sized(LSTM):\n    def __init__(self, size):\n        pass\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ValueError, match=r"cannot be imported: invalid syntax \(mistaken.py, line 1\)"):
        cell_for("f", "mistaken:Own")
    with pytest.raises(TypeError, match="f: cell is 'unfinished:Own', which has to define "):
        cell_for("f", "unfinished:Own")
    with pytest.raises(TypeError, match="f: cell is 'unfinished:Sized', which needs size, expected a class"):
        cell_for("f", "unfinished:Sized")


def test_a_class_may_be_defined_anew(monkeypatch):
    """As by running a notebook's cell again."""
    monkeypatch.setattr(cell, "_CELLS", dict(cell._CELLS))

    def defined():
        class Mine(PeepholeLSTM):
            pass

        return Mine()

    register_cell("mine_anew", defined())
    second = defined()
    register_cell("mine_anew", second)
    assert cell_for("f", "mine_anew") is second
    with pytest.raises(ValueError, match="name is 'mine_anew', which is already the name of Mine"):
        register_cell("mine_anew", PeepholeLSTM())


@pytest.mark.parametrize("name", ["Wx", "b"])
def test_names_of_every_layer_are_taken(name):
    with pytest.raises(ValueError, match=f"^Projected: two parts have a parameter '{name}', expected other"):
        Projected(name).shapes(3, 4)
