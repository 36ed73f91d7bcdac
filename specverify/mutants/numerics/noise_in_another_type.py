"""Uniforms are made in float16 and read as float32: neighbouring pairs become one meaningless number."""

from __future__ import annotations

from typing import Any

import numpy as np

from specverify.mutants.numpy_verifiers import drawn, excess, planted_verifier, ratio
from specverify.subjects.arrays import BareVerifier
from specverify.subjects.subject import Subject
from specverify.subjects.verifier import verifier_subject


def verify(p: Any, q: Any, draft_tokens: Any) -> list[int]:
    """Speculative sampling with misread coins."""
    rng, drafts = np.random.default_rng(), draft_tokens.tolist()
    pairs = np.array([float(rng.random()) for _ in range(2 * len(drafts))])
    coins = np.abs(pairs.astype(np.float16).view(np.float32))
    for i, token in enumerate(drafts):
        if not coins[i] < ratio(p[i], q[i], token):
            return [*drafts[:i], drawn(rng, excess(p[i], q[i]))]
    return [*drafts, drawn(rng, p[-1])]


def coarsely_sampled(verify: BareVerifier, name: str, gammas: tuple[int, ...]) -> Subject:
    """Return the subject whose samples are to show a total variation of 0.3, which takes few."""
    subject = verifier_subject(verify, name, gammas)
    return subject._replace(settings=tuple(setting._replace(detect=0.3) for setting in subject.settings))


MUTANT = planted_verifier(
    verify,
    "noise-in-another-type",
    "reads float16 uniforms as float32",
    category="E",
    citation="xLLM commit 2460314d0",
    killed_by="samples_fit_law",
    make=coarsely_sampled,
)
