"""Functions that build a check of one kernel, and that describe rows of the kernel in messages."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from specverify.base.verdict import Evidence, Examination
from specverify.checks.check import Check, Conditions, of_names
from specverify.reference import Claim, Tokens
from specverify.subjects.kernel_rounds import KernelRounds, in_ids

Examine = Callable[[Conditions], Examination]


def kernel_check(
    name: str,
    summary: str,
    claim: Claim | None,
    evidence: Evidence,
    examined: Mapping[str, Examine],
    in_quick: Collection[str] = (),
) -> Check:
    """Return a check of one kernel; ``examined`` maps the name of each setting (gamma, vocabulary) to its examination.

    ``name``, ``summary``, ``claim`` and ``evidence`` are fields of the check. Every quick run has the settings that are
    named in ``in_quick``.
    """
    return Check(name, summary, claim, evidence, (of_names(examined, in_quick),))


def described_row(rounds: KernelRounds, case: int, uniforms: Sequence[float], place: str) -> str:
    """Describe a row of a kernel: its ``place`` in the batch, its drafts and its uniforms.

    ``case`` is an index in ``rounds.cases``, which has the drafts of the row. ``rounds`` is the kernel in one setting
    (gamma, vocabulary).
    """
    gamma, race = rounds.gamma, rounds.kernel.race
    here = rounds.cases[case]
    drafts = in_ids(rounds, here.draft)
    coins = ", ".join(f"{u:.6g}" for u in uniforms[: len(drafts)])
    a, b = (rounds.ids[token] for token in here.situation.pair)
    last = f"{uniforms[gamma]:.6g}"
    final = f"noise of tokens {a} and {b} as {last} to {1 - uniforms[gamma]:.6g}" if race else f"final uniform {last}"
    return f"{place}: drafts {drafts}, accept uniforms ({coins}), {final}"


def described_rounds(rounds: KernelRounds) -> str:
    """Describe the sizes and the dtype with which a kernel is called.

    ``rounds`` is the kernel in this setting.
    """
    ids = f"tokens {', '.join(map(str, rounds.ids))} of " if rounds.vocabulary > len(rounds.ids) else ""
    return f"{ids}vocabulary {rounds.vocabulary}, gamma={rounds.gamma}, {rounds.kernel.convention.dtype}"


def models_of(rounds: KernelRounds, case: int) -> tuple[str, ...]:
    """Return lines with the rows of p and q of one row of a kernel, for the tokens with positive probability.

    ``case`` is an index in ``rounds.cases``, which has the rows of p and q. ``rounds`` is the kernel in one setting
    (gamma, vocabulary).
    """
    here = rounds.cases[case]
    lines = []
    for i, p in enumerate(here.p):
        after = in_ids(rounds, here.draft[:i])
        q = f"   q = {_row(here.q[i])}" if i < len(here.q) else ""
        lines.append(f"after drafts {after}: p = {_row(p)}{q}")
    return (f"the mass is on tokens {rounds.ids}", *lines)


def _row(pmf: Any) -> str:
    return f"({', '.join(map(str, pmf.tolist()))})"


def emitted_ids(rounds: KernelRounds, tokens: Sequence[int]) -> Tokens:
    """Return the tokens that one row of a kernel emits, as ids in its vocabulary and without padding.

    ``tokens`` has them in the numbering of ``in_small``, and ``rounds`` has their ids.
    """
    kept = list(tokens)
    while kept and kept[-1] == -1:
        kept.pop()
    return in_ids(rounds, kept)
