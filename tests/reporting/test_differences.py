from rnnlab.reporting.differences import differences
from rnnlab.reporting.record import read_records


def test_only_keys_that_differ_are_listed(write_run):
    one = write_run("one", changes={"model.hidden_dim": 7, "training.optim_config": {"learning_rate": 0.1}})
    two = write_run("two", changes={"model.hidden_dim": 9, "evaluation.metrics": ["BLEU"]})
    found = {each.key: each.values for each in differences(read_records([one, two]))}
    assert found["model.hidden_dim"] == ["7", "9"]
    assert found["training.optim_config.learning_rate"] == ["0.1", "-"]
    assert found["evaluation.metrics"] == ['["BLEU", "ROUGE-L", "CIDEr", "METEOR"]', '["BLEU"]']
    assert "training.num_epochs" not in found


def test_equal_recipes_differ_in_nothing(write_run):
    assert differences(read_records([write_run("one"), write_run("two")])) == []


def test_stages_are_counted_from_1(write_run):
    one = write_run("one", stages=[{"num_epochs": 2}])
    two = write_run("two", stages=[{"num_epochs": 3}])
    assert [each for each in differences(read_records([one, two])) if "stage.1" in each.key] == [
        ("stage.1.num_epochs", ["2", "3"])
    ]
    compared = differences(read_records([one, write_run("none")]))
    assert [each.key for each in compared if each.key.startswith("stage")] == [
        "stage.1.self_critical",
        "stage.1.num_epochs",
    ]


def test_recipes_of_different_tasks_are_compared_in_their_common_keys(write_run):
    one, two = write_run("one"), write_run("two", model="SequenceClassifier")
    keys = [each.key for each in differences(read_records([one, two]))]
    assert "data.kind" in keys
    assert "model.attention" not in keys
    assert "model.readout" not in keys
