"""Name the wrong rule whose law of one token is exactly the observed law."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from specverify.checks.explaining.round_rules import (
    ACCEPT_OF_ROW,
    REPLACE_OF_ROW,
    ModelRows,
    Row,
    excess,
    ratio,
    same_row,
)

NEAR = 1e-9
LEAST = 3
"""The smallest vocabulary in which the laws of different wrong rules differ."""
LEAST_REJECTED = 2
"""How many tokens q must overrate for its law to name a rule. If it is one, any residual may have given that token."""


def name_of_token(seen: Row, p: Row, q: Row) -> str:
    """Return the only wrong rule that gives a token the law ``seen``; "" if none or several do.

    Each rule draws one draft from ``q`` and accepts or replaces it wrongly. ``p`` is the right law.
    """
    if len(p) < LEAST or len(q) != len(p) or len(seen) != len(p):
        return ""
    if same_row(seen, p, NEAR):
        return ""
    if same_row(seen, q, NEAR):
        if sum(q[token] > p[token] for token in range(len(p))) < LEAST_REJECTED:
            return ""
        return "it has the law of the draft, q: no draft is ever rejected, or rejected drafts are kept"
    fitting = [name for name, law in _laws(p, q) if same_row(seen, law, NEAR)]
    return fitting[0] if len(fitting) == 1 else ""


def _laws(p: Row, q: Row) -> Iterator[tuple[str, Row]]:
    rows, tokens = ModelRows((p, p), (q, q)), range(len(p))
    rule = [ratio(p[token], q[token]) for token in tokens]
    residual = [excess(p, q)] * len(p)
    for name, accept in ACCEPT_OF_ROW.items():
        kept = [accept(rows, (token,), 0) for token in tokens]
        yield f"drafts are accepted {name}, expected min(1, p/q)", _law(q, kept, residual)
    for name, replace in REPLACE_OF_ROW.items():
        instead = [replace(rows, (token,), 0) for token in tokens]
        said = f"a rejected draft is replaced by a draw from {name}, expected norm(max(p - q, 0))"
        yield said, _law(q, rule, instead)


def _law(q: Row, kept: Row, instead: Sequence[Row]) -> Row:
    """Return the law of a token if draft x ~ q is kept with probability ``kept[x]``, else drawn from ``instead[x]``."""
    return [
        q[token] * kept[token] + sum(q[x] * (1 - kept[x]) * instead[x][token] for x in range(len(q)))
        for token in range(len(q))
    ]
