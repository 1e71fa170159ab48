"""X. Chen et al. (2018), tables 1 and 2 and figure 5, on Flickr8k: ARNet and others in a second stage."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.columns import CAPTIONS, DISTANCES, PERPLEXITY
from benchmarks.tables.flickr8k import LSTM_BFLOAT16, SOFT_ATTENTION, val
from benchmarks.trainings import Row, Table, Training, seeds

_SECOND_STAGE = (
    "training.num_epochs=3",
    "training.optim_config.learning_rate=1e-4",
    'training.schedule={name="constant"}',
)
ZONEOUT = ("model.regularisation.zoneout_h=0.1", "model.regularisation.zoneout_c=0.1")
SCHEDULED_SAMPLING = ('training.scheduled_sampling={name="constant", value=0.25}',)
_KINDS = {  # the second stages, which have the same number of updates
    "plain": (),
    "zoneout": ZONEOUT,
    "scheduled_sampling": SCHEDULED_SAMPLING,
    "arnet": ("model.reconstruction=0.01",),
}


def second_stages(
    start: Training, common: tuple[str, ...], kinds: Mapping[str, tuple[str, ...]]
) -> dict[str, Training]:
    """A training for each kind of second stage, all from the same first stage."""
    return {
        kind: Training(f"{start.name}_{kind}", start.recipe, (*common, *changes), start.seed, start)
        for kind, changes in kinds.items()
    }


def _rows(label: str, start: Training, count: int) -> tuple[Row, ...]:
    """A row before the second stage, and one for each kind of it: all seeds for the plain one and ARNet."""
    rows = [Row(f"{label}, before the second stage", seeds(start, count), val(3))]
    for kind, training in second_stages(start, (*start.changes, *_SECOND_STAGE), _KINDS).items():
        used = seeds(training, count if kind in ("plain", "arnet") else 1)
        rows.append(Row(f"{label}, {kind.replace('_', ' ')}", used, val(3)))
    return tuple(rows)


def _weight(value: str) -> Training:
    """The second stage with this weight of ARNet's loss."""
    kinds = {f"arnet_{value}": (f"model.reconstruction={value}",)}
    if value in ("0", "0.01"):
        kind = "plain" if value == "0" else "arnet"
        kinds = {kind: _KINDS[kind]}
    common = (*LSTM_BFLOAT16.changes, *_SECOND_STAGE)
    return next(iter(second_stages(LSTM_BFLOAT16, common, kinds).values()))


TABLES = {
    "arnet": Table(
        "Flickr8k, validation, beam 3: ARNet and others in a second stage (X. Chen et al. 2018, tables 1, 2)",
        (*_rows("encoder-decoder", LSTM_BFLOAT16, 3), *_rows("attentive", SOFT_ATTENTION, 1)),
        CAPTIONS | PERPLEXITY | DISTANCES,
        extras=("discrepancy",),
    ),
    "lambda": Table(
        "Flickr8k, validation, beam 3: the weight of ARNet's loss (X. Chen et al. 2018, figure 5)",
        tuple(
            Row(f"encoder-decoder, {value}", (_weight(value),), val(3))
            for value in ("0", "0.001", "0.005", "0.01", "0.05", "0.1")
        ),
        CAPTIONS | PERPLEXITY | DISTANCES,
        extras=("discrepancy",),
    ),
}
