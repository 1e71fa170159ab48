from __future__ import annotations

import io
import sys
from types import SimpleNamespace

import pytest

from rnnlab.training.epoch_totals import EpochTotals
from rnnlab.training.progress import Bar, EpochLines, Lines, Progress, Tolerant, make_progress

TOTALS = EpochTotals(loss_of_tokens=100.0, tokens=80, seconds=80 / 12345.6)


def show(progress):
    for iteration in range(1, 6):
        progress.iteration(iteration, 10, 100 / iteration, TOTALS)
    progress.epoch(1, 2, TOTALS, {})
    progress.epoch(1, 2, TOTALS, {"val_loss": 2.0, "CIDEr": 0.51239})
    progress.message("Interrupted")
    progress.close()


def test_lines_are_the_course_s(capsys):
    show(Lines(print_every=2))
    assert capsys.readouterr().out.splitlines() == [
        "(Iteration 1 / 10) loss: 100.000000",
        "(Iteration 3 / 10) loss: 33.333333",
        "(Iteration 5 / 10) loss: 20.000000",
        "(Epoch 1 / 2) val_loss: 2.0000  CIDEr: 0.5124",
        "Interrupted",
    ]


@pytest.mark.parametrize("display", [Lines(print_every=1), Bar(), EpochLines()])
def test_what_cannot_be_shown_is_left_out(display, monkeypatch):
    class Full(io.StringIO):
        writes = 0

        def write(self, text):
            Full.writes += 1
            raise OSError(28, "No space left on device")

    for name in ("stdout", "stderr"):
        monkeypatch.setattr(sys, name, Full())
    tolerant = Tolerant(display)
    show(tolerant)
    written = Full.writes
    assert written
    show(tolerant)
    assert Full.writes == written


@pytest.mark.parametrize("stops", [True, False])
def test_a_closed_pipe_stops_training(monkeypatch, stops):
    class Closed(io.StringIO):
        def write(self, text):
            raise BrokenPipeError

    monkeypatch.setattr(sys, "stdout", Closed())
    reasons = []
    tolerant = Tolerant(Lines(print_every=1), reasons.append if stops else None)
    show(tolerant)
    assert reasons == ["the reader of the output has closed it"][:stops]
    assert isinstance(tolerant.broken_pipe, BrokenPipeError)
    assert Progress().broken_pipe is None


def test_silence(capsys):
    show(Progress())
    assert capsys.readouterr() == ("", "")


def test_bar_shows_loss_speed_and_time_left():
    file = io.StringIO()
    show(Bar(file))
    shown = file.getvalue()
    last = shown.splitlines()[-1]
    assert "5/10" in last
    assert "1.250 per token, 12,346 tokens/s" in last
    assert "loss 87.286" in last  # smoothed
    assert "<" in last  # elapsed < left
    assert "epoch 1 of 2: val_loss: 2.0000  CIDEr: 0.5124" in shown
    assert "Interrupted" in shown


def test_bar_begins_where_the_run_was_resumed():
    file = io.StringIO()
    bar = Bar(file)
    bar.iteration(8, 10, 1.0, TOTALS)
    bar.close()
    bar.close()
    assert "8/10" in file.getvalue().splitlines()[-1]


def test_an_epoch_that_ends_as_the_run_resumes_has_its_numbers():
    file = io.StringIO()
    EpochLines(file).epoch(1, 2, TOTALS, {"val_loss": 2.0})  # all its iterations were before
    assert file.getvalue() == "epoch 1 of 2: loss 1.250 per token, 12,346 tokens/s  val_loss: 2.0000\n"


def test_a_log_has_one_line_for_each_epoch():
    file = io.StringIO()
    show(EpochLines(file))
    assert file.getvalue().splitlines() == [
        "epoch 1 of 2: loss 1.250 per token, 12,346 tokens/s",
        "epoch 1 of 2: loss 1.250 per token, 12,346 tokens/s  val_loss: 2.0000  CIDEr: 0.5124",
        "Interrupted",
    ]


def test_a_bar_needs_a_terminal(monkeypatch, capsys):
    options = SimpleNamespace(progress=True, verbose=True, print_every=1)
    assert isinstance(make_progress(options).display, EpochLines)
    show(make_progress(options))
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "\r" not in captured.err
    assert len(captured.err.splitlines()) == 3
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert isinstance(make_progress(options).display, Bar)
    options.progress = False
    assert isinstance(make_progress(options).display, Lines)
    options.verbose = False
    assert type(make_progress(options)) is Progress
    options.progress = True
    assert isinstance(make_progress(options).display, Bar)
