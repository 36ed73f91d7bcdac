"""Conversion of arrays of any library and device to NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import is_cupy_array, is_torch_array


def host_array(values: Any) -> Any:
    """Return ``values`` as a NumPy array in host memory, without a copy if they are one already.

    NumPy has no bfloat16: bfloat16 values are returned as float32.
    """
    if is_torch_array(values):
        values = values.detach().cpu()
        return (values.float() if str(values.dtype) == "torch.bfloat16" else values).numpy()
    return values.get() if is_cupy_array(values) else np.asarray(values)
