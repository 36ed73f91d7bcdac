"""A draft is kept if p(d) > q(d), where the declared rule keeps ties: with p = q nothing is kept any more."""

from __future__ import annotations

from specverify.mutants.mutant import planted, with_verifier
from specverify.reference.verifiers.accept_or_replace import accept_or_replace

MUTANT = planted(
    "accept-if-likelier",
    "likelier-strictly",
    "keeps d iff p(d) > q(d), not >=",
    with_verifier(accept_or_replace(lambda prefix, p, q, token: int(p[token] > q[token]), lambda p, q, token: p)),
    category="A",
    citation="plausible",
    killed_by="law_is_declared",
)
