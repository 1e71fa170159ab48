"""The search for sentences by the options of a recipe."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np

from rnnlab.data.padding import PaddedRows
from rnnlab.decoding import Hypothesis, beam_search, greedy, sample
from rnnlab.decoding.method_options import METHOD_OPTIONS
from rnnlab.decoding.state_rows import TIMES_ON_GPU
from rnnlab.layers.checks import as_generator
from rnnlab.recipes.tables import DecodingTable
from rnnlab.training.distributed import ALONE, Communicator, in_shares
from rnnlab.types import Array

_ROWS = 250  # the maximum number of sources that are decoded together
_LENGTH = 200  # with longer sentences there are fewer, so that one very long sentence pads no others


def decode(
    model: Any,
    source: Array,
    options: DecodingTable,
    *,
    rng: np.random.Generator | int = 0,
    return_alignments: bool = False,
    forbid: Sequence[int] = (),
    first: int | None = None,
    communicator: Communicator = ALONE,
) -> list[list[Hypothesis]]:
    """Search for sentences by the options of a recipe's table ``[decoding]``.

    Parameters
    ----------
    model : CaptioningRNN, Seq2Seq, LanguageModel or Ensemble
    source : (N, ...), or a tuple of such arrays
        The model's inputs: scaled features, tokens, or prompts. They may be lazy: 250 rows are read at a
        time, on a GPU 2,000, of very long sentences fewer.
    options : DecodingTable
    rng : numpy Generator or seed
        For ``method = "sample"``.
    return_alignments : bool
        Whether hypotheses have an ``alignment``. The model must attend to its source.
    forbid : sequence of int
        Tokens that are never chosen, in addition to padding, <START> and those of ``options``.
    first : int, optional
        Only the first rows of ``source``.
    communicator : Communicator
        Ranks that share the work. All of them return all sentences, which are those of one process.

    Returns
    -------
    list of N lists of Hypothesis
        Best first.
    """
    unknown = model.word_to_idx.get("<UNK>") if options.forbid_unknown else None
    forbidden = (model.null_token, model.start_token, unknown, *forbid)
    arguments: dict[str, Any] = {
        "max_length": options.max_length,
        "min_length": options.min_length,
        "no_repeat_ngram": options.no_repeat_ngram,
        "forbid": [token for token in forbidden if token is not None],
        "return_alignments": return_alignments,
    } | {key: getattr(options, key) for key in METHOD_OPTIONS[options.method]}
    searches: dict[str, Any] = {"greedy": greedy, "beam": beam_search, "sample": sample}
    search = searches[options.method]
    rows = len(source[0] if isinstance(source, tuple) else source)
    rows = rows if first is None else min(first, rows)
    wide = options.method != "sample" and _device_of(model) != "cpu"  # so that samples equal those of a CPU
    size = _ROWS * TIMES_ON_GPU if wide else _ROWS
    blocks = _blocks(source, rows, size)
    generators = as_generator("decode", rng).spawn(len(blocks)) if options.method == "sample" else []

    def found(block: int) -> list[list[Hypothesis]]:
        own = {"rng": generators[block]} if generators else {}  # independent of the rank that decodes a block
        return search(model, rows_of(source, blocks[block]), **arguments, **own)

    return list(chain.from_iterable(in_shares(communicator, range(len(blocks)), found)))


def _blocks(source: Any, rows: int, size: int) -> list[slice]:
    """The rows that are decoded together: ``size``, or fewer if padded sentences have many tokens."""
    if not isinstance(source, PaddedRows):
        return [slice(start, min(start + size, rows)) for start in range(0, rows, size)]
    lengths, blocks, start = source.lengths().tolist(), [], 0
    while start < rows:
        stop, longest = start + 1, lengths[start]
        while stop < min(start + size, rows):
            longest = max(longest, lengths[stop])
            if longest * (stop + 1 - start) > size * _LENGTH:
                break
            stop += 1
        blocks.append(slice(start, stop))
        start = stop
    return blocks


def _device_of(model: Any) -> str:
    """The device of a model, or of the first one of an ensemble."""
    return model.models[0].device if hasattr(model, "models") else model.device


def rows_of(source: Array, rows: slice) -> Array:
    """Some rows of an array, or of each array of a tuple."""
    return tuple(each[rows] for each in source) if isinstance(source, tuple) else source[rows]
