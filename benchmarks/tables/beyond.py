"""Beyond the papers: self-critical training (Rennie et al. 2017), and the captions that people wrote."""

from __future__ import annotations

from benchmarks.columns import CAPTIONS, PERPLEXITY, best, score
from benchmarks.tables.flickr8k import LSTM, test, val
from benchmarks.tables.review import REVIEW_NET, RNM, SOFT_ATTENTION
from benchmarks.trainings import EXTRAS, Ensemble, People, Row, Table, Training, seeds

# The second stage of flickr8k_scst.toml, as the only stage of a training from a trained model.
_STAGE = {
    "num_epochs": "20",
    "batch_size": "16",
    "patience": '"none"',
    "optim_config": "{learning_rate=1e-4}",
    "schedule": '{name="constant"}',
    "scheduled_sampling": '"none"',
    "self_critical": '{samples=5, baseline="mean", max_length=20, feature_dropout=0.4}',
}
_SELF_CRITICAL = (f"stage=[{{{', '.join(f'{key}={value}' for key, value in _STAGE.items())}}}]",)
_LABELS = {
    "LSTM, one vector an image": LSTM,
    "soft attention": SOFT_ATTENTION,
    "Review Net": REVIEW_NET,
    "RNM, 2 x 4 steps": RNM,
}
_PEOPLE = People("flickr8k_people", "flickr8k_lstm")


def _self_critical(start: Training) -> Training:
    """Self-critical training from the trained model ``start``, on its data."""
    same = tuple(change for change in start.changes if change.startswith(("data.", "model.")))
    return Training(f"{start.name}_scst", start.recipe, same + _SELF_CRITICAL, start.seed, start)


_THREE = (*seeds(SOFT_ATTENTION, 2), RNM)
_ENSEMBLE = Ensemble("flickr8k_scst-ensemble", tuple(map(_self_critical, _THREE)))


def _rows(options: tuple[str, ...]) -> tuple[Row, ...]:
    rows = [
        Row(f"{label}{kind}", (training,), options)
        for label, start in _LABELS.items()
        for kind, training in (("", start), (", self-critical", _self_critical(start)))
    ]
    label = "ensemble of three, self-critical: soft attention, two seeds, and RNM"
    return (*rows, Row(label, (_ENSEMBLE,), options))


_FOUR = {
    name.replace(", 4 references", " of 4"): score(name)
    for name in EXTRAS["four references"]
    if name.startswith(("BLEU-4", "METEOR", "CIDEr"))
}

TABLES = {
    "beyond": Table(
        "Flickr8k, test, beam 3: self-critical training, and captions by people against the other four",
        (*_rows(test(3)), Row("people", (_PEOPLE,), ("--split", "test"))),
        CAPTIONS | {"validation CIDEr": best("CIDEr")} | PERPLEXITY | _FOUR,
        extras=("four references",),
    ),
    "beyond_validation": Table(
        "Flickr8k, validation, beam 3: self-critical training",
        _rows(val(3)),
        CAPTIONS | PERPLEXITY,
    ),
}
