"""rnnlab: recurrent networks for sequence generation, every gradient written by hand.

Each package uses only the packages above it in this list:

:mod:`rnnlab.plain`      every layer written from its equations, in NumPy loops, for reading
:mod:`rnnlab.ops`        array primitives in NumPy, numba and CUDA
:mod:`rnnlab.layers`     forward/backward pairs: recurrent cells, attention, embedding, losses
:mod:`rnnlab.decoding`   greedy decoding, sampling and beam search over a model's step function
:mod:`rnnlab.models`     captioning, translation, language models and classification
:mod:`rnnlab.data`       files to batches
:mod:`rnnlab.metrics`    scores
:mod:`rnnlab.training`   solver, update rules, schedules, checkpoints
:mod:`rnnlab.recipes`    experiments as TOML files
:mod:`rnnlab.tasks`      the differences between these four tasks
:mod:`rnnlab.runs`       a recipe's data, model and solver, and its run directory
:mod:`rnnlab.ensembles`  trained models of several runs as one
:mod:`rnnlab.gradcheck`  numeric gradients, and the check of every layer and model
:mod:`rnnlab.reporting`  tables and pictures
:mod:`rnnlab.serving`    a web page for a trained captioner or translator
:mod:`rnnlab.cs231n`     the module names of the cs231n course
:mod:`rnnlab.course`     teaching: students' functions in a model, the files of an assignment
:mod:`rnnlab.cli`        the ``rnnlab`` command

Any package may use :mod:`rnnlab.parameters` (named views of one flat buffer), :mod:`rnnlab.plots`,
:mod:`rnnlab.types`, :mod:`rnnlab.special_words`, the modules of files (:mod:`rnnlab.reading`,
:mod:`rnnlab.files`, :mod:`rnnlab.locks`, :mod:`rnnlab.hdf5_objects`, :mod:`rnnlab.limits`) and those of
checks (:mod:`rnnlab.options`, :mod:`rnnlab.errors`, :mod:`rnnlab.importing`). :class:`RnnlabError` is the
base class of all errors.

``import rnnlab`` is enough to use all of them: ``rnnlab.layers.lstm_forward`` imports :mod:`rnnlab.layers`.
"""

import importlib
import importlib.util
from types import ModuleType
from typing import TYPE_CHECKING

from rnnlab.errors import RnnlabError

__all__ = ["RnnlabError"]

__version__ = "0.1.0"


if not TYPE_CHECKING:  # type checkers find wrong names, and need an import of each module

    def __getattr__(name: str) -> ModuleType:
        """Import a module on first use."""
        missing = f"module 'rnnlab' has no attribute {name!r}"
        if name.startswith("_") or not name.isidentifier() or not importlib.util.find_spec(f"rnnlab.{name}"):
            raise AttributeError(missing, name=name, obj=importlib.import_module("rnnlab"))
        try:
            return importlib.import_module(f"rnnlab.{name}")
        except ImportError as error:  # help() and inspect expect no other error
            raise AttributeError(f"{missing}: {error}") from error


def __dir__() -> list[str]:
    """The names for tab completion, with all modules."""
    import pkgutil

    special = (name for name in globals() if name.startswith("__"))
    modules = (module.name for module in pkgutil.iter_modules(__path__))
    return sorted({*__all__, *special, *modules} - {"__main__"})
