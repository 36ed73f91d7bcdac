"""Explain a wrong law of samples by the paths of one sample.

After a refutation, the random calls of ``sample(seed, 1)`` are intercepted, and it is run once for each sequence of
outcomes (path). This changes no verdict. The paths explain the samples only if their law fits the counts that were
sampled.
"""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import islice
from traceback import clear_frames
from typing import Any, NamedTuple

from specverify.base.verdict import Counterexample, Status, Verdict
from specverify.checks.explaining.engine_counterexamples import program_counterexample
from specverify.checks.explaining.engine_paths import KeptPaths
from specverify.checks.explaining.given_drafts import place_of
from specverify.checks.explaining.reused_numbers import USED_TWICE, reuse_in_words
from specverify.intercept.audit import audited
from specverify.intercept.cpython.sandbox import watch_outside
from specverify.laws.known_law import OTHERS, known_law
from specverify.laws.paths import has_more_paths, outcomes_of
from specverify.reference import Tokens
from specverify.statistics.e_processes import log_e_value
from specverify.subjects.engine import program_of
from specverify.subjects.sampler import Sampler, drawn
from specverify.subjects.subject import EngineProgram

OF_LAWS = ("samples_fit_law", "samples_fit_reference")
OF_SUPPORT = "samples_are_supported"
SEED = 1
MOST_PATHS = 1000
"""A sample with more paths is not explained."""
COMPLETE = 1 - 1e-9
LARGEST_EVIDENCE = 7.0
"""The largest logarithm of the e-value of the sampled counts against the law of the paths."""


class ExplainedSampler(NamedTuple):
    """A sampler, and the law or the reference sampler with which its samples were compared."""

    sampler: Sampler
    law: Any = None
    reference: Sampler | None = None


class _FollowedPaths(NamedTuple):
    """All paths of one sample, and their law of texts.

    ``program`` is the sampler as a program of draws, ``engine`` holds its paths, and ``reuse`` is a sentence about a
    random number that is used twice, or "".
    """

    program: EngineProgram
    engine: KeptPaths
    law: Mapping[Tokens, float]
    reuse: str


def explained_verdicts(verdicts: Sequence[Verdict], here: ExplainedSampler) -> Sequence[Verdict]:
    """Return the ``verdicts`` on one sampler, with the cause of a wrong law added to those that refute the law.

    They are unchanged if none refutes the law, or if no cause is found. The cause becomes the first sentence of the
    message. ``here`` has the sampler and the expected law.
    """
    tally = next(
        (
            one.figures["tally"]
            for one in verdicts
            if one.check in OF_LAWS and one.status is Status.REFUTED and "tally" in one.figures
        ),
        None,
    )
    cause = None if tally is None else _cause(here, tally)
    return verdicts if cause is None else [_with_cause(one, cause) for one in verdicts]


