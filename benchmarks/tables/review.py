"""Jiang, Ma and Lu (2020), tables 1, 2 and 4 and figure 2, on Flickr8k.

Soft attention, Review Net and the Recurrent Nested Model (RNM), with the paper's training; their ensembles;
discriminative supervision; the connections and the depth of the RNM.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from benchmarks import results
from benchmarks.columns import CAPTIONS, EPOCHS, PERPLEXITY, SIZE, best, score
from benchmarks.tables.flickr8k import test, val
from benchmarks.trainings import Ensemble, Row, Table, Training, seeds

_TRAINING_OF_THE_PAPER = (  # the recipes of the other two models have it already
    "data.global_features=$RNNLAB_DATA/flickr8k/features_global.h5",
    "data.captions_per_image=5",
    "training.batch_size=13",
    "model.label_smoothing=0.1",
    "training.num_epochs=15",
    "training.patience=4",
    "training.optim_config.learning_rate=5e-4",
    'training.schedule={name="step", every=3, factor=0.8}',
    'training.scheduled_sampling={name="epoch_fraction", epochs=100, most=0.25}',
)
SOFT_ATTENTION = Training("flickr8k_soft_attention_paper", "flickr8k_soft_attention", _TRAINING_OF_THE_PAPER)
REVIEW_NET = Training("flickr8k_reviewnet", "flickr8k_reviewnet")
RNM = Training("flickr8k_rnm", "flickr8k_rnm")

_MODELS = {
    "soft attention": (SOFT_ATTENTION, (70.7, 49.2, 34.4, 24.3, 23.9), ()),
    "Review Net, 8 steps": (
        REVIEW_NET,
        (74.8, 58.3, 44.5, 33.9, 26.4, 54.9, 106.5),
        (76.4, 60.3, 46.6, 35.7, 27.3, 56.2, 111.7),
    ),
    "RNM, 2 x 4 steps": (
        RNM,
        (75.7, 59.6, 45.8, 35.1, 26.9, 55.7, 109.7),
        (76.7, 60.8, 46.9, 36.2, 27.5, 56.5, 113.1),
    ),
}


def ensemble(training: Training) -> Ensemble:
    """The models of three seeds."""
    return Ensemble(f"{training.name}-ensemble", seeds(training, 3))


def _scores(values: tuple[float, ...]) -> dict[str, float]:
    return dict(zip(CAPTIONS, values, strict=False))


# ---------------------------------------------------------------- discriminative supervision

# The code of Yang et al. (2016) divides the loss by the number of scored words, and multiplies it by 10.
_SUPERVISED = ("model.discriminative=0.01",)


def _with_and_without(label: str) -> Iterator[Row]:
    training = _MODELS[label][0]
    supervised = Training(f"{training.name}_discriminative", training.recipe, _SUPERVISED)
    yield Row(label, seeds(training, 3), test(3))
    yield Row(f"{label}, discriminative supervision", seeds(supervised, 3), test(3))


# ---------------------------------------------------------------- ablation, and depth

_WITHOUT = {
    "without both kinds of connections": ("flickr8k_rnm_chain", ("inter", "intra"), 102.6),
    "without intra-block connections": ("flickr8k_rnm_inter", ("intra",), 103.6),
    "without inter-block connections": ("flickr8k_rnm_intra", ("inter",), 103.0),
}
_GREEDY = {"CIDEr, greedy": score("CIDEr")}


def _ablated(label: str) -> Row:
    name, removed, paper = _WITHOUT[label]
    training = Training(name, RNM.recipe, tuple(f"model.reviewer.{part}=false" for part in removed))
    return Row(label, seeds(training, 3), val(1), {"CIDEr, greedy": paper})


def _deep(recipe: str, blocks: int, steps: int) -> Training:
    """A training of a reviewer of this size; the recipe's own training if it has this size."""
    standard = {REVIEW_NET.recipe: (REVIEW_NET, 1, 8), RNM.recipe: (RNM, 2, 4)}[recipe]
    if (blocks, steps) == standard[1:]:
        return standard[0]
    changes = (f"model.reviewer.blocks={blocks}", f"model.reviewer.steps={steps}")
    return Training(f"{recipe}_{blocks}x{steps}", recipe, changes)


