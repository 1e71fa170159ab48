"""The contract of a recurrent cell, and the registry of cells.

A cell sees its input only through an affine map, which the loop over time computes for many steps at once:

    a_t = x_t Wx + b                                     pre-activations, (n, G), G = num_gates H
    state_t, cache_t = step_forward(a_t, state_{t-1}, params)

The loop does the rest: attention adds its contexts to a_t, dropout acts on the state that the recurrent
weights read, and zoneout mixes the states before and after a step. A state is a tuple of arrays (n, H), the
hidden state h first.

A custom cell is a subclass of :class:`Cell` with two methods in plain NumPy, ``step_forward`` and
``step_backward``, which return new arrays. The library's own cells also override :meth:`Cell.prepare`, which
gives the loop a version with prepacked weights and preallocated arrays.
"""

from __future__ import annotations

import difflib
from abc import ABC, abstractmethod
from typing import Any, ClassVar, NamedTuple, Protocol, runtime_checkable

from rnnlab.errors import InputError, InputTypeError
from rnnlab.importing import created, imported
from rnnlab.ops import ChunkMasks, Primitives, StepMasks
from rnnlab.ops.steps import StepInputs, Steps
from rnnlab.parameters import distinct
from rnnlab.types import Array, Params, Shapes, State

__all__ = [
    "Cell",
    "ChunkedCell",
    "PreparedCell",
    "Step",
    "cell_for",
    "cell_name",
    "cell_names",
    "register_cell",
]


class Step(NamedTuple):
    """The arrays of one step, views of the arrays of all steps; n sequences have this step."""

    gates: Array  # (n, G) in: pre-activations x Wx + b plus all contexts; out: activations
    prev: State  # each (n, H), before the step
    next: State  # each (n, H), after it: written
    saved: Any  # (n, H), written: what the backward reads in addition to gates and states; (n, 0) if nothing
    read: Array  # (n, H) what the recurrent weights read: prev[0], after dropout if there is any
    masks: StepMasks | None = None  # zoneout, and dropout of the candidate


class PreparedCell(Protocol):
    """A cell with its weights prepacked for the many steps of one call."""

    def saved(self, rows: int, like: Array) -> Any:
        """A workspace for ``Step.saved`` of this many rows: (rows, H) or (rows, 0), dtype as ``like``."""

    def forward(self, step: Step) -> None:
        """One step: write ``step.next``, ``step.saved``, and the activations into ``step.gates``."""

    def backward(self, step: Step, dstate: State, dread: Array, da: Array) -> Array | None:
        """Backward of :meth:`forward`.

        Parameters
        ----------
        step : Step
            As the forward left it; not written.
        dstate : arrays (n, H)
            In: the gradient of ``step.next``. Out: the gradient of ``step.prev``.
        dread : (n, H)
            Out: the gradient of ``step.read``. Usually it is the array ``dstate[0]``, to whose other shares
            this gradient is added, if there are others. With dropout of the state, in a cell that carries h
            or has masks, it is an array of its own, zero at first, and ``dstate[0]`` has the other shares.
        da : (n, G)
            Written: the gradient of the pre-activations.

        Returns
        -------
        (n, H) or None
            The gradient of ``step.prev[0]`` through zoneout, which the caller adds last.
        """

    def add_gradients(self, read: Array, saved: Any, da: Array, grads: Params) -> None:
        """Add the gradients of the recurrent parameters of many steps; ``read`` (m, H) is what they read."""


@runtime_checkable
class ChunkedCell(PreparedCell, Protocol):
    """A prepared cell that may be able to run many steps at once, without attention between them."""

    def chunk_forward(
        self,
        inputs: StepInputs,
        gates: Array,
        states: State,
        saved: Array,
        steps: Steps,
        masks: ChunkMasks | None,
    ) -> bool:
        """The pre-activations and the forward of some steps, in the arrays of the whole sequence.

        False if the steps must run one by one.
        """

    def chunk_backward(
        self,
        dh: Array,
        dstate: State,
        gates: Array,
        states: State,
        saved: Array,
        da: Array,
        steps: Steps,
        masks: ChunkMasks | None,
    ) -> bool:
        """Backward of :meth:`chunk_forward`. ``dh`` and ``da`` hold the rows of these steps only."""


