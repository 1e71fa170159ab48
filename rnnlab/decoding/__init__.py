"""Search over a model's step function: greedy, sampling, beam search; ensembles; UNK replacement."""

from rnnlab.decoding.beam import beam_search
from rnnlab.decoding.ensemble import Ensemble
from rnnlab.decoding.greedy_search import greedy
from rnnlab.decoding.sampling import sample
from rnnlab.decoding.search import Hypothesis, StepModel, gives_new_array
from rnnlab.decoding.teacher_forcing import Prediction, sentences_nll, teacher_forced
from rnnlab.decoding.unk_replacement import build_lexicon, read_lexicon, replace_unknown, write_lexicon

__all__ = [
    "Ensemble",
    "Hypothesis",
    "Prediction",
    "StepModel",
    "beam_search",
    "build_lexicon",
    "gives_new_array",
    "greedy",
    "read_lexicon",
    "replace_unknown",
    "sample",
    "sentences_nll",
    "teacher_forced",
    "write_lexicon",
]
