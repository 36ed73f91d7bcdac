"""Drafters: what proposes tokens, and says what it drew them from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Unpack

from specverify.base.arguments import argument_error, check_callable, is_token
from specverify.checks import Conditions
from specverify.checks.drafters import checks_of_drafter
from specverify.reference import LanguageModel, Tokens
from specverify.subjects.drafter import drafter_subject
from specverify.testing.judged import judged
from specverify.testing.plans import Judging, Plan, checked_gammas, checks_plan, name_of

PROMPTS = ((0,), (0, 1), (1, 0, 1), (1, 1, 1, 1), (0, 1, 0, 1, 1, 0, 1, 0, 1))


@judged
def check_drafter(
    propose: Callable[..., Any],
    *,
    prompts: Sequence[Sequence[int]] = PROMPTS,
    gammas: Sequence[int] | None = None,
    draft: LanguageModel | None = None,
    **how: Unpack[Judging],
) -> Plan:
    """Examine ``propose(tokens, gamma) -> (draft_tokens, q)``: are its drafts drawn from the q it reports?

    ``tokens`` is the tuple of all tokens so far; at most ``gamma`` token ids come back, with q
    ``[len(draft_tokens), vocabulary]``, the rows they were drawn from, or None for a drafter that draws nothing. Its
    random calls (torch, NumPy, random) are answered, and its law is enumerated. ``draft`` is the model whose pmfs q
    should be, tokens -> pmf, where there is one: what a stale cache reports is not that.

    ``gammas`` are 1 to 3 unless told otherwise, and after the last prompt 5, 6 and 8 too where fewer than two
    thousand drafts are possible: nothing is said of more. Keep gammas and the vocabulary small, every draft is
    followed.
    """
    check_callable(propose, "the drafter", arguments=2)
    if draft is not None:
        check_callable(draft, "draft", arguments=1)
    chosen = None if gammas is None else checked_gammas(gammas)
    subject = drafter_subject(propose, name_of(propose), _prompts(prompts), chosen)
    return checks_plan(subject, checks_of_drafter(draft), Conditions(), how)._replace(replays=False)


def _prompts(prompts: Any) -> list[Tokens]:
    """Return the prompts to draft after, as they were given."""
    if not isinstance(prompts, (tuple, list)) or not prompts:
        raise argument_error("prompts", prompts, "a sequence of prompts, such as [(0,), (0, 1)]")
    for prompt in prompts:
        if not isinstance(prompt, (tuple, list)) or not prompt or not all(map(is_token, prompt)):
            raise argument_error("a prompt", prompt, "a non-empty sequence of token ids, such as (0, 1)")
    return [tuple(prompt) for prompt in prompts]