_DEPTHS: dict[str, dict[int, Training]] = {
    "Review Net": {depth: _deep(REVIEW_NET.recipe, 1, depth) for depth in (4, 8, 16)},
    "RNM, blocks of 4 steps": {4 * blocks: _deep(RNM.recipe, blocks, 4) for blocks in (1, 2, 4)},
}


def draw_depth(path: Path, of: Path = results.RESULTS) -> bool:
    """Draw validation CIDEr over the depth of review; return false if no line has two points.

    Parameters
    ----------
    path : path
        The path of the PNG.
    of : path
        The folder of the results.
    """
    lines = {label: _points(depths, of) for label, depths in _DEPTHS.items()}
    if max(map(len, lines.values())) < 2:
        return False
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.add_subplot()
    for (label, points), marker in zip(lines.items(), "os", strict=True):
        axes.plot(*zip(*points, strict=True), marker=marker, label=label)
    axes.set(xlabel="depth of review, LSTM steps", ylabel="validation CIDEr of greedy captions")
    axes.set_xscale("log", base=2)
    axes.set_xticks([4, 8, 16], ["4", "8", "16"])
    axes.legend()
    figure.savefig(path, dpi=100, metadata={"Software": None})
    return True


def _points(depths: dict[int, Training], of: Path) -> list[tuple[int, float]]:
    found = []
    for depth, training in depths.items():
        known = results.load(training.id, of)
        if known is not None and results.key_of(val(1)) in known["evaluations"]:
            found.append((depth, 100 * known["evaluations"][results.key_of(val(1))]["CIDEr"]))
    return found


# ---------------------------------------------------------------- the tables

TABLES = {
    "review": Table(
        "Flickr8k, test, beam 3: soft attention, Review Net, RNM (Jiang, Ma and Lu 2020, table 1)",
        tuple(
            Row(label, seeds(training, 3), test(3), _scores(single))
            for label, (training, single, _) in _MODELS.items()
        ),
        CAPTIONS | {"validation CIDEr": best("CIDEr")} | PERPLEXITY | EPOCHS | SIZE,
        paper="the paper, COCO",
    ),
    "review_ensembles": Table(
        "Flickr8k, test, beam 3: ensembles of three seeds (Jiang, Ma and Lu 2020, table 2)",
        tuple(
            Row(label, (ensemble(training),), test(3), _scores(several))
            for label, (training, _, several) in _MODELS.items()
        ),
        CAPTIONS | PERPLEXITY,
        paper="the paper, ensembles of 4, COCO",
    ),
    "review_validation": Table(
        "Flickr8k, validation, beam 3: the same models and ensembles",
        tuple(
            Row(f"{label}{kind}", entries, val(3))
            for label, (training, _, _) in _MODELS.items()
            for kind, entries in ((", single", seeds(training, 3)), (", ensemble", (ensemble(training),)))
        ),
        CAPTIONS | PERPLEXITY,
    ),
    "review_discriminative": Table(
        "Flickr8k, test, beam 3: discriminative supervision (Jiang, Ma and Lu 2020, eqs 9 and 10)",
        tuple(row for label in _MODELS if "steps" in label for row in _with_and_without(label)),
        CAPTIONS | {"validation CIDEr": best("CIDEr")} | PERPLEXITY | EPOCHS | SIZE,
    ),
    "review_connections": Table(
        "Flickr8k, validation, greedy: connections of the RNM (Jiang, Ma and Lu 2020, table 4)",
        (
            Row("RNM, 2 x 4 steps", seeds(RNM, 3), val(1), {"CIDEr, greedy": 104.3}),
            *map(_ablated, _WITHOUT),
        ),
        _GREEDY | PERPLEXITY | SIZE,
        paper="the paper, 8 x 8, COCO",
    ),
    "review_depth": Table(
        "Flickr8k, validation, greedy: depth of review (Jiang, Ma and Lu 2020, figure 2)",
        tuple(
            Row(f"{label}, depth {depth}", (training,), val(1))
            for label, depths in _DEPTHS.items()
            for depth, training in depths.items()
        ),
        _GREEDY | PERPLEXITY | SIZE,
    ),
}
