import weakref

import numpy as np
import pytest

from rnnlab.data import ParallelData
from rnnlab.data.fingerprint import array_hash
from rnnlab.data.vocabulary import END, NULL, START, UNK

PAIRS = {
    "train": [(["a", "b"], ["x"]), (["a"], ["x", "y", "x"]), (["a", "b", "b", "c"], ["y", "x"])],
    "val": [(["b", "d"], ["z", "y"]), ([], [])],
}


def many(rng, count, longest=30):
    def sentence():
        return ["w"] * int(rng.integers(1, longest))

    return {"train": [(sentence(), sentence()) for _ in range(count)]}


def test_vocabularies_are_those_of_the_training_split():
    data = ParallelData(PAIRS)
    assert data.source_vocabulary.idx_to_word[4:] == ["a", "b", "c"]
    assert data.vocabulary.idx_to_word[4:] == ["x", "y"]
    assert ParallelData(PAIRS, min_count=3).source_vocabulary.idx_to_word[4:] == ["a", "b"]
    assert ParallelData(PAIRS, max_size=1).vocabulary.idx_to_word[4:] == ["x"]


def test_further_references():
    further = {"val": [iter([["z"], ["q", "z"]]), [["x", "x"], []]]}
    data, alone = ParallelData(PAIRS, references=further), ParallelData(PAIRS)
    assert data.split("val").references == [[["z", "y"], ["z"], ["x", "x"]], [[], ["q", "z"], []]]
    assert data.split("train").references == [[["x"]], [["x", "y", "x"]], [["y", "x"]]]
    assert data.vocabulary.idx_to_word == alone.vocabulary.idx_to_word
    changed = {key for key, value in data.fingerprint().items() if value != alone.fingerprint()[key]}
    assert changed == {"val references"}
    assert "val: 3 references of each source" in data.describe()


def test_references_that_are_added():
    first = ParallelData(PAIRS, references={"val": [[["z"], ["q", "z"]]]})
    more = first.with_references("val", [[["x", "x"], []]])
    expected = ParallelData(PAIRS, references={"val": [[["z"], ["q", "z"]], [["x", "x"], []]]})
    assert more.split("val").references == expected.split("val").references
    assert more.fingerprint() == expected.fingerprint()
    assert more.split("train") is first.split("train")
    assert len(first.split("val").further) == 1
    with pytest.raises(ValueError, match="references are of the split 'train', expected one of val"):
        first.with_references("train", [[["a"]] * 3])
    with pytest.raises(
        ValueError, match="references of val are 1 sentences, expected 2, one for each source"
    ):
        first.with_references("val", [[["a"]]])


@pytest.mark.parametrize(
    ("references", "message"),
    [
        ({"test": []}, "references are of the split 'test', expected one of val"),
        ({"train": [[]]}, "references are of the split 'train', expected one of val"),
        ({"val": [[["a"]]]}, "references of val are 1 sentences, expected 2, one for each source"),
    ],
)
def test_further_references_are_checked(references, message):
    with pytest.raises(ValueError, match=message):
        ParallelData(PAIRS, references=references)


def test_words_of_further_references_are_strings():
    with pytest.raises(TypeError, match="a sentence has 1, expected words, which are strings"):
        ParallelData(PAIRS, references={"val": [[["a"], [1]]]})


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([(["a"], ["b"])], "pairs is a list, expected a dict of pairs by splits"),
        (
            {"train": ([["a"]] * 3, [["b"]] * 3)},
            r"train has \[\['a'\], .*, expected pairs: the words of a source",
        ),
        ({"train": [(["a"], ["b"], ["c"])]}, r"train has \(\['a'\], \['b'\], \['c'\]\), expected pairs"),
        ({"train": [5]}, "train has 5, expected pairs"),
        ({"train": [(3, ["b"])]}, r"train has \(3, \['b'\]\), expected pairs"),
        ({"train": [(["a"], [1])]}, "a sentence has 1, expected words, which are strings"),
    ],
)
def test_what_is_no_pair_of_sentences(pairs, message):
    with pytest.raises(TypeError, match=f"ParallelData: {message}"):
        ParallelData(pairs)


def test_a_reference_is_a_list_of_words():
    with pytest.raises(TypeError, match="a sentence is the string 'b', expected a list of words"):
        ParallelData(PAIRS, references={"val": [[["a"], "b"]]})


