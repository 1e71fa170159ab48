"""Comments for code, on the HabeasCorpus.

X. Chen et al. (2018), tables 3 and 4: ARNet and others in a second stage. Jiang, Ma and Lu (2020), table 5:
keystrokes that completion saves.
"""

from __future__ import annotations

from benchmarks.columns import CAPTIONS, DISTANCES, EPOCHS, PERPLEXITY, SIZE, best, score
from benchmarks.tables.arnet import SCHEDULED_SAMPLING, ZONEOUT, second_stages
from benchmarks.trainings import Row, Table, Training

_TEST = ("--split", "test")

_GREEDY = (*_TEST, "--method", "greedy")

# ---------------------------------------------------------------- second stages, chosen by BLEU

_SECOND_STAGE = (
    "training.monitor=BLEU",
    'evaluation.each_epoch=["BLEU"]',
    "training.patience=6",
    "training.num_epochs=20",
    "training.optim_config.learning_rate=5e-4",
    'training.schedule={name="constant"}',
)


def _arnet(decoder: str, encoder: str) -> tuple[str, ...]:
    return (
        f"model.reconstruction={decoder}",
        f"model.encoder_reconstruction={encoder}",
        "model.reconstructor_dim=512",
        "model.encoder_reconstructor_dim=128",
    )


_KINDS = {
    "plain": (),
    "zoneout": ZONEOUT,
    "scheduled_sampling": SCHEDULED_SAMPLING,
    "arnet_0.01": _arnet("0.01", "0.001"),
    "arnet_0.001": _arnet("0.001", "0.0001"),
}
_LABELS = {
    "plain": "plain",
    "zoneout": "zoneout 0.1",
    "scheduled_sampling": "scheduled sampling 0.25",
    "arnet_0.01": "ARNet, λ = 0.01",
    "arnet_0.001": "ARNet, λ = 0.001",
}
_SCORES = ("BLEU-1", "BLEU-2", "BLEU-3", "BLEU-4", "METEOR", "ROUGE-L", "d_mc", "d_pw")
_PAPER = {
    "encoder-decoder, plain": (18.3, 9.3, 6.3, 4.7, 8.0, 18.8, 0.643, 0.722),
    "encoder-decoder, zoneout 0.1": (18.2, 8.0, 6.3, 4.7, 8.0, 18.1),
    "encoder-decoder, scheduled sampling 0.25": (18.6, 9.8, 6.7, 5.1, 8.2, 19.4),
    "encoder-decoder, ARNet, λ = 0.01": (19.6, 10.7, 7.5, 5.8, 8.9, 21.3, 0.641, 0.699),
    "attentive, plain": (22.8, 14.0, 10.6, 8.8, 10.5, 25.6, 0.594, 0.712),
    "attentive, zoneout 0.1": (22.7, 14.0, 10.5, 8.6, 9.0, 22.0),
    "attentive, scheduled sampling 0.25": (22.9, 14.2, 10.8, 8.9, 10.7, 27.0),
    "attentive, ARNet, λ = 0.01": (25.5, 17.3, 13.9, 12.0, 12.3, 28.9, 0.322, 0.465),
}


def _rows(label: str, recipe: str) -> list[Row]:
    start = Training(recipe, recipe)
    rows = [Row(f"{label}, before the second stage", (start,), _GREEDY)]
    for kind, training in second_stages(start, _SECOND_STAGE, _KINDS).items():
        named = f"{label}, {_LABELS[kind]}"
        paper = dict(zip(_SCORES, _PAPER.get(named, ()), strict=False))
        rows.append(Row(named, (training,), _GREEDY, paper))
    return rows


# ---------------------------------------------------------------- keystrokes, chosen by the loss

_KEYSTROKES = {
    "LSTM": ("habeas_lstm", (69.5, 76.9, 80.3, 82.2, 83.5)),
    "soft attention": ("habeas_attention", (71.2, 78.6, 81.7, 83.4, 84.7)),
    "Review Net, 8 steps": ("habeas_reviewnet", (71.9, 79.1, 82.1, 83.8, 85.0)),
    "RNM, 4 x 4 steps": ("habeas_rnm", (71.9, 79.2, 82.4, 84.1, 85.4)),
}


def _keystrokes(label: str) -> Row:
    recipe, paper = _KEYSTROKES[label]
    columns = dict(zip((f"CS-{k}" for k in range(1, 6)), paper, strict=True))
    return Row(label, (Training(recipe, recipe),), (*_TEST, "--metrics", "CS-k"), columns)


TABLES = {
    "comments": Table(
        "HabeasCorpus, test, greedy: comments for code (X. Chen et al. 2018, tables 3 and 4)",
        (*_rows("encoder-decoder", "habeas_lstm"), *_rows("attentive", "habeas_attention")),
        CAPTIONS | DISTANCES | {"validation BLEU": best("BLEU", ".2f", 1)} | PERPLEXITY | EPOCHS,
        extras=("comments", "discrepancy"),
    ),
    "keystrokes": Table(
        "HabeasCorpus, test: keystrokes that completion saves, % (Jiang, Ma and Lu 2020, table 5)",
        tuple(_keystrokes(label) for label in _KEYSTROKES),
        {f"CS-{k}": score(f"CS-{k}", ".1f", 1) for k in range(1, 6)} | PERPLEXITY | SIZE | EPOCHS,
    ),
}
