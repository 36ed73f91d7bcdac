"""Proofs that are kept: an open statement is not."""

from __future__ import annotations

import pytest

from specverify import proof
from specverify.proof import kept_proofs as cache

pytest.importorskip("z3", reason='proofs need z3: pip install "specverify-suite[proof]"')

PROVED, REFUTED, UNKNOWN = proof.ProofStatus


def test_what_is_open_is_not_kept(tmp_path):
    found = cache.kept_proof(tmp_path, {}, lambda: proof.prove("nasd", 2, 1, timeout=0))
    assert found.status is UNKNOWN
    assert not list(tmp_path.iterdir())
