"""Beam search over a batch: length normalisation, n-best lists, diverse groups.

Length normalisation "power" and n-best lists follow Chen, Dong and Li (2016, section 4.3), the normalisation
"gnmt" Wu et al. (2016, eq. 14), diverse groups Vijayakumar et al. (2016).

Each group of each source is a *beam*. There are B beams, each with K slots for partial sentences. The rows of
the model's state are the slots of the active beams, beam by beam.

On a GPU the sentences stay on the device, and the host does not wait for each step. It learns one step late
which beams are finished, so a finished beam is advanced once more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from rnnlab.decoding.back_pointers import BackPointers
from rnnlab.decoding.constraints import Constraints
from rnnlab.decoding.method_options import check_needs
from rnnlab.decoding.search import (
    Hypothesis,
    StepModel,
    advanced,
    attention_of,
    check_count,
    check_numbers,
)
from rnnlab.decoding.state_rows import ROWS, DecodingState, chunks, repeated_rows, select
from rnnlab.errors import InputError
from rnnlab.ops import Primitives, device_of, ops_for
from rnnlab.ops.beams import GOING, REFUSED, BeamRules, BeamStep
from rnnlab.options import Normalisation, NotNegative, check_option
from rnnlab.types import Array

DIVERSITY = 0.5  # the default
_LARGEST_NORM = 1e280  # a log-probability divided by it is still a normal number
_LARGEST_DIVERSITY = 1e30  # larger ones have the same effect, and would overflow in float32
_NORMALISATIONS = {
    "power": lambda length, exponent: length**exponent,
    "gnmt": lambda length, exponent: ((5 + length) / 6) ** exponent,
}


def beam_search(
    model: StepModel,
    source: Any,
    *,
    beam_size: int = 3,
    max_length: int = 30,
    min_length: int = 0,
    length_penalty: float = 0.0,
    normalisation: Normalisation = "power",
    n_best: int = 1,
    num_groups: int = 1,
    diversity: float = DIVERSITY,
    forbid: Iterable[int] = (),
    no_repeat_ngram: int = 0,
    return_alignments: bool = False,
) -> list[list[Hypothesis]]:
    """Keep the most probable partial sentences, ``beam_size`` of them for each source.

    Each step finds the best ``beam_size`` continuations of all partial sentences. Continuations by <END> are
    finished hypotheses; the best other continuations fill the beam. After ``max_length`` words, <END> is the
    only continuation. The search of a source ends when ``beam_size`` hypotheses are finished, or when no
    partial sentence can still reach a better score than the finished ones. With ``beam_size`` 1 it finds the
    words of greedy decoding.

    Parameters
    ----------
    model : StepModel
    source : anything
        The argument of ``model.start``, N rows.
    beam_size : int
    max_length, min_length : int
        Maximum and minimum number of words in a sentence.
    length_penalty : float >= 0
        A, the exponent of the length normalisation. 0 means no normalisation.
    normalisation : "power" or "gnmt"
        The score is log_prob / len^A or log_prob / ((5 + len) / 6)^A, where ``len`` is the number of words
        plus 1 for <END>.
    n_best : int <= beam_size
        The number of hypotheses to return for each source.
    num_groups : int
        The beam is divided into this number of groups, each of which is searched separately. At every step,
        words that earlier groups have chosen for the same source at this step are penalised. <END> is never
        penalised, and a group whose search has ended chooses no more words.
    diversity : float >= 0
        The penalty in nats for each time that an earlier group chose the word. ``log_prob`` and ``score`` do
        not contain it.
    forbid : tokens
        Tokens that are never chosen. If <END> is one, all sentences have ``max_length`` words.
    no_repeat_ngram : int
        N-grams of this length occur at most once in a sentence. 0 means no constraint.
    return_alignments : bool
        Whether hypotheses have an ``alignment``. The model needs ``attention``.

    Returns
    -------
    list of N lists of Hypothesis
        Up to ``n_best`` each, best score first. There are fewer only if fewer sentences exist or several
        groups find the same sentence. If fewer than ``n_best`` are finished, because <END> has probability
        zero, the best unfinished ones follow.

    Raises
    ------
    ValueError, TypeError
        If an option is out of range.
    """
    constraints = Constraints(
        "beam_search",
        model,
        max_length=max_length,
        min_length=min_length,
        forbid=forbid,
        no_repeat_ngram=no_repeat_ngram,
    )
    check_count("beam_search", "beam_size", beam_size, 1)
    check_count("beam_search", "num_groups", num_groups, 1)
    if beam_size % num_groups:
        raise InputError(
            f"beam_search: num_groups is {num_groups}, expected a divisor of beam_size = {beam_size}"
        )
    check_count("beam_search", "n_best", n_best, 1, beam_size)
    for name, value in (("length_penalty", length_penalty), ("diversity", diversity)):
        check_option("beam_search", name, NotNegative, value)
    if normalisation not in _NORMALISATIONS:
        raise InputError(f"beam_search: normalisation is {normalisation!r}, expected 'power' or 'gnmt'")
    check_needs(
        "beam_search: ",
        {"method": "beam", "num_groups": num_groups, "length_penalty": length_penalty}
        | {"diversity": diversity, "normalisation": normalisation},
        {"diversity": DIVERSITY, "normalisation": "power"},
    )
    lengths = np.arange(1, constraints.max_length + 2, dtype=np.float64)  # words and <END>
    with np.errstate(over="ignore"):
        norms = _NORMALISATIONS[normalisation](lengths, length_penalty)
    if norms[-1] > _LARGEST_NORM:
        raise InputError(
            f"beam_search: length_penalty is {length_penalty}, for which the scores of {max_length} words "
            "would be zero, expected a smaller one"
        )
    options = _Options(
        size=beam_size // num_groups,
        groups=num_groups,
        diversity=min(float(diversity), _LARGEST_DIVERSITY),
        n_best=n_best,
        norms=norms,
        constraints=constraints,
        attention=attention_of("beam_search", model, return_alignments),
    )
    return [
        hypotheses
        for sources, state in chunks(model.start(source), ROWS, beam_size)
        for hypotheses in _search(model, sources.size, state, options)
    ]


class _Options(NamedTuple):
    """The options of :func:`beam_search`, checked."""

    size: int  # K, of one group
    groups: int  # G
    diversity: float
    n_best: int
    norms: Array  # (max_length + 1,) divisors of the log-probability of 0, 1, ... words and <END>
    constraints: Constraints
    attention: Callable[[DecodingState], Array] | None


def _search(
    model: StepModel, sources: int, state: DecodingState, options: _Options
) -> list[list[Hypothesis]]:
    """Search for the sentences of a chunk of sources."""
    groups, constraints, attention = options.groups, options.constraints, options.attention
    B = sources * groups
    state = repeated_rows(state, groups)
    pointers: BackPointers | None = None
    active = np.arange(B)  # (b,) the beams of the state
    last: Array = np.full(B, model.start_token)  # (b slots,)
    unread: _Unread | None = None
    for t in range(constraints.max_length + 1):  # one more for <END> after the last word
        log_probs, state = advanced("beam_search", model, state, last)
        ops = ops_for(log_probs)
        if pointers is None:
            pointers = BackPointers(ops, B, options.size, options.norms)
            step, late = pointers.start, device_of(log_probs) != "cpu"
        slots = step.totals.shape[1]
        if attention is not None:
            weights = attention(state)
            pointers.attend(active, weights.reshape(active.size, slots, weights.shape[1]))
        history = pointers.history(active, slots, t) if constraints.no_repeat_ngram else None
        log_probs = constraints.apply(log_probs, t, history)
        places = None
        if unread is not None:
            places = unread.going()
            active = active[places]
        if not active.size:
            unread = None
            break
        step = _step(ops, log_probs, step, pointers, t, active, places, options)
        unread = _Unread(ops, step)
        if not late:
            places, unread = unread.going(), None
            step, active = _only(step, places), active[places]
        if t == constraints.max_length or not active.size:
            break
        state, last = select(state, step.rows.reshape(-1)), step.words.reshape(-1)
    if unread is not None:
        unread.going()
    return [] if pointers is None else pointers.hypotheses(groups, options.n_best)


class _Unread:
    """The status of the beams after a step, which is read when the device has finished the step."""

    def __init__(self, ops: Primitives, step: BeamStep) -> None:
        self._ops, self._step, self._status = ops, step, ops.fetch(step.status)

    def going(self) -> Array:
        """The indices of the beams whose search continues.

        Raises
        ------
        ValueError
            If log-probabilities are NaN or too large.
        """
        status = self._status()
        if (status == REFUSED).any():
            check_numbers("beam_search", self._ops.asnumpy(self._step.largest))
        return np.flatnonzero(status == GOING)


def _only(step: BeamStep, places: Array) -> BeamStep:
    """A selection of the beams."""
    if places.size == len(step.beams):
        return step
    return BeamStep(*(each[places] for each in step))


def _step(
    ops: Primitives,
    log_probs: Array,
    before: BeamStep,
    pointers: BackPointers,
    t: int,
    active: Array,
    places: Array | None,
    options: _Options,
) -> BeamStep:
    """The continuations of all active beams. Groups are searched in order, with penalties of earlier ones."""
    norms, constraints = options.norms, options.constraints
    rules = BeamRules(
        constraints.end_token, t, t == constraints.max_length, norms[t], norms[-1], options.n_best
    )
    given = log_probs, before, pointers.found, pointers.of(t), rules
    if places is not None and places.size == len(before.beams):
        places = None
    if options.groups == 1:
        return ops.beam_step(*given, None if places is None else ops.asarray(places))
    places = np.arange(active.size) if places is None else places
    sources = active // options.groups
    # how many groups chose each word at this step
    chosen = np.zeros((sources[-1] + 1, log_probs.shape[1]), log_probs.dtype)
    parts, order = [], []
    for group in range(options.groups):
        own = np.flatnonzero(active % options.groups == group)
        penalty = ops.asarray(options.diversity * chosen[sources[own]])
        part = ops.beam_step(*given, ops.asarray(places[own]), penalty)
        totals, words, counts = map(ops.asnumpy, (part.totals, part.words, pointers.found.counts))
        full = counts[active[own]] >= options.size  # the search of these ends
        beam, slot = np.nonzero((totals > -np.inf) & ~full[:, None])
        np.add.at(chosen, (sources[own][beam], words[beam, slot]), 1)
        parts.append(part)
        order.append(own)
    back = ops.asarray(np.argsort(np.concatenate(order)))
    return BeamStep(*(ops.concatenate(arrays)[back] for arrays in zip(*parts, strict=True)))
