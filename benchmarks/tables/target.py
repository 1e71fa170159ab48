"""Xia et al. (2017), table 3, on Flickr8k, and table 1, on Multi30k: attention to the decoder's own past."""

from __future__ import annotations

from benchmarks.columns import CAPTIONS, PERPLEXITY, SIZE, best, score
from benchmarks.tables.flickr8k import SOFT_ATTENTION, test
from benchmarks.trainings import Row, Table, Training, seeds

# ---------------------------------------------------------------- captions

_BOTH = Training("flickr8k_both_attentions", "flickr8k_soft_attention", ("model.target_attention=true",))
_TARGET = Training(  # without attention to regions, the model reads one vector for each image
    "flickr8k_target_only",
    "flickr8k_soft_attention",
    (
        "data.features=$RNNLAB_DATA/flickr8k/features_global.h5",
        "data.lazy=false",
        "model.attention=none",
        "model.attention_dim=512",
        "model.doubly_stochastic=0.0",
        "model.target_attention=true",
    ),
)
_ON_WITH = Training("flickr8k_target_attention", "flickr8k_target_attention", start=SOFT_ATTENTION)
_ON_WITHOUT = Training(
    "flickr8k_source_attention_on",
    "flickr8k_target_attention",
    ("model.target_attention=false",),
    start=SOFT_ATTENTION,
)


def _paper(*values: float) -> dict[str, float]:
    return dict(zip(("BLEU-3", "BLEU-4", "CIDEr", "perplexity"), values, strict=True))


# ---------------------------------------------------------------- translations

_SOURCE = Training("multi30k_source_attention", "multi30k_source_attention")
_TRANSLATED_WITH = Training("multi30k_target_attention", "multi30k_target_attention", start=_SOURCE)
_TRANSLATED_WITHOUT = Training(
    "multi30k_source_attention_on",
    "multi30k_target_attention",
    ("model.target_attention=false",),
    start=_SOURCE,
)
_TEST = ("--split", "test_2016_flickr", "--beam", "5")

TABLES = {
    "target_attention": Table(
        "Flickr8k, test, beam 10: attention to regions and to the decoder's past (Xia et al. 2017, table 3)",
        (
            Row("source attention", seeds(SOFT_ATTENTION, 3), test(10), _paper(28.3, 19.0, 37.6, 28.56)),
            Row("target attention alone, one vector per image", seeds(_TARGET, 3), test(10)),
            Row("both, trained together", seeds(_BOTH, 3), test(10)),
            Row("source attention, continued by SGD", seeds(_ON_WITHOUT, 3), test(10)),
            Row("both, continued by SGD", seeds(_ON_WITH, 3), test(10), _paper(29.6, 20.5, 40.4, 23.06)),
        ),
        CAPTIONS | {"validation CIDEr": best("CIDEr")} | PERPLEXITY | SIZE,
        paper="the paper, Flickr30k",
    ),
    "multi30k": Table(
        "Multi30k English to German, test_2016_flickr, beam 5: attention to the target (Xia et al. 2017)",
        (
            Row("source attention", seeds(_SOURCE, 3), _TEST, {"BLEU": 16.47, "perplexity": 7.36}),
            Row("continued without target attention", seeds(_TRANSLATED_WITHOUT, 3), _TEST),
            Row(
                "continued with target attention",
                seeds(_TRANSLATED_WITH, 3),
                _TEST,
                {"BLEU": 17.67, "perplexity": 6.87},
            ),
        ),
        {"BLEU": score("BLEU", ".2f", 1)} | PERPLEXITY | SIZE,
        paper="the paper, WMT 2014",
    ),
}
