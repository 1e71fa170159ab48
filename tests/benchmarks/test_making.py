"""Trainings of the papers' tables: what is done is not done again, and never by two processes."""

import json
import multiprocessing
import sys
import time
from dataclasses import replace

import pytest

from benchmarks import making, results
from benchmarks.columns import score
from benchmarks.trainings import Ensemble, Row, Table, Training, seeds
from rnnlab.recipes.recipe import load_recipe
from tests.benchmarks.small_table import FIRST, ON, TABLE, write_run


@pytest.fixture
def folders(tmp_path):
    return tmp_path / "runs", tmp_path / "results"


def test_a_table_is_made_once(command, folders):
    making.make(TABLE, *folders)
    assert command.names() == ["train", "evaluate"] * 2 + ["train", "train", "evaluate"]
    assert command.asked[1][1:] == [
        str(folders[0] / "first-seed0"),
        *("--split", "val", "--beam", "3"),
        *("--json", str(folders[0] / "first-seed0" / "scores-split-val-beam-3.json")),
    ]
    assert f"training.warm_start={folders[0] / 'first-seed0'}" in command.asked[2]
    making.make(TABLE, *folders)
    assert len(command.asked) == 7


def test_what_has_a_result_needs_no_run(command, folders, tmp_path):
    making.make(TABLE, *folders)
    making.make(TABLE, tmp_path / "elsewhere", folders[1])
    assert len(command.asked) == 7
    assert making.remaining([TABLE], tmp_path / "elsewhere", folders[1]) == []


def test_a_result_holds_all_that_a_table_needs(command, folders):
    making.make(TABLE, *folders)
    found = results.load("on-seed1", folders[1])
    assert found["commands"] == [
        "rnnlab train shapes --set model.hidden_dim=8 --set training.num_epochs=3 --set "
        "training.seed=1 --set training.warm_start=runs/papers/first-seed1 --out runs/papers/on-seed1",
        "rnnlab evaluate runs/papers/on-seed1 --split val",
    ]
    assert (found["rnnlab_version"], found["num_parameters"], found["peak_megabytes"]) == (
        "0.1.0",
        2.5e6,
        512.25,
    )
    assert found["evaluations"] == {"--split val": {"BLEU": 0.2, "perplexity": 0.333333}}
    assert found["history"][1] == {"epoch": 2, "val_loss": 0.333333, "seconds": 60}
    assert found["config"]["training"]["warm_start"] == "first-seed1"  # without the folder of these runs
    assert not making.differences(seeds(ON, 2)[1], found["config"], "on-seed1.json")


def test_another_evaluation_is_added(command, folders):
    making.make(TABLE, *folders)
    rows = (Row("first", (FIRST,), ("--split", "test")),)
    making.make(replace(TABLE, rows=rows, extras=("discrepancy",)), *folders)
    assert command.names()[7:] == ["evaluate", "discrepancy"]
    found = results.load("first-seed0", folders[1])
    assert list(found["evaluations"]) == ["--split test", "--split val --beam 3"]
    assert found["evaluations"]["--split test"] == {
        "BLEU": 0.1,
        "perplexity": 0.333333,
        "d_mc": 0.5,
        "d_pw": 0.25,
    }
    assert found["commands"][2:] == [
        "rnnlab evaluate runs/papers/first-seed0 --split test",
        "rnnlab discrepancy runs/papers/first-seed0 --split test",
    ]


