"""Before every forward pass the target's cache equals a cache that was only ever fed the kept tokens.

The reference is the cache of the same engine that decodes the same tokens without speculation: a prefill of the prompt
and one pass for each token. Masks, positions and windows therefore follow the engine's own conventions.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from specverify.base.verdict import Evidence, Examination
from specverify.checks.check import Check, Conditions
from specverify.checks.observed_runs import Observable, Run, Seen, examine_runs, seen_in, watched
from specverify.laws.rounding import FLOAT32
from specverify.reference import Tokens
from specverify.subjects.subject import Forward, committed_before

COARSEST = FLOAT32
"""Entries of coarser floats are not compared: through several layers their rounding reaches the first bits."""


def rounding(spacing: float) -> float:
    """Return the largest relative difference that is attributed to rounding: the square root of ``spacing``.

    ``spacing`` is the distance from 1 to the next number of the dtype. The difference is relative to the largest entry.
    """
    return math.sqrt(spacing)  # a wrong token, position or row changes the leading bits


def fault(seen: Seen, run: Run, _: Observable) -> str | None:
    """Describe the first forward pass of a run with a wrong input or a wrong cache; None if there is none.

    A right cache equals the one that decoding without speculation has after the same tokens. ``seen`` holds these
    caches.
    """
    tokens = seen.prompt + run.ends[0][0]
    for number, forward in enumerate(run.seen.forwards, start=1):
        result = misfed(forward, tokens, seen.prompt) or _differs(forward, seen.caches.get(tokens[: forward.held], ()))
        if result:
            return f"before forward pass {number} {result}"
    return None


def misfed(forward: Forward, tokens: Tokens, prompt: Tokens) -> str | None:
    """Describe the wrong input of a forward pass; None if the input is right.

    A right input begins with the tokens of the text that the cache lacks, or with the first of them: a prompt may be
    fed in pieces. Drafts may follow all of these tokens. An input of embeddings counts as right. ``tokens`` are the
    prompt and all new tokens of the run.
    """
    known = committed_before(forward, prompt)
    if not forward.fed:
        return None  # a prompt of embeddings: there are no ids to compare
    due = tokens[forward.held : known]
    if known > len(tokens) or forward.fed[: len(due)] != due[: len(forward.fed)]:
        return f"the cache holds {forward.held} entries and is fed {forward.fed}, expected {due} first"
    return None


def _differs(forward: Forward, plain: tuple[Any, ...]) -> str | None:
    if not forward.held or not plain or forward.spacing > COARSEST:
        return None
    if len(plain) != len(forward.entries):
        return f"{len(forward.entries)} arrays of keys and values are held, expected {len(plain)}"
    for index, (held, expected) in enumerate(zip(forward.entries, plain, strict=True)):
        if held.shape[-2] < expected.shape[-2]:
            return f"array {index} holds {held.shape[-2]} entries, expected {expected.shape[-2]} at least"
        # A window may keep older entries than plain decoding does: no later pass can see them.
        difference = np.abs(held[..., -expected.shape[-2] :, :] - expected)
        if not difference.max() <= rounding(forward.spacing) * np.abs(expected).max():
            entry = int(difference.max(axis=(0, 1, 3)).argmax())
            kind = "keys" if index % 2 == 0 else "values"
            return (
                f"the {kind} of layer {index // 2} differ by {difference.max():.2g} at entry {entry} of "
                f"{expected.shape[-2]} from the cache of the kept tokens"
            )
    return None


_examined = examine_runs(fault, "every cache is that of the kept tokens")


def examine(observable: Observable, conditions: Conditions) -> Examination:
    """Search every recorded run of ``observable`` for a forward pass with a wrong cache or a wrong input.

    ``conditions`` has the settings of the check. The result is unknown if no forward pass was recorded. Caches of a
    dtype coarser than float32 are not compared; if no cache was compared, the result states it.
    """
    result = _examined(observable, conditions)
    forwards = [forward for run in seen_in(observable.watch).runs for forward in run.seen.forwards]
    if result.failed or any(forward.entries and forward.spacing <= COARSEST for forward in forwards):
        return result
    if not forwards:
        return Examination(
            "no forward pass was seen", unknown=True, rational=False, figures=result.figures, is_empty=True
        )
    return result._replace(statement="every pass is fed what its cache lacks; what the cache holds was not compared")


CHECK = Check(
    name="cache_equals_prefill",
    summary="before every forward pass the cache is that of the kept tokens: length, order, keys and values",
    claim=None,
    evidence=Evidence.EQUAL,
    examines=(watched("forwards", examine),),
)
