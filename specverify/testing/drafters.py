"""Checks of drafters: each proposed token must be drawn from the pmf that the drafter reports."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Unpack

from specverify.base.arguments import argument_error, check_callable, is_token
from specverify.base.verdict import Verdict
from specverify.checks import Conditions
from specverify.checks.drafter_checks import checks_of_drafter
from specverify.reference import LanguageModel, Tokens, checked_model
from specverify.subjects.drafter import drafter_subject
from specverify.testing.judged import judge, judged
from specverify.testing.plans import CheckOptions, checked_gammas, checks_plan, name_of

PROMPTS = ((0,), (0, 1), (1, 0, 1), (1, 1, 1, 1), (0, 1, 0, 1, 1, 0, 1, 0, 1))


@judged()
def check_drafter(
    propose: Callable[..., Any],
    *,
    prompts: Sequence[Sequence[int]] = PROMPTS,
    gammas: Sequence[int] | None = None,
    draft: LanguageModel | None = None,
    **options: Unpack[CheckOptions],
) -> Sequence[Verdict]:
    """Examine a drafter: its drafts must be drawn from the q that it reports.

    Its random calls (torch, NumPy, random) are answered, and its law is enumerated. Keep gammas and the vocabulary
    small: every draft is followed.

    Args:
        propose: ``propose(tokens, gamma) -> (draft_tokens, q)``. ``tokens`` is the tuple of all tokens so far; at most
            ``gamma`` token ids come back, with q ``[len(draft_tokens), vocabulary]``, the rows they were drawn from, or
            None for a drafter that draws nothing; such a drafter may also return the ids alone.
        prompts: Texts to draft after, each a non-empty sequence of token ids.
        gammas: Numbers of drafts, each from 1 to 1024. None: 1 to 3, and after the last prompt 5, 6 and 8 too where
            fewer than two thousand drafts are possible. Larger values are not covered.
        draft: ``draft(tokens)``: the expected q ``[vocabulary]``, if there is a draft model. A stale cache
            reports another q.
        **options: See ``CheckOptions``.

    Returns:
        One verdict for each check that applies.

    Raises:
        SpeculationRefuted, SpeculationUndecided, UnusableSubject: As in ``check_verifier``.
        ValueError: For invalid prompts, gammas or functions.

    Examples:
        >>> import random
        >>> def propose(tokens, gamma):
        ...     return [random.choices([0, 1], [0.25, 0.75])[0]], [[0.25, 0.75]]
        >>> {str(verdict.status) for verdict in check_drafter(propose, gammas=(1,))}
        {'holds'}
    """
    check_callable(propose, "the drafter", arguments=2)
    if draft is not None:
        check_callable(draft, "draft", arguments=1)
        draft = checked_model(draft, "expected draft")
    chosen = None if gammas is None else checked_gammas(gammas)
    subject = drafter_subject(propose, name_of(propose), _prompts(prompts), chosen)
    return judge(checks_plan(subject, checks_of_drafter(draft), Conditions(), options)._replace(replays=False))


def _prompts(prompts: Any) -> list[Tokens]:
    """Return ``prompts`` as tuples of token ids, after validation.

    Raises ``ValueError`` unless they are a non-empty sequence of non-empty sequences of token ids.
    """
    if not isinstance(prompts, (tuple, list)) or not prompts:
        raise argument_error("prompts", prompts, "a sequence of prompts, such as [(0,), (0, 1)]")
    for prompt in prompts:
        if not isinstance(prompt, (tuple, list)) or not prompt or not all(map(is_token, prompt)):
            raise argument_error("a prompt", prompt, "a non-empty sequence of token ids, such as (0, 1)")
    return [tuple(prompt) for prompt in prompts]
