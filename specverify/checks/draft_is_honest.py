"""The declared q is the law the draft tokens are drawn from: the most common real defect is that it is not.

Drafting is enumerated alone. Given the drafted tokens before it, and given that position i is drafted at all, token i
must have the law ``pmfs[i]`` that the draft declares for it. Dropping a token because of itself fails here too. Then
whole rounds are enumerated from the same states, and what they draft must have the law of what is drafted alone: a
round may draft from something stale that ``propose`` does not see. Of a tree a round tells its tokens in another order,
so only which tokens they are is compared.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any, NamedTuple

from reference import Decoder, Draft, Draws, Pmf, State, Tokens, as_pmf, one_hot
from reference import chain as chain_of
from specverify.checks._rounds import FirstRound, first_rounds
from specverify.checks.check import Check, Conditions, exact_cases, slack
from specverify.enumeration import paths
from specverify.explain import describe_case, shown, shown_pmf
from specverify.subjects.subject import Case, Subject, case_decoder, case_task
from specverify.verdict import Counterexample, Evidence, Examination


class Proposed(NamedTuple):
    """The law of the drafts that a decoder proposes in one state."""

    tokens: Mapping[tuple[Tokens, tuple[Any, ...]], Mapping[int, Any]]
    """(drafted tokens before, declared pmf) -> token -> mass."""
    drafts: Mapping[Tokens, Any]
    """Drafted tokens -> mass; those of a tree in order of their ids."""
    tree: bool
    runs: int


def obstacle(subject: Subject) -> str | None:
    """The subject must show its drafting half."""
    if not subject.variants:
        return "its draws cannot be enumerated, only sampled"
    case = next(exact_cases(lambda scenario: True)(subject))
    return None if case_decoder(case).propose else "it does not show its drafting step"


def examine(case: Case, conditions: Conditions) -> Examination:
    """Compare every drafted token's law with the pmf declared for it, and the drafts of the first rounds with these."""
    assert case.scenario is not None
    decoder, figures = case_decoder(case), {"runs": 0}
    for done in first_rounds(case):
        proposed = _proposed(decoder, done.state, case_task(case).target(done.state.tokens))
        figures["runs"] += proposed.runs + done.runs
        found = _undeclared(case, done.state, proposed) or _another_draft(case, done, proposed)
        if found:
            return found._replace(rational=case.subject.rational, figures=figures)
    held = "every draft is drawn from the pmf it declares"
    return Examination(held, rational=case.subject.rational, figures=figures)


def _proposed(decoder: Decoder, state: State, like: Pmf) -> Proposed:
    tokens: dict[Any, dict[int, Any]] = defaultdict(lambda: defaultdict(int))
    assert decoder.propose is not None
    propose = decoder.propose

    def program(draws: Draws) -> Draft:
        return propose(draws, state)

    found = list(paths(program))
    tree = any(path.outcome.parents != chain_of(path.outcome.tokens, path.outcome.pmfs).parents for path in found)
    drafts: dict[Tokens, Any] = defaultdict(int)
    for path in found:
        draft = path.outcome
        drafts[_ordered(draft.tokens, tree)] += path.weight
        for i, token in enumerate(draft.tokens):
            pmf = draft.pmfs[i]
            declared = one_hot(token, like) if pmf is None else pmf
            tokens[draft.tokens[:i], tuple(declared.tolist())][token] += path.weight
    return Proposed(tokens, drafts, tree, len(found))


def _ordered(tokens: Tokens, tree: bool) -> Tokens:
    return tuple(sorted(tokens)) if tree else tokens


def _undeclared(case: Case, state: State, proposed: Proposed) -> Examination | None:
    """Return the refutation by a token that is drawn with another probability than is declared for it."""
    for (before, declared), law in proposed.tokens.items():
        total = sum(law.values())
        for token, mass in enumerate(declared):
            actual = law.get(token, 0) / total
            if abs(actual - mass) > slack(case, len(before) + 1):
                return _refuted(
                    f"a drafted token declared with probability {shown(mass)} is drawn with {shown(actual)}",
                    (describe_case(case), f"committed {state.tokens}, drafted so far {before}"),
                    f"the draft declares q = {shown_pmf(as_pmf(declared))} for its next token, "
                    f"but token {token} is drawn with probability {shown(actual)} instead of {shown(mass)}",
                )
    return None


def _another_draft(case: Case, done: FirstRound, proposed: Proposed) -> Examination | None:
    """Return the refutation by a draft that a round makes with another probability than it is proposed with."""
    drawn: dict[Tokens, Any] = defaultdict(int)
    for (draft, _), mass in done.masses.items():
        drawn[_ordered(draft, proposed.tree)] += mass
    if not any(drawn) and any(proposed.drafts):
        return Examination("its rounds do not say what they draft", unknown=True)
    for draft in sorted(drawn.keys() | proposed.drafts.keys()):
        shows, makes = proposed.drafts.get(draft, 0), drawn.get(draft, 0)
        if abs(shows - makes) > slack(case, len(draft) + 1):
            return _refuted(
                f"a draft proposed with probability {shown(shows)} is made by a round with {shown(makes)}",
                (describe_case(case), f"committed {done.state.tokens}"),
                f"propose drafts {draft} with probability {shown(shows)}, but step drafts it with {shown(makes)}",
            )
    return None


def _refuted(statement: str, let: tuple[str, ...], then: str) -> Examination:
    return Examination(statement, failed=True, counterexample=Counterexample(let, then))


CHECK = Check(
    name="draft_is_honest",
    summary="every drafted token is drawn from the pmf declared for it, and rounds draft what is proposed",
    claim=None,
    evidence=Evidence.EXACT,
    obstacle=obstacle,
    cases=exact_cases(lambda scenario: not scenario.eos and not scenario.greedy),
    examine=examine,
)
