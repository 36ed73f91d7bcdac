"""The plan of a check function: a subject, the checks that apply to it, and the options of the caller."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, ParamSpec, TypedDict, get_type_hints

from specverify.base.arguments import (
    argument_error,
    check_callable,
    check_choice,
    check_flag,
    check_integer,
    check_probability,
    check_rounding,
    check_seconds,
    check_seed,
    nearest,
)
from specverify.base.default_limits import EDGE, SECONDS
from specverify.base.edges import check_edge
from specverify.base.files import check_writable
from specverify.base.verdict import Evidence, Verdict
from specverify.checks import CHECKS, EXACT_CHECKS, Check, Conditions
from specverify.reference import Claim
from specverify.run.certified import write_certificates
from specverify.run.verify import Checklist, not_applicable, verify_subject, warmed_up
from specverify.subjects.subject import SampledPair, SampledSetting, Subject
from specverify.testing.log_lines import logged

OnFail = Literal["raise", "warn"] | None
ALARM = 1e-6
MOST_DRAFTS = 1024
"""The largest number of drafts in a round that a caller may ask for."""
HINT_SECONDS = 5.0
"""Time limit of what is tried to word a hint about a failure; no verdict depends on it."""
Parameters = ParamSpec("Parameters")


class CheckOptions(TypedDict, total=False):
    """The options that check functions share. The signature of a function shows which of them it takes."""

    checks: Collection[str] | None
    """Names of the checks to run; None: every check that applies to the subject."""
    expected_failures: Mapping[str, str] | None
    """Check -> reason. These checks must fail; one that holds is an error."""
    on_fail: OnFail
    """``"raise"`` an error on failure, ``"warn"`` (a ``SpeculationWarning``), or None: only return verdicts."""
    fail_fast: bool
    """Stop after the first check that fails."""
    callback: Callable[[Verdict], object] | None
    """Called with each verdict when its check ends."""
    timeout: float
    """Time limit in seconds for all checks together, by default 600."""
    alarm: float
    """The probability that samples refute a right subject, by default 1e-6."""
    edge: float
    """Least probability per draft at which a fault is refuted that occurs only at an end of the range of a random
    number; by default 1e-9. Less likely faults are a note of a verdict that HOLDS; with 0 every fault is refuted."""
    quick: bool
    """Whether to examine only a fixed list of cases, the same on every machine (``specverify.run.quick``). Refutations
    are as certain as without it; a verdict that HOLDS says how many cases were left out."""
    claims: Collection[Claim] | None
    """The claims to test, such as ``{Claim.LOSSLESS}``; None: all that this kind of subject can make."""
    sampled: bool
    """Whether to run sampling checks too. They decide if the draws of a subject cannot be intercepted."""
    tv: float | None
    """Total variation that samples must detect. A sampler within it HOLDS; one beyond it HOLDS with probability
    ``alarm`` at most. None: 0.05 for ``check_sampler``, 0.005 for ``check_kernel``, otherwise that of each sampled
    setting."""
    seed: int
    """Seed of all samples and of pairs of runs."""
    rounding: float
    """Relative error that floating point may leave in a probability: 1e-6 if left out."""
    certificate: str | Path | None
    """File to which the trees of draws of the exact verdicts are written; ``specverify check-certificate FILE`` adds up
    their probabilities, and with ``--replay`` runs them again. None: no file."""


class CheckPlan(NamedTuple):
    """The plan of a call of a check function: the subject, its checks, and the options."""

    name: str
    checks: tuple[str, ...]
    """The names of all checks in the plan, in the order in which they run."""
    examine: Callable[[Collection[str], float, Mapping[str, Verdict]], Iterable[Verdict]]
    """``examine(names, seconds, known)`` yields the verdicts; those in ``known`` are not computed again."""
    options: CheckOptions
    applicable: tuple[str, ...] = ()
    """The names of the checks that apply, as far as this is known before they run."""
    statistical: frozenset[str] = frozenset()
    """The names of the sampling checks."""
    sample_decides: bool = False
    """Whether an exact check may stay UNKNOWN if a sampling check holds."""
    refuted_alone: bool = False
    """Whether a refutation ends the plan, so that the other checks are undecided and not reported."""
    replays: bool = True
    """Whether the command line can replay its failures."""
    hint: Callable[[], str] = lambda: ""
    """Returns a further sentence for a failure, or ""."""
    certify: Callable[[Path], int] = lambda _: 0
    """``certify(file)`` writes the certificates of the subject and returns their number."""


def planned_by(check: Any) -> Callable[..., CheckPlan] | None:
    """Return the function that makes the plan of a check function; None if ``check`` is no check function."""
    return getattr(check, "plan", None)


def check_options(function: str, known: Collection[str], given: Mapping[str, Any]) -> None:
    """Raise ``ValueError`` for the first option in ``given`` that is invalid or that the check function does not take.

    ``function`` is the name of the check function, and ``known`` are the names of its options.
    """
    for name in given:
        if name not in known:
            new = RENAMED.get(function, {}).get(name)
            hint = f": write {new}" if new else nearest(name, known)
            if name in SOME_DEFAULTS:
                hint = ", which other check functions have"
            raise ValueError(f"{function} has no option {name!r}{hint}")
    check_common({name: value for name, value in given.items() if name in CheckOptions.__annotations__})


def options_of(taken: Collection[str]) -> Mapping[str, Any]:
    """Return name -> default for the options that all check functions take, and for those named in ``taken``.

    The names in ``taken`` are options of ``SOME_DEFAULTS`` that a check function takes in addition.
    """
    return {**DEFAULTS, **{name: value for name, value in SOME_DEFAULTS.items() if name in taken}}


def full_signature(function: Callable[..., Any], taken: Collection[str]) -> inspect.Signature:
    """Return the signature of a check function with the shared options in it.

    ``taken`` names the options in ``SOME_DEFAULTS`` that this function takes.
    """
    signature, hints, defaults = inspect.signature(function), get_type_hints(CheckOptions), options_of(taken)
    own = [item for item in signature.parameters.values() if item.name != "options"]
    shared_ones = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=hints[name], default=default)
        for name, default in defaults.items()
    ]
    return signature.replace(parameters=[*own, *shared_ones])


def _field(kind: str, call: str, names: Collection[str]) -> dict[str, str]:
    return {name: call.replace("FIELD", f"{kind}({name}=...)") for name in names}


_OF_KERNELS = ("uniforms", "recovery", "rule", "ends", "padding", "draft_padding", "offset_step")
RENAMED: Final[Mapping[str, Mapping[str, str]]] = {
    "check_kernel": {
        **_field("KernelConvention", "check_kernel(kernel, FIELD)", (*_OF_KERNELS, "library", "dtype", "device")),
        "rows_per_call": "largest_call=...",
    },
    "check_sampler": {
        "tolerance": "tv=...",
        "reference": "law=..., which takes a reference sampler",
        "law_after": "law=..., which takes laws by prefix",
        "acceptance": "returns={'accepted': pmf}",
    },
    "check_engine": {
        "vocabulary": "sizes=Sizes(least_vocabulary=...)",
        **_field("Sizes", "sizes=FIELD", ("horizon", "prompt", "rows", "gamma", "ranks")),
    },
    "check_cache": _field("CacheOperations", "check_cache(make, FIELD)", ("append", "crop", "read", "length", "fork")),
}
"""Old keywords. ``RENAMED[function][old]`` is the text to write in a call of ``function`` instead of ``old``."""


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
"""Options that every check function takes."""
SOME_DEFAULTS: Mapping[str, Any] = {"claims": None, "sampled": False, "tv": None, "seed": 0, "rounding": 1e-6,
                                     "certificate": None}  # fmt: skip
"""Options that several check functions take."""


def check_common(options: Mapping[str, Any]) -> None:
    """Raise ``ValueError`` in one sentence for the first of the shared ``options`` with an invalid value."""
    given = {**DEFAULTS, **SOME_DEFAULTS, **options}
    check_choice(given["on_fail"], "on_fail", ("raise", "warn", None))
    check_flag(given["fail_fast"], "fail_fast")
    check_flag(given["quick"], "quick")
    check_seconds(given["timeout"], "timeout")
    check_probability(given["alarm"], "alarm")
    check_edge(given["edge"])
    check_flag(given["sampled"], "sampled")
    check_seed(given["seed"])
    check_rounding(given["rounding"], "rounding")
    if given["tv"] is not None:
        check_probability(given["tv"], "tv")
    if given["callback"] is not None:
        check_callable(given["callback"], "callback", arguments=1)
    if given["certificate"] is not None and not (isinstance(given["certificate"], str | Path) and given["certificate"]):
        raise argument_error("certificate", given["certificate"], "a file to write, such as 'certificate.json'")
    if given["certificate"] is not None:
        check_writable(Path(given["certificate"]), "certificate")
    reasons = given["expected_failures"]
    if reasons is not None and not (
        isinstance(reasons, Mapping) and all(isinstance(why, str) and why.strip() for why in reasons.values())
    ):
        raise argument_error("expected_failures", reasons, "reasons by check, such as {'law_is_target': 'issue 12'}")


def check_names(names: Any, what: str, known: Sequence[str]) -> None:
    """Raise ``ValueError``, naming ``what``, unless ``names`` is None or a collection of names in ``known``.

    The collection must not be empty, except as the option ``expected_failures``.
    """
    if names is None or (what == "expected_failures" and not names):
        return
    if isinstance(names, str) or not isinstance(names, Collection) or not names:
        raise argument_error(what, names, "names of checks, such as ['law_is_target']")
    for name in names:
        if name not in known:
            raise ValueError(f"{what} names {name!r}, expected some of {', '.join(known)}{nearest(name, known)}")


def subject_plan(
    subject: Subject,
    options: CheckOptions,
    *,
    hint: Callable[[], str] = lambda: "",
    promises: tuple[Check, ...] = (),
) -> CheckPlan:
    """Return the plan of a subject: its exact checks, the checks ``promises``, and sampling checks if requested.

    ``options`` are the options of the caller. ``hint`` returns a further sentence for a failure.
    """
    sampled = options.get("sampled", False)
    subject = _seeing(claiming(subject, options.get("claims")), options.get("tv"))
    checks = (*EXACT_CHECKS, *promises, *(CHECKS[len(EXACT_CHECKS) :] if sampled else ()))
    conditions = Conditions(seed=options.get("seed", 0), false_alarm=options.get("alarm", ALARM))
    return checks_plan(subject, checks, conditions, options)._replace(
        sample_decides=sampled, hint=hint, certify=lambda file: write_certificates(file, warmed_up(subject))
    )


def _seeing(subject: Subject, tv: float | None) -> Subject:
    """Return the subject with as many samples as detect a total variation of ``tv`` from the expected law.

    The subject is unchanged if ``tv`` is None.
    """
    if tv is None:
        return subject
    settings = tuple(setting._replace(detect=tv, first_look=None) for setting in subject.settings)
    pairs = tuple(pair._replace(detect=tv) for pair in subject.pairs)
    return subject.with_situations(SampledSetting, settings).with_situations(SampledPair, pairs)


def checks_plan(
    subject: Subject, checks: tuple[Check, ...], conditions: Conditions, options: CheckOptions
) -> CheckPlan:
    """Return the plan that runs ``checks`` on a subject, with the caller's ``options``.

    ``conditions`` are the settings that all checks of the run share, such as the seed.
    """
    conditions = conditions._replace(edge=options.get("edge", EDGE))

    def examine(names: Collection[str], seconds: float, known: Mapping[str, Verdict]) -> Iterable[Verdict]:
        chosen = tuple(check for check in checks if check.name in names)
        checklist = Checklist(chosen, conditions, seconds, bool(options.get("quick")))
        return logged(subject.name, lambda progress: verify_subject(subject, checklist, progress, known=known))

    return CheckPlan(
        subject.name,
        tuple(check.name for check in checks),
        examine,
        options,
        applicable=tuple(check.name for check in checks if not_applicable(subject, check) is None),
        statistical=frozenset(
            check.name for check in checks if check.evidence is Evidence.STATISTICAL and check in CHECKS
        ),
    )


def seconds_of(options: CheckOptions) -> float:
    """Return the time limit of all checks together, in seconds, from the shared ``options``."""
    return options.get("timeout", SECONDS)


def shared(given: Mapping[str, Any], more: CheckOptions) -> dict[str, Any]:
    """Return the options ``given``, updated by ``more``.

    If both have an ``alarm`` (the false-alarm probability) or a ``timeout``, the smaller one is kept.
    """
    merged = {**given, **more}
    both = {name: min(given[name], more[name]) for name in ("alarm", "timeout") if name in given and name in more}
    return merged | both


def claiming(subject: Subject, claims: Collection[Claim] | None) -> Subject:
    """Return the subject with ``claims`` in place of its own; unchanged if ``claims`` is None.

    Raises ``ValueError`` unless they are at least one ``Claim``.
    """
    if claims is None:
        return subject
    if isinstance(claims, str) or not isinstance(claims, Collection) or not claims:
        raise argument_error("claims", claims, "a collection of at least one Claim, such as {Claim.LOSSLESS}")
    for claim in claims:
        if not isinstance(claim, Claim):
            raise argument_error("a claim", claim, f"one of {', '.join(f'Claim.{each.name}' for each in Claim)}")
    return subject._replace(claims=frozenset(claims))


def name_of(function: Any) -> str:
    """Return the name of a function as ``module:name``; for a ``partial``, followed by its arguments."""
    if isinstance(function, functools.partial):
        given = [
            *map(_stable_repr, function.args),
            *(f"{name}={_stable_repr(value)}" for name, value in function.keywords.items()),
        ]
        return f"{name_of(function.func)}({', '.join(given)})"
    return f"{getattr(function, '__module__', '')}:{getattr(function, '__qualname__', None) or _stable_repr(function)}"


def _stable_repr(value: Any) -> str:
    """Return ``repr(value)`` on one line and without memory addresses, which would differ in every run."""
    return re.sub(r" at 0x[0-9a-fA-F]+", "", " ".join(repr(value).split()))


def checked_gammas(gammas: Any) -> tuple[int, ...]:
    """Return ``gammas``, the numbers of drafts at which a verifier is examined, as a tuple after validation.

    Raises ``ValueError`` unless they are different integers from 1 to ``MOST_DRAFTS``.
    """
    if not isinstance(gammas, Sequence) or isinstance(gammas, (str, bytes)) or not gammas:
        raise argument_error("gammas", gammas, "a sequence of at least one number of drafts, such as (1, 2)")
    for gamma in gammas:
        check_integer(gamma, f"a gamma of {tuple(gammas)}", most=MOST_DRAFTS)
    if len(set(gammas)) < len(gammas):
        raise argument_error("gammas", gammas, "each number of drafts once")
    return tuple(map(int, gammas))
