"""The order of p, q and drafts in a verifier whose names do not state it: it is found by calls with known results.

In these calls all rows are one-hot, so the right tokens are certain. The usual order (p, q, drafts) is kept if it gives
the right tokens. Otherwise the arguments are passed in the only order that does, and a note of the verdict states it.
If there is no such order or more than one, they are passed in the usual order.

Calls never show that q comes before p: a wrong verifier that exchanges p and q is right in this order. Its author must
state the order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import permutations
from typing import Any, NamedTuple

from specverify.base.callables import signature_of, told_apart
from specverify.subjects.answer_conventions import CERTAIN, DRAFTS, certain_answers, with_rows
from specverify.subjects.array_kinds import BareVerifier
from specverify.subjects.certain_drafts import with_unused_q
from specverify.subjects.emitted import emitted_row
from specverify.subjects.forms import Form
from specverify.subjects.fresh_generators import with_generator
from specverify.subjects.logarithms import with_logarithms
from specverify.subjects.parameter_order import ORDER, in_named_order, parameters_in_order, passed_in_order, roles_of
from specverify.subjects.subject import UnusableSubject

RIGHT: tuple[tuple[list[int], ...], ...] = (([CERTAIN[0][0]],), ([*DRAFTS, CERTAIN[1][-1]], [*DRAFTS]))
"""The right results of the two calls. If all drafts are accepted, the bonus token may be left out."""


class Ordered(NamedTuple):
    """A verifier as a function of p, q and drafts, in this order.

    ``notes`` states the order of its own parameters, if calls have shown it.
    """

    verify: BareVerifier
    notes: tuple[str, ...] = ()


def in_found_order(verify: BareVerifier, form_of: Callable[[BareVerifier], Form]) -> Ordered:
    """Return ``verify`` as a function of p, q and drafts, also if only calls show the order of its parameters.

    ``form_of(verify)`` returns the form of a verifier of chains with parameters in the usual order. The verifier is
    called only if the names of its parameters do not state the order. It must not be called while random calls are
    intercepted.

    Raises ``UnusableSubject`` if it gives the right tokens only with q before p, and no name states p or q.
    """
    plain = in_named_order(with_unused_q(with_generator(verify)))
    usual = with_logarithms(plain)
    signature = signature_of(plain)
    if signature is None or len(signature.parameters) < len(ORDER):
        return Ordered(usual)
    names = [item.name for item in parameters_in_order(signature)]
    roles = roles_of(names)
    if len(roles) > len(ORDER) or {*roles} == {*ORDER} or _is_right(usual, form_of):
        return Ordered(usual)
    right = []
    for order in permutations(ORDER):
        if all(role in {"", place} for role, place in zip(roles, order, strict=True)):
            candidate = with_logarithms(passed_in_order(plain, signature, order))
            if _is_right(candidate, form_of):
                right.append((order, candidate))
    if len(right) != 1:
        return Ordered(usual)
    ((order, candidate),) = right
    places = ", ".join(f"{name} as {role}" for name, role in zip(names, order, strict=False))
    only = "only in this order do one-hot rows give the right tokens"
    if order.index("q") < order.index("p") and not {"p", "q"} & {*roles}:
        raise UnusableSubject(f"it seems to take {places}: {only}. Its names do not state it: {_wrapper(order)}")
    return Ordered(candidate, (f"takes {places}: {only}",))


def _wrapper(order: Sequence[str]) -> str:
    """Return an advice how to state that a verifier takes its arguments in ``order``."""
    return f"if it is so, pass lambda p, q, draft_tokens: verify({', '.join(order)})"


def _is_right(verify: BareVerifier, form_of: Callable[[BareVerifier], Form]) -> bool:
    """Return whether ``verify`` gives the right tokens for one-hot rows of p and q, with arrays of some library."""
    with suppress(Exception):
        form = form_of(verify)
        for answers in certain_answers(with_rows(told_apart(verify), form), form):
            with suppress(Exception):
                return _all_right(list(answers[0]) if form.batched else answers)
    return False


def _all_right(answers: Sequence[Any]) -> bool:
    """Return whether the ``answers`` to the two calls, a row of tokens for each, are right."""
    return len(answers) == len(RIGHT) and all(
        list(emitted_row(answer, len(DRAFTS))) in right for answer, right in zip(answers, RIGHT, strict=True)
    )
