"""Means over seeds: which runs belong together, and their numbers."""

import numpy as np

from rnnlab.reporting.record import read_records
from rnnlab.reporting.results import Results
from rnnlab.reporting.seeds import means_over_seeds
from rnnlab.tasks.classification import ClassificationEvaluation

LABELS = np.zeros(2, int)


def result(accuracy):
    return Results(
        None, "val", ClassificationEvaluation("val", LABELS, LABELS, 0.5, accuracy, np.eye(2, dtype=int))
    )


def test_runs_of_several_models_and_seeds(write_run):
    points = [(dim, seed) for dim in (8, 16) for seed in (0, 1, 2)]
    records = read_records(
        [
            write_run(f"{dim},{seed}", changes={"model.hidden_dim": dim, "training.seed": seed})
            for dim, seed in points
        ]
    )
    accuracies = [0.1, 0.2, 0.3, 0.5, 0.5, 0.8]
    columns, rows = means_over_seeds(records, [result(accuracy) for accuracy in accuracies])
    assert columns == ["loss", "accuracy", "runs"]
    assert rows == [
        ("hidden_dim=8", ["0.5000 ± 0.0000", "0.2000 ± 0.1000", "3"]),
        ("hidden_dim=16", ["0.5000 ± 0.0000", "0.6000 ± 0.1732", "3"]),
    ]


def test_a_run_without_scores_does_not_count(write_run):
    records = read_records([write_run(f"{seed}", changes={"training.seed": seed}) for seed in (0, 1, 2)])
    results = [result(0.2), Results(None, "", None), result(0.4)]
    assert means_over_seeds(records, results)[1] == [("all", ["0.5000 ± 0.0000", "0.3000 ± 0.1414", "2"])]
    assert means_over_seeds(records, []) == (["runs"], [])


def test_one_seed_of_a_model_has_no_deviation(write_run):
    points = [(8, 0), (8, 1), (16, 0)]
    records = read_records(
        [
            write_run(f"{dim},{seed}", changes={"model.hidden_dim": dim, "training.seed": seed})
            for dim, seed in points
        ]
    )
    _, rows = means_over_seeds(records, [result(accuracy) for accuracy in (0.2, 0.4, 0.9)])
    assert rows[1] == ("hidden_dim=16", ["0.5000", "0.9000", "1"])


def test_runs_that_all_differ_have_no_means(write_run):
    records = read_records([write_run(f"{dim}", changes={"model.hidden_dim": dim}) for dim in (8, 16)])
    assert means_over_seeds(records, [result(0.2), result(0.4)])[1] == []
