"""Tables as Markdown: means, deviations, dashes, the paper's line; and the document with their markers."""

import pytest

from benchmarks import documents, making, results
from benchmarks.columns import score
from benchmarks.trainings import Ensemble, Row, Table, Training, seeds
from tests.benchmarks.small_table import FIRST, ON, TABLE


def test_a_table_of_one_and_two_seeds(command, tmp_path):
    making.make(TABLE, tmp_path / "runs", tmp_path)
    assert documents.markdown(TABLE, tmp_path).splitlines() == [
        "|  | seeds | BLEU | loss |",
        "| --- | --- | --- | --- |",
        "| first | 1 | 10.0 | 0.33 |",
        "| *the paper* |  | 9.5 |  |",
        "| on | 2 | 15.0 ± 7.1 | 0.33 |",
    ]


def test_a_number_that_one_seed_lacks(command, tmp_path):
    making.make(TABLE, tmp_path / "runs", tmp_path)
    one = results.load("on-seed0", tmp_path)
    del one["evaluations"]["--split val"]["BLEU"]
    results.store("on-seed0", one, tmp_path)
    assert documents.markdown(TABLE, tmp_path).splitlines()[4] == "| on | 2 | 20.0 (1 of 2) | 0.33 |"


def test_what_is_missing_is_a_dash_and_is_named(command, tmp_path):
    assert documents.markdown(TABLE, tmp_path).splitlines()[2:] == [
        "| first | 0 of 1 | - | - |",
        "| *the paper* |  | 9.5 |  |",
        "| on | 0 of 2 | - | - |",
        "",
        "Not trained yet: first (seed 0), on (seeds 0, 1).",
    ]
    making.train(seeds(ON, 2)[1], tmp_path / "runs")
    making.measure(seeds(ON, 2)[1], ("--split", "val"), (), tmp_path / "runs", tmp_path)
    assert documents.markdown(TABLE, tmp_path).splitlines()[4:] == [
        "| on | 1 of 2 | 20.0 | 0.33 |",
        "",
        "Not trained yet: first (seed 0), on (seed 0).",
    ]


def test_what_is_trained_and_not_evaluated_is_said(tmp_path):
    """An ensemble lacks its members; if all have results, it lacks an evaluation."""
    ensemble = Ensemble("two-ensemble", (FIRST, ON))
    table = Table("", (Row("one", (FIRST,), ()), Row("two", (ensemble,), ())), {"BLEU": score("BLEU")})
    results.store(FIRST.id, {"evaluations": {}, "history": [], "commands": []}, tmp_path)
    last = documents.markdown(table, tmp_path).splitlines()[-1]
    assert last == "Not trained yet: on (seed 0). Not evaluated for this table yet: first (seed 0)."
    results.store(ON.id, {"evaluations": {}, "history": [], "commands": []}, tmp_path)
    last = documents.markdown(table, tmp_path).splitlines()[-1]
    assert last == "Not evaluated for this table yet: first (seed 0), two-ensemble."


def test_trainings_in_bfloat16_are_named(command, tmp_path):
    making.make(TABLE, tmp_path / "runs", tmp_path)
    again = tmp_path / "again"
    making.train(seeds(ON, 2)[1], again, "bfloat16")
    (tmp_path / "on-seed1.json").unlink()
    making.collect([TABLE], again, tmp_path)
    last = documents.markdown(TABLE, tmp_path).splitlines()[-1]
    assert last == "Trained with [products in bfloat16](#products-in-bfloat16): on (seed 1)."


def test_one_seed_needs_no_column_of_seeds(tmp_path):
    table = Table("", (Row("one", (Training("one", "shapes"),), ()),), {"BLEU": score("BLEU")})
    content = {"evaluations": {"": {"BLEU": 0.1}}, "history": [], "commands": ["rnnlab train"]}
    results.store("one-seed0", content, tmp_path)
    assert documents.markdown(table, tmp_path).splitlines()[2:] == ["| one | 10.0 |"]
    assert documents.commands(table, tmp_path) == "    rnnlab train"


def test_commands_of_what_is_not_trained(tmp_path):
    lines = documents.commands(TABLE, tmp_path).splitlines()
    assert lines[0].startswith("    rnnlab train shapes --set training.num_epochs=3")
    assert len(lines) == 4  # both, and a start for each of two seeds


def test_tables_are_rewritten_and_the_prose_stays(command, tmp_path):
    text = "# Prose\n\n<!-- table a -->\nold\n<!-- end of table a -->\n\nMore.\n"
    made = documents.rewritten(text, {"a": TABLE}, tmp_path)
    assert made.startswith(f"# Prose\n\n<!-- table a -->\n{TABLE.title}:\n\n|  | seeds | BLEU | loss |\n")
    assert made.endswith("\n\n    python -m benchmarks.papers a\n<!-- end of table a -->\n\nMore.\n")
    assert "old" not in made
    assert documents.rewritten(made, {"a": TABLE}, tmp_path) == made
    making.make(TABLE, tmp_path / "runs", tmp_path)
    assert "15.0 ± 7.1" in documents.rewritten(made, {"a": TABLE}, tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<!-- table b -->\n<!-- end of table b -->\n", "names the table b, expected one of a"),
        ("<!-- table a -->\n", "expected one <!-- table a --> and one <!-- end of table a -->"),
        ("<!-- end of table a -->\n<!-- table a -->\n", "expected one <!-- table a -->"),
    ],
)
def test_wrong_markers(text, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        documents.rewritten(text, {"a": TABLE}, tmp_path)
