"""Sentences from sentences: the data, the model, the translations and the scores of a recipe."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from rnnlab.data import ParallelData, Vocabulary, open_habeas, open_parallel
from rnnlab.data.parallel import Words, pad, source_row
from rnnlab.data.parallel_text import TOKENIZERS
from rnnlab.decoding import Hypothesis, build_lexicon, replace_unknown
from rnnlab.metrics import TRANSLATION_SCORERS, TranslationScores, corpus_bleu, perplexity
from rnnlab.models import Seq2Seq
from rnnlab.recipes.recipe import (
    DecodingConfig,
    HabeasTable,
    ParallelTable,
    TrainingConfig,
    TranslationConfig,
    TranslationEvaluationConfig,
)
from rnnlab.tasks.search import decode
from rnnlab.training import validation_loss

TABLES = (ParallelTable, HabeasTable)


class Translation(NamedTuple):
    """One translation of a sentence."""

    words: list[str]
    hypothesis: Hypothesis


@dataclass(frozen=True)
class Evaluation:
    """The translations of a split and how good they are.

    Attributes
    ----------
    sources : list of sequences of str
    translations : list of list of Translation
        Best first, one list a source.
    references : list of list of sequences of str
        Translations by people, one list a source.
    perplexity : float
        Of those, under the model; a word that the vocabulary lacks counts as <UNK>.
    scores : TranslationScores
        Of the best translations.
    """

    sources: list[Words]
    translations: list[list[Translation]]
    references: list[list[Words]]
    perplexity: float
    scores: TranslationScores


def open_data(table: ParallelTable | HabeasTable) -> ParallelData:
    """The data that a recipe's table ``[data]`` names."""
    options = asdict(table)
    kind, directory = options.pop("kind"), options.pop("directory")
    return open_parallel(directory, **options) if kind == "parallel" else open_habeas(directory, **options)


def tokenize(table: ParallelTable | HabeasTable, sentence: str) -> list[str]:
    """The words of a sentence, split as those of the data are."""
    return TOKENIZERS[table.tokenizer if isinstance(table, ParallelTable) else "spaces"](sentence)


def new_model(config: TranslationConfig, data: ParallelData) -> Seq2Seq:
    """A model as the recipe describes it, its parameters drawn from the recipe's seed."""
    return Seq2Seq(
        data.source_vocabulary.word_to_idx,
        data.vocabulary.word_to_idx,
        **asdict(config.model),
        rng=np.random.default_rng(config.training.seed),
    )


def translate(
    model: Seq2Seq,
    sources: Sequence[Words],
    options: DecodingConfig,
    *,
    lexicon: Mapping[str, str] | None = None,
    alignments: bool = False,
    rng: np.random.Generator | int = 0,
) -> list[list[Translation]]:
    """Translate sentences as the recipe's table ``[decoding]`` says.

    Parameters
    ----------
    model : Seq2Seq
    sources : N sequences of str
        Their words.
    options : DecodingConfig
    lexicon : mapping of str to str, optional
        Let the model write <UNK>, and put in its place what the lexicon has for the source word that has the
        most attention, or that word itself.
    alignments : bool
        Whether hypotheses have an ``alignment``: (words and, if finished, <END>; words of the source and its
        <END>). They do with a lexicon.
    rng : numpy Generator or seed
        For ``method = "sample"``.

    Returns
    -------
    list of N lists of Translation
        Best first.

    Raises
    ------
    ValueError
        If alignments or a lexicon are asked for and the model does not attend to its source.
    """
    if lexicon is not None:
        options = replace(options, forbid_unknown=False)
    vocabularies = [_vocabulary(model.source_word_to_idx), _vocabulary(model.word_to_idx)]
    rows = [source_row(vocabularies[0], words) for words in sources]
    # by length, so that sources that are decoded together need little padding
    order = np.argsort([len(row) for row in rows], kind="stable")
    found = decode(
        model, pad([rows[k] for k in order]), options, alignments=alignments or lexicon is not None, rng=rng
    )
    translations: list[list[Translation]] = [[] for _ in rows]
    for k, hypotheses in zip(order, found, strict=True):
        translations[k] = [
            _translation(hypothesis, sources[k], vocabularies[1], lexicon) for hypothesis in hypotheses
        ]
    return translations


