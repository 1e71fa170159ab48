"""Words for the local names in :mod:`rnnlab.plain` that students do not know.

A student has read the notebook, the docstrings and the equations. The names that occur there are kept:
arguments, results, gates, ``da`` for the gradient before a nonlinearity. Other local names are replaced by
words.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping

__all__ = ["title_of", "worded"]

# By module of rnnlab.plain: expressions of its source, and the words for them in messages.
_WORDS: Mapping[str, Mapping[str, str]] = {
    "affine": {
        "x.reshape(len(x), w.shape[0]).T": "the transpose of x as a matrix",
        "x.reshape(len(x), w.shape[0])": "x as a matrix",
    },
    "embedding": {"dout[place]": "dout of each token"},
    "gru": {f"x_{gate}": f"x Wx_{gate} + b_{gate}" for gate in "zrg"},
    "softmax": {
        "np.log(np.exp(shifted).sum(axis=1, keepdims=True))": "the logarithm of the sum of exp(x)",
        "np.exp(shifted).sum(axis=1, keepdims=True)": "the sum of exp(x)",
        "np.exp(shifted)": "exp(x)",
        "shifted": "x less its maximum",
        "np.exp(log_p) - q": "the probability minus the one-hot label",
        "np.exp(log_p)": "the probability",
        "log_p": "the log-probability",
        "np.arange(V) == y[:, None]": "1 at the correct class",
        "q": "the one-hot label",
        "M": "the number of rows",
        "mean_loss": "the mean loss of the real tokens",
        "real.sum()": "the number of real tokens",
        "real": "the mask",
    },
    "attention": {
        "np.exp(e - largest)": "exp(e)",
        "exp_e.sum(axis=1, keepdims=True)": "the sum of exp(e)",
        "exp_e": "the exponential of e",
        "largest": "the largest score",
        "e": "the score e",
        "dprojected": "dq",
        "dmemory_of_keys": "the gradient of the memory through the keys",
        "np.ones((1, T, 1))": "1 for each step",
        "counts": "1 for each slot",
        "missing": "1 - the sum of the weights",
    },
    "target_attention": {
        "h[:, t - 1] if t else h0": "the state before the step",
        "dh[:, t - 1] if t else dh0": "dh of the step before",
        "np.ones((N, t))": "1 for each slot",
        "dmemory": "the gradient of the memory",
        "gradient": "the gradient of the step",
    },
    "arnet": {
        "np.concatenate([h0[:, None], h[:, :-1]], axis=1)": "the state before each step",
        "read @ W + b_out - targets": "the error of the reconstruction",
        "read @ W": "the product of ARNet's state and W",
        "read": "ARNet's state",
        "targets": "the target of the reconstruction",
        "de[:, 1:]": "de of the step after",
    },
    "discriminative": {
        "np.arange(thoughts.shape[1])[:, None] == slots[:, None]": "1 at the vector with the maximum",
        "thoughts @ W": "the product of thoughts and W",
        "products": "the product of thoughts and W",
        "dproducts": "the gradient of the product of thoughts and W",
        "slots": "the vector with the maximum",
        "present": "the words of the caption",
        "s[n, j]": "s_j",
        "s[n, i]": "s_i",
        "len(s)": "N",
    },
}

_FORMS = (  # patterns in all modules
    (r"np\.zeros\((?:[^()]|\([^()]*\))*\)", "zeros"),
    (r"np\.einsum\('[\w,>-]*', ([\w.]+), ([\w.]+)\)", r"the products of \1 and \2"),
    (r"\[(?::, )+None\]", ""),
    (r", keepdims=True", ""),
    (r"\blen\(\w+\)", "N"),
    (r"params\['(\w+)'\]", r"\1"),
    (r"zeros belongs", "zeros belong"),
    (r"^(\w+) does not reach \1: it is left out", r"\1 is left out"),
)

# Functions that students do not write, or write under other names.
_TITLES = {
    "affine": "the affine map",
    "softmax_loss": "the softmax",
    "lstm": "the LSTM",
    "attend": "the attention",
    "attention_keys": "the map to the keys",
    "attention_step": "the attention",
}


def worded(message: str, module: str) -> str:
    """A message about the source of a module of rnnlab.plain, in terms that students know."""
    words = _WORDS.get(module)
    if words:
        message = _pattern(module).sub(lambda found: words[found[0]], message)
    for pattern, replacement in _FORMS:
        message = re.sub(pattern, replacement, message)
    return re.sub(r"\w+_(?:forward|backward)\b", lambda found: title_of(found[0]), message)


@functools.cache
def _pattern(module: str) -> re.Pattern[str]:
    """A pattern for a module's expressions that have words, long ones first, not within names or strings."""
    known = "|".join(map(re.escape, sorted(_WORDS[module], key=len, reverse=True)))
    return re.compile(rf"(?<![\w.'])(?:{known})(?![\w'])")


def title_of(function: str) -> str:
    """The name of a function of rnnlab.plain in a message about a function that calls it."""
    title = _TITLES.get(function.removesuffix("_forward").removesuffix("_backward"))
    if title is None:
        return function
    return f"the backward of {title}" if function.endswith("_backward") else title
