"""SpecTr-GBV's joint acceptance as released: K blocks of one drafter, tested prefix by prefix. Not lossless.

junemily/SpecTr-GBV at e399f44, ``src/engine.py``, ``speculative_decoding``. K blocks are drawn from q independently.
With S and B the probabilities of a prefix under q and p, ``r(v) = min(1, S q(v)/(B p(v)))``, ``r = min(1, S/B)`` and
``m(x) = 1 - (1 - x)^K``, a prefix that is tested is kept with probability

    (sum_v B p(v) (1 - r(v))^K - B (1 - r)^K) / (m(S) - sum_v B p(v) m(r(v)))    if it is a proper part of its block
    B m(r) / m(S)                                                               if it is the whole block

Blocks are tested in order. The test of a block starts at the end of the longest prefix kept so far, and a prefix that
was rejected before is not tested again. A whole block that is kept ends the round. If only a part of a block is kept,
the next token has the law ``norm(B p(v) (1 - r(v)^K))``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ..coupling import flip
from ..pmf import as_pmf
from ..trees import leaves, path_tokens
from ..types import Draft, Draws, LanguageModel, Pmf, Tokens, Verified


class Prefix(NamedTuple):
    """A drafted prefix: its tokens, its probability under q (``proposed``) and under p (``mass``), and the next rows.

    The rows are those of q and p after the prefix. The row of q is None after a whole block.
    """

    tokens: Tokens
    proposed: Any
    mass: Any
    q: Pmf | None
    p: Pmf


def prefixes(target: LanguageModel, draft: LanguageModel, text: Tokens, block: Tokens) -> list[Prefix]:
    """Return all prefixes of ``block`` after ``text``, the empty one first.

    ``target`` gives p and ``draft`` gives q.
    """
    result: list[Prefix] = []
    proposed: Any = 1
    mass: Any = 1
    for end in range(len(block) + 1):
        if result:
            before = result[-1]
            assert before.q is not None
            proposed, mass = proposed * before.q[block[end - 1]], mass * before.p[block[end - 1]]
        after = text + block[:end]
        result.append(Prefix(block[:end], proposed, mass, draft(after) if end < len(block) else None, target(after)))
    return result


def stays(prefix: Prefix, count: int) -> Any:
    """Return the probability that the tested ``prefix`` is kept.

    The module's docstring has the formula for a whole block, and that for a shorter prefix. ``count`` is K, the number
    of drafted blocks.
    """
    missing = (1 - _share(prefix.proposed, prefix.mass)) ** count
    drafted = 1 - (1 - prefix.proposed) ** count
    if prefix.q is None:
        return _chance(prefix.mass * (1 - missing), drafted)
    onward = [(prefix.mass * p, (1 - share) ** count) for p, share in _shares(prefix)]
    left = sum(mass * gap for mass, gap in onward) - prefix.mass * missing
    return _chance(left, drafted - sum(mass * (1 - gap) for mass, gap in onward))


def behind(prefix: Prefix, count: int) -> Pmf:
    """Return the law of the token after ``prefix``, the longest prefix that was kept.

    It is p itself after a whole block, and if rounding leaves no mass. ``count`` is K, the number of blocks.
    """
    if prefix.q is None:
        return prefix.p
    owed = as_pmf([p * (1 - share**count) for p, share in _shares(prefix)])
    total = owed.sum()
    return owed / total if total > 0 else prefix.p


def joint_blocks(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
    """Emit the longest accepted prefix of the drafted blocks, and one more token."""
    ends = leaves(draft.parents)
    rows = {path_tokens(draft, parent): q for parent, q in zip(draft.parents, draft.pmfs, strict=True)}
    tried = [
        prefixes(target, lambda after: rows[after[len(prefix) :]], prefix, path_tokens(draft, end)) for end in ends
    ]
    kept = tried[0][0] if tried else Prefix((), 1, 1, None, target(prefix))
    turned: set[Tokens] = set()
    for number, block in enumerate(tried):
        for part in block[len(kept.tokens) + 1 :]:
            if part.tokens in turned:
                continue
            if flip(draws, stays(part, len(ends)), ("accept", number, len(part.tokens))):
                kept = part
            elif part.q is not None:
                turned.add(part.tokens)
        if kept.q is None:
            break
    last = draws.categorical(behind(kept, len(ends)), ("bonus",) if kept.q is None else ("residual",))
    return Verified((*kept.tokens, last), len(kept.tokens))


def _shares(prefix: Prefix) -> list[tuple[Any, Any]]:
    """Return for every token v the pair (p(v), r(v)), where r(v) is ``min(1, Q/P)``.

    Q and P are the probabilities under q and p of the prefix extended by v.
    """
    assert prefix.q is not None
    pairs = zip(prefix.p.tolist(), prefix.q.tolist(), strict=True)
    return [(p, _share(prefix.proposed * q, prefix.mass * p)) for p, q in pairs]


def _share(proposed: Any, mass: Any) -> Any:
    """Return ``min(1, proposed/mass)``; 1 if ``mass`` is 0.

    In that case the text has probability 0 under p, so the result has weight 0.
    """
    return proposed / mass if proposed < mass else 1


def _chance(part: Any, whole: Any) -> Any:
    """Return part/whole as a probability: limited to 1, and 0 if ``part`` or ``whole`` is not positive."""
    return min(part / whole, 1) if part > 0 and whole > 0 else 0
