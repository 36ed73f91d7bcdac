"""Write certificates of enumerations: the trees of draws on which exact verdicts rest, for ``check-certificate``."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from functools import reduce
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, NamedTuple

from specverify.base.arguments import check_integer
from specverify.certificates import ENUMERATION
from specverify.intercept.refusals import NeedsValue
from specverify.intercept.run import mode_with
from specverify.intercept.symbolic.uniform import Constraint
from specverify.laws.draws import NotAFunctionOfItsDraws
from specverify.laws.enumeration import whole_run
from specverify.laws.law import Law, rounding_bound
from specverify.laws.paths import Path as OnePath
from specverify.laws.paths import outcomes_of, paths
from specverify.laws.rounding import LARGEST, worst
from specverify.reference import Draws, Pmf, Site, Tokens
from specverify.run.certified_replays import DRAWN_BY_NAME, Replayable, replayable, replays_of
from specverify.subjects.subject import EngineProgram, InScenario, Subject

MOST_PATHS = 2_000
"""A scenario with more paths gets no certificate; other scenarios take its place."""
DRAFTING = 2
"""Number of new tokens from which on a round drafts; scenarios with that many come first."""
LEAST_BOUND = 4e-9
"""Allowed difference between two laws in a certificate with floats, if the bound on their rounding is smaller."""
MOST_SCENARIOS = 10
"""The largest number of certificates of one subject."""


class NothingToCertify(Exception):  # noqa: N818 - reads as the sentence it is
    """Raised if no scenario (models, prompt, horizon) of a subject can be certified.

    Each of them has too many paths or cannot be enumerated.
    """


def write_certificates(
    file: Path, subject: Subject, scenarios: int = MOST_SCENARIOS, most_paths: int = MOST_PATHS
) -> int:
    """Write the certificates of a subject into a file and return the number of certificates.

    A certificate is the tree of draws of one scenario (models, prompt, horizon), with the promised law.

    Args:
        file: The file for the certificates, which are written as JSON.
        subject: The subject. The laws of its scenarios must be enumerated.
        scenarios: Largest number of scenarios.
        most_paths: Largest number of paths of one scenario.

    Raises:
        NothingToCertify: Every scenario has more than ``most_paths`` paths, or cannot be enumerated.
    """
    check_integer(scenarios, "the number of scenarios")
    check_integer(most_paths, "the number of paths")
    result: list[dict[str, Any]] = []
    function = replayable(subject.name)
    for certificate in _certificates(subject, most_paths, function):
        result.append(certificate)
        if len(result) == scenarios:
            break
    if not result:
        raise NothingToCertify(f"{subject.name} has no scenario that is enumerated within {most_paths} paths")
    head = function.head if function and any(each["replays"] for each in result) else {"no_replay": DRAWN_BY_NAME}
    data = {"format": ENUMERATION, "subject": subject.name, **head, "certificates": result}
    file.write_text(json.dumps(data), encoding="utf-8")
    return len(result)


def _certificates(subject: Subject, most_paths: int, function: Replayable | None) -> Iterable[dict[str, Any]]:
    for variant in subject.variants:
        if variant.declared_law is not None:  # the target's law is not promised
            continue
        for scenario in sorted(subject.scenarios, key=lambda scenario: scenario.horizon < DRAFTING):
            situation = InScenario(variant, scenario, subject.rational)
            run = whole_run(situation.decoder, situation.prompt)
            followed = _followed(run, most_paths)
            if followed:
                yield _with_replays(_in_scenario(situation, followed), run, function)
    for program in subject.programs:
        certificate = _of_program(program, most_paths)
        if certificate:
            with program.open() as run:
                yield _with_replays(certificate, run, function)


def _with_replays(certificate: dict[str, Any], run: Callable[[Draws], Any], function: Replayable | None) -> Any:
    law = [tokens for tokens, _ in certificate["law"]]
    return {**certificate, "replays": replays_of(run, function, law, _plain) if function else []}


class CertifiedPath(NamedTuple):
    """A path of a program with one constraint for each of its draws.

    The constraint of a draw states which uniforms lead to its outcome.
    """

    path: OnePath[Any]
    constraints: list[Constraint]


class _WithConstraints:
    """Draws that return the outcomes of ``draws`` and record for each draw which uniforms lead to its outcome.

    This is the constraint of the draw. If the draw stands for an intercepted random call, the interception provides the
    constraint; otherwise it is empty.
    """

    def __init__(self, draws: Draws) -> None:
        self._draws = draws
        self.noted: dict[Site, Constraint] = {}
        """Site -> the constraint of the draw that follows at this site."""
        self.constraints: list[Constraint] = []
        """The constraint of each draw so far; an empty one for an outcome of a library call."""

    def categorical(self, pmf: Pmf, site: Site) -> int:
        """Return the outcome of the draw at ``site`` from ``pmf``, and record the constraint that the outcome implies.

        The constraint states which uniforms lead to the outcome. If the program made the draw by a call of its library,
        such as ``torch.rand``, the interception of this call has stored the constraint in the attribute ``noted``,
        under the key ``site``. Any other draw has an empty constraint.
        """
        self.constraints.append(self.noted.pop(site, Constraint(())))
        return self._draws.categorical(pmf, site)


def _followed(program: Callable[[Draws], Any], most_paths: int) -> list[CertifiedPath]:
    """Return every path of a program, with its constraints.

    Returns [] if there are more than ``most_paths``, or if the program cannot be enumerated.
    """

    def noted(draws: Draws) -> tuple[Any, list[Constraint]]:
        noting = _WithConstraints(draws)
        with mode_with(constraints=noting.noted):
            return program(noting), noting.constraints

    try:
        ended = list(islice(paths(noted), most_paths + 1))
    except (NotAFunctionOfItsDraws, NeedsValue):
        return []
    result = [CertifiedPath(path._replace(outcome=path.outcome[0]), path.outcome[1]) for path in ended]
    return result if len(result) <= most_paths else []


def _in_scenario(situation: InScenario, followed: Sequence[CertifiedPath]) -> dict[str, Any]:
    task, prompt = situation.task, situation.prompt
    rows: dict[Tokens, Any] = {}
    _add_rows(task.target, prompt, task.horizon, set(task.eos), rows)
    promised = _product(rows, prompt, task.horizon, set(task.eos))
    name = f"{situation.variant.label} {situation.scenario.shape} {situation.scenario.prompt}"
    head = {"rows": [[list(text), [_written(mass) for mass in row]] for text, row in rows.items()],
            "prompt": list(prompt), "horizon": task.horizon, "eos": list(task.eos)}  # fmt: skip
    return _certificate(name, followed, promised, head)


def _of_program(program: EngineProgram, most_paths: int) -> dict[str, Any] | None:
    if program.plain is None or program.target is not None:
        return None
    with program.open() as fast, program.plain() as plain:
        one, other = _followed(fast, most_paths), _followed(plain, most_paths)
    if not one or not other:
        return None
    return _certificate(program.name, one, _law_of(other), {"plain": _tree(other)}, other)


def _certificate(
    name: str,
    followed: Sequence[CertifiedPath],
    promised: Mapping[Any, Fraction],
    head: Mapping[str, Any],
    plain: Sequence[CertifiedPath] = (),
) -> dict[str, Any]:
    """Return the certificate of a program, as JSON: its verdict is "holds" or "refuted".

    It holds if the law of the paths ``followed`` is the law ``promised``. The paths are the evidence.

    * ``name``: The name of the scenario.
    * ``head``: The entries of the certificate from which the promised law can be computed.
    * ``plain``: The paths of the call without speculation, if the promised law is the law of that call; else empty.
    """
    law = _law_of(followed)
    rows = head.get("rows", ())
    exact = not any(map(_has_floats, (*followed, *plain))) and all(sum(map(Fraction, row)) == 1 for _, row in rows)
    seen = Law(
        {each: float(mass) for each, mass in law.items()},
        0,
        len(followed),
        rounding=reduce(worst, (path.rounding for path, _ in followed)),
    )
    bound = Fraction(0) if exact else Fraction(min(max(rounding_bound(seen), LEAST_BOUND), LARGEST))
    apart = (abs(law.get(each, Fraction(0)) - promised.get(each, Fraction(0))) for each in {*law, *promised})
    distance = sum(apart, Fraction(0)) / 2
    certificate = {"scenario": name, "exact": exact, "bound": str(bound), "distance": str(distance), **head}
    if distance <= (0 if exact else bound / 4):
        return {**certificate, "verdict": "holds", "law": _listed(law), "tree": _tree(followed)}
    more = max(sorted(law), key=lambda outcome: law[outcome] - promised.get(outcome, Fraction(0)))
    shown = [each for each in followed if all(outcome == more for outcome, _ in outcomes_of(each.path.outcome))]
    mass = _law_of(shown).get(more, Fraction(0))
    if mass > promised.get(more, Fraction(0)) + bound + Fraction(1, 10**9):
        only = {"outcome": _plain(more), "law": [[_plain(more), str(mass)]], "tree": _tree(shown)}
        return {**certificate, "verdict": "refuted", **only}
    return {**certificate, "verdict": "refuted", "law": _listed(law), "tree": _tree(followed)}


def _has_floats(followed: CertifiedPath) -> bool:
    """Return whether a float is among the probabilities of the path ``followed``: those of its draws and its results.

    A path whose last token was never read has one result for each possible last token.
    """
    path = followed.path
    weights = (weight for step in path.decisions for weight in step.weights)
    return any(isinstance(each, float) for each in (*weights, *(share for _, share in outcomes_of(path.outcome))))


def _tree(followed: Sequence[CertifiedPath]) -> Any:
    """Return the tree of draws that the paths ``followed`` form, as JSON.

    A possible outcome of a draw that occurs on none of the paths becomes None.
    """
    root: dict[str, Any] = {}
    for path, constraints in followed:
        node, numbers = root, dict[int, int]()
        for step, constraint in zip(path.decisions, constraints, strict=True):
            of = [numbers.setdefault(id(known), len(numbers)) for known in constraint.known]
            if not node:
                possible: dict[str, Any] = {
                    str(outcome): {} for outcome, weight in enumerate(step.weights) if weight > 0
                }
                cells = [[_written(low), _written(high)] for low, high in pairwise(constraint.ends)]
                node |= {"site": [str(part) for part in step.site], "of": of, "within": _written(constraint.within),
                         "weights": [_written(weight) for weight in step.weights], "next": possible,
                         **({"cells": cells} if cells else {})}  # fmt: skip
            node = node["next"][str(step.outcome)]
        node["ends"] = [[_plain(outcome), _written(share)] for outcome, share in outcomes_of(path.outcome)]
    return _without_empty(root)


def _without_empty(node: dict[str, Any]) -> Any:
    if not node:
        return None
    if "next" in node:
        node["next"] = {outcome: _without_empty(below) for outcome, below in node["next"].items()}
    return node


def _law_of(followed: Sequence[CertifiedPath]) -> dict[Any, Fraction]:
    law: dict[Any, Fraction] = {}
    for path, _ in followed:
        mass = Fraction(1)
        for step in path.decisions:
            mass *= _rational(step.weights[step.outcome])
        for outcome, share in outcomes_of(path.outcome):
            law[outcome] = law.get(outcome, Fraction(0)) + mass * _rational(share)
    return {outcome: mass for outcome, mass in law.items() if mass}


def _add_rows(target: Any, text: Tokens, left: int, ends: set[int], rows: dict[Tokens, Any]) -> None:
    if not left or text in rows:
        return
    rows[text] = [_rational(mass) for mass in target(text).tolist()]
    for token, mass in enumerate(rows[text]):
        if mass and token not in ends:
            _add_rows(target, (*text, token), left - 1, ends, rows)


def _product(rows: Mapping[Tokens, Any], prompt: Tokens, horizon: int, ends: set[int]) -> dict[Tokens, Fraction]:
    law: dict[Tokens, Fraction] = {(): Fraction(1)}
    done: dict[Tokens, Fraction] = {}
    for _ in range(horizon):
        longer: dict[Tokens, Fraction] = {}
        for new, mass in law.items():
            for token, share in enumerate(rows[prompt + new]):
                if share:
                    (done if token in ends else longer)[(*new, token)] = mass * share
        law = longer
    return {**done, **law}


def _listed(law: Mapping[Any, Fraction]) -> list[Any]:
    return [[_plain(outcome), str(mass)] for outcome, mass in law.items()]


def _plain(outcome: Any) -> list[Any]:
    return [_plain(item) if isinstance(item, tuple) else int(item) for item in outcome]


def _rational(mass: Any) -> Fraction:
    return mass if isinstance(mass, Fraction) else Fraction(float(mass)) if isinstance(mass, float) else Fraction(mass)


def _written(mass: Any) -> str:
    return str(_rational(mass))
