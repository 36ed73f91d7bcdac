"""What a check function comes to before anything is run: a subject, the checks that can be asked of it, and how."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, ParamSpec, TypedDict, get_type_hints

from specverify.base.arguments import (
    argument_error,
    check_callable,
    check_choice,
    check_flag,
    check_integer,
    check_probability,
    check_seconds,
    nearest,
)
from specverify.base.edges import check_edge
from specverify.base.limits import EDGE, SECONDS
from specverify.base.verdict import Evidence, Verdict
from specverify.checks import CHECKS, EXACT_CHECKS, Check, Conditions
from specverify.reference import Claim
from specverify.run.verify import Checklist, not_applicable, verify_subject
from specverify.subjects.subject import Subject

OnFail = Literal["raise", "warn"] | None
ALARM = 1e-6
HINT_SECONDS = 5.0
"""Time limit of what is tried to word a hint about a failure; no verdict depends on it."""
Parameters = ParamSpec("Parameters")


class Judging(TypedDict, total=False):
    """How a check function judges: the keywords that all of them take."""

    checks: Collection[str] | None
    """Names of the checks to run; all that say something of the subject if left out."""
    expected_failures: Mapping[str, str] | None
    """Reasons by check: such a check must fail, and is an error where it holds."""
    on_fail: OnFail
    """``"raise"``, ``"warn"`` (a ``SpeculationWarning``) or None: the verdicts are returned whatever they are."""
    fail_fast: bool
    """Whether the first check that fails is the last that is run."""
    callback: Callable[[Verdict], object] | None
    """Called with each verdict when its check ends."""
    timeout: float
    """Seconds for all checks together: 600 if left out."""
    alarm: float
    """The probability that a right subject is refuted by what is sampled of it: 1e-6 if left out."""
    edge: float
    """The probability per draft from which on a fault at an end of a random number refutes: 1e-9 if left out. Less
    likely ones are a note beside HOLDS; with 0 all of them refute."""
    quick: bool
    """Examine a fixed list of cases, the same on every machine (``specverify.run.quick``). A refutation is as certain
    as without it; what holds is examined in fewer cases, and the verdict says how many were left out."""


class Plan(NamedTuple):
    """What would be run."""

    name: str
    checks: tuple[str, ...]
    """The names of what can be asked of it, in the order they run."""
    examine: Callable[[Collection[str], float, Mapping[str, Verdict]], Iterable[Verdict]]
    """``examine(names, seconds, known)``: the verdicts, ``known`` being those that checks have come to before."""
    how: Judging
    applicable: tuple[str, ...] = ()
    """The names of those that say something of it, as far as that is known before it is run."""
    statistical: frozenset[str] = frozenset()
    """The names of those that sample."""
    sample_decides: bool = False
    """Whether an exact check may stay UNKNOWN where a sample holds."""
    refuted_alone: bool = False
    """Whether what is refuted is all the news there is."""
    replays: bool = True
    """Whether the command line can see its failures again."""
    hint: Callable[[], str] = lambda: ""
    """What else to say of a failure."""


def planned_by(check: Any) -> Callable[..., Plan] | None:
    """Return what makes the plan of a check function, or None if it is none."""
    return getattr(check, "plan", None)


def with_options_checked(planned: Callable[Parameters, Plan]) -> Callable[Parameters, Plan]:
    """Return the same with every keyword and every common option looked at first."""
    known = [name for name in inspect.signature(planned).parameters if name != "how"]

    @functools.wraps(planned)
    def plan(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Plan:
        __tracebackhide__ = True
        for name in kwargs:
            if name not in known and name not in Judging.__annotations__:
                hint = nearest(name, [*known, *Judging.__annotations__])
                raise ValueError(f"{planned.__name__} has no option {name!r}{hint}")
        check_common({name: value for name, value in kwargs.items() if name in Judging.__annotations__})
        result = planned(*args, **kwargs)
        check_names(result.how.get("checks"), "checks", result.checks)
        check_names(result.how.get("expected_failures"), "expected_failures", result.checks)
        return result

    return plan


def full_signature(planned: Callable[..., Plan]) -> inspect.Signature:
    """Return the signature of a check function with the common options in it, as ``help`` shows it."""
    signature, hints = inspect.signature(planned), get_type_hints(Judging)
    own = [item for item in signature.parameters.values() if item.name != "how"]
    common = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=hints[name]) for name in hints]
    parameters = [item.replace(default=DEFAULTS[item.name]) for item in common]
    return signature.replace(parameters=[*own, *parameters], return_annotation="Sequence[Verdict]")


DEFAULTS: Mapping[str, Any] = {
    "checks": None,
    "expected_failures": None,
    "on_fail": "raise",
    "fail_fast": False,
    "callback": None,
    "timeout": SECONDS,
    "alarm": ALARM,
    "edge": EDGE,
    "quick": False,
}


def check_common(how: Mapping[str, Any]) -> None:
    """Raise ``ValueError`` in one sentence for a common option that cannot be."""
    given = {**DEFAULTS, **how}
    check_choice(given["on_fail"], "on_fail", ("raise", "warn", None))
    check_flag(given["fail_fast"], "fail_fast")
    check_flag(given["quick"], "quick")
    check_seconds(given["timeout"], "timeout")
    check_probability(given["alarm"], "alarm")
    check_edge(given["edge"])
    if given["callback"] is not None:
        check_callable(given["callback"], "callback", arguments=1)
    reasons = given["expected_failures"]
    if reasons is not None and not (
        isinstance(reasons, Mapping) and all(isinstance(why, str) and why.strip() for why in reasons.values())
    ):
        raise argument_error("expected_failures", reasons, "reasons by check, such as {'law_is_target': 'issue 12'}")


def check_names(names: Any, what: str, known: Sequence[str]) -> None:
    """Raise ``ValueError`` unless ``names`` is None or at least one name of a check."""
    if names is None or (what == "expected_failures" and not names):
        return
    if isinstance(names, str) or not isinstance(names, Collection) or not names:
        raise argument_error(what, names, "names of checks, such as ['law_is_target']")
    for name in names:
        if name not in known:
            raise ValueError(f"{what} names {name!r}, expected some of {', '.join(known)}{nearest(name, known)}")


def subject_plan(
    subject: Subject,
    how: Judging,
    *,
    sampled: bool = False,
    hint: Callable[[], str] = lambda: "",
    promises: tuple[Check, ...] = (),
) -> Plan:
    """Return the plan of a subject: its exact checks, those of its ``promises``, if ``sampled`` those that sample."""
    check_flag(sampled, "sampled")
    checks = (*EXACT_CHECKS, *promises, *(CHECKS[len(EXACT_CHECKS) :] if sampled else ()))
    conditions = Conditions(false_alarm=how.get("alarm", ALARM))
    return checks_plan(subject, checks, conditions, how)._replace(sample_decides=sampled, hint=hint)


def checks_plan(subject: Subject, checks: tuple[Check, ...], conditions: Conditions, how: Judging) -> Plan:
    """Return the plan of these checks of a subject."""
    conditions = conditions._replace(edge=how.get("edge", EDGE))

    def examine(names: Collection[str], seconds: float, known: Mapping[str, Verdict]) -> Iterable[Verdict]:
        chosen = tuple(check for check in checks if check.name in names)
        return verify_subject(subject, Checklist(chosen, conditions, seconds, bool(how.get("quick"))), known=known)

    return Plan(
        subject.name,
        tuple(check.name for check in checks),
        examine,
        how,
        applicable=tuple(check.name for check in checks if not_applicable(subject, check) is None),
        statistical=frozenset(
            check.name for check in checks if check.evidence is Evidence.STATISTICAL and check in CHECKS
        ),
    )


def seconds_of(how: Judging) -> float:
    """Return the seconds that all checks have together."""
    return how.get("timeout", SECONDS)


def shared(given: Mapping[str, Any], more: Judging) -> dict[str, Any]:
    """Return ``given`` keywords with ``more``, which are a share: of the alarm or the time no more than was given."""
    merged = {**given, **more}
    both = {name: min(given[name], more[name]) for name in ("alarm", "timeout") if name in given and name in more}
    return merged | both


def claiming(subject: Subject, claims: Collection[Claim] | None) -> Subject:
    """Return the subject held to ``claims``, where there are any."""
    if claims is None:
        return subject
    if isinstance(claims, str) or not isinstance(claims, Collection) or not claims:
        raise argument_error("claims", claims, "a collection of at least one Claim, such as {Claim.LOSSLESS}")
    for claim in claims:
        if not isinstance(claim, Claim):
            raise argument_error("a claim", claim, f"one of {', '.join(f'Claim.{each.name}' for each in Claim)}")
    return subject._replace(claims=frozenset(claims))


def name_of(function: Any) -> str:
    """Return where a function is from, as the command line names it; of a partial, what is given in it too."""
    if isinstance(function, functools.partial):
        given = [*map(_told, function.args), *(f"{name}={_told(value)}" for name, value in function.keywords.items())]
        return f"{name_of(function.func)}({', '.join(given)})"
    return f"{getattr(function, '__module__', '')}:{getattr(function, '__qualname__', None) or _told(function)}"


def _told(value: Any) -> str:
    """Return a value as Python writes it, on one line, without its place in memory: that is another in every run."""
    return re.sub(r" at 0x[0-9a-fA-F]+", "", " ".join(repr(value).split()))


def checked_gammas(gammas: Any) -> tuple[int, ...]:
    """Return the numbers of drafts to examine a verifier at, as they were given."""
    if not isinstance(gammas, Sequence) or isinstance(gammas, (str, bytes)) or not gammas:
        raise argument_error("gammas", gammas, "a sequence of at least one number of drafts, such as (1, 2)")
    for gamma in gammas:
        check_integer(gamma, f"a gamma of {tuple(gammas)}")
    if len(set(gammas)) < len(gammas):
        raise argument_error("gammas", gammas, "each number of drafts once")
    return tuple(map(int, gammas))
