"""Programs that answer vectors: the right one, and results files made of answers."""

from __future__ import annotations

import json

from specverify.vectors.all_vectors import all_vectors
from specverify.vectors.vector import REFUSED, RESULTS_FORMAT


def right(vector, flags=()):
    """Return a right answer: the branch of one of ``flags`` where there is a choice, else the first."""
    if not vector.expected:
        return dict(REFUSED)
    branches = [branch for branch in vector.expected if branch.flag in flags] or vector.expected
    return dict(branches[0].answer)


def in_group(*groups):
    """Return the vectors of some groups, or of all."""
    return [
        vector for vector in all_vectors().values() if not groups or vector.group in groups or vector.kind in groups
    ]


def results(given, **changes):
    """Return the text of a results file: id -> answer."""
    data = {
        "format": RESULTS_FORMAT,
        "format_version": 1,
        "program": "a program",
        "answers": [{"id": name, "answer": answer} for name, answer in given.items()],
    }
    return json.dumps(data | changes)
