"""The digits of scikit-learn: 1,797 images of 8 x 8 pixels, a small alternative to MNIST.

They are by E. Alpaydin and C. Kaynak (UCI, 1998). The extra ``sklearn`` installs scikit-learn.
"""

from __future__ import annotations

import numpy as np

from rnnlab.data.pixels import PixelData
from rnnlab.extras import Library

NUM_VAL, NUM_TEST = 180, 360

_SCIKIT_LEARN = Library("sklearn", "sklearn", "the data of digits", "scikit-learn")
_WHITE = 16  # the value of the brightest pixel


def open_digits(*, permute_seed: int | None = None, max_train: int | None = None) -> PixelData:
    """The digits as sequences of 64 pixels: 1,257 training, 180 validation and 360 test images.

    The splits are drawn with seed 0, because scikit-learn's order is by writer.

    Parameters
    ----------
    permute_seed, max_train : int, optional
        As in :class:`PixelData`.

    Raises
    ------
    ImportError
        If scikit-learn is not installed.
    """
    digits = _SCIKIT_LEARN.module("datasets").load_digits()
    images, labels = digits.images.astype(np.uint8), digits.target
    order = np.random.default_rng(0).permutation(len(labels))
    test, val, train = np.split(order, [NUM_TEST, NUM_TEST + NUM_VAL])
    return PixelData(
        {
            name: (images[rows], labels[rows])
            for name, rows in (("train", train), ("val", val), ("test", test))
        },
        name="digits",
        white=_WHITE,
        permute_seed=permute_seed,
        max_train=max_train,
    )
