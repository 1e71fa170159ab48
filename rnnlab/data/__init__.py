"""Files to batches.

The modules of the package:

    vocabulary     words and their tokens
    word_vectors   pretrained word vectors, in the formats of GloVe and word2vec
    splits         CaptionSplit: features, captions, and the image of each caption
    captions       CaptionData, captioned images for the solver
    by_image       CaptionedImages, the same with an example for each image
    caption_groups CaptionGroups, the same with an example for an image with several of its captions
    scaling        the scaling of features, which a checkpoint saves
    fingerprint    hashes that distinguish data sets
    course         the course's files; course_arrays, its dictionary of arrays
    annotations    Karpathy's and COCO's JSON, joined with features
    prepare        annotations to the course's files, with PCA
    lazy           features larger than memory, read in blocks; block_cache, those that are in memory
    parallel       ParallelData, sentence pairs for the solver
    parallel_text  sentence pairs, code and comments from files
    language_data  what sentences and running text for language models have in common
    text           TextData, sentences for language models
    running_text   RunningText, windows of running text for language models
    sentences      many sentences in little memory; padding, a few of them as one array
    subwords       Subwords, sentences as pieces of words
    arrays         ArrayData, any arrays in memory
    pixels         PixelData, labelled images as sequences of pixels
    mnist, digits  MNIST's files, and the small digits of scikit-learn
    images         pictures by URL or name
    photographs    features of photographs, by image classifiers in ONNX files
    projection     linear projections of features, as files record them
    shapes         the built-in data
    *_inputs       what new inputs of a trained model need, from its checkpoint
"""

from rnnlab.data.annotations import open_annotated, open_features, read_coco, read_features, read_karpathy
from rnnlab.data.arrays import ArrayData
from rnnlab.data.by_image import CaptionedImages
from rnnlab.data.caption_groups import CaptionGroups
from rnnlab.data.captions import CaptionData
from rnnlab.data.course_arrays import decode_captions, load_coco_data, sample_coco_minibatch
from rnnlab.data.digits import open_digits
from rnnlab.data.images import image_from_url
from rnnlab.data.lazy import LazyFeatures
from rnnlab.data.mnist import open_mnist, read_idx
from rnnlab.data.parallel import ParallelData, ParallelSplit
from rnnlab.data.parallel_text import (
    open_habeas,
    open_parallel,
    read_code_comments,
    read_parallel,
    tokenize_text,
)
from rnnlab.data.pca import PCA
from rnnlab.data.pixels import PixelData, PixelSplit
from rnnlab.data.prepare import describe, prepare_annotated
from rnnlab.data.running_text import RunningSplit, RunningText, open_running_text
from rnnlab.data.shapes import open_shapes, write_shapes
from rnnlab.data.splits import CaptionSplit
from rnnlab.data.subwords import Subwords
from rnnlab.data.text import TextData, TextSplit, open_text
from rnnlab.data.vocabulary import Vocabulary, tokenize
from rnnlab.data.word_vectors import WordCoverage, load_word_vectors, read_word_vectors

__all__ = [
    "PCA",
    "ArrayData",
    "CaptionData",
    "CaptionGroups",
    "CaptionSplit",
    "CaptionedImages",
    "LazyFeatures",
    "ParallelData",
    "ParallelSplit",
    "PixelData",
    "PixelSplit",
    "RunningSplit",
    "RunningText",
    "Subwords",
    "TextData",
    "TextSplit",
    "Vocabulary",
    "WordCoverage",
    "decode_captions",
    "describe",
    "image_from_url",
    "load_coco_data",
    "load_word_vectors",
    "open_annotated",
    "open_digits",
    "open_features",
    "open_habeas",
    "open_mnist",
    "open_parallel",
    "open_running_text",
    "open_shapes",
    "open_text",
    "prepare_annotated",
    "read_coco",
    "read_code_comments",
    "read_features",
    "read_idx",
    "read_karpathy",
    "read_parallel",
    "read_word_vectors",
    "sample_coco_minibatch",
    "tokenize",
    "tokenize_text",
    "write_shapes",
]
