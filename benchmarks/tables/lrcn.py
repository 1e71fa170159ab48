"""Chen, Dong and Li (2016), tables 2 to 4, on Flickr8k: cells, beams, and how the image enters."""

from __future__ import annotations

from benchmarks.columns import BLEU, CAPTIONS, MINUTES, PEAK, PERPLEXITY, SIZE, best, score
from benchmarks.tables.flickr8k import LSTM, test
from benchmarks.trainings import Row, Table, Training, seeds

_VAL = {"validation CIDEr": best("CIDEr")}  # by the simple tokenizer; it chose the epoch

_ON_LSTM = ("model.project_cell=false",)
_GRU = Training("flickr8k_gru", "flickr8k_lstm", ("model.cell_type=gru", *_ON_LSTM))
_SIMPLIFIED_GRU = Training(
    "flickr8k_simplified_gru", "flickr8k_lstm", ("model.cell_type=simplified_gru", *_ON_LSTM)
)
_NIC = Training("flickr8k_nic", "flickr8k_nic")
_LRCN = Training("flickr8k_lrcn", "flickr8k_lrcn")
_EVERY_STEP = Training("flickr8k_every_step", "flickr8k_lrcn", ("model.image_input=every_step",))
_TWO_LAYERS = Training(
    "flickr8k_two_layers", "flickr8k_lrcn", ("model.image_input=every_step", "model.decoder_layers=2")
)


def _bleu(*values: float) -> dict[str, float]:
    return dict(zip(BLEU, values, strict=True))


TABLES = {
    "cells": Table(
        "Flickr8k, test, beam 1: LSTM, GRU and simplified GRU (Chen, Dong and Li 2016, table 2)",
        (
            Row("LSTM 512", seeds(LSTM, 3), test(1), _bleu(65.0, 46.7, 32.4, 22.1)),
            Row("GRU 512", seeds(_GRU, 3), test(1)),
            # the paper's GRU is the simplified one: its section 5.2
            Row("simplified GRU 512", seeds(_SIMPLIFIED_GRU, 3), test(1), _bleu(62.3, 43.3, 29.2, 19.4)),
        ),
        BLEU | {"CIDEr": score("CIDEr")} | _VAL | PERPLEXITY | SIZE | MINUTES | PEAK,
        paper="the paper, AlexNet, COCO",
    ),
    "beams": Table(
        "Flickr8k, test, by the size of the beam (Chen, Dong and Li 2016, table 3)",
        tuple(
            Row(f"{label}, beam {beam}", seeds(training, 3), test(beam), paper.get(beam, {}))
            for label, training, paper in (
                (
                    "LSTM 512",
                    LSTM,
                    {
                        1: _bleu(65.0, 46.7, 32.4, 22.1),
                        5: _bleu(65.0, 46.7, 34.3, 24.7),
                        10: _bleu(64.4, 47.4, 34.7, 25.3),
                    },
                ),
                ("GRU 512", _GRU, {}),
            )
            for beam in (1, 5, 10)
        ),
        BLEU | {"CIDEr": score("CIDEr")},
        paper="the paper, AlexNet, COCO",
    ),
    "images": Table(
        "Flickr8k, test, beam 3: how the image enters an LSTM (Chen, Dong and Li 2016, table 4)",
        (
            Row(
                "LRCN factored: second of two layers", seeds(_LRCN, 3), test(3), _bleu(66.9, 48.9, 34.9, 24.9)
            ),
            Row("NIC: first input", seeds(_NIC, 3), test(3), {"BLEU-4": 27.7}),
            Row("every step", seeds(_EVERY_STEP, 3), test(3)),
            Row("every step, two layers", seeds(_TWO_LAYERS, 3), test(3)),
            Row("initial state", seeds(LSTM, 3), test(3)),
        ),
        CAPTIONS | _VAL | PERPLEXITY | SIZE,
        paper="the paper's table, COCO",
    ),
}
