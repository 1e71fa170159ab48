"""The tables [data] of recipes: one class for each kind of data, whose fields are the keys.

:mod:`rnnlab.recipes.tables` has the other tables.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from rnnlab.options import Count, Natural
from rnnlab.recipes.schema import EnvPath


@dataclass(frozen=True)
class ShapesData:
    """Rendered scenes of coloured shapes, made on first use."""

    kind: Literal["shapes"]
    directory: EnvPath | None = None  # where the data are written; datasets/shapes if left out
    features: Literal["pca", "local"] = "pca"  # one vector for each image, or one for each cell of a grid
    global_features: Literal["pca"] | None = None  # with local features: also one vector for each image
    standardise: bool = False  # scale every feature to mean 0 and standard deviation 1
    max_train: Count | None = None  # number of training captions to use


@dataclass(frozen=True)
class CourseData:
    """A folder in the layout of the cs231n course, as ``rnnlab data prepare`` writes it."""

    kind: Literal["course"]
    directory: EnvPath
    features: Literal["pca", "full", "local"] = "pca"  # which feature file
    global_features: Literal["pca", "full"] | None = (
        None  # with local features: the file of the vectors of images
    )
    standardise: bool = True
    max_train: Count | None = None
    lazy: bool = False  # read features from the file batch by batch, for files larger than memory


@dataclass(frozen=True)
class KarpathyData:
    """Captions in Karpathy's JSON with their splits, and an HDF5 file of features joined on the file name."""

    kind: Literal["karpathy"]
    annotations: EnvPath
    features: EnvPath
    global_features: EnvPath | None = None  # with local features: a file of one vector for each image
    images: EnvPath | None = None  # folder of the images, for reports
    min_count: Count = 5  # the least occurrences in the training captions of a word in the vocabulary
    max_words: Count = 20  # longer captions are cut
    standardise: bool = True
    max_train: Count | None = None
    lazy: bool = False


@dataclass(frozen=True)
class CocoData:
    """Captions in COCO's JSON, a file for each split, and HDF5 files of features joined on the file name."""

    kind: Literal["coco"]
    annotations_train: EnvPath  # captions_train2017.json, for example
    annotations_val: EnvPath
    features: EnvPath
    annotations_test: EnvPath | None = None  # captions of test images, such as Karpathy's split in this form
    global_features: EnvPath | None = None
    images: EnvPath | None = None
    min_count: Count = 5
    max_words: Count = 20
    standardise: bool = True
    max_train: Count | None = None
    lazy: bool = False


@dataclass(frozen=True)
class ParallelTable:
    """Sentence pairs in files SPLIT.LANGUAGE or SPLIT.LANGUAGE.gz of a folder, as Multi30k's."""

    kind: Literal["parallel"]
    directory: EnvPath
    source: str = "en"  # extensions of the files: the languages
    target: str = "de"
    tokenizer: Literal["text", "spaces"] = (
        "text"  # lower-cased words and punctuation marks, or split at spaces only
    )
    min_count: Count = 1  # the least occurrences in the training pairs of a word in a vocabulary
    max_size: Count | None = None  # the most words in a vocabulary
    max_length: Count | None = None  # the most words in a sentence of a training pair
    long_pairs: Literal["drop", "cut"] = "drop"  # drop pairs with a longer sentence, or cut the sentence
    max_train: Count | None = None  # number of training pairs to use


@dataclass(frozen=True)
class HabeasTable:
    """Code and its comments in train, dev and test.tsv.gz of a folder, the HabeasCorpus; dev is ``val``."""

    kind: Literal["habeas"]
    directory: EnvPath
    min_count: Count = 1
    max_size: Count | None = None
    max_length: Count | None = None
    long_pairs: Literal["drop", "cut"] = "drop"
    max_train: Count | None = None


@dataclass(frozen=True)
class MnistTable:
    """The four IDX files of MNIST or of a data set in the same format: images as sequences of pixels."""

    kind: Literal["mnist"]
    directory: EnvPath
    permute_seed: Natural | None = (
        None  # seed of the order of the pixels, one order for all images; row by row if left out
    )
    num_val: Count = 5000  # number of training images in the split ``val``
    val_seed: Natural | None = None  # seed of a random choice of these; the last images if left out
    max_train: Count | None = None  # number of training images to use


@dataclass(frozen=True)
class DigitsTable:
    """The 1,797 digits of scikit-learn, 8 x 8 pixels: a small stand-in for MNIST."""

    kind: Literal["digits"]
    permute_seed: Natural | None = None
    max_train: Count | None = None
