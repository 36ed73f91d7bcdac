"""Functions of ``math`` and NumPy as they are outside a run.

Inside a run both modules have others: ``np.empty`` makes arrays that hold symbolic numbers. Code of this package that
needs the functions of the libraries imports them from here, and calls no attribute of the modules.
"""

from math import (
    ceil,
    copysign,
    exp,
    expm1,
    factorial,
    floor,
    frexp,
    inf,
    isclose,
    isfinite,
    isinf,
    isnan,
    ldexp,
    log,
    pi,
    prod,
)

from numpy import (
    append,
    array,
    asarray,
    broadcast_arrays,
    broadcast_to,
    concatenate,
    count_nonzero,
    empty,
    expand_dims,
    full,
    moveaxis,
)

__all__ = [
    "append",
    "array",
    "asarray",
    "broadcast_arrays",
    "broadcast_to",
    "ceil",
    "concatenate",
    "copysign",
    "count_nonzero",
    "empty",
    "exp",
    "expand_dims",
    "expm1",
    "factorial",
    "floor",
    "frexp",
    "full",
    "inf",
    "isclose",
    "isfinite",
    "isinf",
    "isnan",
    "ldexp",
    "log",
    "moveaxis",
    "pi",
    "prod",
]
