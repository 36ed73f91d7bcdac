"""Each draft is drawn from the pmf q that is declared for it. A false q is the most common real defect.

Drafting is enumerated alone. Given the earlier drafts, and given that position i is drafted at all, token i must have
the declared law ``pmfs[i]``. Dropping a token because of its own value fails here too. Then whole rounds are enumerated
from the same states, and their drafts must have the same law: a round may draft from stale data that ``propose`` does
not use. A round with a tree reports its tokens in another order, so only the set of tokens is compared. The drafts of
an observed engine are read from the inputs of its target: given all tokens before it, each must have the law of the
draft model.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from specverify.base.verdict import Counterexample, Evidence, Examination
from specverify.checks.check import (
    ONLY_SAMPLED,
    Check,
    Conditions,
    ExaminedPart,
    Need,
    by,
    in_scenarios,
    slack,
)
from specverify.checks.explaining.counterexample_parts import described, readable, shown_pmf
from specverify.checks.observed_runs import Observable, Seen, refuted, seen_in, watched
from specverify.checks.round_laws import FirstRound, first_rounds
from specverify.laws.paths import paths
from specverify.laws.rounding import allowed, at_most_float32, holds_within, worst
from specverify.reference import Draft, Draws, Pmf, State, Tokens, as_pmf, one_hot
from specverify.reference import chain as chain_of
from specverify.subjects.subject import InScenario, Subject, Variant, committed_before, drafts_of

Propose = Callable[[Draws, State], Draft]
HIDDEN = "its drafting step cannot be called"


class ProposalLaw(NamedTuple):
    """The law of a decoder's drafts in one state (a text before a round).

    ``tokens`` has the law of each next token, given the earlier drafts and the pmf that the decoder declares for it.
    ``drafts`` has the law of whole drafts. ``tree`` states whether a draft is a tree, and ``runs`` is the number of
    runs of the enumeration.
    """

    tokens: Mapping[tuple[Tokens, tuple[Any, ...]], Mapping[int, Any]]
    """``tokens[drafts, pmf][token]`` is the probability that the round drafts the tokens ``drafts`` and next ``token``,
    for which it declares ``pmf``."""
    drafts: Mapping[Tokens, Any]
    """All drafts of a round -> probability; the nodes of a tree are sorted by token id."""
    tree: bool
    runs: int
    within: float
    """The largest error of probabilities that are known between bounds only."""


class Drafting(NamedTuple):
    """A decoder in a scenario, ``situation``, whose drafting step ``propose`` can be run alone."""

    situation: InScenario
    propose: Propose


UNKNOWN_DRAFT = "the pmf from which its drafts should be drawn is not given"


def drafting(examine: Callable[[Drafting, Conditions], Examination]) -> ExaminedPart:
    """Return the part of a check that calls ``examine`` for each decoder whose drafting step can be run alone.

    Greedy scenarios and scenarios with an end-of-sequence token are left out.
    """

    def proposes(subject: Subject, _: Variant) -> bool:
        return next(in_scenarios()(subject)).decoder.propose is not None

    def examined(situation: InScenario, conditions: Conditions) -> Examination:
        propose = situation.decoder.propose
        return (
            Examination(HIDDEN, unknown=True) if propose is None else examine(Drafting(situation, propose), conditions)
        )

    within = in_scenarios(lambda scenario: not scenario.eos and not scenario.greedy)
    return ExaminedPart(Variant, by(examined), ONLY_SAMPLED, (Need(proposes, HIDDEN),), within)


def examine(drafting: Drafting, conditions: Conditions) -> Examination:
    """Compare the law of every draft with its declared pmf, in the drafting step alone and in the first rounds."""
    situation, figures = drafting.situation, {"runs": 0}
    for done in first_rounds(situation, conditions.runs):
        proposed = _proposed(drafting.propose, done.state, situation.task.target(done.state.tokens))
        figures["runs"] += proposed.runs + done.runs
        result = _undeclared(situation, done.state, proposed) or _another_draft(situation, done, proposed)
        if result:
            return result._replace(rational=situation.rational, figures=figures)
    held = "every draft is drawn from the pmf it declares"
    return Examination(held, rational=situation.rational, figures=figures)


def examine_observed(observable: Observable, _: Conditions) -> Examination:
    """Compare every draft in the target's inputs with the pmf of the draft model.

    ``observable`` is an engine program whose forward passes are recorded. The result is unknown in three cases:

    * The draft model is not known.
    * No draft was recorded.
    * Rounding may explain the largest difference.
    """
    seen, model = seen_in(observable.watch), observable.program.draft
    if model is None:
        return Examination(UNKNOWN_DRAFT, unknown=True)
    drawn, farthest = _fed_drafts(seen), 0.0
    rounding = reduce(worst, (run.rounding for run in seen.runs))._replace(decisions=1)
    bound = allowed(rounding)
    figures = {"runs": len(seen.runs), "positions": len(drawn), "rounding": bound}
    if not drawn:
        return Examination(
            "no draft was fed to the target", unknown=True, rational=False, figures=figures, is_empty=True
        )
    for before, masses in sorted(drawn.items()):
        q, total = np.asarray(model(before), dtype=np.float64), sum(masses.values())
        for token in sorted(masses.keys() | set(range(len(q)))):
            should, does = q[token] if 0 <= token < len(q) else 0.0, masses.get(token, 0.0) / total
            farthest = max(farthest, abs(should - does))
            if abs(should - does) > bound:
                then = (
                    f"after {before} token {token} should be drafted with probability {readable(should)}, "
                    f"but is with {readable(does)}"
                )
                return refuted(observable.program, then, f"the draft has q = {shown_pmf(q)} there", figures)
    if not holds_within(farthest, allowed(at_most_float32(rounding))):
        said = f"a draft is {farthest:.2g} from its pmf, which may be rounding: here that is up to {bound:.2g}"
        return Examination(said, unknown=True, rational=False, figures=figures)
    return Examination("every draft is drawn from the draft's pmf", rational=False, figures=figures)


def _fed_drafts(seen: Seen) -> dict[Tokens, dict[int, float]]:
    """Return text -> draft -> probability, from the inputs of the target's recorded forward passes.

    The text has all tokens before the draft, the prompt included. The probability is that of drafting the token there.
    ``seen`` holds the recorded runs.
    """
    drawn: dict[Tokens, dict[int, float]] = defaultdict(lambda: defaultdict(float))
    for run in seen.runs:
        tokens, mass = seen.prompt + run.ends[0][0], sum(share for _, share in run.ends)
        for forward in run.seen.forwards:
            text, drafts = tokens[: committed_before(forward, seen.prompt)], drafts_of(forward, seen.prompt)
            for i, draft in enumerate(drafts):
                drawn[text + drafts[:i]][draft] += mass
    return drawn


def _proposed(propose: Propose, state: State, like: Pmf) -> ProposalLaw:
    tokens: dict[Any, dict[int, Any]] = defaultdict(lambda: defaultdict(int))

    def program(draws: Draws) -> Draft:
        return propose(draws, state)

    result = list(paths(program))
    tree = any(path.outcome.parents != chain_of(path.outcome.tokens, path.outcome.pmfs).parents for path in result)
    drafts: dict[Tokens, Any] = defaultdict(int)
    for path in result:
        draft = path.outcome
        drafts[_ordered(draft.tokens, tree)] += path.weight
        for i, token in enumerate(draft.tokens):
            pmf = draft.pmfs[i]
            declared = one_hot(token, like) if pmf is None else pmf
            tokens[draft.tokens[:i], tuple(declared.tolist())][token] += path.weight
    return ProposalLaw(tokens, drafts, tree, len(result), max(path.rounding.within for path in result))


def _ordered(tokens: Tokens, tree: bool) -> Tokens:
    return tuple(sorted(tokens)) if tree else tokens


def _undeclared(situation: InScenario, state: State, proposed: ProposalLaw) -> Examination | None:
    """Return a refutation if a draft is drawn with another probability than the declared one; else None.

    ``proposed`` is the law of the drafting step of ``situation`` in ``state``.
    """
    for (before, declared), law in proposed.tokens.items():
        total = sum(law.values())
        for token, mass in enumerate(declared):
            actual = law.get(token, 0) / total
            if abs(actual - mass) > slack(situation, len(before) + 1) + 2 * proposed.within / total:
                return _refuted(
                    f"a drafted token declared with probability {readable(mass)} is drawn with {readable(actual)}",
                    (described(situation), f"committed {state.tokens}, drafted so far {before}"),
                    f"the draft declares q = {shown_pmf(as_pmf(declared))} for its next token, "
                    f"but token {token} is drawn with probability {readable(actual)} instead of {readable(mass)}",
                )
    return None


def _another_draft(situation: InScenario, done: FirstRound, proposed: ProposalLaw) -> Examination | None:
    """Return a refutation if a round makes its drafts with other probabilities than the drafting step; else None.

    If the round does not report its drafts, the result is unknown. ``done`` is the enumerated first round. ``proposed``
    is the law of the drafting step from the same state. ``situation`` is the decoder in its scenario.
    """
    drawn: dict[Tokens, Any] = defaultdict(int)
    for (draft, _), mass in done.masses.items():
        drawn[_ordered(draft, proposed.tree)] += mass
    if not any(drawn) and any(proposed.drafts):
        return Examination("its rounds do not say what they draft", unknown=True)
    for draft in sorted(drawn.keys() | proposed.drafts.keys()):
        shows, makes = proposed.drafts.get(draft, 0), drawn.get(draft, 0)
        if abs(shows - makes) > slack(situation, len(draft) + 1) + proposed.within + done.within:
            return _refuted(
                f"a draft proposed with probability {readable(shows)} is made by a round with {readable(makes)}",
                (described(situation), f"committed {done.state.tokens}"),
                f"propose drafts {draft} with probability {readable(shows)}, but step drafts it with {readable(makes)}",
            )
    return None


def _refuted(statement: str, let: tuple[str, ...], then: str) -> Examination:
    return Examination(statement, failed=True, counterexample=Counterexample(let, then))


CHECK = Check(
    name="draft_is_honest",
    summary="every drafted token is drawn from the pmf declared for it, and rounds draft what is proposed",
    claim=None,
    evidence=Evidence.EXACT,
    examines=(
        watched("forwards", examine_observed, Need(lambda _, program: program.draft, UNKNOWN_DRAFT)),
        drafting(examine),
    ),
)
