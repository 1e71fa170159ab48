"""Features of photographs, by image classifiers in ONNX files.

reading        photographs to pixels: orientation, colours, a limit of the size
preprocessing  pixels to the input of an encoder
graphs         what an ONNX file says about its input, its pooled vector and its grid
encoding       how features were made, as features files and checkpoints record it
encoder        photographs to features
parts          the progress of a long command, which survives a kill
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
