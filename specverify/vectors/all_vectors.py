"""All kinds of test vectors, and a table of all vectors by id."""

from __future__ import annotations

from functools import cache

from specverify.vectors.kinds.boundary import BOUNDARY
from specverify.vectors.kinds.cache_lengths import CACHE
from specverify.vectors.kinds.law_of_round import LAW
from specverify.vectors.kinds.stop import STOP
from specverify.vectors.kinds.tree_pass import TREE
from specverify.vectors.kinds.verify_chain import CHAIN
from specverify.vectors.kinds.warp import WARP
from specverify.vectors.vector import Kind, Vector

KINDS: tuple[Kind, ...] = (CHAIN, LAW, WARP, CACHE, STOP, TREE, BOUNDARY)


@cache
def all_vectors() -> dict[str, Vector]:
    """Return all test vectors: id -> vector, grouped by kind. Raises ``ValueError`` if two vectors have one id."""
    result: dict[str, Vector] = {}
    for kind in KINDS:
        for vector in kind.vectors():
            if vector.id in result:
                raise ValueError(f"two vectors are called {vector.id!r}, expected another id for each")
            result[vector.id] = vector
    return result


def kind_of(vector: Vector) -> Kind:
    """Return the ``Kind`` of the test vector ``vector``: the object that grades answers to it."""
    return next(kind for kind in KINDS if kind.name == vector.kind)


def groups() -> tuple[str, ...]:
    """Return the names of the groups of all vectors, in order.

    A group is a kind of vectors, or a kind with a flag, such as the name of a convention or of an algorithm.
    """
    return tuple(dict.fromkeys(vector.group for vector in all_vectors().values()))