def test_a_batch_is_padded_to_its_longest_sentences():
    data = ParallelData(PAIRS)
    source, target = data.batch("train", np.array([0, 1]))
    assert source.dtype == target.dtype == np.int32
    np.testing.assert_array_equal(source, [[4, 5, END], [4, END, NULL]])
    np.testing.assert_array_equal(target, [[START, 4, END, NULL, NULL], [START, 4, 5, 4, END]])
    assert data.num_tokens((source, target)) == 2 + 4
    source, target = data.batch("val", np.array([0, 1]))
    np.testing.assert_array_equal(source, [[5, UNK, END], [END, NULL, NULL]])
    np.testing.assert_array_equal(target, [[START, UNK, 5, END], [START, END, NULL, NULL]])
    assert data.batch("train", np.array([], int))[0].shape == (0, 0)


def test_words_that_look_like_special_ones_are_unknown():
    data = ParallelData(
        {"train": [(["a", "<UNK>"], ["x", "<END>", "y", "<NULL>", "<START>"])]}, tokenizer="spaces"
    )
    source, target = data.batch("train", np.array([0]))
    x, y = (data.vocabulary.word_to_idx[word] for word in "xy")
    np.testing.assert_array_equal(target[0], [START, x, UNK, y, UNK, UNK, END])
    np.testing.assert_array_equal(source[0], [data.source_vocabulary.word_to_idx["a"], UNK, END])


def test_pairs_are_read_once_and_not_held():
    """They may be larger than memory as lists of words."""

    class Sentence(list):
        """A list with weak references."""

    made = []

    def pairs(count):
        for k in range(count):
            pair = Sentence(["a", f"w{k % 7}"]), Sentence([f"v{k % 5}"])
            made.extend(map(weakref.ref, pair))
            assert sum(sentence() is not None for sentence in made) <= 4
            yield pair

    data = ParallelData({"train": pairs(100), "val": pairs(10)}, max_train=90)
    assert (len(data.split("train")), len(data.split("val"))) == (90, 10)
    assert data.split("val").source == [["a", f"w{k % 7}"] for k in range(10)]
    assert data.split("val").target == [[f"v{k % 5}"] for k in range(10)]


def test_the_fingerprint_is_of_all_rows():
    data = ParallelData(PAIRS)
    for split in PAIRS:
        for side in ("source", "target"):
            rows = getattr(data.split(split), f"{side}_rows").padded(slice(None))
            expected = f"{len(rows)} {array_hash(rows[rows != NULL])}"
            assert data.fingerprint()[f"{split} {side}"] == expected


def test_references_with_other_unknown_words_are_other_data():
    one, other = (ParallelData(PAIRS | {"val": [(["a"], [word])]}).fingerprint() for word in ("new", "newer"))
    assert {name for name in one if one[name] != other[name]} == {"val references"}


def test_lengths_are_those_of_source_and_target():
    np.testing.assert_array_equal(ParallelData(PAIRS).row_lengths("train", np.array([2, 0])), [5 + 4, 3 + 3])


def test_references_are_the_words_as_they_were():
    assert ParallelData(PAIRS).split("val").references == [[["z", "y"]], [[]]]


