"""Verifiers without q: each draft is certain before it is verified, as the drafts of a search for n-grams are.

    verify(p, draft_tokens) -> emitted tokens

It is the form of a rejection sampler for drafters that have no probabilities. A draft x is accepted with probability
p(x), and replaced by a draw from p without x.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from inspect import Parameter, Signature
from typing import Any

import numpy as np

from specverify.base.callables import required_positional, signature_of, with_parameters
from specverify.intercept.distributions import GOLDEN
from specverify.reference import LanguageModel, Pmf, Task, Tokens
from specverify.reference.models import draft_model
from specverify.subjects.array_kinds import BareVerifier
from specverify.subjects.fresh_generators import with_generator
from specverify.subjects.logits_verifier import NAMED
from specverify.subjects.parameter_order import names_rows, role_of
from specverify.subjects.warped_tasks import Processed

FURTHER = frozenset({"lengths", *NAMED})
"""Names of parameters that a verifier may have beside p, q and drafts."""


def takes_no_q(verify: BareVerifier) -> bool:
    """Return whether ``verify`` takes p and drafts, but no q, as the names of its required parameters state.

    A random generator, which a verifier gets in each call, does not count.
    """
    signature = signature_of(with_generator(verify))
    return signature is not None and len(_rows_and_drafts(signature)) == 2


def with_unused_q(verify: BareVerifier) -> BareVerifier:
    """Return a function of (p, q, drafts, ...) that calls ``verify`` without q.

    Returns ``verify`` unchanged unless it takes no q.
    """
    signature = signature_of(verify)
    taken = [] if signature is None else _rows_and_drafts(signature)
    if signature is None or not taken:
        return verify
    p, drafts = taken
    p_first = list(signature.parameters).index(p.name) == 0

    @wraps(verify)
    def without_q(p: Any, _: Any, draft_tokens: Any, /, *others: Any, **named: Any) -> Any:
        return verify(*((p, draft_tokens) if p_first else (draft_tokens, p)), *others, **named)

    q = p.replace(name=f"draft_{p.name.removeprefix('target_')}")  # of the same kind: logits, or logarithms
    first = [item.replace(kind=Parameter.POSITIONAL_ONLY) for item in (p, q, drafts)]
    others = [item for item in signature.parameters.values() if item.name not in {p.name, drafts.name}]
    return with_parameters(without_q, signature, [*first, *others])


def _rows_and_drafts(signature: Signature) -> list[Parameter]:
    """Return the parameters for p and for drafts, in this order, of a verifier that takes no q; [] of any other.

    They are its only required ones, beside those in ``FURTHER``, and come first. The name of one of them must state
    tokens. Also, this name must state drafts, or the name of the other must state probabilities or logits:
    ``(model, tokens)`` is not enough.
    """
    parameters = list(signature.parameters.values())
    needed = [item for item in required_positional(signature) if item.name not in FURTHER]
    roles = [role_of(item.name) for item in parameters]
    is_variadic = any(item.kind is item.VAR_POSITIONAL for item in parameters)
    if parameters[:2] != needed or {"q", "parents"} & {*roles} or is_variadic:
        return []
    drafts = [item for item, role in zip(needed, roles, strict=False) if role == "draft_tokens"]
    rest = [item for item, role in zip(needed, roles, strict=False) if role in {"p", ""}]
    if len(drafts) != 1 or len(rest) != 1:
        return []
    is_told = "draft" in drafts[0].name.lower() or names_rows(rest[0].name)
    return [*rest, *drafts] if is_told else []


def with_certain_drafts(process: Callable[[Task], Task] | None, task: Task) -> Task:
    """Return ``task``, processed by ``process``, with a draft model that is certain of one token after each text.

    It is a token that is possible under the draft model of ``task``; it depends on the whole text.
    """
    processed = task if process is None else process(task)
    certain, draft = _certain(draft_model(processed)), processed.draft
    return processed._replace(draft=draft._replace(pmfs=certain) if isinstance(draft, Processed) else certain)


def _certain(model: LanguageModel) -> LanguageModel:
    @cache
    def one_hot(tokens: Tokens) -> Pmf:
        q = np.asarray(model(tokens))
        place = sum((i + 1) * (token + 1) for i, token in enumerate(tokens)) * GOLDEN % 1.0
        possible = np.flatnonzero(q > 0)
        result = np.zeros_like(q)
        result[possible[int(place * len(possible))]] = 1
        return result

    return one_hot
