"""One test of pytest for each subject and check.

  @parametrize_with_checks([my_verifier, my_module.one_round, partial(check_engine, fast, plain)])
  def test_speculation(check):
    check()

Its tests are called ``test_speculation[my_verifier-law_is_target]``: ``-k my_verifier`` and ``-k law_is_target`` select
tests. A check that is expected to fail is a strict xfail.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

from specverify.base.arguments import argument_error
from specverify.base.verdict import Status, Verdict
from specverify.reference import Algorithm
from specverify.subjects.subject import Subject, UnusableSubject
from specverify.testing.judged import (
    SpeculationRefuted,
    SpeculationUndecided,
    asked,
    check_subject,
    examined,
    fault_of,
    offered,
    settle,
    tell,
)
from specverify.testing.plans import CheckOptions, CheckPlan, planned_by, shared
from specverify.testing.verifiers import check_decoder

if TYPE_CHECKING:
    import pytest

GROUND = "program_is_its_draws"
"""The check on which all exact checks of foreign code rest; it runs once, before them."""


class Examinee(NamedTuple):
    """A subject whose checks run one at a time, each in a test of its own.

    It has the plan of the subject (its checks and options), and the verdicts so far by check.
    """

    label: str
    make: Callable[..., CheckPlan]
    """``make(**more)`` returns its plan with other shared options."""
    plan: CheckPlan
    known: dict[str, Verdict]


class CheckOfSubject(NamedTuple):
    """The argument of a test: calling it runs one check on one subject, and raises unless the check holds."""

    examinee: Examinee
    check: str

    @property
    def label(self) -> str:
        """Return the label of the test, which is the text in the brackets of its name."""
        return f"{self.examinee.label}-{self.check}"

    @property
    def statistical(self) -> bool:
        """Return whether the check draws samples, and so uses a share of the alarm budget."""
        return self.check in self.examinee.plan.statistical

    def __call__(self, **more: Unpack[CheckOptions]) -> Verdict | None:
        """Run the check and return its verdict, or None if there is none.

        There is none if a refutation by another check ended the plan, or if the check turns out not to apply. The
        options ``more`` replace those of the subject. Raises the error of a check function if the check fails.
        """
        __tracebackhide__ = True
        if (listener := asked.get()) is not None:
            listener(self.check)
        more = {**offered.get(), **more}
        plan = self.examinee.make(**more) if more else self.examinee.plan
        verdict = _verdict(self.examinee, plan, self.check)
        if verdict is not None and _left_to_a_sample(plan, verdict):
            _skip(f"{verdict.statement}; a sample decides")
        quiet = plan._replace(
            options={**plan.options, "expected_failures": {}, "checks": [self.check]}, sample_decides=False
        )
        if verdict is not None:
            tell(plan, verdict)
        settle(plan, fault_of(quiet, [verdict] if verdict else []))
        return verdict


def parametrize_with_checks(
    subjects: Sequence[Any] | Mapping[str, Any], **options: Unpack[CheckOptions]
) -> pytest.MarkDecorator:
    """Return the mark that makes one test of each subject and check; the test function has one parameter, ``check``.

    Args:
        subjects: At least one verifier or decoder (recognised by its parameters), registry row, ``Subject``, or
            deferred call of a check function: ``partial(check_kernel, kernel, rows=2**14)``. The keys of a mapping are
            names.
        **options: See ``CheckOptions``. Those of a ``partial`` take precedence. ``expected_failures`` become strict
            xfails.

    Returns:
        A mark of pytest, which must be installed. Each ``check`` is a ``CheckOfSubject``.

    Raises:
        ValueError: For invalid subjects or options.
        UnusableSubject: If no check applies to a subject.

    Examples:
        >>> def one_round(draws, target, draft, tokens):
        ...     return (draws.categorical(target(tokens), ("target",)),)
        >>> mark = parametrize_with_checks([one_round], checks=["law_is_target"])
        >>> [item.id for item in mark.args[1]]
        ['one_round-law_is_target']
    """
    import pytest  # noqa: PLC0415 - an extra, needed here alone

    items = [
        pytest.param(item, id=item.label, marks=_marks(item, examinee.plan.options.get("expected_failures") or {}))
        for examinee in _examinees(subjects, options)
        for item in _items(examinee)
    ]
    return pytest.mark.parametrize("check", items)


def _marks(item: CheckOfSubject, expected: Mapping[str, str]) -> tuple[Any, ...]:
    import pytest  # noqa: PLC0415 - as above

    if item.check not in expected:
        return ()
    return (pytest.mark.xfail(reason=expected[item.check], strict=True, raises=FAULTS),)


FAULTS = (SpeculationRefuted, SpeculationUndecided)
"""What an expected failure may raise; a subject that cannot be used is none."""


def _examinees(subjects: Any, options: CheckOptions) -> Iterator[Examinee]:
    if isinstance(subjects, (str, bytes)) or not isinstance(subjects, (Sequence, Mapping)) or not subjects:
        raise argument_error("subjects", subjects, "a list of at least one, such as [my_verifier], or a mapping")
    named = list(subjects.items()) if isinstance(subjects, Mapping) else [(_label(item), item) for item in subjects]
    seen = Counter(name for name, _ in named)
    number: Counter[str] = Counter()
    for name, item in named:
        if not isinstance(name, str):
            raise argument_error("the name of a subject", name, "a string")
        number[name] += 1
        label = f"{name}{number[name]}" if seen[name] > 1 else name
        make = _maker(item, options)
        yield Examinee(label, make, make(), {})


def _maker(item: Any, options: CheckOptions) -> Callable[..., CheckPlan]:
    """Return a function that makes the plan of ``item``, a listed subject, with the shared ``options``.

    The function takes further options by keyword. Raises ``ValueError`` if ``item`` is a check function without its
    arguments.
    """
    if planned_by(item) is not None:
        raise argument_error("a subject", item, f"what it is called with too: partial({item.__name__}, ...)")
    given = partial(check_subject if isinstance(item, Subject) else check_decoder, item)
    if isinstance(item, partial) and planned_by(item.func) is not None:
        given = item
    return partial(_plan_of, planned_by(given.func), given.args, {**options, **given.keywords})


def _plan_of(
    planned: Callable[..., CheckPlan] | None,
    args: Sequence[Any],
    given: Mapping[str, Any],
    **more: Unpack[CheckOptions],
) -> CheckPlan:
    assert planned is not None
    return planned(*args, **shared(given, more))


def _label(item: Any) -> str:
    """Return a label for ``item``, a listed subject.

    The label is the whole name of a registry algorithm or of a ``Subject``, and the name without its module for a
    function.
    """
    named = item.args[0] if isinstance(item, partial) and item.args and planned_by(item.func) else item
    if isinstance(named, (Algorithm, Subject)):
        return named.name
    word = getattr(_inner(named), "__name__", type(named).__name__)
    return re.sub(r"\W+", "", word) or "subject"


def _inner(function: Any) -> Any:
    """Return the function inside nested ``partial`` objects."""
    return _inner(function.func) if isinstance(function, partial) else function


def _items(examinee: Examinee) -> Iterator[CheckOfSubject]:
    chosen = examinee.plan.options.get("checks")
    result = [name for name in examinee.plan.applicable if chosen is None or name in chosen]
    if not result:
        raise UnusableSubject(f"{examinee.plan.name}: no check applies to it, so there is nothing to examine")
    return (CheckOfSubject(examinee, name) for name in result)


def _verdict(examinee: Examinee, plan: CheckPlan, check: str) -> Verdict | None:
    """Return the verdict of ``check`` on the subject of ``plan``, or None if there is none.

    There is none if a refutation by another check ended the plan, or if the check turns out not to apply. A verdict
    that ``examinee`` already has is returned without a run. Otherwise the plan is run, and all verdicts of this run are
    stored in ``examinee``.
    """
    needed = [GROUND, check] if GROUND in plan.applicable and check not in plan.statistical else [check]
    together = plan.applicable if plan.refuted_alone else tuple(dict.fromkeys(needed))
    if check not in examinee.known:
        for verdict in examined(plan, together, examinee.known):
            if verdict.status is not Status.NOT_APPLICABLE:
                examinee.known.setdefault(verdict.check, verdict)
    return examinee.known.get(check)


def _left_to_a_sample(plan: CheckPlan, verdict: Verdict) -> bool:
    samples = plan.statistical & set(plan.applicable)
    return verdict.status is Status.UNKNOWN and plan.sample_decides and bool(samples) and verdict.check not in samples


def _skip(why: str) -> None:
    import pytest  # noqa: PLC0415 - as above

    __tracebackhide__ = True
    pytest.skip(why)
