import numpy as np

from rnnlab.data.fingerprint import array_hash, joined_hash, sample_hash, word_hash


def test_integers_of_every_width_have_one_hash():
    tokens = np.arange(12).reshape(3, 4)
    assert array_hash(tokens) == array_hash(tokens.astype(np.uint8)) == array_hash(tokens.astype(">i4"))
    assert array_hash(tokens) != array_hash(tokens.reshape(4, 3))
    assert array_hash(tokens) != array_hash(tokens + (tokens == 11))
    assert array_hash(tokens.T) == array_hash(np.ascontiguousarray(tokens.T))


def test_parts_have_the_hash_of_the_whole():
    tokens = np.arange(12)
    assert joined_hash(12, np.split(tokens.astype(np.int32), [0, 5, 11])) == array_hash(tokens)
    assert joined_hash(0, []) == array_hash(tokens[:0])


def test_hashes_do_not_change():
    """A run resumes only with data of the hashes that an earlier version may have saved."""
    assert array_hash(np.arange(12).reshape(3, 4), np.array([0.25, -1e-3])) == "15d16be65f500fcf"
    assert sample_hash(np.arange(99.0).reshape(33, 3)) == "9bcff36fce4a4e98"
    assert word_hash(["a", "schön"]) == "1a0a2050fe8cd03a"


def test_a_sample_has_the_first_and_the_last_row(rng):
    features = rng.standard_normal((100, 3)).astype(np.float32)
    for row in (0, 99):
        changed = features.copy()
        changed[row, 1] += 1
        assert sample_hash(changed) != sample_hash(features)
    assert sample_hash(features[:0]) == sample_hash(features[:0, :2])
    assert sample_hash(features[:2]) != sample_hash(features[:1])


def test_a_sample_reads_eight_rows():
    class Rows:
        requested = 0

        def __len__(self):
            return 10_000

        def __getitem__(self, rows):
            self.requested += len(rows)
            return np.zeros((len(rows), 2))

    rows = Rows()
    sample_hash(rows)
    assert rows.requested == 8


def test_words_and_their_order():
    assert word_hash(["a", "b"]) == word_hash(("a", "b")) != word_hash(["b", "a"])
    assert word_hash(["ab"]) != word_hash(["a", "b"])
