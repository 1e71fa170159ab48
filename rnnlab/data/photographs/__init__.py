"""Features of photographs, by image classifiers in ONNX files.

reading        photographs to pixels: orientation, colours, a limit on the size
preprocessing  pixels to the input of an encoder
graphs         the input, the pooled vector and the grid of an ONNX file
encoding       how features were made, as features files and checkpoints record it
encoder        photographs to features
parts          the saved progress of a long command
extraction     photographs to a features file
"""

from rnnlab.data.photographs.encoder import ImageEncoder, choose_encoding
from rnnlab.data.photographs.encoding import ImageEncoding
from rnnlab.data.photographs.extraction import extract_features, find_photographs
from rnnlab.data.photographs.preprocessing import PIXEL_SCALES, Preprocessing
from rnnlab.data.photographs.reading import read_photograph

__all__ = [
    "PIXEL_SCALES",
    "ImageEncoder",
    "ImageEncoding",
    "Preprocessing",
    "choose_encoding",
    "extract_features",
    "find_photographs",
    "read_photograph",
]
