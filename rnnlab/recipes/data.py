"""The tables [data] of recipes: one class for each kind of data, whose fields are the keys.

:mod:`rnnlab.recipes.tables` has the other tables.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from rnnlab.data.parallel_text import check_tokenizer
from rnnlab.errors import InputError
from rnnlab.options import Count, Natural
from rnnlab.recipes.schema import EnvPath


class _CaptionsTable:
    """The help of keys that tables of captions have in common.

    Attributes
    ----------
    standardise
        Scale every feature to mean 0 and standard deviation 1.
    max_train
        Number of training captions to use, drawn with seed 0; all if left out. The vocabulary and the scaling
        of the features are those of all.
    captions_per_image
        Train on images with this many of their captions, each image encoded once; training.batch_size then
        counts images. If left out, each caption is an example of its own.
    lazy
        Read features from the file batch by batch, for files larger than memory.
    """


@dataclass(frozen=True)
class ShapesTable(_CaptionsTable):
    """Rendered scenes of coloured shapes, made on first use.

    Attributes
    ----------
    directory
        Folder of the data; if left out datasets/shapes of the clone, else ~/.cache/rnnlab/shapes.
    features
        "pca": one vector for each image; "local": one for each region of a grid.
    global_features
        With local features: also one vector for each image, which gives the initial state.
    """

    kind: Literal["shapes"]
    directory: EnvPath | None = None
    features: Literal["pca", "local"] = "pca"
    global_features: Literal["pca"] | None = None
    standardise: bool = False
    max_train: Count | None = None
    captions_per_image: Count | None = None

    def __post_init__(self) -> None:
        _check_global_features(self)


@dataclass(frozen=True)
class CourseTable(_CaptionsTable):
    """A folder in the layout of the cs231n course, as ``rnnlab data prepare`` writes it.

    Attributes
    ----------
    directory
        Folder of the data.
    features
        The feature file: reduced by PCA, full, or one vector for each region of an image.
    global_features
        With local features: the file with a vector for each image, which gives the initial state.
    """

    kind: Literal["course"]
    directory: EnvPath
    features: Literal["pca", "full", "local"] = "pca"
    global_features: Literal["pca", "full"] | None = None
    standardise: bool = True
    max_train: Count | None = None
    captions_per_image: Count | None = None
    lazy: bool = False

    def __post_init__(self) -> None:
        _check_global_features(self)


def _check_global_features(table: ShapesTable | CourseTable) -> None:
    if table.global_features is not None and table.features != "local":
        raise InputError(
            f"global_features is {table.global_features!r}, which needs features 'local', found "
            f"{table.features!r}"
        )


class _AnnotatedTable(_CaptionsTable):
    """The help of further keys, of tables of annotations with features in files of their own.

    Attributes
    ----------
    features
        HDF5 file of the features of each image.
    global_features
        With local features: a file of one vector for each image, which gives the initial state.
    images
        Folder of the images, for reports.
    min_count
        Least occurrences in the training captions of a word in the vocabulary.
    max_size
        Maximum number of words in the vocabulary: the most frequent ones.
    max_words
        Longer captions are cut to this many words.
    """


@dataclass(frozen=True)
class KarpathyTable(_AnnotatedTable):
    """Captions in Karpathy's JSON with their splits, and an HDF5 file of features joined on the file name.

    Attributes
    ----------
    annotations
        Karpathy's JSON file.
    """

    kind: Literal["karpathy"]
    annotations: EnvPath
    features: EnvPath
    global_features: EnvPath | None = None
    images: EnvPath | None = None
    min_count: Count = 5
    max_size: Count | None = None
    max_words: Count = 20
    standardise: bool = True
    max_train: Count | None = None
    captions_per_image: Count | None = None
    lazy: bool = False


@dataclass(frozen=True)
class CocoTable(_AnnotatedTable):
    """Captions in COCO's JSON, a file for each split, and HDF5 files of features joined on the file name.

    Attributes
    ----------
    annotations_train
        COCO's JSON file of the training captions, such as captions_train2017.json.
    annotations_val
        COCO's JSON file of the validation captions.
    annotations_test
        COCO's JSON file of captions of the split "test"; that split does not exist if left out.
    """

    kind: Literal["coco"]
    annotations_train: EnvPath
    annotations_val: EnvPath
    features: EnvPath
    annotations_test: EnvPath | None = None
    global_features: EnvPath | None = None
    images: EnvPath | None = None
    min_count: Count = 5
    max_size: Count | None = None
    max_words: Count = 20
    standardise: bool = True
    max_train: Count | None = None
    captions_per_image: Count | None = None
    lazy: bool = False


class _PairsTable:
    """The help of keys that tables of sentence pairs have in common.

    Attributes
    ----------
    min_count
        Least occurrences in the training pairs of a word in a vocabulary.
    max_size
        Maximum number of words in a vocabulary.
    max_length
        Maximum number of words in a sentence of a training pair.
    long_pairs
        Drop training pairs with a longer sentence, or cut the sentence.
    max_train
        Number of training pairs to use, drawn with seed 0; all if left out. The vocabularies are those of
        all pairs.
    """


@dataclass(frozen=True)
class ParallelTable(_PairsTable):
    """Sentence pairs in files SPLIT.LANGUAGE or SPLIT.LANGUAGE.gz of a folder, as Multi30k's.

    Attributes
    ----------
    directory
        Folder of the files.
    source
        Extension of the source files, the source language.
    target
        Extension of the target files, the target language.
    tokenizer
        "text": lower-cased words and punctuation marks; "spaces": split at white space only, of any kind;
        "sentencepiece": pieces of words, found in the training sentences, which needs the extra "subword".
    vocabulary_size
        With tokenizer "sentencepiece", the number of pieces of each language.
    references
        Extensions of files with further references, such as ["de1", "de2"], for BLEU.
    """

    kind: Literal["parallel"]
    directory: EnvPath
    source: str = "en"
    target: str = "de"
    tokenizer: Literal["text", "spaces", "sentencepiece"] = "text"
    vocabulary_size: Count | None = None
    references: list[str] = field(default_factory=list)
    min_count: Count = 1
    max_size: Count | None = None
    max_length: Count | None = None
    long_pairs: Literal["drop", "cut"] = "drop"
    max_train: Count | None = None

    def __post_init__(self) -> None:
        check_tokenizer(self.tokenizer, self.vocabulary_size, self.min_count, self.max_size)
        _check_long_pairs(self)


@dataclass(frozen=True)
class HabeasTable(_PairsTable):
    """Code and its comments in train, dev and test.tsv.gz of a folder, the HabeasCorpus; dev is ``val``.

    Attributes
    ----------
    directory
        Folder of the files.
    """

    kind: Literal["habeas"]
    directory: EnvPath
    min_count: Count = 1
    max_size: Count | None = None
    max_length: Count | None = None
    long_pairs: Literal["drop", "cut"] = "drop"
    max_train: Count | None = None

    def __post_init__(self) -> None:
        _check_long_pairs(self)


def _check_long_pairs(table: ParallelTable | HabeasTable) -> None:
    if table.long_pairs == "cut" and table.max_length is None:
        raise InputError("long_pairs is 'cut', which needs max_length")


@dataclass(frozen=True)
class TextTable:
    """Sentences for a language model: the lines of text files in UTF-8, gzipped or not.

    Attributes
    ----------
    train
        File of the training sentences.
    val
        File of the split "val", on which the model is validated; none if left out.
    test
        File of the split "test"; none if left out.
    tokenizer
        "text": lower-cased words and punctuation marks; "spaces": split at white space only, of any kind;
        "characters": single characters.
    min_count
        Least occurrences in the training sentences of a word in the vocabulary.
    max_size
        Maximum number of words in the vocabulary.
    max_length
        Maximum number of words in a training sentence; longer ones are left out.
    max_train
        Number of training sentences to use, drawn with seed 0; all if left out. The vocabulary is that of all
        sentences.
    """

    kind: Literal["text"]
    train: EnvPath
    val: EnvPath | None = None
    test: EnvPath | None = None
    tokenizer: Literal["text", "spaces", "characters"] = "text"
    min_count: Count = 1
    max_size: Count | None = None
    max_length: Count | None = None
    max_train: Count | None = None


@dataclass(frozen=True)
class RunningTextTable:
    """Running text for a language model: text files in UTF-8, gzipped or not, which are read in windows.

    Attributes
    ----------
    train
        File of the training text.
    val
        File of the split "val", on which the model is validated; none if left out.
    test
        File of the split "test"; none if left out.
    tokenizer
        "text": lower-cased words and punctuation marks; "spaces": split at white space only, of any kind;
        "characters": single characters. The end of a line is a word, too.
    window
        Words that an update reads of each of training.batch_size streams of the text. The state of the model
        is carried from window to window, the gradient is not.
    min_count
        Least occurrences in the training text of a word in the vocabulary.
    max_size
        Maximum number of words in the vocabulary.
    """

    kind: Literal["running_text"]
    train: EnvPath
    val: EnvPath | None = None
    test: EnvPath | None = None
    tokenizer: Literal["text", "spaces", "characters"] = "text"
    window: Count = 35
    min_count: Count = 1
    max_size: Count | None = None


@dataclass(frozen=True)
class MnistTable:
    """The four IDX files of MNIST or of a data set in the same format: images as sequences of pixels.

    Attributes
    ----------
    directory
        Folder of the four files.
    permute_seed
        Seed of the order of the pixels, one order for all images; row by row if left out.
    pool
        Read the means of blocks of pool x pool pixels, rounded to bytes; 2 makes 14 x 14 pixels of 28 x 28.
    num_val
        Number of training images in the split "val".
    val_seed
        Seed of a random choice of these; the last images if left out.
    max_train
        Number of training images to use; all if left out.
    """

    kind: Literal["mnist"]
    directory: EnvPath
    permute_seed: Natural | None = None
    pool: Count = 1
    num_val: Count = 5000
    val_seed: Natural | None = None
    max_train: Count | None = None


@dataclass(frozen=True)
class DigitsTable:
    """The 1,797 digits of scikit-learn, 8 x 8 pixels: a small stand-in for MNIST.

    Attributes
    ----------
    permute_seed
        Seed of the order of the pixels, one order for all images; row by row if left out.
    max_train
        Number of training images to use; all if left out.
    """

    kind: Literal["digits"]
    permute_seed: Natural | None = None
    max_train: Count | None = None
