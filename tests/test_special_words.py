from rnnlab.data.vocabulary import END, NULL, START, UNK, Vocabulary
from rnnlab.special_words import SPECIAL_WORDS


def test_each_has_its_token_in_every_vocabulary():
    tokens = dict(zip(("<NULL>", "<START>", "<END>", "<UNK>"), (NULL, START, END, UNK), strict=True))
    assert tuple(tokens) == SPECIAL_WORDS
    assert {word: Vocabulary([*SPECIAL_WORDS, "a"]).word_to_idx[word] for word in SPECIAL_WORDS} == tokens
