"""Convert cases to replay identifiers, the words that ``specverify replay`` takes, and back."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from specverify.base.identifier import Replay, pack_replay, unpack_replay
from specverify.checks import Case, Check, Conditions, check_named
from specverify.laws.scenarios import scenario_named
from specverify.subjects.subject import InScenario, Situation, Subject


class Again(NamedTuple):
    """A case to repeat, with its check and the settings of the check (``conditions``)."""

    case: Case
    check: Check
    conditions: Conditions


def identifier_of(case: Case, check: Check, conditions: Conditions) -> str:
    """Return the identifier of a case of a check, one word that the user passes to ``specverify replay``.

    ``conditions`` has the settings that the identifier contains, such as the seed. ``named_by`` converts it back.
    """
    return pack_replay(Replay(case.subject.name, check.name, *_words(case.situation), conditions.seed, conditions.edge))


def named_by(identifier: str, find: Callable[[str], Subject]) -> Again:
    """Return the case of a replay identifier; ``find`` returns a subject by name.

    Raises ``ValueError`` with one sentence if there is no such case, and the errors of ``find``.
    """
    wanted = unpack_replay(identifier)
    check = _check(wanted.check)
    return again(find(wanted.subject), check, wanted)


def first_case(subject: Subject, name: str) -> Again:
    """Return the first case of ``subject`` that the check called ``name`` examines.

    Raises ``ValueError`` if the check examines none.
    """
    check = check_named(name)
    for case in check.cases(subject):
        return Again(case, check, Conditions(edge=0.0))
    raise ValueError(f"{name} does not examine {subject.name}")


def again(subject: Subject, check: Check, wanted: Replay) -> Again:
    """Return the case of ``subject`` that the parsed identifier ``wanted`` names, among the cases of ``check``.

    Raises ``ValueError`` if there is no such case.
    """
    words = (wanted.variant, wanted.scenario, wanted.setting)
    for case in check.cases(subject):
        if _words(case.situation) == words:
            return Again(case, check, Conditions(seed=wanted.seed, edge=wanted.edge))
    raise ValueError(_why_not(subject, wanted))


def _words(situation: Situation) -> tuple[str, str, str]:
    """Return the names (variant, scenario, setting) of the ``situation`` of a case; "" for each that it lacks."""
    if isinstance(situation, InScenario):
        return situation.variant.label, situation.scenario.name, ""
    return "", "", situation.name


def _check(name: str) -> Check:
    try:
        return check_named(name)
    except ValueError:
        raise ValueError(f"the identifier names a check {name!r}, which this version does not have") from None


def _why_not(subject: Subject, wanted: Replay) -> str:
    parts: tuple[Situation, ...] = (*subject.settings, *subject.programs, *subject.pairs, *subject.calls)
    if wanted.setting and ("", "", wanted.setting) not in map(_words, parts):
        return f"{subject.name} has no setting {wanted.setting!r} any more"
    if not wanted.setting:
        if wanted.variant not in {item.label for item in subject.variants}:
            return f"{subject.name} has no variant {wanted.variant!r} any more"
        scenario_named(wanted.scenario)
    where = wanted.setting or f"{wanted.variant}, {wanted.scenario}"
    return f"{wanted.check} does not examine {subject.name} at {where} any more"
