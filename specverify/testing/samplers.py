"""Black boxes: what samples where nobody can look."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Unpack

from specverify.base.arguments import argument_error, check_callable, is_token, shown
from specverify.base.verdict import Status, Verdict
from specverify.foreign.guard import guarded
from specverify.foreign.places import place_of_error
from specverify.promises.pairs import OF_PROMISE, judge_seeds
from specverify.promises.sampled import judge_values, tokens_sampled
from specverify.reference import Tokens
from specverify.run.greedy import judged_greedily
from specverify.run.samplers import SamplingPlan, check_plan, sampled_verdicts, seeds_of
from specverify.subjects.sampler import Sampler
from specverify.subjects.subject import UnusableSubject
from specverify.testing.engines import greedy_logits
from specverify.testing.judged import judged
from specverify.testing.plans import ALARM, Judging, Plan, name_of
from specverify.testing.promised import Returns, promised_pairs, promised_values

OF_A_LAW, OF_A_REFERENCE = ("samples_fit_law", "samples_are_supported"), ("samples_fit_reference",)
OF_SEEDS = ("seed", "seed-as-plain")
"""What a sampler may promise of its seeds."""
SampleCall = Callable[..., Any]
"""``sample(seed, n)``, or ``sample(seed, n, prefix)`` where laws are given by prefix."""


@judged
def check_sampler(
    sample: SampleCall,
    *,
    law: Mapping[Any, float] | Any = None,
    reference: SampleCall | None = None,
    law_after: Mapping[Any, Any] | None = None,
    draft: Any = None,
    acceptance: Any = None,
    logits: Callable[[Tokens], Any] | None = None,
    tolerance: float = 0.05,
    most_samples: int | None = None,
    largest_call: int = 4096,
    rounding: float = 1e-6,
    seed: int = 0,
    returns: Returns | None = None,
    promises: Collection[str] = (),
    **how: Unpack[Judging],
) -> Plan:
    """Judge a black box by its samples; ``sample(seed, n)`` returns n sequences of token ids.

    They are in the order they were drawn in, independent of each other and of those of other seeds: that is judged too,
    and named if it is not so.

    ``law`` is what they should follow: probabilities by token sequence (tuples; ``"others"`` for all not named), or a
    pmf ``[vocabulary]`` where every sequence is one token. Where none is known, ``reference`` samples it, such as
    the same engine without speculation. ``draft`` is a pmf of the same outcomes as ``law``; a wrong residual is seen
    sooner with it.

    ``law_after`` are laws of what follows a prefix, by prefix (tuples): ``sample(seed, n, prefix)`` is asked for what
    it would say if those tokens had been its own so far. Where a law of whole sequences is too large to be known,
    these are what a forward pass tells. Each prefix has its share of the alarm and verdicts of its own.

    A sampler may also say how many drafts it accepted: ``{"tokens": sequences, "accepted": n whole numbers}``. They are
    counted; ``acceptance``, a pmf over 0, 1, 2 ... accepted drafts of a sequence, is what they should follow.

    ``tolerance`` is the total variation within which it HOLDS; it is REFUTED only where it has *not* the law, however
    near. ``alarm`` bounds the probability that a right sampler is ever refuted, and that one beyond the tolerance ever
    holds. ``most_samples``: as many as a right sampler needs to hold, a million at most, if left out; ``largest_call``
    is the largest n. ``rounding`` is how far off the law's probabilities may be, relatively, by floating point.

    ``logits`` is for greedy samplers: ``logits(new)`` is the row ``[vocabulary]`` whose argmax follows the tokens
    ``new``, or a mapping from the likeliest tokens to their logarithms. Where the only text of a sampler is not the
    only one of what it is judged by, a gap that ``rounding`` explains is UNKNOWN: a near-tie, which may be no bug.

    ``returns`` names the values that an answer holds beside the tokens, as in ``check_engine``: the sampler answers
    with ``{"tokens": rows, "logprobs": rows, ...}`` or with n objects. Log-probabilities are compared with those of
    ``law``, other values with what ``reference`` answers for the same tokens, all of them with those of equal tokens.

    ``promises`` may have ``"seed"``, two calls with one seed return the same, and ``"seed-as-plain"``, ``reference``
    returns the same.

    Raises ``ValueError`` for arguments that cannot be.
    """
    values, pairs = promised_values(returns), promised_pairs(promises, OF_SEEDS)
    if "seed-as-plain" in pairs and reference is None:
        raise argument_error("reference", None, "the sampler without speculation, where 'seed-as-plain' is promised")
    check_callable(sample, "sample", arguments=2 if law_after is None else 3)
    if reference is not None:
        check_callable(reference, "reference", arguments=2)
    plan = SamplingPlan(tolerance, how.get("alarm", ALARM), most_samples, largest_call, rounding, seed)
    check_plan(plan)
    known = greedy_logits(logits, rounding)
    name = name_of(sample)
    other = None if reference is None else Sampler(name_of(reference), reference)
    valued = None
    if values:
        valued = Sampler(name, sample), other
        sample = tokens_sampled(sample, tuple(values))
        other = None if other is None else other._replace(sample=tokens_sampled(other.sample, tuple(values)))

    def work() -> Sequence[Verdict]:
        seeds = seeds_of([plan.seed, 2])
        beside = judge_seeds(Sampler(name, sample), pairs, seeds, plan.largest_call, other)
        if valued is not None:
            beside.append(judge_values(valued[0], values, seeds, plan.largest_call, law=law, reference=valued[1]))
        refuted = [verdict for verdict in beside if verdict.status is Status.REFUTED]
        return refuted or [*of_tokens(), *beside]

    def of_tokens() -> Sequence[Verdict]:
        if law_after is not None:
            return _after_each(Sampler(name, sample), law_after, plan, acceptance)
        return judged_greedily(
            Sampler(name, sample), plan, known, law=law, reference=other, draft=draft, acceptance=acceptance
        )

    if law_after is not None:
        _check_prefixes(law_after, [law, reference, draft, logits])
        if values:
            raise ValueError("law_after and returns were given, expected law or reference where values are compared")
    names = (
        *(OF_A_REFERENCE if reference is not None else OF_A_LAW),
        *(("acceptance_fits_law",) if acceptance is not None else ()),
        *(("rows_are_independent",) if largest_call > 1 else ()),
        "calls_are_independent",
        *(OF_PROMISE[promise].check for promise in OF_SEEDS if promise in pairs),
        *(("values_match",) if values else ()),
    )
    return Plan(
        name,
        names,
        partial(_some_verdicts, name, work),
        how,
        applicable=names,
        statistical=frozenset(names),
        refuted_alone=True,  # what is refuted ends the sampling: then the rest is open, and no news
    )


def _check_prefixes(laws: Any, others: Sequence[Any]) -> None:
    """Raise ``ValueError`` unless they are laws by prefix, and nothing else is to be judged by."""
    if any(other is not None for other in others):
        raise ValueError("law_after and law, reference, draft or logits were given, expected law_after alone")
    if not isinstance(laws, Mapping) or not laws:
        raise argument_error("law_after", laws, "laws by prefix, at least one")
    for prefix in laws:
        if not (isinstance(prefix, tuple) and all(map(is_token, prefix))):
            raise ValueError(f"law_after has the key {shown(prefix)}, expected a tuple of token ids")


def _after_each(sampler: Sampler, laws: Mapping[Any, Any], plan: SamplingPlan, acceptance: Any) -> Sequence[Verdict]:
    """Return the verdicts on what follows each prefix; the prefixes share the alarm."""
    shared = plan._replace(alarm=plan.alarm / len(laws))

    def after(prefix: Any) -> Sampler:
        return Sampler(f"{sampler.name} after {prefix}", lambda seed, n: sampler.sample(seed, n, prefix))  # type: ignore[call-arg]

    return [
        verdict
        for prefix, law in laws.items()
        for verdict in sampled_verdicts(after(prefix), shared, law=law, acceptance=acceptance)
    ]


def _some_verdicts(
    name: str,
    work: Callable[[], Sequence[Verdict]],
    names: Collection[str],
    seconds: float,
    known: Mapping[str, Verdict],
) -> Iterable[Verdict]:
    """Return the verdicts of these names: all come of the same samples."""
    if set(names) <= set(known):
        return [known[check] for check in names]
    return [verdict for verdict in _verdicts(name, work, seconds, next(iter(names))) if verdict.check in names]


def _verdicts(name: str, work: Callable[[], Sequence[Verdict]], seconds: float, first: str) -> Sequence[Verdict]:
    """Return what came of the samples; where nothing did, the first check that was asked for says why."""
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
