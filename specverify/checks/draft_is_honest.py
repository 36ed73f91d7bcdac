"""The declared q is the law the draft tokens are drawn from: the most common real defect is that it is not.

Drafting is enumerated alone. Given the drafted tokens before it, and given that position i is drafted at all, token i
must have the law ``pmfs[i]`` that the draft declares for it. Dropping a token because of itself fails here too.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from reference import Draft, State, as_pmf, one_hot
from specverify.checks.check import Check, Conditions, exact_cases, slack, states_after_one_round
from specverify.enumeration import paths
from specverify.explain import describe_case, shown, shown_pmf
from specverify.subjects.subject import Case, Subject, case_decoder, case_task
from specverify.verdict import Counterexample, Evidence, Examination


def obstacle(subject: Subject) -> str | None:
    """The subject must show its drafting half."""
    if not subject.variants:
        return "its draws cannot be enumerated, only sampled"
    case = next(exact_cases(lambda scenario: True)(subject))
    return None if case_decoder(case).propose else "it does not show its drafting step"


def examine(case: Case, conditions: Conditions) -> Examination:
    """Compare the law of every drafted token with its declared pmf, in the first rounds."""
    assert case.scenario is not None
    decoder = case_decoder(case)
    runs = 0
    for state in states_after_one_round(decoder, decoder.init(case.scenario.prompt)):
        found, count = _draft_laws(case, state)
        runs += count
        for (before, declared), law in found.items():
            total = sum(law.values())
            for token, mass in enumerate(declared):
                actual = law.get(token, 0) / total
                if abs(actual - mass) > slack(case, len(before) + 1):
                    return _dishonest(case, state, before, declared, token, actual, runs)
    held = "every draft is drawn from the pmf it declares"
    return Examination(held, rational=case.subject.rational, figures={"runs": runs})


def _draft_laws(case: Case, state: State) -> tuple[dict[tuple[Any, Any], dict[int, Any]], int]:
    decoder, like = case_decoder(case), case_task(case).target(state.tokens)
    laws: dict[tuple[Any, Any], dict[int, Any]] = defaultdict(lambda: defaultdict(int))
    runs = 0
    assert decoder.propose is not None
    propose = decoder.propose
    for path in paths(lambda draws: propose(draws, state)):
        draft: Draft = path.outcome
        runs += 1
        for i, token in enumerate(draft.tokens):
            pmf = draft.pmfs[i]
            declared = one_hot(token, like) if pmf is None else pmf
            laws[draft.tokens[:i], tuple(declared.tolist())][token] += path.weight
    return laws, runs


def _dishonest(case: Case, state: State, before: Any, declared: Any, token: int, actual: Any, runs: int) -> Examination:
    statement = f"a drafted token declared with probability {shown(declared[token])} is drawn with {shown(actual)}"
    return Examination(
        statement,
        failed=True,
        rational=case.subject.rational,
        counterexample=Counterexample(
            let=(describe_case(case), f"committed {state.tokens}, drafted so far {before}"),
            then=f"the draft declares q = {shown_pmf(as_pmf(declared))} for its next token, "
            f"but token {token} is drawn with probability {shown(actual)} instead of {shown(declared[token])}",
        ),
        figures={"runs": runs},
    )


CHECK = Check(
    name="draft_is_honest",
    summary="every drafted token is drawn from the pmf declared for it",
    claim=None,
    evidence=Evidence.EXACT,
    obstacle=obstacle,
    cases=exact_cases(lambda scenario: not scenario.eos and not scenario.greedy),
    examine=examine,
)