@pytest.mark.parametrize(("count", "batch_size"), [(1, 1), (7, 3), (1003, 16), (64, 100)])
def test_every_pair_comes_once(count, batch_size, rng):
    data = ParallelData(many(rng, count))
    for order in (None, rng):
        batches = data.epoch("train", batch_size, order)
        assert sorted(np.concatenate(batches).tolist()) == list(range(count))
        assert sorted(len(batch) for batch in batches)[1:] == [batch_size] * ((count - 1) // batch_size)
    np.testing.assert_array_equal(np.concatenate(data.epoch("train", batch_size)), np.arange(count))


def test_batches_hold_sentences_of_similar_length_and_come_in_any_order(rng):
    data = ParallelData(many(rng, 2000))
    lengths = np.array([len(words) for words in data.split("train").source])
    batches = data.epoch("train", 20, rng)
    spread = np.mean([np.ptp(lengths[batch]) for batch in batches])
    assert spread < 0.15 * np.mean([np.ptp(lengths[batch]) for batch in data.epoch("train", 20)])
    means = np.array([lengths[batch].mean() for batch in batches])
    assert abs(np.corrcoef(means[:-1], means[1:])[0, 1]) < 0.3


def test_the_generator_alone_decides_the_order(rng):
    data = ParallelData(many(rng, 200))
    first, again, other = (data.epoch("train", 8, np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert [batch.tolist() for batch in first] == [batch.tolist() for batch in again]
    assert [batch.tolist() for batch in first] != [batch.tolist() for batch in other]


def test_a_summary_has_the_first_words_of_long_sentences():
    source = [f"w{k}" for k in range(31)]
    lines = ParallelData({"train": [(source, ["c"])]}).describe().splitlines()
    assert lines[-1] == f"train: {' '.join(source[:30])} ... | c"


def test_long_training_pairs_are_dropped_or_cut():
    data = ParallelData(PAIRS, max_length=2)
    assert (data.num_long, len(data.split("train")), len(data.split("val"))) == (2, 1, 2)
    assert data.source_vocabulary.idx_to_word[4:] == ["a", "b"]
    assert "2 training pairs of more than 2 words were dropped" in data.describe()
    data = ParallelData(PAIRS, max_length=2, long_pairs="cut")
    assert (data.num_long, len(data.split("train"))) == (2, 3)
    assert data.split("train").source[2] == ["a", "b"]
    assert "were cut" in data.describe()


def test_fewer_training_pairs():
    pairs = {"train": [([f"{k}"], [f"{k}", f"{k}"]) for k in range(100)]}
    some = ParallelData(pairs, max_train=10).split("train")
    kept = np.sort(np.random.default_rng(0).permutation(100)[:10])
    assert [*some.source] == [[f"{k}"] for k in kept]
    assert [*some.target] == [[f"{k}", f"{k}"] for k in kept]
    assert len(ParallelData(pairs, max_train=1000).split("train")) == 100
    assert ParallelData(PAIRS, max_train=1).vocabulary == ParallelData(PAIRS).vocabulary


def test_described_for_people():
    data = ParallelData(PAIRS, name="letters")
    text = data.describe()
    first, _, train, val, *_ = text.splitlines()
    assert first == "letters: 7 source words, 6 target words"
    assert " ".join(train.split()) == "train 3 2.3 | 2.0 4 | 3 0.0% | 0.0%"
    assert " ".join(val.split()) == "val 2 1.0 | 1.0 2 | 2 50.0% | 50.0%"
    assert "train: a b | x" in text
    assert "val" in repr(data)


@pytest.mark.parametrize(
    ("pairs", "options", "message"),
    [
        ({}, {}, "found no split, expected pairs of a split train"),
        ({"train": [], "val": [([], [])]}, {}, "found train 0, val 1, expected"),
        (PAIRS, {"long_pairs": "keep"}, "long_pairs is 'keep', expected one of 'drop', 'cut'"),
        (PAIRS, {"long_pairs": "cut"}, "long_pairs is 'cut', which needs max_length"),
        (PAIRS, {"max_length": 0}, "max_length is 0, expected an integer of at least 1"),
        (PAIRS, {"max_train": -3}, "max_train is -3, expected an integer of at least 1"),
        (PAIRS, {"max_size": 0}, "max_size is 0, expected an integer of at least 1"),
        (PAIRS, {"min_count": 0}, "min_count is 0, expected an integer of at least 1"),
        (PAIRS, {"max_size": 1.5}, "ParallelData: max_size is 1.5, expected an integer of at least 1"),
        ({"train": [(["a", "b"], [])]}, {"max_length": 1}, "all 1 training pairs of pairs are longer"),
    ],
)
def test_bad_options(pairs, options, message):
    with pytest.raises(ValueError, match=message):
        ParallelData(pairs, **options)


def test_bad_calls():
    data = ParallelData(PAIRS)
    with pytest.raises(KeyError, match="has the splits train, val, not 'test'"):
        data.split("test")
    with pytest.raises(ValueError, match="batch_size is 0"):
        data.epoch("train", 0)
    with pytest.raises(TypeError, match="ParallelData.batch: indices have dtype bool, expected integers"):
        data.batch("train", np.array([True, False]))


def test_a_batch_has_at_least_one_pair(rng):
    data = ParallelData({"train": [(["a"], ["b"])] * 3}, min_count=1)
    for generator in (None, rng):
        with pytest.raises(ValueError, match="epoch: batch_size is 0, expected at least 1"):
            data.epoch("train", 0, generator)
