"""Arguments for any primitive, made from its declaration."""

import functools
import inspect

import numpy as np

from rnnlab.ops import numpy as numpy_ops
from rnnlab.ops.arguments import PRIMITIVES

from .cases import RULES, named

SIZES = {
    "A": 3, "B": 4, "C": 5, "D": 6, "G": 70, "H": 8, "K": 9, "L": 4, "M": 10, "N": 7, "P": 11, "R": 60,
    "V": 9, "W": 6, "n": 10,
}  # fmt: skip
SCALARS = {
    "p": 0.3,
    "rate": 0.1,
    "seed": 12345,
    "start": 5,
    "scale": 0.5,
    "smoothing": 0.1,
    "bound": 0.5,
    "count": 2,
    "temperature": 0.7,
}


def shapes(name, sizes=None):
    """The shape of each declared array."""
    sizes = SIZES | (sizes or {})
    return {
        each.name: tuple(factor * sizes[letter] for factor, letter in each.axes or ((1, "n"), (1, "H")))
        for each in PRIMITIVES[name].arguments
    }


def made(name, rng, dtype=np.float32, sizes=None):
    """Arrays as the primitive declares them; of indices, the largest one is in range just so."""
    arrays = {}
    for each, shape in zip(PRIMITIVES[name].arguments, shapes(name, sizes).values(), strict=True):
        if each.size:
            size = (SIZES | (sizes or {}))[each.size]
            if each.lowest == 0 and name != "put":
                chosen = rng.integers(size, size=shape)
            elif each.name == "words":
                chosen = rng.integers(-1, size, size=shape)
            else:  # no index twice
                chosen = rng.permutation(size)[: np.prod(shape, dtype=int)].reshape(shape)
            if chosen.size and size - 1 not in chosen:
                chosen.flat[-1] = size - 1
            arrays[each.name] = chosen.astype(np.int64)
        else:
            arrays[each.name] = abs(rng.standard_normal(shape)).astype(each.own_dtype or dtype)
    return arrays


def call(ops, name, arrays):
    """Call the primitive; what is no array has some fixed value."""
    function = named(ops, name)
    given = arrays | (RULES[name][1] | {"learning_rate": 0.1} if name in RULES else {})
    parameters, positional = _parameters(name)
    given |= {key: value for key, value in SCALARS.items() if key in parameters}
    return function(*[given.pop(key) for key in positional], **given)


@functools.cache
def _parameters(name):
    """The names of all parameters, and of those that are given by place."""
    parameters = inspect.signature(named(numpy_ops, name)).parameters.values()
    by_place = [each.name for each in parameters if each.kind is each.POSITIONAL_OR_KEYWORD]
    return {each.name for each in parameters}, by_place
