"""The survey refutes a broken copy of an engine: one line of lucidrains' decoder is changed, all else is the same.

Run by ``nox -s engines -- lucidrains``, where the engine is installed.
"""

from __future__ import annotations

import inspect
import sys
from functools import partial
from types import ModuleType

import pytest

pytest.importorskip("speculative_decoding", reason="needs the engine: nox -s engines -- lucidrains")

from specverify.base.verdict import Status
from specverify.engines.lucidrains.adapter import draft, texts
from specverify.engines.lucidrains.rows import BATCH, law
from specverify.subjects.decoding import Decoding, EngineRow, row_subject
from specverify.testing import check_subject

library = sys.modules["speculative_decoding.speculative_decoding"]  # its name in the package is that of the function
DECODING = Decoding(top_k=3, horizon=1, gamma=1)
"""One token: the rows of a batch have not come apart yet, and the unbroken decoder is right."""
BROKEN = {
    "ratio upside down": ("r > (p / q)", "r > (q / p)"),
    "replacement from the target": (
        "adjusted_prob = F.relu(prob[batch_range, accepted] - small_prob[",
        "adjusted_prob = F.relu(prob[batch_range, accepted] - 0 * small_prob[",
    ),
    "every draft accepted": ("r > (p / q)", "r > 1 + 0 * p"),
}


def status(decode):
    way = partial(draft, decode=decode)
    row = EngineRow(texts(way, DECODING, BATCH), partial(law, DECODING))
    return [verdict.status for verdict in check_subject(row_subject("x", "x", row), sampled=True, on_fail=None)]


def test_the_engine_as_it_is_holds():
    assert status(library.speculative_decoding) == [Status.HOLDS]


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_line_is_refuted(name):
    said, instead = BROKEN[name]
    source = inspect.getsource(library)
    assert said in source
    module = ModuleType("broken")
    exec(compile(source.replace(said, instead), "broken.py", "exec"), module.__dict__)
    assert status(module.speculative_decoding) == [Status.REFUTED]