class Cell(ABC):
    """One kind of recurrent cell.

    Attributes
    ----------
    num_gates : int
        Pre-activations for each unit: Wx is (D, G) and b (G,), G = num_gates H.
    num_states : int
        Arrays in a state: 1 for (h,), 2 for (h, c).
    carries_h : bool
        Whether h_{t-1} reaches h_t other than through the recurrent weights, as in a GRU. Dropout of the
        state depends on this, because it acts only on what the weights read.
    drops_candidate : bool
        Whether the cell can drop its candidate: ``step_forward``, or the prepared cell where there is one,
        multiplies what is added to the state by ``candidate_mask`` (n, H).
    forget_gate : int or None
        The index of the gate that keeps the state where it is 1. The models' option ``forget_bias`` sets its
        bias. None if there is no such gate.
    """

    num_gates: ClassVar[int] = 1
    num_states: ClassVar[int] = 1
    carries_h: ClassVar[bool] = False
    drops_candidate: ClassVar[bool] = False
    forget_gate: ClassVar[int | None] = None

    def recurrent_shapes(self, hidden_dim: int) -> Shapes:
        """The shapes of the parameters that a step reads, by name: Wh (H, G) for most cells.

        The names decide how models initialise them. One that begins with W, contains ``_W``, is v or w, or
        ends with ``_v`` or ``_w`` is a weight and is drawn at random. All others start at zero.

        Parameters
        ----------
        hidden_dim : int
            H, the number of units.
        """
        return {"Wh": (hidden_dim, self.num_gates * hidden_dim)}

    # Any: type checkers then accept a cell with candidate_mask, and one without options
    @abstractmethod
    def step_forward(
        self, a: Array, state: State, params: Params, *arguments: Any, **options: Any
    ) -> tuple[State, Any]:
        """One step.

        Parameters
        ----------
        a : (n, G)
            Pre-activations x Wx + b. Must not be changed.
        state : tuple of arrays (n, H)
            The state before the step. Must not be changed.
        params : mapping of str to array
            The parameters of :meth:`recurrent_shapes`.
        candidate_mask : (n, H), optional
            Only if ``drops_candidate``: 0 where a unit of the candidate is dropped, else 1 / (1 - p).

        Returns
        -------
        next_state : tuple of arrays (n, H)
        cache : Any
            What :meth:`step_backward` needs.
        """

    @abstractmethod
    def step_backward(
        self, dstate: State, params: Params, cache: Any
    ) -> tuple[Array, State, dict[str, Array]]:
        """Backward of :meth:`step_forward`.

        Parameters
        ----------
        dstate : tuple of arrays (n, H)
            The gradient of the loss with respect to ``next_state``. Must not be changed.
        params : mapping of str to array
            As in the forward.
        cache : Any

        Returns
        -------
        da : (n, G)
        dprev_state : tuple of arrays (n, H)
        dparams : dict of str to array
            The gradient of every parameter of :meth:`recurrent_shapes`.
        """

    def prepare(self, ops: Primitives, params: Params) -> PreparedCell | None:
        """The cell with its weights prepacked; None if the loop is to call the step functions."""
        return None

    @property
    def is_prepared(self) -> bool:
        """Whether the cell overrides :meth:`prepare` in addition to its step functions."""
        return type(self).prepare is not Cell.prepare

    def shapes(self, input_dim: int, hidden_dim: int) -> Shapes:
        """The shapes of all parameters: Wx (D, G), those of :meth:`recurrent_shapes`, and b (G,)."""
        G = self.num_gates * hidden_dim
        own = self.recurrent_shapes(hidden_dim)
        return distinct(type(self).__name__, {"Wx": (input_dim, G)}, own, {"b": (G,)})


def gates_axis(cell: Cell) -> str:
    """The axis of all gates, as :func:`~rnnlab.layers.checks.check_shapes` takes it: "H", or "4H"."""
    return "H" if cell.num_gates == 1 else f"{cell.num_gates}H"


_CELLS: dict[str, Cell] = {}


