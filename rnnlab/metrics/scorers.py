"""The optional libraries that compute scores."""

from rnnlab.extras import Library

CAPTION_SCORERS = Library("pycocoevalcap", "eval", "scoring captions")
TRANSLATION_SCORERS = Library("sacrebleu", "translation", "scoring translations")
