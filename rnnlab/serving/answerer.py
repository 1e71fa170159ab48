"""The base class of all answerers: one search at a time, with a chosen beam width."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from rnnlab.decoding.search import attends
from rnnlab.errors import InputError
from rnnlab.ops import ops_on
from rnnlab.ops.precision import products_in, products_precision
from rnnlab.recipes.tables import DecodingTable
from rnnlab.runs import Run

Found = TypeVar("Found")

_WIDEST_BEAM = 10


class Answerer:
    """A run that answers requests from any thread.

    Its products have the precision that is current when the object is created.

    Parameters
    ----------
    run : Run
        One run, or an ensemble.
    decoding : DecodingTable
        The options of the beam search. Each answer has its own beam width.
    device : str
        The device of the run's model.

    Attributes
    ----------
    run, decoding
        The arguments.
    attends : bool
        Whether the model attends to its source.
    widest_beam : int
        The widest beam that an answer may have: the largest multiple of ``num_groups`` up to 10, or the beam
        of ``decoding`` if that is wider.
    """

    def __init__(self, run: Run, decoding: DecodingTable, device: str = "cpu") -> None:
        self.run, self.decoding = run, decoding
        self.attends = attends(run.model)
        groups = decoding.num_groups
        self.widest_beam = max(_WIDEST_BEAM // groups * groups, decoding.beam_size)
        self._matmul = products_precision()
        # One thread only, because the current GPU is set per thread, and parallel searches would share the
        # cores.
        self._thread = ThreadPoolExecutor(1, "search", ops_on, (device,))

    def search(self, act: Callable[[DecodingTable], Found], beam_size: int) -> Found:
        """The result of ``act`` with beam search of this width, which returns all sentences of the beam.

        Raises
        ------
        ValueError
            If the width is not from 1 to ``widest_beam``, or the groups do not divide it.
        """
        if not 1 <= beam_size <= self.widest_beam:
            raise InputError(f"the beam width is {beam_size}, expected 1 to {self.widest_beam}")
        options = self.decoding.changed(method="beam", beam_size=beam_size, n_best=beam_size)
        return self._thread.submit(products_in(self._matmul)(act), options).result()

    @property
    def about_scores(self) -> str:
        """The meaning of a sentence's score, in words."""
        penalty = self.decoding.length_penalty
        if not penalty:
            return "The score is the log-probability of the sentence, in nats."
        length = "(words + 1)" if self.decoding.normalisation == "power" else "((words + 6) / 6)"
        power = "" if penalty == 1 else f"^{penalty:g}"
        return f"The score is log-probability / {length}{power}, in nats."
