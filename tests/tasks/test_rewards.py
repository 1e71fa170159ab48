"""CIDEr-D as a reward: against the references of an image, with <END> as a word."""

from dataclasses import replace

import numpy as np
import pytest

from rnnlab.data import CaptionData, CaptionedImages, Vocabulary, write_shapes
from rnnlab.data.vocabulary import END, NULL, UNK
from rnnlab.tasks.rewards import cider_d_reward


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data") / "shapes"
    write_shapes(folder, {"train": 24})
    return CaptionedImages(CaptionData.from_course(folder))


def sentences(images, count=6):
    """The first reference of some images, without <START>, and with <END>."""
    rows = [images.vocabulary.encode(words[0])[1:] for words in images.references()[:count]]
    tokens = np.zeros((count, max(map(len, rows))), int)
    for row, given in zip(tokens, rows, strict=True):
        row[: len(given)] = given
    return tokens, np.array([len(row) for row in rows])


def test_a_caption_of_the_image_scores_more_than_one_of_another(images):
    reward, (tokens, lengths) = cider_d_reward(images), sentences(images)
    own = reward(np.arange(6), tokens, lengths)
    other = reward(np.roll(np.arange(6), 1), tokens, lengths)
    assert own.mean() > 2 * other.mean()
    assert (own <= 10).all()


def test_the_end_is_a_word(images):
    """By the library, with <END> written as a word."""
    scorer = pytest.importorskip("pycocoevalcap.cider.cider_scorer").CiderScorer()
    tokens, lengths = sentences(images)
    for k, references in enumerate(images.references()):
        words = [images.vocabulary.idx_to_word[t] for t in tokens[k % 6, : lengths[k % 6]]]
        assert words[-1] == "<END>"
        scorer.cook_append(" ".join(words), [" ".join([*each, "<END>"]) for each in references])
    scorer.compute_doc_freq()
    count = len(images.references())
    rows = np.arange(count) % 6
    found = cider_d_reward(images)(np.arange(count), tokens[rows], lengths[rows])
    np.testing.assert_allclose(found, scorer.compute_cider(), rtol=0, atol=1e-6)


def test_captions_that_stop_too_early_score_less(images):
    """They end as no reference does. A single one may still gain, where another reference is shorter."""
    reward, (tokens, lengths) = cider_d_reward(images), sentences(images)
    early = tokens.copy()
    early[np.arange(6), lengths - 2] = END
    cut = reward(np.arange(6), tokens, lengths - 2)  # the same words without <END>
    ended, whole = reward(np.arange(6), early, lengths - 1), reward(np.arange(6), tokens, lengths)
    assert ended.mean() < 0.9 * whole.mean()
    assert (ended < cut).all()  # <END> after a word that ends no reference lowers the score


def test_unknown_words_match_nothing(images):
    tokens = np.array([[UNK, UNK, END]])
    assert cider_d_reward(images)(np.zeros(1, int), tokens, np.array([2])) == 0


def test_words_are_split_as_those_of_the_references(tmp_path):
    """A vocabulary of another tokenizer: the sentence of a reference has the highest score there is."""
    write_shapes(tmp_path / "shapes", {"train": 4})
    made = CaptionData.from_course(tmp_path / "shapes")
    sentences = ["a man 's t-shirt .", "two dogs run", "a boy jumps .", "an old car"]
    vocabulary = Vocabulary(sorted({word for each in sentences for word in each.split()}))
    captions = np.array([vocabulary.encode(each.split(), 8) for each in sentences])
    split = replace(
        made.split("train"), captions=captions, image_idxs=np.arange(4), references=[[s] for s in sentences]
    )
    reward = cider_d_reward(CaptionedImages(CaptionData(vocabulary, {"train": split})))
    lengths = (captions[:, 1:] != NULL).sum(axis=1)
    np.testing.assert_allclose(reward(np.arange(4), captions[:, 1:], lengths), 10)
    stop = np.array([[vocabulary.word_to_idx["."], END]])
    assert reward(np.array([0]), stop, np.array([2])) == 0  # no word is left
