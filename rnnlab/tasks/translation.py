"""Translation of sentences: the data, the model, the translations and the scores of a recipe."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from rnnlab.data import ParallelData, Vocabulary, open_habeas, open_parallel
from rnnlab.data.padding import PaddedRows, source_row
from rnnlab.data.parallel import ParallelSplit
from rnnlab.data.parallel_text import detokenize
from rnnlab.data.sentences import Words
from rnnlab.data.split_data import batches
from rnnlab.data.subwords import SUBWORDS
from rnnlab.data.translation_inputs import TranslationInputs
from rnnlab.decoding import Ensemble, Hypothesis, Prediction, build_lexicon, replace_unknown, teacher_forced
from rnnlab.decoding.ensemble import Average
from rnnlab.errors import InputError, InputTypeError
from rnnlab.metrics import (
    TRANSLATION_METRICS,
    TRANSLATION_SCORERS,
    KeystrokeScores,
    LengthScore,
    Statistics,
    TranslationScores,
    corpus_bleu,
    mean_of,
    perplexity,
)
from rnnlab.metrics.keystrokes import keystroke_scores, saved_characters
from rnnlab.models import Seq2Seq
from rnnlab.recipes.data import HabeasTable, ParallelTable
from rnnlab.recipes.recipe import TranslationRecipe, check_translation_metrics
from rnnlab.recipes.tables import DecodingTable, TranslationEvaluationTable
from rnnlab.tasks.ensembles import Combined, Member, check_same, check_same_splits, check_same_words
from rnnlab.tasks.search import decode
from rnnlab.tasks.task import Task, chosen_on, limited
from rnnlab.training import Checkpoint, validation_loss
from rnnlab.training.distributed import ALONE, Communicator, by_rank_0, gather_results
from rnnlab.training.validation import total_nll

_SCORED_AT_ONCE = 64  # targets whose words are predicted together


class Translation(NamedTuple):
    """One translation of a sentence."""

    words: list[str]
    hypothesis: Hypothesis


@dataclass(frozen=True)
class TranslationEvaluation:
    """The translations of a split and their scores.

    Attributes
    ----------
    split : str
    sources : sequence of sequences of str
    translations : list of list of Translation, or None
        One list per source, best first. None if no metric needs them.
    references : sequence of sequences of sequences of str
        One list of human translations per source.
    perplexity : float
        The perplexity of the references under the model. A word that the vocabulary lacks counts as <UNK>.
    scores : TranslationScores or None
        BLEU of the best translations, if it is one of the metrics.
    keystrokes : KeystrokeScores or None
        CS-1 to CS-5 of the first reference of each source, if "CS-k" is one of the metrics.
    tokenizer : str
        The name of the tokenizer of the data.
    remarks : list of str
        Notes on the split.
    """

    split: str
    sources: Sequence[Words]
    translations: list[list[Translation]] | None
    references: Sequence[Sequence[Words]]
    perplexity: float
    scores: TranslationScores | None
    keystrokes: KeystrokeScores | None = None
    tokenizer: str = "text"
    remarks: list[str] = field(default_factory=list)

    def text(self, words: Words) -> str:
        """The sentence made of these words."""
        return detokenize(words, self.tokenizer)

    def corpus(self) -> dict[str, float]:
        """All scores of the split by name, perplexity first."""
        parts = [each.corpus for each in (self.scores, self.keystrokes) if each is not None]
        return {"perplexity": self.perplexity} | {
            name: score for part in parts for name, score in part.items()
        }

    def rows(self) -> list[tuple[str, str]]:
        """The table of the scores: names and numbers."""
        numbers = [
            (name, f"{score:.{3 if name == 'perplexity' else 2}f}") for name, score in self.corpus().items()
        ]
        return [("sentences", f"{len(self.sources):,}"), *numbers]

    def by_source_length(self, starts: Sequence[int]) -> list[LengthScore]:
        """BLEU by the number of words of the sources: :meth:`TranslationScores.by_length`.

        Raises
        ------
        ValueError
            If BLEU is not one of the metrics, or the starts are not positive and increasing.
        """
        if self.scores is None:
            raise InputError("by_source_length: the split was evaluated without BLEU")
        pieces = self.tokenizer == SUBWORDS
        return self.scores.by_length(
            [len(self.text(words).split() if pieces else words) for words in self.sources], starts
        )

    def examples(self) -> tuple[Any, ...]:
        """The sources and their references in words, and the tokenizer."""
        references = [list(map(self.text, each)) for each in self.references]
        return list(map(self.text, self.sources)), references, self.tokenizer

    def statistics(self) -> dict[str, Statistics]:
        """The statistics of BLEU and of CS-k."""
        found = {} if self.scores is None else self.scores.statistics()
        if self.keystrokes is not None:
            for name, some in self.keystrokes.sentences.items():
                found[name] = mean_of([score for score in some if score is not None])
        return found

    def notes(self) -> list[str]:
        """The signature of BLEU, the units of the numbers, and the remarks."""
        notes = [] if self.scores is None else [f"BLEU: {self.scores.signature}"]
        if self.tokenizer == SUBWORDS:
            notes.append("perplexity: of a piece of a word, so not comparable with that of words")
        if self.keystrokes is not None:
            notes.append(
                f"CS-k: of {self.keystrokes.characters:,} characters of the references, under teacher forcing"
            )
        return [*notes, *self.remarks]

    def report(self) -> dict[str, Any]:
        """The scores, and each translation with its references, as JSON values."""
        sentences: list[dict[str, Any]] = [
            {"source": self.text(source), "references": [self.text(words) for words in references]}
            for source, references in zip(self.sources, self.references, strict=True)
        ]
        if self.translations is not None:
            for entry, (best, *_) in zip(sentences, self.translations, strict=True):
                entry["translation"] = self.text(best.words)
        if self.keystrokes is not None:
            for k, entry in enumerate(sentences):
                entry["scores"] = {name: some[k] for name, some in self.keystrokes.sentences.items()}
        signature = {} if self.scores is None else {"signature": self.scores.signature}
        return {"corpus": self.corpus(), **signature, "notes": self.notes(), "sentences": sentences}


class TranslationTask(Task):
    """The task of :class:`rnnlab.recipes.TranslationRecipe`."""

    recipe_type = TranslationRecipe
    verb, outputs, command = "translates", "translations", "translate"
    metrics = tuple(TRANSLATION_METRICS)
    openers: ClassVar = {ParallelTable: open_parallel, HabeasTable: open_habeas}

    def new_model(self, recipe: TranslationRecipe, data: ParallelData) -> Seq2Seq:
        """See :meth:`Task.new_model`."""
        return Seq2Seq(
            data.source_vocabulary.word_to_idx,
            data.vocabulary.word_to_idx,
            **recipe.model.options(),
            rng=np.random.default_rng(recipe.training.seed),
        )

    def inputs(self, recipe: TranslationRecipe, checkpoint: Checkpoint) -> TranslationInputs:
        """See :meth:`Task.inputs`."""
        return TranslationInputs.from_saved(checkpoint.vocabulary or [], checkpoint.preprocessing)

    def check_ensemble(self, members: Sequence[Member]) -> None:
        """See :meth:`Task.check_ensemble`: both vocabularies, the tokenizer and its model are the same."""
        check_same_words(members, "source vocabulary", lambda inputs: inputs.source_vocabulary)
        check_same_words(members, "vocabulary", lambda inputs: inputs.vocabulary)
        check_same(members, "tokenizer", lambda inputs: inputs.tokenizer)
        check_same(members, "subwords of the source", lambda inputs: inputs.source_subwords)

    def combined(self, members: Sequence[Member], average: Average) -> Combined:
        """See :meth:`Task.combined`. The data are those of the first run."""
        check_same_splits(members, "sentences", _same_pairs)
        model = Ensemble([member.model for member in members], average=average)
        return Combined(model, members[0].inputs, members[0].data)

    def epoch_scores(
        self, recipe: TranslationRecipe, data: ParallelData, communicator: Communicator = ALONE
    ) -> Callable[[Seq2Seq], dict[str, float]] | None:
        """See :meth:`Task.epoch_scores`: BLEU of greedy translations of the split ``val``."""
        if not recipe.evaluation.each_epoch:
            return None
        TRANSLATION_SCORERS.require()
        pairs = data.split("val")
        count = limited(recipe.evaluation.max_sentences, len(pairs))
        sources, references = pairs.source[:count], pairs.references[:count]
        options = recipe.decoding.changed(method="greedy")

        def scores(model: Seq2Seq) -> dict[str, float]:
            found = best_words(translate(model, sources, options, communicator=communicator))
            bleu = by_rank_0(communicator, lambda: _bleu(data.tokenizer, found, references).corpus["BLEU"])
            loss = validation_loss(model, data, recipe.training.batch_size, communicator=communicator)
            return loss | {"BLEU": bleu}

        return scores

    def evaluate(
        self,
        recipe: TranslationRecipe,
        data: ParallelData,
        model: Seq2Seq,
        split: str,
        *,
        decoding: DecodingTable,
        evaluation: TranslationEvaluationTable,
        lexicon: Mapping[str, str] | None = None,
        communicator: Communicator = ALONE,
    ) -> TranslationEvaluation:
        """Score a split, by translations of its sources or under teacher forcing.

        The sources are translated only if ``evaluation.metrics`` has BLEU.

        Parameters
        ----------
        recipe, data, model, split, decoding, evaluation, communicator
            As in :meth:`Task.evaluate`.
        lexicon : mapping of str to str, optional
            As in :func:`translate`.

        Raises
        ------
        ImportError
            If BLEU is a metric and the extra ``translation`` is not installed.
        KeyError
            If the data have no such split.
        ValueError
            If CS-k is a metric, and the tokens are pieces of words.
        """
        check_translation_metrics(recipe.data, evaluation)
        if "BLEU" in evaluation.metrics:
            TRANSLATION_SCORERS.require()
        pairs, training = data.split(split), recipe.training
        count = limited(evaluation.max_sentences, len(pairs))
        sources, references = pairs.source[:count], pairs.references[:count]
        translations, bleu, saved = None, None, None
        if "BLEU" in evaluation.metrics:
            found = translations = translate(
                model,
                sources,
                decoding,
                lexicon=lexicon,
                rng=training.seed,
                communicator=communicator,
            )
            bleu = by_rank_0(communicator, lambda: _bleu(data.tokenizer, best_words(found), references))
        if "CS-k" in evaluation.metrics:
            saved = _keystrokes(data, model, split, count, communicator)
        perplexity = _perplexity(data, model, split, count, training.batch_size, communicator)
        remarks = chosen_on(split, recipe)
        return TranslationEvaluation(
            split, sources, translations, references, perplexity, bleu, saved, data.tokenizer, remarks
        )


def _bleu(
    tokenizer: str, candidates: Sequence[Words], references: Sequence[Sequence[Words]]
) -> TranslationScores:
    """BLEU of the words or, if these are pieces of words, of the texts split by 13a."""
    if tokenizer != SUBWORDS:
        return corpus_bleu(candidates, references)
    texts = [[detokenize(words, tokenizer)] for words in candidates]
    of_references = [[[detokenize(words, tokenizer)] for words in some] for some in references]
    return corpus_bleu(texts, of_references, tokenize="13a")


def _same_pairs(one: ParallelSplit, other: ParallelSplit) -> bool:
    return (one.source, one.target, one.further) == (other.source, other.target, other.further)


def translate(
    model: Seq2Seq,
    sources: Sequence[Words],
    options: DecodingTable,
    *,
    lexicon: Mapping[str, str] | None = None,
    return_alignments: bool = False,
    rng: np.random.Generator | int = 0,
    communicator: Communicator = ALONE,
) -> list[list[Translation]]:
    """Translate sentences by the options of a recipe's table ``[decoding]``.

    A sentence without words has the empty translation.

    Parameters
    ----------
    model : Seq2Seq
    sources : N sequences of str
        Their words.
    options : DecodingTable
    lexicon : mapping of str to str, optional
        UNK replacement: the model may generate <UNK>, which is replaced by the lexicon's entry for the source
        word with the most attention, or by this source word if there is no entry.
    return_alignments : bool
        Whether hypotheses have an ``alignment``: a row for each word and, if finished, <END>; a column for
        each word of the source and its <END>. With a lexicon they always have one.
    rng : numpy Generator or seed
        For ``method = "sample"``. A sample depends on the generator, on its source and on the source's index.
    communicator : Communicator
        Ranks that share the work, as of :func:`~rnnlab.tasks.search.decode`.

    Returns
    -------
    list of N lists of Translation
        Best first.

    Raises
    ------
    ValueError
        If there are alignments or a lexicon and the model does not attend to its source.
    """
    align = return_alignments or lexicon is not None
    if lexicon is not None:
        options = replace(options, forbid_unknown=False)
    vocabularies = [_vocabulary(model.source_word_to_idx), _vocabulary(model.word_to_idx)]
    rows = [source_row(vocabularies[0], words) for words in sources]
    translations: list[list[Translation]] = [[_nothing(align)] for _ in rows]
    order = list(range(len(rows)))  # a sample depends on the index of its source
    if options.method != "sample":  # sorted by length, so that a batch needs little padding
        order = [k for k in np.argsort([len(row) for row in rows], kind="stable") if sources[k]]
    found = decode(
        model,
        PaddedRows([rows[k] for k in order]),
        options,
        return_alignments=align,
        rng=rng,
        communicator=communicator,
    )
    for k, hypotheses in zip(order, found, strict=True):
        if sources[k]:  # empty sources have only <END>
            translations[k] = [
                _translation(hypothesis, sources[k], vocabularies[1], lexicon) for hypothesis in hypotheses
            ]
    return translations


def lexicon(model: Seq2Seq, data: ParallelData, *, batch_size: int = 64) -> dict[str, str]:
    """Map each source word of the training pairs to the target word that most often attends most to it.

    Words that the vocabulary lacks have an entry, too.

    Raises
    ------
    TypeError
        If the model is an ensemble.
    ValueError
        If the model does not attend to its source.
    """
    if not hasattr(model, "align"):
        raise InputTypeError(f"lexicon: model is an {type(model).__name__}, expected one model")
    pairs = data.split("train")

    def aligned() -> Iterator[tuple[Words, Words, Any]]:
        by_length = np.argsort(pairs.source_rows.lengths(), kind="stable")
        for indices in batches(by_length, batch_size):
            weights = model.align(*data.batch("train", indices))
            for k, alignment in zip(indices, weights, strict=True):
                if source := pairs.source[k]:
                    yield source, pairs.target[k], alignment

    return build_lexicon(aligned())


def best_words(translations: Sequence[Sequence[Translation]]) -> list[list[str]]:
    """The words of the best translation of each source."""
    return [best.words for best, *_ in translations]


def _nothing(aligned: bool) -> Translation:
    """The translation of a sentence without words."""
    return Translation([], Hypothesis((), 0.0, 0.0, True, np.ones((1, 1)) if aligned else None))


def _translation(
    hypothesis: Hypothesis, source: Words, vocabulary: Vocabulary, lexicon: Mapping[str, str] | None
) -> Translation:
    words = [vocabulary.idx_to_word[token] for token in hypothesis.tokens]
    if hypothesis.alignment is not None:
        hypothesis = hypothesis._replace(alignment=hypothesis.alignment[:, : len(source) + 1])
        if lexicon is not None:  # attention to words only, because <END> has no translation
            words = replace_unknown(words, hypothesis.alignment, source, lexicon)
    return Translation(words, hypothesis)


def _vocabulary(word_to_idx: Mapping[str, int]) -> Vocabulary:
    return Vocabulary(sorted(word_to_idx, key=word_to_idx.__getitem__))


def _perplexity(
    data: ParallelData, model: Seq2Seq, split: str, count: int, size: int, communicator: Communicator
) -> float:
    """The perplexity of the first ``count`` targets of a split (Xia et al. 2017, eq. 13)."""
    return perplexity(*total_nll(model, data, split, batches(np.arange(count), size), communicator))


def _keystrokes(
    data: ParallelData, model: Any, split: str, count: int, communicator: Communicator
) -> KeystrokeScores:
    """CS-k of the first ``count`` targets of a split. Each rank predicts the words of some batches."""
    pairs, words = data.split(split), data.vocabulary.idx_to_word
    by_length = np.argsort(pairs.target_rows.lengths(slice(count)), kind="stable")
    own = batches(by_length, _SCORED_AT_ONCE)[communicator.rank :: communicator.size]
    saved = saved_characters(_predictions(data, model, split, own), count, words)
    return keystroke_scores(np.sum(gather_results(communicator, saved), axis=0), pairs.target[:count])


def _predictions(
    data: ParallelData, model: Any, split: str, batches: Sequence[np.ndarray]
) -> Iterator[Prediction]:
    """The distributions of the words of some batches of a split, with its rows."""
    for indices in batches:
        source, target = data.batch(split, indices)
        for predicted in teacher_forced(model, source, target, null_token=model.null_token):
            yield predicted._replace(rows=indices[predicted.rows])