def evaluate(
    training: TrainingConfig,
    data: ParallelData,
    model: Seq2Seq,
    split: str,
    *,
    decoding: DecodingConfig,
    evaluation: TranslationEvaluationConfig,
    lexicon: Mapping[str, str] | None = None,
) -> Evaluation:
    """Translate a split and score that against its references; the lexicon is as of :func:`translate`.

    Raises
    ------
    ImportError
        If the extra ``translation`` is not installed.
    KeyError
        If the data have no such split.
    """
    pairs = data.split(split)
    TRANSLATION_SCORERS.require()
    count = min(evaluation.max_sentences or len(pairs), len(pairs))
    sources, references = pairs.source[:count], pairs.references[:count]
    translations = translate(model, sources, decoding, lexicon=lexicon, rng=training.seed)
    return Evaluation(
        sources,
        translations,
        references,
        _perplexity(data, model, split, count, training.batch_size),
        corpus_bleu(best_words(translations), references),
    )


def epoch_scores(config: TranslationConfig, data: ParallelData) -> Any:
    """The function that the solver calls after every epoch; None for its own, which needs no translations."""
    if not config.evaluation.each_epoch:
        return None
    TRANSLATION_SCORERS.require()
    pairs = data.split("val")
    count = min(config.evaluation.max_sentences or len(pairs), len(pairs))
    options = replace(config.decoding, method="greedy", n_best=1)

    def scores(model: Seq2Seq) -> dict[str, float]:
        found = best_words(translate(model, pairs.source[:count], options))
        bleu = corpus_bleu(found, pairs.references[:count]).corpus["BLEU"]
        return validation_loss(model, data, config.training.batch_size) | {"BLEU": bleu}

    return scores


def lexicon(model: Seq2Seq, data: ParallelData, *, batch_size: int = 64) -> dict[str, str]:
    """For each source word of the training pairs the target word that most often looked at it most.

    Words are those of the files: a word that the vocabulary lacks has an entry too.

    Raises
    ------
    ValueError
        If the model does not attend to its source.
    """
    pairs = data.split("train")

    def aligned() -> Iterator[tuple[Words, Words, Any]]:
        by_length = np.argsort([len(row) for row in pairs.source_rows], kind="stable")
        for indices in np.split(by_length, range(batch_size, len(by_length), batch_size)):
            weights = model.align(*data.batch("train", indices))
            for k, alignment in zip(indices, weights, strict=True):
                if pairs.source[k]:
                    yield pairs.source[k], pairs.target[k], alignment

    return build_lexicon(aligned())


def best_words(translations: Sequence[Sequence[Translation]]) -> list[list[str]]:
    """The words of the best translation of each source."""
    return [best.words for best, *_ in translations]


def _translation(
    hypothesis: Hypothesis, source: Words, vocabulary: Vocabulary, lexicon: Mapping[str, str] | None
) -> Translation:
    words = [vocabulary.idx_to_word[token] for token in hypothesis.tokens]
    if hypothesis.alignment is not None:
        hypothesis = hypothesis._replace(alignment=hypothesis.alignment[:, : len(source) + 1])
        if lexicon is not None and source:  # <END> has no translation: the most attention among the words
            words = replace_unknown(words, hypothesis.alignment, source, lexicon)
    return Translation(words, hypothesis)


def _vocabulary(word_to_idx: Mapping[str, int]) -> Vocabulary:
    return Vocabulary(sorted(word_to_idx, key=word_to_idx.__getitem__))


def _perplexity(data: ParallelData, model: Seq2Seq, split: str, count: int, size: int) -> float:
    """That of the first ``count`` targets of a split (Xia et al. 2017, eq. 13)."""
    batches = np.split(np.arange(count), range(size, count, size))
    totals = [model.nll(*data.batch(split, indices)) for indices in batches]
    return perplexity(sum(nats for nats, _ in totals), sum(tokens for _, tokens in totals))