def test_results_of_another_run_are_not_added_to(command, folders, capsys):
    making.make(TABLE, *folders)
    runs, to = folders
    before = results.load("first-seed0", to)
    history = runs / "first-seed0" / "history.csv"
    history.write_text(history.read_text().replace("2,", "2,1", 1))
    other = replace(TABLE, rows=(Row("first", (FIRST,), ("--split", "test")),))
    with pytest.raises(making.OtherRun, match=r"first-seed0 is not the run of the results"):
        making.make(other, *folders)
    assert making.collect([other], *folders) == []
    ensemble = Ensemble("two-ensemble", (FIRST, seeds(ON, 2)[1]))
    for entry in (ensemble, seeds(ON, 2)[0]):  # one has it as a member, one starts from it
        with pytest.raises(making.OtherRun):
            making.measure(entry, ("--split", "test"), (), *folders)
    assert "Remove the results to evaluate this run" in capsys.readouterr().err
    assert results.load("first-seed0", to) == before
    (to / "first-seed0.json").unlink()
    assert making.collect([other], *folders) == ["first-seed0"]


def test_what_was_begun_resumes(command, folders):
    command.fails_at = 1
    with pytest.raises(SystemExit):
        making.make(TABLE, *folders)
    making.make(TABLE, *folders)
    assert command.asked[1][:3] == ["train", "--resume", str(folders[0] / "first-seed0")]
    found = results.load("first-seed0", folders[1])
    assert (found["peak_megabytes"], found["cpu_minutes"]) == (512.25, None)
    assert results.load("on-seed0", folders[1])["cpu_minutes"] == 1.5


def test_a_start_is_trained_before_what_starts_from_it(command, folders):
    making.train(seeds(ON, 2)[1], folders[0])
    outs = [words[words.index("--out") + 1].rsplit("/", 1)[1] for words in command.asked]
    assert outs == ["first-seed1", "on-seed1"]
    assert [each.id for each in making.remaining([TABLE], *folders)] == ["first-seed0", "on-seed0"]


@pytest.mark.parametrize(
    ("epochs", "patience", "complete"), [(2, None, False), (3, None, True), (3, 1, True)]
)
def test_a_run_says_itself_whether_it_is_complete(tmp_path, epochs, patience, complete):
    write_run(tmp_path, load_recipe("shapes", ["training.num_epochs=3"]), epochs)
    assert making.is_complete(tmp_path) is complete
    text = (tmp_path / "config.json").read_text()
    changed = json.loads(text)
    changed["solver"] |= {"num_epochs": 9, "patience": patience}
    (tmp_path / "config.json").write_text(json.dumps(changed))
    assert making.is_complete(tmp_path) is (patience is not None)
    (tmp_path / "last.h5").unlink()
    assert not making.is_complete(tmp_path)


def test_a_run_of_rnnlab_train_is_adopted(command, folders):
    write_run(folders[0] / "first-seed0", load_recipe("shapes", FIRST.all_changes))
    assert making.collect([TABLE], *folders) == ["first-seed0"]
    assert command.names() == ["evaluate"]
    assert results.load("first-seed0", folders[1])["peak_megabytes"] is None  # it was not measured
    assert making.collect([TABLE], *folders) == []


def test_a_run_of_another_recipe_is_not(command, folders, capsys):
    changes = [*FIRST.all_changes, "model.hidden_dim=16", "evaluation.split=val"]
    write_run(folders[0] / "first-seed0", load_recipe("shapes", changes))
    with pytest.raises(SystemExit, match="its table: model.hidden_dim is 16, expected 192. Move it away"):
        making.train(FIRST, folders[0])
    assert command.asked == []
    others = folders[0].with_name("others")
    making.train(ON, others)
    (others / "on-seed0").rename(folders[0] / "on-seed0")
    assert making.collect([TABLE], *folders) == ["on-seed0"]
    assert "first-seed0 differs from the recipe of its table" in capsys.readouterr().err


def test_a_precision_that_the_table_leaves_open(command, folders):
    making.make(TABLE, *folders, matmul="bfloat16")
    for words in command.asked:
        assert ("--matmul bfloat16" in " ".join(words)) == (words[0] == "train")
    found = results.load("on-seed1", folders[1])
    assert found["config"]["training"]["matmul"] == "bfloat16"
    assert found["commands"][0].endswith("--out runs/papers/on-seed1 --matmul bfloat16")
    making.make(TABLE, folders[0], folders[1].with_name("others"))  # the runs are those of the table


