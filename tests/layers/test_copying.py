import numpy as np

from rnnlab.layers.copying import copy_of
from rnnlab.ops import ops_for


def test_a_copy_is_contiguous_and_its_own(rng):
    x = rng.standard_normal((3, 4, 5))
    for view in (x, x[:, 1], x[:, :, 1:3], x.T):
        copy = copy_of(view)
        np.testing.assert_array_equal(copy, view)
        assert copy.flags.c_contiguous
        assert not np.shares_memory(copy, x)


def test_on_a_device(device, rng):
    x = rng.standard_normal((3, 4, 5))
    copy = copy_of(device.asarray(x)[:, 1])
    assert isinstance(copy, device.ndarray)
    np.testing.assert_array_equal(ops_for(copy).asnumpy(copy), x[:, 1])
