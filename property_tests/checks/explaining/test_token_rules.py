"""The wrong rule of an engine whose law one rule alone explains."""

from __future__ import annotations

from specverify.checks.explaining.token_rules import name_of_token

TARGET = ((0.2, 0.3, 0.5), (0.5, 0.25, 0.25), (0.1, 0.8, 0.1))

DRAFT = ((0.6, 0.3, 0.1), (0.2, 0.4, 0.4), (0.3, 0.4, 0.3))


def test_a_wrong_rule_of_an_engine_is_named_only_where_one_law_fits():
    p, q = TARGET[0], DRAFT[0]
    kept = [min(a, b) for a, b in zip(p, q, strict=True)]
    from_p = [low + (1 - sum(kept)) * mass for low, mass in zip(kept, p, strict=True)]
    assert name_of_token(from_p, p, q).startswith("a rejected draft is replaced by a draw from p, expected")
    said = "it has the law of the draft, q: no draft is ever rejected, or rejected drafts are kept"
    assert name_of_token(DRAFT[1], p, DRAFT[1]) == ""  # q overrates token 2 alone, which may always replace itself
    many, few = (0.1, 0.1, 0.4, 0.4), (0.3, 0.3, 0.2, 0.2)
    assert name_of_token(few, many, few) == said
    assert name_of_token(p, p, q) == ""
    assert name_of_token((0.3, 0.3, 0.4), p, q) == ""
