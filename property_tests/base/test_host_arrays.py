"""Arrays of any library as arrays of NumPy in host memory."""

from __future__ import annotations

import numpy as np

from specverify.base.host_arrays import host_array


def test_an_array_of_numpy_is_returned_without_a_copy():
    values = np.arange(3.0)
    assert host_array(values) is values
    assert host_array([1, 2]).tolist() == [1, 2]
