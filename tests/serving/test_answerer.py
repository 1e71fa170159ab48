import threading

import pytest

from rnnlab.ops.precision import products_in, products_precision
from rnnlab.recipes.tables import DecodingTable
from rnnlab.serving.answerer import Answerer


class Attending:
    def attention(self, state): ...


class Run:
    model = Attending()


def answerer(**decoding):
    return Answerer(Run(), DecodingTable(**decoding))


def test_an_answer_has_all_sentences_of_a_beam_of_its_own_width():
    options = answerer(max_length=7, length_penalty=0.5).search(lambda options: options, 4)
    assert (options.method, options.beam_size, options.n_best) == ("beam", 4, 4)
    assert (options.max_length, options.length_penalty) == (7, 0.5)
    assert answerer(method="sample", top_k=3).search(lambda options: options.method, 1) == "beam"


@pytest.mark.parametrize(
    ("decoding", "widest"),
    [({}, 10), ({"beam_size": 12}, 12), ({"beam_size": 3, "num_groups": 3}, 9)],
)
def test_the_width_of_a_beam_is_limited(decoding, widest):
    found = answerer(**decoding)
    assert found.widest_beam == widest
    assert found.search(lambda options: options.beam_size, widest) == widest
    for wrong in (0, -1, widest + 1):
        with pytest.raises(ValueError, match=f"the beam width is {wrong}, expected 1 to {widest}"):
            found.search(lambda options: options, wrong)


def test_groups_divide_the_beam():
    with pytest.raises(ValueError, match="num_groups is 2, expected a divisor of 3, beam_size"):
        answerer(beam_size=4, num_groups=2).search(lambda options: options, 3)


def test_one_search_at_a_time_in_one_thread():
    found, inside, threads = answerer(), [], set()

    def act(options):
        inside.append(len(inside))
        threads.add(threading.get_ident())
        alone = len(inside) == 1
        inside.pop()
        return alone

    results = []
    callers = [
        threading.Thread(target=lambda: results.extend(found.search(act, 2) for _ in range(50)))
        for _ in range(4)
    ]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert results == [True] * 200
    assert len(threads) == 1


def test_an_error_of_a_search_leaves_the_next_one_unharmed():
    found = answerer()
    with pytest.raises(ZeroDivisionError):
        found.search(lambda options: 1 / 0, 2)
    assert found.search(lambda options: options.n_best, 2) == 2


def test_a_search_computes_on_the_device_of_the_model(monkeypatch):
    devices = []
    monkeypatch.setattr(
        "rnnlab.serving.answerer.ops_on",
        lambda device: devices.append((device, threading.current_thread().name)),
    )
    found = Answerer(Run(), DecodingTable(), "gpu:1")
    thread = found.search(lambda options: threading.current_thread().name, 1)
    assert devices == [("gpu:1", thread)]


def test_a_search_computes_in_the_precision_of_the_command():
    with products_in("bfloat16"):
        found = answerer()
    assert found.search(lambda options: products_precision(), 1) == "bfloat16"


def test_whether_a_model_attends():
    assert answerer().attends
    Run.model.attends_to_source = False
    assert not answerer().attends
    del Run.model.attends_to_source


@pytest.mark.parametrize(
    ("decoding", "words"),
    [
        ({}, "the log-probability of the sentence, in nats"),
        ({"length_penalty": 0.7}, "log-probability / (words + 1)^0.7, in nats"),
        ({"length_penalty": 1.0}, "log-probability / (words + 1), in nats"),
        (
            {"length_penalty": 0.6, "normalisation": "gnmt"},
            "log-probability / ((words + 6) / 6)^0.6, in nats",
        ),
    ],
)
def test_what_a_score_is(decoding, words):
    assert answerer(**decoding).about_scores == f"The score is {words}."
