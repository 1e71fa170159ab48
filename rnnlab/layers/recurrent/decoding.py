"""Single steps of a cell, for decoding: weights are prepacked once, and nothing is saved for a backward.

A search reads the same words again and again. After it has read many, the products ``x Wx + b`` of the whole
vocabulary are computed once, and later steps look them up.
"""

from __future__ import annotations

from rnnlab.layers.embedding import WordEmbeddingCache
from rnnlab.layers.recurrent.cell import Cell
from rnnlab.layers.recurrent.cell_run import CellRun
from rnnlab.layers.recurrent.regularisation import UNREGULARISED, Draws, Regularisation
from rnnlab.ops import ops_for
from rnnlab.types import Array, Params, State

_STEPS = 8  # a guess at the number of steps that a search still has to make
_LARGEST_TABLE = 1 << 27  # bytes


class RecurrentStep:
    """A cell in inference, one step at a time. The parameters must not change afterwards.

    Parameters
    ----------
    cell : Cell
    params : mapping of str to array
        Wx (D, G), b (G,) and the cell's own.
    like : (N, H)
        An array with the library, the number of units and the dtype of a state.
    regularisation : Regularisation
        Zoneout becomes its expectation; dropout has no effect.
    """

    def __init__(
        self, cell: Cell, params: Params, like: Array, regularisation: Regularisation = UNREGULARISED
    ) -> None:
        self._ops, self.Wx, self._b = ops_for(like), params["Wx"], params["b"]
        self._from_x = self._ops.prepacked(self.Wx)
        self._run = CellRun(cell, Draws.of(regularisation, None, self._ops), params, like)
        self._num_read = 0  # number of word vectors read so far
        self._table: Array | None = None  # (V, G), the products of all words

    def __call__(self, x: Array, state: State, looked_up: WordEmbeddingCache | None = None) -> State:
        """Map the input x (n, D) and the state before a step, arrays (n, H), to the state after it.

        If the inputs are word vectors, ``looked_up`` may hold their tokens (n,) and the matrix (V, D) of all
        word vectors, which is the same in each call.
        """
        return self._step(self._products(x, looked_up), state)

    def add_input(
        self, x: Array, gates: Array, state: State, looked_up: WordEmbeddingCache | None = None
    ) -> State:
        """The same step for ``gates`` (n, G) that hold the products of contexts. They are overwritten."""
        gates += self._products(x, looked_up)
        return self._step(gates, state)

    def _products(self, x: Array, looked_up: WordEmbeddingCache | None) -> Array:
        """The products x Wx + b of inputs (n, D): (n, G)."""
        products = self._ops.empty((x.shape[0], self.Wx.shape[1]), x.dtype)
        if looked_up is not None and self._has_table(looked_up):
            self._ops.take(self._table, looked_up.x, products)
        else:
            self._ops.affine_into(x, self._from_x, self._b, products)
        return products

    def _has_table(self, looked_up: WordEmbeddingCache) -> bool:
        """Whether the table of all words' products exists; compute it once that is expected to save work."""
        if self._table is None:
            n, (V, G) = looked_up.x.size, (looked_up.W.shape[0], self.Wx.shape[1])
            self._num_read += n
            pays = self._num_read + _STEPS * n >= V
            if pays and V * G * self.Wx.dtype.itemsize <= _LARGEST_TABLE:
                table = self._ops.empty((V, G), self.Wx.dtype)
                self._ops.affine_into(looked_up.W, self._from_x, self._b, table)
                self._table = table
        return self._table is not None

    def _step(self, gates: Array, state: State) -> State:
        n = gates.shape[0]
        after = tuple(self._ops.empty((n, each.shape[1]), gates.dtype) for each in state)
        saved = self._run.prepared.saved(n, state[0])
        self._run.prepared.forward(self._run.step(gates, state, after, saved[slice(0, n)], 0))
        return after
