"""Arrays of any library, on any device, brought to NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import is_cupy_array, is_torch_array


def host_array(values: Any) -> Any:
    """Return a NumPy array of ``values``, whatever library they are of and wherever they live."""
    if is_torch_array(values):
        return values.detach().cpu().numpy()
    return values.get() if is_cupy_array(values) else np.asarray(values)
