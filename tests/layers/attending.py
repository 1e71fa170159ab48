"""Attention once more, written plainly from its equations, and inputs for its tests."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rnnlab.layers.attention.decoder import attentive_backward, attentive_forward, attentive_shapes

from .reference import CELLS, Cell, logistic

Array = Any


def attend(
    query: Array, memory: list[Array], p: dict[str, Array], score: str
) -> tuple[list[float], Array | float]:
    """Weights and context of one query (H,) to a list of cells (C,)."""
    if not memory:
        return [], 0.0
    if score == "additive":
        scores = [p["v"] @ np.tanh(query @ p["Wq"] + cell @ p["Wm"] + p["b"]) for cell in memory]
    elif score == "dot":
        scores = [query @ cell for cell in memory]
    else:
        scores = [query @ p["W"] @ cell for cell in memory]
    weights = np.exp(scores) / np.sum(np.exp(scores))
    return list(weights), sum(weight * cell for weight, cell in zip(weights, memory, strict=True))


class Batch(NamedTuple):
    """What an attentive cell may be given."""

    cell: Cell
    score: str
    selector: bool
    target: bool
    arrays: dict[str, Array]  # x, h0, c0, memory and the parameters, in this order
    lengths: Array | None = None
    memory_mask: Array | None = None

    @property
    def options(self) -> dict[str, Any]:
        return {
            "cell": self.cell.name,
            "score": self.score,
            "selector": self.selector,
            "target": self.target,
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
            memory_mask=self.memory_mask,
        )
        return h, contexts, *weights.values(), *final, cache

    def backward(self, *douts: Array) -> tuple[Array, ...]:
        """The gradients of all arrays in their order, from those of all outputs and the cache."""
        dh, dcontexts, *rest, cache = douts
        parts = ["source"] * ("memory" in self.arrays) + ["target"] * self.target
        dx, dstate, dmemory, dparams = attentive_backward(
            dh,
            dcontexts,
            cache,
            dweights=dict(zip(parts, rest, strict=False)),
            dfinal=tuple(rest[len(parts) :]),
        )
        return dx, *dstate, *(() if dmemory is None else (dmemory,)), *dparams.values()

    def plain(self) -> tuple[Array, ...]:
        """The outputs, one sequence and one step after another."""
        a = self.arrays
        (N, T, _), H, memory = a["x"].shape, a["h0"].shape[1], a.get("memory")
        L, C = (0, 0) if memory is None else memory.shape[1:]
        h, source, target = np.zeros((N, T, H)), np.zeros((N, T, L)), np.zeros((N, T, T))
        z, past = np.zeros((N, T, C)), np.zeros((N, T, H))
        finals = [np.zeros((N, H)) for _ in self.cell.states]
        p_source, p_target = (
            {name.removeprefix(part): a[name] for name in a if name.startswith(part)}
            for part in ("source_", "target_")
        )
        for n in range(N):
            state, states = tuple(a[name][n] for name in self.state_names), []
            for t in range(T if self.lengths is None else self.lengths[n]):
                prev_h, bias = state[0], a["b"]
                if memory is not None:
                    real = [i for i in range(L) if self.memory_mask is None or self.memory_mask[n, i]]
                    weights, context = attend(prev_h, [memory[n, i] for i in real], p_source, self.score)
                    beta = logistic(prev_h @ a["selector_w"] + a["selector_b"]) if self.selector else 1.0
                    source[n, t, real], z[n, t] = weights, beta * context
                    bias = bias + z[n, t] @ a["Wz"]
                if self.target:
                    target[n, t, : len(states)], past[n, t] = attend(prev_h, states, p_target, self.score)
                    bias = bias + past[n, t] @ a["Wt"]
                state = self.cell.reference_step(a["x"][n, t], state, a["Wx"], a["Wh"], bias)
                states.append(state[0])
                h[n, t] = state[0]
            h[n, len(states) :] = state[0]
            for final, value in zip(finals, state, strict=True):
                final[n] = value
        contexts = np.concatenate([z] * (memory is not None) + [past] * self.target, axis=2)
        return h, contexts, *[source] * (memory is not None), *[target] * self.target, *finals


def batch(
    rng: np.random.Generator,
    cell: str = "lstm",
    score: str = "additive",
    *,
    source: bool = True,
    selector: bool = False,
    target: bool = False,
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
        {name: array.astype(dtype) for name, array in arrays.items()},
        None if lengths is None else np.asarray(lengths, dtype=int),
        None if memory_mask is None else np.asarray(memory_mask, dtype=bool),
    )
