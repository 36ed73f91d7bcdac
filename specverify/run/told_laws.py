"""Compute the law that a black box reports by log-probabilities, and reasons why its samples may differ from it.

Some servers report log-probabilities before sampling options are applied, others after. A report from before the
options is not the law of the samples, and must not refute a right server: with ``--set top_k=2``, for example, only two
of its tokens are sampled. So a reported law is doubted, with two exceptions: the server states that its reports include
the options, or the reports change with each option. Samples that fit a doubted law still hold; samples that do not are
UNKNOWN, with the reason.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from specverify.base.verdict import Status, Verdict
from specverify.laws.known_law import OTHERS
from specverify.laws.near_ties import NO_TOKEN, Logits
from specverify.reference import Tokens
from specverify.run.black_boxes import TOP, BlackBox, ReportedLogprobs, SampleRequest, Words
from specverify.subjects.subject import UnusableSubject

LEAST_LEFT: Final = 1e-6
"""The least probability of all unreported tokens together: float32 sums are no nearer to 1."""
MOST_QUESTIONS: Final = 500
"""Largest number of prefixes for which log-probabilities are requested to compute a law."""
PROBED: Final = 8
"""The number of most probable prefixes at which log-probabilities with and without an option are compared."""
REPEATED: Final = 3
"""How often the log-probabilities after the prompt are requested again: some options make them random."""
TRUNCATIONS: Final = frozenset({"top_k", "top_p", "min_p", "typical_p", "top_n_sigma", "min_keep"})
"""Options that never change which token is the most probable."""
OF_THE_TEXT: Final = TRUNCATIONS | {
    "temperature",
    "dynatemp_range",
    "dynatemp_exponent",
    "repetition_penalty",
    "repeat_penalty",
    "repeat_last_n",
    "presence_penalty",
    "frequency_penalty",
    "logit_bias",
    "ignore_eos",
}
"""Options with which the law of the next token depends only on the text so far. Not among them: ``grammar`` and
``min_tokens``, which count from the end of the prompt; ``mirostat``, which has a state; and ``xtc_probability``, which
is random."""
WITHOUT_EFFECT: Final = frozenset(
    {"cache_prompt", "id_slot", "user", "priority", "request_id", "timings_per_token", "skip_special_tokens"}
)
"""Options without effect on any law; the options of speculation have none either."""


class ToldLaw(NamedTuple):
    """The law of sequences computed from the log-probabilities that a black box itself reports."""

    law: dict[Any, float]
    doubts: list[str]
    """Reasons why the reported law may differ from the law of the samples."""
    notes: list[str]
    """Further notes for the reader."""


def law_from_logprobs(box: BlackBox, wanted: SampleRequest, words: Words, rounding: float) -> ToldLaw:
    """Return the law of sequences that follows from a black box's reported probabilities of next tokens.

    * ``wanted``: The prompt and the options.
    * ``words``: Numbers the tokens.
    * ``rounding``: The relative error of every reported probability and of the unreported rest. Every probability of a
      right subject is then within the factor ``(1 + rounding)^2`` of the law.

    The most probable prefixes are queried first. ``OTHERS`` gets the mass of unreported tokens, of tokens with an
    ambiguous text, and of prefixes beyond ``MOST_QUESTIONS``. Raises ``UnusableSubject`` if ``box`` reports no
    probabilities, or probabilities whose sum is above 1.
    """
    law: dict[Any, float] = {}
    asked: dict[Tokens, ReportedLogprobs] = {}
    open_prefixes: dict[Tokens, float] = {(): 1.0}
    end = None if wanted.eos is None else words.number(wanted.eos)
    for _ in range(MOST_QUESTIONS):
        if not open_prefixes:
            break
        prefix = max(open_prefixes, key=open_prefixes.__getitem__)
        mass = open_prefixes.pop(prefix)
        asked[prefix] = told = box.logprobs(prefix, wanted)
        shares = {token: math.exp(value) for token, value in told.logprobs.items()}
        if sum(shares.values()) > 1 + max(rounding, 1e-3):
            raise UnusableSubject(f"{box.sampler.name} returns probabilities that sum to {sum(shares.values()):.4g}")
        for token, share in shares.items():
            if not share or is_ambiguous(token):
                continue
            number = words.number(token)
            text = prefix if number == end else (*prefix, number)
            complete = number == end or len(text) == wanted.max_tokens
            (law if complete else open_prefixes)[text] = mass * share
    law[OTHERS] = max(1 - math.fsum(law.values()), 0.0) + max(rounding, LEAST_LEFT)
    total = math.fsum(law.values())
    doubts, notes = _doubts(box, wanted, asked, rounding)
    return ToldLaw({text: mass / total for text, mass in law.items()}, doubts, notes)


def is_ambiguous(token: Any) -> bool:
    """Return whether several tokens may have the text ``token``.

    This is so if the text is empty or has bytes that are no character.
    """
    return isinstance(token, str) and (not token or "\ufffd" in token)


def _doubts(
    box: BlackBox, wanted: SampleRequest, asked: Mapping[Tokens, ReportedLogprobs], rounding: float
) -> tuple[list[str], list[str]]:
    """Return the reasons to doubt the reported law, and further notes.

    ``box`` is the black box, and ``wanted`` the request for its samples. ``asked`` maps each queried prefix to its
    report, and ``rounding`` is the relative error of a report.
    """
    doubts, notes = [], list[str]()
    if any(_may_share_words(told, rounding) for told in asked.values()):
        doubts.append("it returns texts of tokens without ids, and an unlisted token may have the same text")
    if any(_differs(asked[()], box.logprobs((), wanted), rounding) for _ in range(REPEATED)):
        doubts.append("its log-probabilities after the prompt differ from one call to the next")
    for name in _options(wanted):
        less = without(wanted, name)
        shown = any(_differs(asked[prefix], box.logprobs(prefix, less), rounding) for prefix in list(asked)[:PROBED])
        if name not in OF_THE_TEXT:
            doubts.append(f"log-probabilities after a forced text may not include {name}")
        elif not shown and not all(told.processed for told in asked.values()):
            doubts.append(f"its log-probabilities do not change with {name}, so they may not include it")
        if not shown:
            notes.append(f"{name} changes none of the log-probabilities at {min(len(asked), PROBED)} texts")
    return doubts, notes


def _options(wanted: SampleRequest) -> Sequence[str]:
    tempered = ["temperature"] if wanted.temperature not in (None, 1.0) else []
    return [*tempered, *(name for name in wanted.options if not _is_without_effect(name))]


def _is_without_effect(name: str) -> bool:
    return name in WITHOUT_EFFECT or name.startswith("speculative.")


def without(wanted: SampleRequest, name: str) -> SampleRequest:
    """Return the request ``wanted`` without the option ``name``; for "temperature", with temperature 1."""
    if name == "temperature":
        return wanted._replace(temperature=1.0)
    return wanted._replace(options={key: value for key, value in wanted.options.items() if key != name})


def _may_share_words(told: ReportedLogprobs, rounding: float) -> bool:
    """Return whether an unreported token may have the same text as a reported one and so change its probability.

    True only if tokens are reported as texts, and if the unreported mass is not negligible beside the least reported
    probability. ``told`` is the report, and ``rounding`` the relative error of its probabilities.
    """
    named = [math.exp(value) for token, value in told.logprobs.items() if not is_ambiguous(token)]
    texts = any(isinstance(token, str) for token in told.logprobs)
    left = 1 - math.fsum(math.exp(value) for value in told.logprobs.values())
    return texts and left > max(rounding, LEAST_LEFT) * min(named, default=0.0)


def _differs(one: ReportedLogprobs, other: ReportedLogprobs, rounding: float) -> bool:
    """Return whether some probability differs between the reports ``one`` and ``other``.

    Differences that the relative error ``rounding`` of the reports explains are ignored.
    """
    return any(
        abs(_probability(one, token) - _probability(other, token))
        > 2 * rounding * max(_probability(one, token), _probability(other, token)) + LEAST_LEFT
        for token in one.logprobs.keys() | other.logprobs.keys()
    )


def _probability(told: ReportedLogprobs, token: Any) -> float:
    """Return the probability of ``token`` in the report ``told``; if it is not reported, its largest possible value."""
    last = min(told.logprobs.values()) if len(told.logprobs) >= TOP else -math.inf
    return math.exp(told.logprobs.get(token, last))


def with_doubts(verdicts: Sequence[Verdict], told: ToldLaw) -> Sequence[Verdict]:
    """Return the verdicts on samples that were compared with the reported law ``told``.

    If there are doubts about this law, a refutation by it becomes UNKNOWN.
    """
    if not told.doubts:
        return verdicts
    said = (
        f"the samples do not fit the reported log-probabilities, which may not describe the sampled law: "
        f"{'; '.join(told.doubts)}; --law or --reference can decide"
    )
    return [
        verdict._replace(status=Status.UNKNOWN, statement=said, counterexample=None)
        if verdict.status is Status.REFUTED and verdict.check in {"samples_fit_law", "samples_are_supported"}
        else verdict
        for verdict in verdicts
    ]


def told_logits(box: BlackBox, wanted: SampleRequest, words: Words, rounding: float) -> Logits:
    """Return the logits of the next token that a black box reports after each text; greedy decoding takes their argmax.

    The logits include penalties, but neither temperature nor truncation. A text has no logits if

    * the box reports nothing after it, or
    * the report may lack options that could change the argmax: it is the same without them, and the box does not state
      that it includes them.

    ``wanted`` has the prompt and the options, and ``words`` numbers the tokens. ``rounding`` is the relative error of a
    reported probability.
    """
    options = {
        name: value
        for name, value in wanted.options.items()
        if name not in TRUNCATIONS and not _is_without_effect(name)
    }
    plain = wanted._replace(temperature=None, options=options)

    def row(new: Tokens) -> Mapping[int, float] | None:
        try:
            told, bare = box.logprobs(new, plain), plain._replace(options={})
            if options and not told.processed and not _differs(told, box.logprobs(new, bare), rounding):
                return None
            values = {words.number(token): value for token, value in told.logprobs.items()}
        except UnusableSubject:
            return None
        end = None if wanted.eos is None else values.get(words.number(wanted.eos), min(values.values()))
        return values if end is None else {**values, NO_TOKEN: end}

    return Logits(row, rounding)
