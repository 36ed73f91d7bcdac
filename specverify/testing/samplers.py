"""Checks of black boxes: samplers whose code cannot be examined."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, Unpack

from specverify.base.arguments import argument_error, check_callable, is_token, shown
from specverify.base.verdict import Status, Verdict
from specverify.foreign.guard import guarded
from specverify.foreign.places import place_of_error
from specverify.promises.constraint import CHECK as CONSTRAINT
from specverify.promises.constraint import judge_constraint
from specverify.promises.pairs import OF_PROMISE, PROMISES, judge_pairs
from specverify.promises.sampled import judge_values, tokens_sampled
from specverify.reference import Tokens
from specverify.run.greedy import judged_greedily
from specverify.run.paths_of_samples import ExplainedSampler, explained_if_possible
from specverify.run.sequential_samples import SamplingPlan, check_plan, sampled_verdicts, seeds_of
from specverify.subjects.sampler import Sampler, with_seed_first
from specverify.subjects.subject import UnusableSubject
from specverify.testing.engines import greedy_logits
from specverify.testing.judged import judge, judged
from specverify.testing.plans import ALARM, CheckOptions, CheckPlan, name_of
from specverify.testing.promised import Returns, promised_constraint, promised_pairs, promised_values

OF_A_LAW, OF_A_REFERENCE = ("samples_fit_law", "samples_are_supported"), ("samples_fit_reference",)
SampleCall = Callable[..., Any]
"""``sample(seed, n)``; or ``sample(seed, n, prefix)`` if laws are given by prefix."""
SamplerLaw = Mapping[Any, Any] | Sequence[float] | SampleCall | Any
"""A pmf ``[vocabulary]``, probabilities by token sequence, laws by prefix, or a reference sampler."""
EXPLAINING = 30.0
"""The longest time, in seconds, in which the cause of a refutation is searched for."""
TV, ROUNDING = 0.05, 1e-6
"""Defaults of the total variation within which a sampler holds, and of the relative error of its law."""


@judged("tv", "seed", "rounding")
def check_sampler(
    sample: SampleCall,
    law: SamplerLaw,
    *,
    draft: Any = None,
    logits: Callable[[Tokens], Any] | None = None,
    most_samples: int | None = None,
    largest_call: int = 4096,
    returns: Returns | None = None,
    promises: Collection[str] | Mapping[str, Callable[..., Any] | None] = (),
    **options: Unpack[CheckOptions],
) -> Sequence[Verdict]:
    """Judge a black box by its samples.

    The verdict REFUTED means that the sampler's law differs from the expected law, by any amount. HOLDS means that the
    total variation between the two laws is at most ``tv``. After a refutation, the random calls of one sample are
    intercepted to search for the cause, which the message then states first.

    Args:
        sample: ``sample(seed, n)`` returns n sequences of token ids in the order of their drawing. The sequences must
            be independent of each other and of those for other seeds; this is tested too. ``sample`` may also return
            ``{"tokens": sequences, ...}``, or n mappings that have ``"tokens"``. With ``returns`` it may also return n
            objects that have the token ids as an attribute, such as ``token_ids``.
        law: The expected law, in one of four forms. A pmf ``[vocabulary]``, if every sequence is one token. A mapping
            from token sequences (tuples) to probabilities, with ``"others"`` for all other sequences. Another sampler,
            ``law(seed, n)``, such as the same engine without speculation. A mapping from prefixes (tuples) to the law
            after each prefix; ``sample(seed, n, prefix)`` must then continue a prefix as if it were its own text. Each
            prefix has its share of the alarm and its own verdicts. Use prefixes if a law of whole sequences is too
            large: a forward pass gives the pmf after a prefix.
        draft: The pmf of drafts over the same outcomes as ``law``. With it a wrong residual needs fewer samples.
        logits: For greedy samplers: ``logits(new)`` is the row ``[vocabulary]`` whose argmax follows the tokens
            ``new``, or a mapping from the most probable tokens to their logarithms. If two texts first differ where
            ``rounding`` explains the gap between the two logits (a near-tie), the verdict is UNKNOWN: it may be no bug.
        most_samples: Largest number of samples, at least 64. None: as many as a right sampler needs for HOLDS, and at
            most a million.
        largest_call: The largest n of a call.
        returns: Values that an answer contains in addition to the tokens, as in ``check_engine``. Log-probabilities are
            compared with those of ``law``, and other values with those that a reference sampler returns for the same
            tokens. Equal tokens must have equal values. ``{"accepted": pmf}`` gives the expected law of the number of
            accepted drafts of a sequence, over 0, 1, 2, ...
        promises: ``"seed"``: two calls with the same seed return the same texts. ``"seed-as-plain"``: the reference
            sampler returns the same texts for the same seed. ``"batch"``: with a given seed, a row depends neither on n
            nor on earlier calls. ``"resume"``: a text that is cut and continued by ``sample(seed, 1, prefix)`` equals
            the uncut text. ``{"allowed": mask}``: no text has a token that ``mask(new)``, a mask ``[vocabulary]``,
            forbids after the tokens ``new``.
        **options: See ``CheckOptions``. ``alarm`` bounds two probabilities: that a right sampler is refuted, and that a
            sampler whose law is farther than ``tv`` from ``law`` HOLDS. ``rounding`` is the relative error of the law's
            probabilities.

    Returns:
        One verdict for each check; a refutation ends the sampling.

    Raises:
        SpeculationRefuted, SpeculationUndecided, UnusableSubject: As in ``check_verifier``.
        ValueError: For an invalid law or options.

    Examples:
        >>> import numpy as np
        >>> def sample(seed, n):
        ...     return np.random.default_rng(seed).choice(2, size=(n, 1), p=[0.25, 0.75])
        >>> {str(verdict.status) for verdict in check_sampler(sample, [0.25, 0.75], tv=0.2)}
        {'holds'}
    """
    returns, acceptance = _acceptance_in(returns)
    sample, law = with_seed_first(sample), with_seed_first(law) if callable(law) else law
    values, given = promised_values(returns), _law_of(law)
    check_callable(sample, "sample", arguments=2 if given.by_prefix is None else 3)
    pairs, allowed = _promised_of_sampler(sample, promises, law)
    plan = SamplingPlan(
        options.get("tv") or TV,
        options.get("alarm", ALARM),
        most_samples,
        largest_call,
        options.get("rounding", ROUNDING),
        options.get("seed", 0),
    )
    check_plan(plan)
    known = greedy_logits(logits, plan.rounding)
    name = name_of(sample)
    other = None if given.reference is None else Sampler(name_of(given.reference), given.reference)
    valued = None
    if values:
        valued = Sampler(name, sample), other
        sample = tokens_sampled(sample, tuple(values))
        other = None if other is None else other._replace(sample=tokens_sampled(other.sample, tuple(values)))

    def work() -> Sequence[Verdict]:
        seeds = seeds_of([plan.seed, 2])
        beside = judge_pairs(Sampler(name, sample), pairs, seeds, plan.largest_call, other)
        if allowed is not None:
            beside.append(judge_constraint(Sampler(name, sample), allowed, seeds, plan.largest_call))
        if valued is not None:
            one, reference = valued
            beside.append(judge_values(one, values, seeds, plan.largest_call, law=given.known, reference=reference))
        refuted = [verdict for verdict in beside if verdict.status is Status.REFUTED]
        return refuted or [*of_tokens(), *beside]

    def of_tokens() -> Sequence[Verdict]:
        if given.by_prefix is not None:
            return _after_each(Sampler(name, sample), given.by_prefix, plan, acceptance)
        return judged_greedily(
            Sampler(name, sample), plan, known, law=given.known, reference=other, draft=draft, acceptance=acceptance
        )

    explained = {name: ExplainedSampler(Sampler(name, sample), given.known, other)}
    if given.by_prefix is not None:
        explained = {
            after.name: ExplainedSampler(after, law)
            for prefix, law in given.by_prefix.items()
            for after in [_after(Sampler(name, sample), prefix)]
        }
        _check_left_out(draft=draft, logits=logits, returns=values or None)
    names = (
        *(OF_A_REFERENCE if other is not None else OF_A_LAW),
        *(("acceptance_fits_law",) if acceptance is not None else ()),
        *(("rows_are_independent",) if largest_call > 1 else ()),
        "calls_are_independent",
        *(OF_PROMISE[promise].check for promise in PROMISES if promise in pairs),
        *((CONSTRAINT,) if allowed is not None else ()),
        *(("values_match",) if values else ()),
    )
    plan_of_names = CheckPlan(
        name,
        names,
        partial(_some_verdicts, name, work, explained),
        options,
        applicable=names,
        statistical=frozenset(names),
        refuted_alone=True,  # what is refuted ends the sampling: then the rest is open, and no news
    )
    return judge(plan_of_names)


def _promised_of_sampler(
    sample: SampleCall, promises: Any, law: Any
) -> tuple[frozenset[str], Callable[[Tokens], Any] | None]:
    """Return the names of the promises to test in pairs of rows with one seed, and the function of the constraint.

    The function is None if no constraint is promised. ``promises`` and ``law`` are arguments of ``check_sampler``.
    Raises ``ValueError`` for invalid promises, and for those that cannot be examined with this ``sample`` and ``law``.
    """
    names, allowed = promised_constraint(promises)
    pairs = promised_pairs(names, PROMISES)
    if "seed-as-plain" in pairs and not callable(law):
        expected = "the sampler without speculation as law, where 'seed-as-plain' is promised"
        raise argument_error("law", law, expected)
    if "resume" in pairs:
        check_callable(sample, "sample, which takes a prefix where 'resume' is promised,", arguments=3)
    return pairs, allowed


def _check_left_out(**values: Any) -> None:
    """Raise ``ValueError`` for the first of ``values``, options by name, that is not None.

    These options cannot be used if the argument ``law`` contains laws by prefix.
    """
    for what, value in values.items():
        if value is not None:
            raise argument_error(what, value, "it to be left out where law holds laws by prefix")


class GivenLaw(NamedTuple):
    """The law against which samples are tested; exactly one field is set.

    ``known``: a pmf, or probabilities by token sequence. ``reference``: another sampler. ``by_prefix``: prefix -> the
    law after it.
    """

    known: Any = None
    reference: SampleCall | None = None
    by_prefix: Mapping[Tokens, Any] | None = None


def _law_of(law: Any) -> GivenLaw:
    """Return the argument ``law`` of ``check_sampler`` in the field of ``GivenLaw`` that its form selects.

    * A function: ``reference``.
    * A mapping whose values are laws: ``by_prefix``.
    * Any other value: ``known``, to be validated later.

    Raises ``ValueError`` for None, for a function that does not take two arguments, and for a mapping in which a key is
    no prefix or only some values are laws.
    """
    if law is None:
        raise argument_error("law", law, "a pmf, probabilities by token sequence, laws by prefix, or another sampler")
    if callable(law):
        check_callable(law, "the reference sampler given as law", arguments=2)
        return GivenLaw(reference=law)
    if isinstance(law, Mapping) and any(_is_law(value) for value in law.values()):
        for prefix, value in law.items():
            if not (isinstance(prefix, tuple) and all(map(is_token, prefix))):
                raise ValueError(f"law has the key {shown(prefix)}, expected prefixes, each a tuple of token ids")
            if not _is_law(value):
                raise argument_error(f"law after {prefix}", value, "a law, as after the other prefixes")
        return GivenLaw(by_prefix=law)
    return GivenLaw(known=law)


def _is_law(value: Any) -> bool:
    """Return whether ``value`` has the form of a law: a mapping, list, tuple or array, and not a number or a string."""
    return isinstance(value, (Mapping, list, tuple)) or getattr(value, "ndim", 0) > 0


def _acceptance_in(returns: Any) -> tuple[Any, Any]:
    """Split ``returns``, as in ``check_sampler``, into (other promises, law of the number of accepted drafts).

    The law is the entry ``"accepted"`` of a mapping; None if there is no such entry, or if the entry is no law. The
    other promises are None if there are none.
    """
    if not isinstance(returns, Mapping) or not _is_law(returns.get("accepted")):
        return returns, None
    return {name: kind for name, kind in returns.items() if name != "accepted"} or None, returns["accepted"]


def _after_each(sampler: Sampler, laws: Mapping[Any, Any], plan: SamplingPlan, acceptance: Any) -> Sequence[Verdict]:
    """Return the verdicts on the sampler after each prefix of ``laws``, which maps a prefix to the law after it.

    ``plan`` has the alarm, which the prefixes share equally, and the limits of the sampling. ``acceptance`` is the law
    of the number of accepted drafts, or None.
    """
    shared = plan._replace(alarm=plan.alarm / len(laws))
    return [
        verdict
        for prefix, law in laws.items()
        for verdict in sampled_verdicts(_after(sampler, prefix), shared, law=law, acceptance=acceptance)
    ]


def _after(sampler: Sampler, prefix: Any) -> Sampler:
    """Return a sampler whose sequences continue ``prefix``: each call of ``sampler`` gets the prefix too."""
    return Sampler(f"{sampler.name} after {prefix}", lambda seed, n: sampler.sample(seed, n, prefix))  # type: ignore[call-arg]


def _some_verdicts(
    name: str,
    work: Callable[[], Sequence[Verdict]],
    samplers: Mapping[str, ExplainedSampler],
    names: Collection[str],
    seconds: float,
    known: Mapping[str, Verdict],
) -> Iterable[Verdict]:
    """Return the verdicts of the checks ``names``, which all use the same samples.

    * ``name``: The name of the subject.
    * ``work``: Draws the samples and returns the verdicts. If it fails, there is only a verdict of the first check,
      with the reason.
    * ``samplers``: Name of the subject in a verdict -> its sampler, in which the cause of a refutation is searched.
    * ``seconds``: The time limit of ``work``.
    * ``known``: Verdicts by check. If it contains all verdicts, they are returned without new samples.
    """
    if set(names) <= set(known):
        return [known[check] for check in names]
    verdicts = _verdicts(name, work, seconds, next(iter(names)))
    explained = {
        subject: iter(_explained([verdict for verdict in verdicts if verdict.subject == subject], here))
        for subject, here in samplers.items()
    }
    verdicts = [next(explained[one.subject]) if one.subject in explained else one for one in verdicts]
    return [verdict for verdict in verdicts if verdict.check in names]


def _explained(verdicts: Sequence[Verdict], here: ExplainedSampler) -> Sequence[Verdict]:
    """Return ``verdicts`` on the sampler of ``here``, with the cause of a refutation added if one is found.

    The search for the cause is limited to ``EXPLAINING`` seconds and never changes a status.
    """
    if all(verdict.status is not Status.REFUTED for verdict in verdicts):
        return verdicts
    return guarded(partial(explained_if_possible, verdicts, here), EXPLAINING).result or verdicts


def _verdicts(name: str, work: Callable[[], Sequence[Verdict]], seconds: float, first: str) -> Sequence[Verdict]:
    """Return the verdicts that ``work`` returns, if it ends within ``seconds``.

    If it fails or takes longer, return one verdict on the subject ``name`` with the reason, for the check ``first``.
    """
    try:
        result = guarded(work, seconds)
    except UnusableSubject as error:
        place = f" ({place_of_error(error.__cause__.__traceback__)})" if error.__cause__ else ""
        said = f"{error}{place}"
        return [Verdict(name, first, Status.UNUSABLE, said)]
    if result.result is not None:
        return result.result
    said = result.ended or f"{seconds:g} s were not enough: {result.out_of_time}"
    return [Verdict(name, first, Status.UNUSABLE if result.ended else Status.UNKNOWN, said)]