def test_a_precision_that_the_table_asks_for(command, folders):
    asked = replace(FIRST, changes=(*FIRST.changes, "training.matmul=float32"))
    making.train(asked, folders[0], "bfloat16")
    assert "--matmul" not in command.asked[0]
    write_run(folders[0] / "first-seed0", load_recipe("shapes", FIRST.all_changes))
    with pytest.raises(SystemExit, match="training.matmul is None, expected 'float32'"):
        making.train(asked, folders[0])


def test_a_run_of_another_start_is_not(command, folders):
    changes = [*ON.all_changes, "training.warm_start=runs/second-seed0"]
    write_run(folders[0] / "on-seed0", load_recipe("shapes", changes))
    with pytest.raises(SystemExit, match="training.warm_start is 'second-seed0', expected 'first-seed0'"):
        making.train(ON, folders[0])


def test_an_ensemble_is_evaluated_when_its_models_are_trained(command, folders):
    ensemble = Ensemble("on-ensemble", seeds(ON, 2))
    table = Table("", (Row("ensemble", (ensemble,), ("--split", "val")),), {"BLEU": score("BLEU")})
    assert making.collect([table], *folders) == []
    making.make(table, *folders)
    assert command.names() == ["train"] * 4 + ["evaluate"]
    assert command.asked[-1][1:3] == [str(folders[0] / "on-seed0"), str(folders[0] / "on-seed1")]
    found = results.load("on-ensemble", folders[1])
    assert found["evaluations"]["--split val"]["BLEU"] == 0.2
    assert command.asked[-1][3:7] == ["--split", "val", "--average", "log_probabilities"]
    directories = "runs/papers/on-seed0 runs/papers/on-seed1"
    options = "--split val --average log_probabilities"
    assert found["commands"][-1] == f"rnnlab evaluate {directories} {options}"


def _hold(directory, begun):
    with making.locked(directory):
        begun.set()
        time.sleep(0.5)
        write_run(directory, load_recipe("shapes", FIRST.all_changes))


def test_two_processes_do_not_train_the_same(command, folders, capsys):
    context = multiprocessing.get_context("fork")
    begun = context.Event()
    other = context.Process(target=_hold, args=(folders[0] / "first-seed0", begun))
    other.start()
    assert begun.wait(30)
    making.train(FIRST, folders[0])  # waits, and finds it complete
    other.join()
    assert command.asked == []
    assert "waiting for the process that trains first-seed0" in capsys.readouterr().out


@pytest.mark.slow
def test_a_command_that_fails_ends_everything(tmp_path):
    with pytest.raises(SystemExit, match="rnnlab evaluate ended with status 2$"):
        making.rnnlab(["evaluate", str(tmp_path / "nowhere")])


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="wait4 is of Unix")
def test_memory_and_time_are_of_the_command():
    used = making.rnnlab(["kernels"])
    assert 20 < used.peak_megabytes < 2000
    assert 0 < used.cpu_minutes < 10


def test_a_precision_that_this_machine_declines(command, tmp_path, monkeypatch):
    """Neither begun, nor resumed, nor where the table itself asks for it."""
    command.fails_at = 1
    with pytest.raises(SystemExit, match="failed"):
        making.train(FIRST, tmp_path, "bfloat16")
    monkeypatch.setattr(making, "declined", lambda: "this processor has neither")
    own = Training("own", "shapes", ("training.matmul=bfloat16",))
    for training, matmul in ((FIRST, None), (seeds(ON, 1)[0], "bfloat16"), (own, None)):
        with pytest.raises(SystemExit, match="has products in bfloat16, and this processor has neither"):
            making.train(training, tmp_path, matmul)
    assert command.names() == ["train"]
    making.train(Training("plain", "shapes", ()), tmp_path)
    assert command.names() == ["train", "train"]
