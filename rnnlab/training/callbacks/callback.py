"""The interface of callbacks: methods that the solver calls at events of a training run.

>>> class Losses(Callback):
...     '''Prints the loss of every hundredth iteration.'''
...
...     def on_step(self, solver, loss, grads):
...         if solver.iteration % 100 == 0:
...             print(solver.iteration, float(loss))
>>> Solver(model, data, callbacks=[Losses()]).train()                # doctest: +SKIP
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from rnnlab.errors import InputTypeError
from rnnlab.options import as_json, suggestion
from rnnlab.parameters import Parameters
from rnnlab.training.monitor import Monitor
from rnnlab.training.options import Options


class Training(Protocol):
    """The attributes of a :class:`~rnnlab.training.Solver` that a callback may use; documented there."""

    model: Any
    options: Options
    run_dir: Path | None

    @property
    def iteration(self) -> int:
        """The number of iterations done."""
        ...

    @property
    def epoch(self) -> int:
        """The number of epochs done."""
        ...

    @property
    def learning_rate(self) -> float:
        """The learning rate of the last iteration of this epoch; that of the next epoch in ``on_epoch``."""
        ...

    @property
    def loss_history(self) -> list[float]:
        """The loss of every iteration."""
        ...

    @property
    def history(self) -> list[dict[str, Any]]:
        """A row for every epoch."""
        ...

    @property
    def monitor(self) -> Monitor:
        """The monitored metric."""
        ...

    def stop(self, reason: str) -> None:
        """Stop after the current iteration, as after Ctrl-C."""
        ...


class Callback(Protocol):
    """The base class of callbacks: a subclass overrides the methods that it needs; the others do nothing.

    An exception in a callback ends the run, after a checkpoint has been written. ``on_end`` is called even
    then. Checkpoints do not hold callbacks: pass them again when a run resumes. They hold what :meth:`state`
    returns.
    """

    # each method returns explicitly: to type checkers, a Protocol's method without statements is abstract

    def on_start(self, solver: Training) -> None:
        """Called when training begins or resumes, before the first iteration.

        An exception here ends the run before it has begun: no checkpoint is written.
        """
        return

    def on_step(self, solver: Training, loss: Any, grads: Parameters) -> None:
        """Called after every iteration.

        Parameters
        ----------
        solver : Solver
            Its parameters are those after the update.
        loss : float, or an array () on the GPU
            The loss of the iteration. ``float(loss)`` waits for a GPU; call it only in the iterations that
            need it.
        grads : Parameters
            The gradient of the iteration, the whole batch's if it is accumulated. NumPy arrays on the CPU,
            CuPy arrays on a GPU. It is clipped by ``clip_value`` and not by ``clip_norm``, which is a factor
            that the update rule applies. Those of frozen parameters are 0. The next iteration overwrites
            the arrays, so copy what you keep.
        """
        return

    def on_epoch(self, solver: Training) -> None:
        """Called after the validation of an epoch, before its checkpoints, last.h5 and best.h5.

        ``solver.history[-1]`` is the epoch's row. A number that is added to it becomes a column of
        history.csv and of the history in the checkpoints. Parameters that are changed here are saved in
        last.h5 and, without ``ema_decay``, in best.h5. With several ranks this is an error,
        because the other ranks do not make the change.
        """
        return

    def on_checkpoint(self, solver: Training, path: Path) -> None:
        """Called after a checkpoint has been written to ``path``: last.h5 or best.h5 of the run directory.

        Not for a file that is written when a run resumes, for a last.h5 before the first best.h5, or after an
        exception in a callback or in ``evaluate``.
        """
        return

    def state(self) -> dict[str, Any] | None:
        """What each checkpoint saves of the callback: values that JSON can hold, or None for nothing."""
        return None

    def load_state(self, state: dict[str, Any]) -> None:
        """Called when a run resumes, before :meth:`on_start`, with the last saved :meth:`state`."""
        return

    def on_end(self, solver: Training) -> None:
        """Called when training ends: after the last epoch, an interruption or an exception.

        The last callback is called first. After the last epoch the best parameters are restored already, if
        the solver restores them.
        """
        return


EVENTS = tuple(name for name in vars(Callback) if name.startswith("on_"))


def notify(callbacks: Sequence[Callback], event: str, *arguments: Any) -> BaseException | None:
    """Call a method of all callbacks, and return the first exception, with those of the others as notes.

    After an exception in one, the others are still called: each sees an event once, because the run
    resumes after it. A second Ctrl-C or another stop signal ends the calls and is returned instead.
    """
    first: BaseException | None = None
    for callback in callbacks:
        try:
            getattr(callback, event)(*arguments)
        except Exception as error:
            if first is None:
                first = error
            else:
                first.add_note(f"{_name(callback)}.{event} failed as well: {error!r}")
        except BaseException as error:
            if first is not None:
                error.add_note(f"{event} of another callback failed before: {first!r}")
            return error
    return first


def saved_states(callbacks: Sequence[Callback]) -> list[tuple[str, dict[str, Any]]]:
    """The states of callbacks that have one, each with the name of its class.

    Raises
    ------
    TypeError
        If JSON cannot hold a state.

    Warns
    -----
    UserWarning
        If a key is not a string, which it will be when the state is loaded.
    """
    found = []
    for callback in callbacks:
        state = _state_method(callback)
        if state is not None and (saved := state()) is not None:
            found.append((_name(callback), as_json(saved, f"{_name(callback)}.state()")))
            if odd := [key for key in _keys(saved) if not isinstance(key, str)]:
                warnings.warn(
                    f"{_name(callback)}.state() has the key {odd[0]!r}, which is a string when it is loaded: "
                    "use strings as keys",
                    stacklevel=2,
                )
    return found


def _keys(value: Any) -> Iterator[Any]:
    """The keys of a mapping, and of all mappings in it or in a list."""
    if isinstance(value, Mapping):
        yield from value
    if isinstance(value, Mapping | list | tuple):
        for each in value.values() if isinstance(value, Mapping) else value:
            yield from _keys(each)


def load_states(callbacks: Sequence[Callback], states: Sequence[tuple[str, dict[str, Any]]]) -> None:
    """Give each callback the saved state of its class; the first one of a class gets its first state.

    Warns
    -----
    UserWarning
        If there is no callback for a state, which is dropped.
    """
    left = list(states)
    for callback in callbacks:
        names = [name for name, _ in left]
        if (name := _name(callback)) in names:
            callback.load_state(left.pop(names.index(name))[1])
    if left:
        dropped = ", ".join(name for name, _ in left)
        warnings.warn(f"the run has the state of {dropped}, which is not among the callbacks", stacklevel=2)


def _state_method(callback: Callback) -> Callable[[], dict[str, Any] | None] | None:
    """The method ``state``; None if the callback, whose class need not inherit from Callback, has none."""
    state = getattr(callback, "state", None)
    return state if callable(state) else None


def _name(callback: Callback) -> str:
    return f"{type(callback).__module__}:{type(callback).__qualname__}"


def check_callbacks(callbacks: Sequence[Callback]) -> list[Callback]:
    """The callbacks as a list.

    Raises
    ------
    TypeError
        If it is not a sequence of callbacks, or one has a method for an event that does not exist, or
        ``state`` without ``load_state``.
    """
    if isinstance(callbacks, str) or not isinstance(callbacks, Sequence):
        raise InputTypeError(f"Solver: callbacks is {callbacks!r}, expected a list of callbacks")
    for callback in callbacks:
        has_all = all(callable(getattr(callback, event, None)) for event in EVENTS)
        if isinstance(callback, type) or not has_all:
            raise InputTypeError(
                f"Solver: callbacks has {callback!r}, expected an object of a class that inherits from "
                "rnnlab.training.Callback"
            )
        if _state_method(callback) is not None and not callable(getattr(callback, "load_state", None)):
            raise InputTypeError(
                f"Solver: callbacks has a {type(callback).__name__} with state but without load_state, which "
                "gets the state when the run resumes"
            )
        for event, _ in inspect.getmembers(type(callback), callable):
            if event.startswith("on_") and event not in EVENTS:
                raise InputTypeError(
                    f"Solver: callbacks has a {type(callback).__name__} with {event}, which is not an event; "
                    f"{suggestion(event, EVENTS)}"
                )
    return list(callbacks)
