"""One training step of a captioning model with a reviewer, Adam included, and the same in PyTorch.

The model is that of ``attention`` with an LSTM and without the doubly stochastic loss. A Recurrent Nested
Model of B blocks of L steps stands between the regions and the decoder, or a Review Net. PyTorch has a module
for each step, with nn.LSTMCell. Its attentions to the thought vectors of earlier blocks are computed one by
one ("torch") or in products over all of them ("torch batched"); the faster one counts. Adam is fused.

The case B=L=8 has 0.7 billion parameters: each side needs 13 GB, and only one is in memory at a time. The
rows in MB are the peak memory of each side, as in ``memory``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from benchmarks import attention, turns
from benchmarks.gpu import Plan
from benchmarks.side import milliseconds
from benchmarks.steps import training_step
from benchmarks.table import Row, rows

Array = Any


class Sizes(NamedTuple):
    """The sizes of a case."""

    blocks: int  # B
    steps: int  # L
    intra: bool
    model: attention.Sizes  # all other sizes


FLICKR8K = attention.Sizes("lstm", 49, 512, attention.CAPTIONS)
CASES = {
    "Review Net L=8": Sizes(1, 8, False, FLICKR8K),
    "B=L=4": Sizes(4, 4, True, FLICKR8K),
    "B=L=8": Sizes(8, 8, True, FLICKR8K),
}
SIDES = ("rnnlab", "torch", "torch batched")
TARGETS: dict[str, dict[str, float | None]] = {
    "Review Net L=8": {"torch": None},
    "B=L=4": {"torch": 1.5},
    "B=L=8": {"torch": 1.5},
}
_GPU_CASES = {case: CASES[case] for case in ("Review Net L=8", "B=L=4")}
GPU = Plan(
    _GPU_CASES,
    (*SIDES, "rnnlab graphs", "rnnlab graphs tf32x3"),
    {case: {"torch": 3.0} for case in _GPU_CASES},
)
FRESH = True
ROUNDS = 3
WARM_UPS = 2  # the first step allocates the gradients and Adam's state
DROPOUT = {"feature_dropout": 0.4, "word_dropout": 0.5, "output_dropout": 0.5}
REVIEWER_DROPOUT = 0.3


def prepare(side: str, sizes: Sizes, device: str = "cpu") -> Callable[[], float]:
    """The training step of one side; it returns the loss."""
    features, captions = attention.batch(sizes.model)
    if side.startswith("rnnlab"):
        graphs = "graphs" in side
        return training_step(model(sizes, weights(sizes)), features, captions, device=device, graphs=graphs)
    from benchmarks import torch_attention

    rival = torch_model(sizes, weights(sizes), batched=side == "torch batched")
    return torch_attention.training_step(rival, features, captions, device=device)


def measure(work: Callable[[], float]) -> float:
    """Milliseconds of a step in a new process, after the warm-up."""
    for _ in range(WARM_UPS):
        work()
    return milliseconds(work)


def conclude(results: list[turns.Result]) -> list[Row]:
    """The rows of the peak memory of both sides."""
    from benchmarks import review_memory

    measured = (
        turns.measure("review_memory", result.case, SIDES, rounds=review_memory.ROUNDS) for result in results
    )
    return [row for result in measured for row in rows(result, review_memory.TARGETS[result.case])]


def weights(sizes: Sizes) -> dict[str, Array]:
    """The parameters of the model by name."""
    from rnnlab.layers import review_shapes
    from rnnlab.parameters import scoped

    D, W, H, V = (getattr(sizes.model.captions, letter) for letter in "DWHV")
    shapes = attention.decoder_shapes(gates=4, W=W, H=H, C=H, A=sizes.model.A, V=V)
    for key in ("_proj", "_proj_c"):
        shapes |= {f"W{key}": (D, H), f"b{key}": (H,)}
    reviewer = review_shapes(
        memory_dim=D,
        hidden_dim=H,
        attention_dim=sizes.model.A,
        blocks=sizes.blocks,
        steps=sizes.steps,
        intra=sizes.intra,
    )
    return attention.draw(shapes | scoped("reviewer_", reviewer))


def model(sizes: Sizes, weights: dict[str, Array]) -> Any:
    """A :class:`rnnlab.models.CaptioningRNN` with these weights."""
    from rnnlab.models import CaptioningRNN

    captions = sizes.model.captions
    made = CaptioningRNN(
        attention.vocabulary(captions.V),
        captions.D,
        captions.W,
        captions.H,
        "lstm",
        state_activation="tanh",
        project_cell=True,
        attention="additive",
        attention_dim=sizes.model.A,
        output="deep",
        reviewer={
            "blocks": sizes.blocks,
            "steps": sizes.steps,
            "intra": sizes.intra,
            "dropout": REVIEWER_DROPOUT,
        },
        **DROPOUT,
    )
    made.params.update(weights)
    return made


def torch_model(sizes: Sizes, weights: dict[str, Array], *, batched: bool = False) -> Any:
    """The same model in PyTorch, with attentions to thought vectors one by one or in batched products."""
    import torch

    from benchmarks.torch_review import ReviewedCaptioner

    torch.manual_seed(0)
    return ReviewedCaptioner(
        weights,
        blocks=sizes.blocks,
        steps=sizes.steps,
        intra=sizes.intra,
        batched=batched,
        reviewer_dropout=REVIEWER_DROPOUT,
        **DROPOUT,
    )