def register_cell(name: str, cell: Cell) -> None:
    """Register a cell under a name that layers, models, recipes and checkpoints accept.

    Parameters
    ----------
    name : str
        An identifier, such as "peephole_lstm".
    cell : Cell

    Raises
    ------
    ValueError
        If the name is not an identifier, another cell has it, or the cell has no such forget gate.
    TypeError
        If ``cell`` is not a :class:`Cell`, or its attributes have wrong types.
    """
    if not isinstance(name, str) or not name.isidentifier():
        raise InputError(f"register_cell: name is {name!r}, expected an identifier such as 'peephole_lstm'")
    _check_cell("register_cell: cell", cell)
    if name in _CELLS and not _of_one_class(_CELLS[name], cell):
        raise InputError(
            f"register_cell: name is {name!r}, which is already the name of {type(_CELLS[name]).__name__}"
        )
    _CELLS[name] = cell


def _of_one_class(one: Cell, other: Cell) -> bool:
    """Whether the classes are the same, or one redefines the other, as rerunning a notebook cell does."""
    first, second = type(one), type(other)
    return (first.__module__, first.__qualname__) == (second.__module__, second.__qualname__)


def cell_names() -> tuple[str, ...]:
    """The names of all registered cells."""
    return tuple(_CELLS)


def cell_name(cell: Cell) -> str:
    """The name of a cell, or of one of its class, or of its class if none is registered."""
    itself = [name for name, each in _CELLS.items() if each is cell]
    alike = [name for name, each in _CELLS.items() if type(each) is type(cell)]
    return next(iter([*itself, *alike]), type(cell).__name__)


def cell_for(function: str, cell: str | Cell, argument: str = "cell") -> Cell:
    """The cell of a name, or the cell itself.

    Parameters
    ----------
    function : str
        The name of the calling function, for the errors. ``argument`` is the name of its argument.
    cell : str or Cell
        The name of a registered cell, "package.module:Name" of a :class:`Cell` or of a subclass of it that
        can be called without arguments, or a cell.

    Raises
    ------
    ValueError
        If there is no such cell.
    TypeError
        If it is neither a string nor a cell.
    """
    if isinstance(cell, str) and cell in _CELLS:
        return _CELLS[cell]
    if isinstance(cell, str) and ":" in cell:
        return _cell_of(f"{function}: {argument}", cell)
    if isinstance(cell, Cell):
        return cell
    close = difflib.get_close_matches(cell.lower(), _CELLS, n=1) if isinstance(cell, str) else []
    raise (InputError if isinstance(cell, str) else InputTypeError)(
        f"{function}: {argument} is {cell!r}, expected one of {', '.join(_CELLS)}, "
        "or 'package.module:Name' of a Cell"
        + (f"; did you mean {close[0]!r}?" if close else ";")
        + " the module of a cell of your own registers it with rnnlab.layers.register_cell"
    )


def _cell_of(argument: str, path: str) -> Cell:
    found = imported(argument, path)
    if abstract := sorted(getattr(found, "__abstractmethods__", ())):
        raise InputTypeError(f"{argument} is {path!r}, which has to define {', '.join(abstract)}")
    cell = created(argument, path, found) if isinstance(found, type) and issubclass(found, Cell) else found
    if not isinstance(cell, Cell):
        raise InputTypeError(
            f"{argument} is {path!r}, found {found!r}, expected a subclass of rnnlab.layers.Cell or an "
            "object of one"
        )
    _check_cell(argument, cell)
    return cell


def _check_cell(function: str, cell: Any) -> None:
    if not isinstance(cell, Cell):
        hint = ": give an object of the class" if isinstance(cell, type) and issubclass(cell, Cell) else ""
        raise InputTypeError(f"{function} is {cell!r}, expected a rnnlab.layers.Cell{hint}")
    for name in ("num_gates", "num_states"):
        value = getattr(cell, name)
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise InputTypeError(f"{function} has {name} {value!r}, expected an integer of at least 1")
    for name in ("carries_h", "drops_candidate"):
        if not isinstance(value := getattr(cell, name), bool):
            raise InputTypeError(f"{function} has {name} {value!r}, expected True or False")
    gate = cell.forget_gate
    if isinstance(gate, bool) or not isinstance(gate, int | None):
        raise InputTypeError(f"{function} has forget_gate {gate!r}, expected None or an integer")
    if gate is not None and not 0 <= gate < cell.num_gates:
        raise InputError(
            f"{function} has forget_gate {gate!r}, expected None or a place among its {cell.num_gates} gates"
        )
