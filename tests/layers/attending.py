"""A cell that attends with random inputs, for its tests."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import strategies as st

from rnnlab.layers.attention.decoder import attentive_backward, attentive_forward, attentive_shapes
from rnnlab.plain.attentive import attentive_forward as plain_attentive_forward

from .reference import CELLS, Cell

SCORES = ["additive", "dot", "bilinear"]
PARTS: dict[str, dict[str, Any]] = {
    "source": {},
    "selector": {"selector": True},
    "target": {"source": False, "target": True},
    "both": {"target": True, "selector": True},
    "delayed": {"source": False, "target": True, "target_delay": 2},
    "source and delayed": {"target": True, "target_delay": 2},
}
RAGGED = [2, 4, 0]
MASK = [[1, 0, 1], [0, 0, 0], [1, 1, 1]]

every_cell = pytest.mark.parametrize("cell", [cell.name for cell in CELLS])
every_score = pytest.mark.parametrize("score", SCORES)
every_part = pytest.mark.parametrize("parts", PARTS.values(), ids=PARTS)

Array = Any


class Batch(NamedTuple):
    """A cell that attends, and the arguments of its forward."""

    cell: Cell
    score: str
    selector: bool
    target: bool
    target_delay: int | None
    arrays: dict[str, Array]  # x, h0, c0, memory and the parameters, in this order
    lengths: Array | None = None
    memory_mask: Array | None = None
    mask: Array | None = None  # instead of lengths

    @property
    def options(self) -> dict[str, Any]:
        return {
            "cell": self.cell.name,
            "score": self.score,
            "selector": self.selector,
            "target": self.target,
            "target_delay": self.target_delay,
        }

    @property
    def state_names(self) -> list[str]:
        return [f"{name}0" for name in self.cell.states]

    @property
    def param_names(self) -> list[str]:
        return [name for name in self.arrays if name not in ("x", "h0", "c0", "memory")]

    def forward(self, **arrays: Array) -> tuple[Any, ...]:
        """All outputs one after another, and the cache, of the batch with these arrays instead of its own."""
        a = self.arrays | arrays
        h, contexts, weights, final, cache = attentive_forward(
            a["x"],
            tuple(a[name] for name in self.state_names),
            a.get("memory"),
            {name: a[name] for name in self.param_names},
            **self.options,
            lengths=self.lengths,
            mask=self.mask,
            memory_mask=self.memory_mask,
        )
        return h, contexts, *weights.values(), *final, cache

    def backward(self, *douts: Array, total_dh: Array | None = None) -> tuple[Array, ...]:
        """The gradients of all arrays in their order, from those of all outputs and the cache."""
        dh, dcontexts, *rest, cache = douts
        parts = ["source"] * ("memory" in self.arrays) + ["target"] * self.target
        dx, dstate, dmemory, dparams = attentive_backward(
            dh,
            dcontexts,
            cache,
            dweights=dict(zip(parts, rest, strict=False)),
            dfinal=tuple(rest[len(parts) :]),
            total_dh=total_dh,
        )
        return dx, *dstate, *(() if dmemory is None else (dmemory,)), *dparams.values()

    def plain(self) -> tuple[Array, ...]:
        """The outputs, by the plain text."""
        h, contexts, weights, final, _ = plain_attentive_forward(
            self.arrays["x"],
            tuple(self.arrays[name] for name in self.state_names),
            self.arrays.get("memory"),
            {name: self.arrays[name] for name in self.param_names},
            **self.options,
            lengths=self.lengths,
            memory_mask=self.memory_mask,
        )
        return h, contexts, *weights.values(), *final


def batch(
    rng: np.random.Generator,
    cell: str = "lstm",
    score: str = "additive",
    *,
    source: bool = True,
    selector: bool = False,
    target: bool = False,
    target_delay: int | None = None,
    N: int = 3,
    T: int = 4,
    L: int = 3,
    D: int = 2,
    H: int = 4,
    C: int = 5,
    A: int = 3,
    lengths: Any = None,
    memory_mask: Any = None,
    dtype: Any = np.float64,
) -> Batch:
    """Random arrays."""
    kind = next(each for each in CELLS if each.name == cell)
    C = H if score == "dot" else C
    shapes = attentive_shapes(
        cell,
        input_dim=D,
        hidden_dim=H,
        attention_dim=A,
        memory_dim=C if source else None,
        score=score,
        selector=selector,
        target=target,
        target_delay=target_delay,
    )
    arrays = {"x": rng.standard_normal((N, T, D))}
    arrays |= {f"{name}0": rng.standard_normal((N, H)) for name in kind.states}
    if source:
        arrays["memory"] = rng.standard_normal((N, L, C))
    arrays |= {name: rng.standard_normal(shape) / 2 for name, shape in shapes.items()}
    return Batch(
        kind,
        score,
        selector,
        target,
        target_delay,
        {name: array.astype(dtype) for name, array in arrays.items()},
        None if lengths is None else np.asarray(lengths, dtype=int),
        None if memory_mask is None else np.asarray(memory_mask, dtype=bool),
    )


def options_of(parts: dict[str, Any], *, ragged: bool = True) -> dict[str, Any]:
    """The options of the parts, with lengths, and with a mask if there is a source."""
    if not ragged:
        return parts
    return parts | {"lengths": RAGGED} | ({"memory_mask": MASK} if parts.get("source", True) else {})


@st.composite
def any_batch(draw: st.DrawFn) -> tuple[Batch, np.random.Generator]:
    """Any cell, score and parts; small and empty sizes, and any masks."""
    N, T, L = draw(st.integers(1, 4)), draw(st.integers(1, 5)), draw(st.integers(1, 4))
    source, target = draw(st.sampled_from([(True, False), (False, True), (True, True)]))
    lengths = draw(st.none() | st.lists(st.integers(0, T), min_size=N, max_size=N))
    masks = st.lists(st.lists(st.booleans(), min_size=L, max_size=L), min_size=N, max_size=N)
    b = batch(
        np.random.default_rng(draw(st.integers(0, 2**32 - 1))),
        draw(st.sampled_from([cell.name for cell in CELLS])),
        draw(st.sampled_from(SCORES)),
        source=source,
        selector=source and draw(st.booleans()),
        target=target,
        target_delay=draw(st.none() | st.integers(2, 4)) if target else None,
        N=N,
        T=T,
        L=L,
        H=draw(st.integers(1, 4)),
        A=draw(st.integers(1, 4)),
        C=draw(st.integers(1, 4)),
        lengths=lengths,
        memory_mask=draw(st.none() | masks) if source else None,
    )
    return b, np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
