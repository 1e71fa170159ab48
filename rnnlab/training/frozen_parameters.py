"""Frozen parameters: some parameters train, and the others do not change at all.

The gradient of a frozen parameter is set to zero before the norm is computed, and the update rule skips it,
since weight decay or momentum would change it even without a gradient.
"""

from __future__ import annotations

from collections.abc import Sequence

from rnnlab.errors import InputError
from rnnlab.parameters import Parameters
from rnnlab.training.patterns import matching


class Trained:
    """The parameters that train, selected by patterns of their names.

    Parameters
    ----------
    params : Parameters
    patterns : sequence of str, optional
        As in :mod:`fnmatch`: ``["W_vocab", "*_source*"]``. A pattern after "!" excludes: ``["!W_embed"]``
        selects all parameters but W_embed, ``["W*", "!W_embed"]`` all that begin with W except W_embed. The
        order does not matter. All parameters train if left out.

    Attributes
    ----------
    names, frozen : tuple of str
        The parameters that train, and those that do not.

    Raises
    ------
    ValueError
        If there is no pattern, one matches no parameter, or all parameters are excluded.
    """

    def __init__(self, params: Parameters, patterns: Sequence[str] | None = None) -> None:
        patterns = ["*"] if patterns is None else patterns
        if not patterns:
            raise InputError("trains is empty, expected patterns of the names of parameters")
        for pattern in patterns:
            if not matching(params, [pattern.removeprefix("!")]):
                raise InputError(f"trains has {pattern!r}, which matches none of {', '.join(params)}")
        included = [pattern for pattern in patterns if not pattern.startswith("!")]
        excluded = [pattern[1:] for pattern in patterns if pattern.startswith("!")]
        trained = matching(params, included or ["*"]) - matching(params, excluded)
        if not trained:
            raise InputError(f"trains is {patterns}, which leaves none of {', '.join(params)}")
        self.names = tuple(name for name in params if name in trained)
        self.frozen = tuple(name for name in params if name not in trained)

    def clear_frozen(self, grads: Parameters) -> None:
        """Set the gradients of the frozen parameters to zero."""
        for name in self.frozen:
            grads[name][...] = 0