def explained_if_possible(verdicts: Sequence[Verdict], here: ExplainedSampler) -> Sequence[Verdict]:
    """Return ``explained_verdicts(verdicts, here)``, or ``verdicts`` unchanged if the sampler cannot be followed.

    The sampler cannot be followed if it raises an error or calls something that cannot be intercepted. What the sampler
    has left open, such as a socket, is then closed without a warning.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        try:
            return explained_verdicts(verdicts, here)
        except Exception as error:  # noqa: BLE001 - an explanation runs the program once more, and that may raise anything
            for raised in _with_causes(error):
                clear_frames(raised.__traceback__)
            return verdicts


def _with_causes(error: BaseException) -> list[BaseException]:
    """Return ``error`` and the exceptions that caused it or were being handled when it was raised."""
    result = [error]
    for raised in result:
        more = (raised.__cause__, raised.__context__)
        result += [each for each in more if each is not None and not any(each is known for known in result)]
    return result


def _with_cause(verdict: Verdict, cause: Counterexample) -> Verdict:
    """Return ``verdict`` with the sentence and the paths of ``cause`` added, if the verdict refutes the law of samples.

    A verdict that refutes their support (an impossible sample) is changed too. Any other verdict is returned unchanged.
    """
    example = verdict.counterexample
    if verdict.check not in {*OF_LAWS, OF_SUPPORT} or verdict.status is not Status.REFUTED or example is None:
        return verdict
    rows = tuple(filter(None, [example.fault or example.then, *example.rows]))
    return verdict._replace(counterexample=example._replace(fault=cause.fault, rows=rows, because=cause.because))


def _cause(here: ExplainedSampler, tally: Mapping[str, Any]) -> Counterexample | None:
    """Return a counterexample that states why the law of a sampler is wrong; None if no cause is found.

    The cause is searched in all paths (sequences of draws) of one sample, provided that their law fits ``tally``, the
    number of samples of each outcome. ``here`` has the sampler and the expected law.
    """
    expected = _expected(here)
    paths = None if expected is None else _followed(here.sampler, expected)
    if expected is None or paths is None or not _fits(paths.law, tally):
        return None
    if continued := _after_end(paths, expected):
        return Counterexample((), "", fault=continued)
    with paths.program.open() as run:
        example = program_counterexample(paths.program, run, paths.law, expected, paths.engine)
    if paths.reuse:
        return example._replace(fault=USED_TWICE + paths.reuse)
    return example if example.named else None


def _after_end(paths: _FollowedPaths, expected: Mapping[Tokens, float]) -> str:
    """Return a message about the first text of ``paths`` with tokens after its end; "" if there is none.

    A text has reached its end when the tokens so far are a text of ``expected``, and no other text of ``expected``
    begins with them. The message has these tokens, the token that follows, and the line of the sampler's last draw.
    """
    begun = {text[:length] for text in expected for length in range(len(text))}
    for path in paths.engine:
        for text, _ in outcomes_of(path.outcome):
            for length in range(1, len(text)):
                if text[:length] in expected and text[:length] not in begun:
                    place = place_of(path.decisions[-1]) if path.decisions else ""
                    at = f" ({place})" if place else ""
                    return f"the text continues after its end: {text[length]} follows {text[:length]}{at}"
    return ""


def _expected(here: ExplainedSampler) -> Mapping[Tokens, float] | None:
    """Return the expected law of texts; None if it does not name all texts, or a reference sampler has too many paths.

    ``here`` has the law or the reference sampler.
    """
    if here.reference is not None:
        paths = _followed(here.reference, {})
        return None if paths is None else paths.law
    law = known_law(here.law)
    texts = {law.outcome(i): float(mass) for i, mass in enumerate(law.masses.tolist()) if mass > 0}
    return None if OTHERS in texts else {text: mass for text, mass in texts.items() if isinstance(text, tuple)}


def _followed(sampler: Sampler, expected: Mapping[Tokens, float]) -> _FollowedPaths | None:
    """Return all paths of one sample of ``sampler``.

    Returns None if there are more than ``MOST_PATHS``, or if their probabilities do not sum to 1. ``expected`` is the
    right law of texts; the messages about the paths compare with it.
    """

    def one() -> Tokens:
        return drawn(sampler, SEED, 1)[0]

    watch_outside()  # a connection is refused, also in a process without engines
    program = program_of("one sample", one, expected)
    law: dict[Tokens, float] = defaultdict(float)
    with audited() as reuses, program.open() as run:
        if has_more_paths(run, MOST_PATHS):
            return None
        engine = KeptPaths(run)
        for number, path in enumerate(islice(engine, MOST_PATHS + 1)):
            if number == MOST_PATHS:
                return None
            for text, share in outcomes_of(path.outcome):
                law[text] += float(path.weight) * float(share)
    if sum(law.values()) < COMPLETE:
        return None
    return _FollowedPaths(program, engine, law, reuse_in_words(reuses[0]) if reuses else "")


def _fits(law: Mapping[Tokens, float], tally: Mapping[str, Any]) -> bool:
    """Return whether the sampled counts in ``tally`` are probable under ``law``, the law of the paths.

    Outcomes that ``tally`` does not list are counted together.
    """
    masses = {str(text): mass for text, mass in law.items()}
    shown = {name: count for name, _, count in tally["shown"]}
    left = tally["samples"] - sum(shown.values())
    cells = [masses.get(name, 0.0) for name in shown]
    unseen = max(0.0, 1.0 - sum(cells))
    if left and unseen <= 0:
        return False
    return bool(log_e_value([*shown.values(), left], [*cells, unseen]) < LARGEST_EVIDENCE)
