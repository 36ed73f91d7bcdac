"""Checks of verifiers and decoders."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import cache, partial
from typing import Any, Unpack, get_args

import numpy as np

from specverify.base.arguments import argument_error, check_callable, check_choice
from specverify.base.verdict import Verdict
from specverify.foreign.guard import guarded
from specverify.reference import Algorithm
from specverify.subjects.algorithm import algorithm_subject
from specverify.subjects.external import FormName as Form
from specverify.subjects.external import decode_subject, verifier_subject_of
from specverify.subjects.forms import Drafts, checked_trees, form_of_chains, tree_form
from specverify.subjects.given_calls import calls_subject
from specverify.subjects.hard_calls import HardCall
from specverify.subjects.logits_verifier import parameters_of, passed
from specverify.subjects.recorded_calls import AnyCall
from specverify.subjects.seeded import seeded
from specverify.testing.judged import judge, judged
from specverify.testing.plans import HINT_SECONDS, CheckOptions, checked_gammas, name_of, seconds_of, subject_plan

_ROWS = np.array([[2, 1], [1, 2]]) / 3
GREEDY_HINT = (
    "It raises at temperature=0, which means greedy. If greedy decoding is other code of yours, call that code at "
    "temperature=0 in a wrapper, or check a wrapper that has no parameter temperature with form='logits'."
)


@judged("claims", "sampled", "tv", "seed", "certificate")
def check_verifier(
    verify: Callable[..., Any],
    *,
    form: Form | None = None,
    gammas: Sequence[int] | None = None,
    drafts: Drafts | None = None,
    trees: Sequence[Sequence[int]] | None = None,
    same_tree: bool = False,
    cases: Iterable[AnyCall | HardCall] | None = None,
    **options: Unpack[CheckOptions],
) -> Sequence[Verdict]:
    """Examine a rejection sampler at several gammas, or with several trees, in one of six forms.

    Args:
        verify: The rejection sampler. p is ``[gamma + 1, vocabulary]``, q ``[gamma, vocabulary]``, int64 draft_tokens
            ``[gamma]``; the answer is the emitted token ids, at least one and at most ``gamma + 1``.
        form: ``"row"``: ``verify(p, q, draft_tokens) -> emitted tokens`` (``subjects.forms``). ``"batched"``: the
            same with a leading dimension, and ``lengths`` if rows may differ. ``"logits"``: ``verify(target_logits,
            draft_logits, draft_tokens, temperature=..., ...)``. ``"batched_logits"``: the same with a leading
            dimension, ``lengths`` if rows may differ, and each sampling parameter a number or an array ``[B]``.
            ``"tree"``: ``verify(p, q, parents, tokens) -> emitted tokens, or (accepted tokens, weights of the next)``;
            with ``drafts="top_k"`` q is None, or may be left out.
            ``"batched_tree"``: the same with a leading dimension. ``reference.tree_layouts`` converts other layouts of
            trees to this one. None: selected by a parameter called ``lengths``, ``temperature``, ``top_k``, ``top_p``
            or ``min_p``, or one of the last four in the plural, else a row.
        gammas: Numbers of drafts, each from 1 to 1024. None: 1 to 3 for a row and 2 for other chains. The law is also
            examined with 8 drafts (4 if the verifier does not run on 8); there p and q are one-hot except at three
            positions. Larger values are not covered, nor a call without drafts except as a row of a batch.
        drafts: How trees are drawn; the right rule depends on it:
            ``"with_replacement"``, ``"without_replacement"`` or ``"top_k"`` (then q is None).
        trees: Shapes to examine, each as the parents of its nodes, -1 for a child of the text.
        same_tree: Whether all rows of a batch have one tree.
        cases: Single calls with your own vocabulary, gamma and batch: recorded calls (``Call``, ``LogitsCall``,
            ``BatchedCall``) or ``hard_calls(vocabulary, gamma, dtype)``. Only these calls are examined, and their type
            selects the form.
        **options: See ``CheckOptions``. For a lossless rule with less than the optimal acceptance, pass
            ``claims={Claim.LOSSLESS}``.

    Returns:
        One verdict for each check that applies.

    Raises:
        SpeculationRefuted: If a check refutes; the message is the counterexample.
        UnusableSubject: If nothing is refuted and a check cannot be run.
        SpeculationUndecided: If nothing is refuted and a check is UNKNOWN, or none applies.
        ValueError: For invalid arguments, before any work begins.

    Examples:
        >>> import random
        >>> def verify(p, q, draft_tokens):  # one token of p, whatever was drafted
        ...     return [random.choices(range(len(p[0])), [float(mass) for mass in p[0]])[0]]
        >>> [verdict] = check_verifier(verify, gammas=(1,), checks=["law_is_target"], quick=True)
        >>> verdict.status is Status.HOLDS
        True
    """
    check_callable(verify, "the verifier")
    if cases is not None:
        if form is not None or gammas is not None or options.get("sampled"):
            raise ValueError(
                "cases are given with form, gammas or sampled, expected cases alone, because calls determine the form"
            )
        return judge(subject_plan(calls_subject(verify, name_of(verify), _cases(cases)), options))
    if form is not None:
        check_choice(form, "form", get_args(Form))
    chosen, name = None if gammas is None else checked_gammas(gammas), name_of(verify)
    if form in {"tree", "batched_tree"}:
        _check_unsaid(form, gammas=gammas)
    else:
        _check_unsaid(form, drafts=drafts, trees=trees, same_tree=same_tree or None)
    value = form_of_chains(form) if form not in {"tree", "batched_tree"} else tree_form(form, drafts, same_tree)
    subject = verifier_subject_of(verify, name, value, chosen, checked_trees(trees))
    hint = partial(_hint, verify, form, min(seconds_of(options), HINT_SECONDS))
    return judge(subject_plan(subject, options, hint=cache(hint)))


@judged("claims", "sampled", "tv", "seed", "certificate")
def check_decoder(decode: Callable[..., Any] | Algorithm, **options: Unpack[CheckOptions]) -> Sequence[Verdict]:
    """Examine a registry algorithm, one round, or a whole decode (see ``subjects.external``).

    Args:
        decode: ``one_round(draws, target, draft, tokens) -> new tokens``, the same with ``*, horizon`` for a whole
            decode, or a row of ``reference.ALGORITHMS``. ``target(tokens)`` and ``draft(tokens)`` are pmfs
            ``[vocabulary]``, object arrays of ``Fraction``.
        **options: See ``CheckOptions``. The default ``claims`` are those of the row, and LOSSLESS for a function.

    Returns:
        One verdict for each check that applies.

    Raises:
        SpeculationRefuted, SpeculationUndecided, UnusableSubject, ValueError: As in ``check_verifier``.

    Examples:
        >>> def one_round(draws, target, draft, tokens):
        ...     return (draws.categorical(target(tokens), ("target",)),)
        >>> {str(verdict.status) for verdict in check_decoder(one_round, quick=True, checks=["law_is_target"])}
        {'holds'}
    """
    if not isinstance(decode, Algorithm):
        check_callable(decode, "the decoder")
    subject = algorithm_subject(decode) if isinstance(decode, Algorithm) else decode_subject(decode, name_of(decode))
    return judge(subject_plan(subject, options))


def _hint(verify: Callable[..., Any], form: str | None, seconds: float) -> str:
    """Return a sentence about the arguments on which ``verify`` raises; "" if none applies or the time is over.

    ``form`` is the form that the caller gave, and ``seconds`` is the time limit.
    """
    batched = str(form).startswith("batched")
    as_tensors = [sys.modules["torch"].from_numpy] if "torch" in sys.modules else []

    def answers(*, batch: bool, **changed: float) -> bool:
        parameters = {**passed(verify, (), _ROWS.shape[-1]), **changed}
        rows = np.log(_ROWS) if "temperature" in parameters else _ROWS
        for made in (np.copy, *as_tensors):
            with suppress(Exception), seeded(0):
                given = (made(array[None] if batch else array) for array in (rows, rows[1:], np.array([1])))
                answer = verify(*given, **parameters)
                return not batch or (len(answer) == 1 and len(answer[0]) > 0)
        return False

    def hint() -> str:
        if form is None and not answers(batch=False) and answers(batch=True):
            return "It fails on a row and answers a batch of one: is it to be given form='batched'?"
        if "temperature" not in parameters_of(verify) or answers(batch=batched, temperature=0.0):
            return ""
        return GREEDY_HINT if answers(batch=batched) else ""

    try:
        return guarded(hint, seconds).result or ""
    except Exception:  # noqa: BLE001 - what goes wrong here says nothing more than was said
        return ""


def _check_unsaid(form: str | None, **options: Any) -> None:
    """Raise ``ValueError`` for the first of ``options`` that is not None: this ``form`` permits none of them."""
    for name, value in options.items():
        if value is not None:
            raise argument_error(name, value, f"it to be left out with form={form!r}")


def _cases(cases: Any) -> Sequence[Any]:
    """Return ``cases``, the calls on which a verifier is examined, as a list after validation.

    Raises ``ValueError`` unless they are a collection of at least one call.
    """
    if isinstance(cases, tuple) and hasattr(cases, "_fields"):
        raise ValueError(f"cases is one {type(cases).__name__}, expected a sequence of calls, such as [call]")
    if isinstance(cases, (str, bytes)) or not isinstance(cases, Iterable):
        raise argument_error(
            "cases", cases, "calls, such as [Call(p, q, draft_tokens)] or hard_calls(vocabulary, gamma, dtype)"
        )
    result = list(cases)
    if not result:
        raise argument_error("cases", result, "at least one call")
    return result
