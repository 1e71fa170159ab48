"""Beyond the papers: self-critical training (Rennie et al. 2017) and human captions."""

from __future__ import annotations

from benchmarks.columns import CAPTIONS, PERPLEXITY, best, score
from benchmarks.tables.flickr8k import LSTM_BFLOAT16, test, val
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
_AVERAGED = Training(
    f"{SOFT_ATTENTION.name}_averaged",
    SOFT_ATTENTION.recipe,
    (*SOFT_ATTENTION.changes, "training.ema_decay=0.999"),
)
_LABELS = {
    "LSTM, one vector per image": (LSTM_BFLOAT16,),
    "soft attention": seeds(SOFT_ATTENTION, 3),
    "soft attention, averaged parameters": (_AVERAGED,),
    "Review Net": (REVIEW_NET,),
    "RNM, 2 x 4 steps": (RNM,),
}
_PEOPLE = People("flickr8k_people", "flickr8k_lstm")


def _self_critical(start: Training) -> Training:
    """Self-critical training from the trained model ``start``: its data, precision and moving average."""
    kept = "data.", "model.", "training.matmul=", "training.ema_decay="
    same = tuple(change for change in start.changes if change.startswith(kept))
    return Training(f"{start.name}_scst", start.recipe, same + _SELF_CRITICAL, start.seed, start)


def _three(name: str, label: str, *starts: Training) -> tuple[str, Ensemble]:
    """An ensemble of self-critical models, and its label."""
    return f"ensemble of three, self-critical: {label}", Ensemble(name, tuple(map(_self_critical, starts)))


_TWO = seeds(SOFT_ATTENTION, 2)
_CHOSEN = _three("flickr8k_scst-ensemble", "soft attention, two seeds, and RNM", *_TWO, RNM)
_OTHERS = (  # they have lower CIDEr on the validation images
    _three("flickr8k_scst-two_reviewnet", "soft attention, two seeds, and Review Net", *_TWO, REVIEW_NET),
    _three("flickr8k_scst-one_each", "soft attention, seed 1, Review Net and RNM", _TWO[1], REVIEW_NET, RNM),
)


def _rows(options: tuple[str, ...], *ensembles: tuple[str, Ensemble]) -> tuple[Row, ...]:
    rows = [
        Row(f"{label}{kind}", trainings, options)
        for label, starts in _LABELS.items()
        for kind, trainings in (("", starts), (", self-critical", tuple(map(_self_critical, starts))))
    ]
    return (*rows, *(Row(label, (each,), options) for label, each in ensembles))


_FOUR = {
    name.replace(", 4 references", " of 4"): score(name)
    for name in EXTRAS["four references"]
    if name.startswith(("BLEU-4", "METEOR", "CIDEr"))
}

TABLES = {
    "beyond": Table(
        "Flickr8k, test, beam 3: self-critical training, and captions by people against the other four",
        (*_rows(test(3), _CHOSEN), Row("people", (_PEOPLE,), ("--split", "test"))),
        CAPTIONS | {"validation CIDEr": best("CIDEr")} | PERPLEXITY | _FOUR,
        extras=("four references",),
    ),
    "beyond_validation": Table(
        "Flickr8k, validation, beam 3: self-critical training",
        _rows(val(3), _CHOSEN, *_OTHERS),
        CAPTIONS | PERPLEXITY,
    ),
}
