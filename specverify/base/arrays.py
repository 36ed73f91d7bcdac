"""Arrays of any library, on any device, brought to NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import is_cupy_array, is_torch_array


def host_array(values: Any) -> Any:
    """Return a NumPy array of ``values``, whatever library they are of and wherever they live; no copy of NumPy's.

    NumPy has no bfloat16: its values come as float32.
    """
    if is_torch_array(values):
        values = values.detach().cpu()
        return (values.float() if str(values.dtype) == "torch.bfloat16" else values).numpy()
    return values.get() if is_cupy_array(values) else np.asarray(values)
