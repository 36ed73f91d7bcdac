"""Models of z3 as text: they are as simple as possible."""

from __future__ import annotations

import pytest

from specverify import proof
from specverify.proof.text import proof_text

pytest.importorskip("z3", reason='proofs need z3: pip install "specverify-suite[proof]"')


def test_models_are_as_simple_as_they_come():
    found = proof.prove("resample-from-target", 2, 1)
    rows = [*found.model.target.values(), *found.model.draft.values()]
    assert max(entry.denominator for row in rows for entry in row) == 2
    assert "q = (0, 1)" in proof_text(found)
