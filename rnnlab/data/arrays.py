"""ArrayData: arrays in memory as a data set for the solver."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rnnlab.data.fingerprint import Fingerprint, array_hash, sample_hash
from rnnlab.data.split_data import SplitData, as_rows
from rnnlab.errors import InputError, InputTypeError
from rnnlab.types import Indices


class ArrayData(SplitData[tuple[Any, ...]]):
    """The arguments of a model's loss, as arrays by splits.

    Parameters
    ----------
    splits : mapping of str to sequence of array
        The arrays of each split, with an example in each row, as the arguments of ``model.loss``: (x, labels)
        or (x, labels, lengths) for a :class:`~rnnlab.models.SequenceClassifier`, (source, target) for a
        :class:`~rnnlab.models.Seq2Seq`. An argument that is a tuple of arrays is one here. ``train`` is
        required; ``val`` is for validation.
    null_token : int, optional
        For sentences, which are the last array, (N, L), or (N, S, L) with S of each source: the token of
        padding. A sentence begins with the model's <START>, or is nothing but padding. Every other token but
        the first of each sentence is a target. Without it there is one target in each row, such as a label.
    name : str
        Used in messages.

    Attributes
    ----------
    splits : dict of str to tuple of array

    Raises
    ------
    ValueError
        If there is no training example, a split has another number of arrays than ``train``, or the arrays of
        a split have different numbers of rows.
    TypeError
        If something is not an array.
    """

    in_memory = True  # a batch is a copy of rows

    def __init__(
        self,
        splits: Mapping[str, Sequence[Any]],
        *,
        null_token: int | None = None,
        name: str = "arrays",
    ) -> None:
        self.name, self.null_token = name, null_token
        if not isinstance(splits, Mapping):
            raise InputTypeError(
                f"ArrayData: splits is a {type(splits).__name__}, expected a dict of tuples of arrays, "
                'such as {"train": (x, labels)}'
            )
        for split, arrays in splits.items():
            if isinstance(arrays, np.ndarray):
                raise InputTypeError(
                    f"ArrayData: {split} is an array, expected a tuple of arrays, such as (x, labels)"
                )
        self.splits = {split: tuple(arrays) for split, arrays in splits.items()}
        for split, arrays in self.splits.items():
            self._check(split, arrays)
        if not self.splits.get("train") or not self._rows("train"):
            found = ", ".join(self.splits) or "no split"
            raise InputError(f"ArrayData: found {found}, expected examples of a split train")

    def batch(self, split: str, indices: Indices) -> tuple[Any, ...]:
        """The arrays of the rows ``indices`` (N,)."""
        return _rows_of(self.split(split), as_rows(self, indices))

    def check_model(self, model: Any) -> None:
        """Check that sentences have the tokens of the model for padding, and for the start of a sentence.

        Raises
        ------
        ValueError
            If padding has another token, or a sentence does not begin with the model's ``start_token``. A
            subclass with its own ``num_tokens`` is not checked.
        """
        padding = getattr(model, "null_token", None)
        if padding is None or type(self).num_tokens is not ArrayData.num_tokens:
            return
        if padding != self.null_token:
            raise InputError(
                f"ArrayData: null_token is {self.null_token}, expected the model's token of padding: "
                f"null_token={padding}"
            )
        if (start := getattr(model, "start_token", None)) is None:
            return
        for split, arrays in self.splits.items():
            sentences = _flat(arrays)[-1]
            wrong = np.argwhere((sentences[..., 0] != start) & (sentences != padding).any(axis=-1))
            if wrong.size:
                found = sentences[tuple(wrong[0])].tolist()
                raise InputError(
                    f"ArrayData: {split}: the last array has the sentence {found!r:.60}, expected the "
                    f"model's <START> first, the token {start}"
                )

    def num_tokens(self, batch: tuple[Any, ...]) -> int:
        """The number of targets in ``batch``."""
        last = batch[-1]
        return len(last) if self.null_token is None else int((last[..., 1:] != self.null_token).sum())

    def fingerprint(self) -> Fingerprint:
        """Sizes and hashes of the last array and of samples of the others, for :meth:`Solver.resume`."""
        found = {}
        for split, arrays in self.splits.items():
            *others, last = _flat(arrays)
            found[split] = " ".join([str(len(last)), *map(sample_hash, others), array_hash(last)])
        return found

    def __repr__(self) -> str:
        sizes = ", ".join(f"{split} {self._rows(split):,} rows" for split in self.splits)
        return f"ArrayData({self.name}: {sizes})"

    def _rows(self, split: str) -> int:
        return len(_flat(self.split(split))[0])

    def _check(self, split: str, arrays: tuple[Any, ...]) -> None:
        where, several = f"ArrayData: {split}", _flat(arrays)
        for k, array in enumerate(several):
            if not isinstance(array, np.ndarray) or not array.ndim:
                found = f"shape {array.shape}" if isinstance(array, np.ndarray) else type(array).__name__
                raise InputTypeError(
                    f"{where}: array {k} is of {found}, expected arrays with a row per example"
                )
        if self.null_token is not None and several:
            shape = several[-1].shape
            if len(shape) not in (2, 3) or not shape[-1]:
                raise InputError(
                    f"{where}: null_token is given, expected sentences (N, L) or (N, S, L) as the last "
                    f"array, L at least 1, found shape {shape}"
                )
        if not several:
            raise InputError(f"{where} has no array, expected the arguments of model.loss")
        if "train" in self.splits and len(several) != len(_flat(self.splits["train"])):
            raise InputError(
                f"{where} has {len(several)} arrays, expected {len(_flat(self.splits['train']))} as train"
            )
        if len({len(array) for array in several}) > 1:
            rows = ", ".join(str(len(array)) for array in several)
            raise InputError(f"{where}: the arrays have {rows} rows, expected equal numbers")


def _flat(arrays: tuple[Any, ...]) -> list[Any]:
    """The arrays, those in tuples, too."""
    return [each for array in arrays for each in (_flat(array) if isinstance(array, tuple) else [array])]


def _rows_of(arrays: tuple[Any, ...], indices: Indices) -> tuple[Any, ...]:
    return tuple(_rows_of(array, indices) if isinstance(array, tuple) else array[indices] for array in arrays)
