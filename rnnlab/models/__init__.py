"""Models: encoders, decoders and outputs composed into one loss and one step function."""

from rnnlab.models.captioning import CaptioningRNN
from rnnlab.models.classification import SequenceClassifier
from rnnlab.models.classifier_ensemble import ClassifierEnsemble
from rnnlab.models.language import LanguageModel
from rnnlab.models.translation import Seq2Seq

__all__ = ["CaptioningRNN", "ClassifierEnsemble", "LanguageModel", "Seq2Seq", "SequenceClassifier"]
