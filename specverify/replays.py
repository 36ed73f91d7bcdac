"""From a replay identifier to the case that it names."""

from __future__ import annotations

from specverify.catalogue import find_subject
from specverify.checks import CHECKS, Check, Conditions
from specverify.identifier import decode
from specverify.scenarios import scenario_named
from specverify.subjects.subject import Case, Subject
from specverify.verify import settled


def case_of(identifier: str) -> tuple[Case, Check, Conditions]:
    """Return the case, the check and the conditions of an identifier.

    Raises ``ValueError`` in one sentence if there is no such case, ``UnusableSubject`` if there is no such subject.
    """
    wanted = decode(identifier)
    check = next((item for item in CHECKS if item.name == wanted.check), None)
    if check is None:
        raise ValueError(f"the identifier names a check {wanted.check!r}, which this version does not have")
    subject = settled(find_subject(wanted.subject))
    return _case(subject, wanted.variant, wanted.scenario, wanted.setting), check, Conditions(seed=wanted.seed)


def _case(subject: Subject, variant: str, scenario: str, setting: str) -> Case:
    if setting:
        sampled = next((item for item in subject.settings if item.name == setting), None)
        program = next((item for item in subject.programs if item.name == setting), None)
        pair = next((item for item in subject.pairs if item.name == setting), None)
        if sampled is None and program is None and pair is None:
            raise ValueError(f"{subject.name} has no setting {setting!r} any more")
        return Case(subject, setting=sampled, program=program, pair=pair)
    option = next((item for item in subject.variants if item.label == variant), None)
    if option is None:
        raise ValueError(f"{subject.name} has no variant {variant!r} any more")
    return Case(subject, option, scenario_named(scenario))
