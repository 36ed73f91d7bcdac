"""``specverify sample``: judge a black box by its samples."""

from __future__ import annotations

import json
import math
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from specverify.cli.looks import (
    check_count,
    check_number,
    check_positive,
    check_probability,
    check_rounding,
    check_seconds,
)
from specverify.cli.options import (
    AlarmOption,
    JsonOption,
    SeedOption,
    console,
    errors,
    made,
    option,
    sampling_options,
    stop,
    write_report,
)
from specverify.cli.subject_commands import exit_status

if TYPE_CHECKING:
    from collections.abc import Sequence

    from specverify.base.verdict import Verdict
    from specverify.run.black_boxes import SampleRequest
    from specverify.run.sequential_samples import SamplingPlan

PER_TOKEN = 0.01
"""Assumed relative error of a probability that an engine reports, about that of bfloat16 in another batch."""


def _check_temperature(value: float, name: str) -> None:
    check_number(value, name, "a finite number of at least 0", lambda number: 0 <= number < math.inf)


def _renamed(value: float | None) -> None:
    """Stop the command if the old option ``--tolerance`` is given; the message names the new one, ``--tv``."""
    if value is not None:
        stop("there is no option --tolerance, write --tv")


def sample_command(
    subject: Annotated[
        str,
        typer.Argument(
            help="python:module:callable, command:PROGRAM or http://HOST/PATH, where PATH ends in v1/completions, "
            "v1/chat/completions, completion (llama.cpp) or generate (TGI, SGLang)"
        ),
    ],
    law: Annotated[Path | None, typer.Option(help="JSON: a pmf, or probabilities by token ids.")] = None,
    reference: Annotated[str | None, typer.Option(help="Another black box, such as the same without drafts.")] = None,
    logprobs: Annotated[
        bool,
        typer.Option(
            "--logprobs",
            help="The law is computed from the log-probabilities that the subject reports, at temperature 1 unless "
            "--temperature is given, and with truncation and penalties off unless set by --set.",
        ),
    ] = False,
    prompt: Annotated[str, typer.Option(help="Token ids with spaces between, or a text.")] = "",
    after: Annotated[
        list[str] | None, typer.Option(help="Token ids after the prompt, as if they had been sampled; repeatable.")
    ] = None,
    max_tokens: Annotated[
        int, option("Tokens of a sample.", "--max-tokens", check_count, "the tokens of a sample")
    ] = 1,
    temperature: Annotated[
        float | None,
        option("Told to the subject; 0 is greedy.", "--temperature", _check_temperature, "the temperature"),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="Sampling option of subject and reference, such as top_k=2: JSON, else a string; repeatable.",
        ),
    ] = None,
    reference_settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set-reference",
            metavar="KEY=VALUE",
            help="Sampling option of the reference alone, instead of the --set of this KEY; repeatable.",
        ),
    ] = None,
    model: Annotated[str, typer.Option(help="Name of the model in requests to an endpoint.")] = "",
    eos: Annotated[str | None, typer.Option(help="The token that ends a sample early, an id or a word.")] = None,
    tv: Annotated[float, option("Total variation within which it holds.", "--tv", check_probability, "tv")] = 0.05,
    tolerance: Annotated[float | None, typer.Option("--tolerance", hidden=True, callback=_renamed)] = None,
    alarm: AlarmOption = 1e-6,
    most_samples: Annotated[
        int | None, option("Samples at most.", "--most-samples", check_count, "the number of samples", 64)
    ] = None,
    largest_call: Annotated[
        int, option("Samples of one call at most.", "--largest-call", check_count, "the size of a call")
    ] = 128,
    rounding: Annotated[
        float | None,
        option("Relative error of the law's probabilities.", "--rounding", check_rounding, "the rounding"),
    ] = None,
    timeout: Annotated[float, option("Seconds for one answer.", "--timeout", check_seconds)] = 60.0,
    memory: Annotated[
        float | None, option("GiB that its process may take.", "--memory", check_positive, "the memory", "GiB")
    ] = None,
    seed: SeedOption = 0,
    json_file: JsonOption = None,
) -> None:
    """Judge a black box by its samples: against a law, another black box, or its own log-probabilities."""
    from specverify.foreign.lines import Limits
    from specverify.report.data import as_data
    from specverify.report.terminal import print_failures, print_subject, print_summary
    from specverify.run.black_boxes import SampleRequest, is_server
    from specverify.run.sequential_samples import SamplingPlan

    if sum((law is not None, reference is not None, logprobs)) != 1:
        stop("a sample needs a law to compare with: expected exactly one of --law, --reference and --logprobs")
    if logprobs and temperature == 0:
        stop("--logprobs judges samples, and temperature 0 draws none, expected --reference")
    if reference_settings and reference is None:
        stop("--set-reference needs a reference, expected --reference")
    if logprobs and subject.startswith("python:"):
        stop("a Python function returns no log-probabilities, expected --law or --reference")
    if model and not any(is_server(name) for name in (subject, reference or "")):
        stop(f"--model is {model!r}, and only requests to a server (http://...) name a model")
    tempered = 1.0 if logprobs and temperature is None else temperature
    options = sampling_options(settings or (), "--set")
    wanted = SampleRequest(_ids_or_text(prompt), max_tokens, tempered, model, _id_or_word(eos), logprobs, options)
    theirs = options | sampling_options(reference_settings or (), "--set-reference")
    usual = PER_TOKEN * max_tokens if logprobs else PER_TOKEN if reference else 1e-6
    plan = SamplingPlan(tv, alarm, most_samples, largest_call, usual if rounding is None else rounding, seed)
    limits = Limits(timeout, None if memory is None else int(memory * 2**30))
    verdicts: list[Verdict] = []
    forced = [(f" after {prefix}", prefix) for prefix in _prefixes(after or (), wanted.prompt, law)] or [("", ())]
    plan = plan._replace(alarm=alarm / len(forced))
    for name, prefix in forced:
        asked = wanted._replace(prompt=(*wanted.prompt, *prefix)) if prefix else wanted
        result = _judged(subject, law, reference, asked, asked._replace(options=theirs), plan, limits)
        verdicts += [verdict._replace(subject=verdict.subject + name) for verdict in result]
    print_subject(console, subject, "sampled", verdicts, every=True)
    print_failures(console, verdicts)
    print_summary(console, verdicts, alarm, 3 * len(forced), seed)
    if json_file is not None:
        write_report(json_file, json.dumps(as_data(verdicts, alarm, seed, made()), indent=2), "the file of --json")
    raise typer.Exit(exit_status(verdicts))


def _judged(
    subject: str,
    file: Path | None,
    reference: str | None,
    wanted: SampleRequest,
    of_reference: SampleRequest,
    plan: SamplingPlan,
    limits: Any,
) -> Sequence[Verdict]:
    """Start the black boxes, judge the samples of ``subject``, and return the verdicts.

    Args:
        subject: The black box to judge.
        file: File of the law to compare with.
        reference: Black box to compare with. If this and ``file`` are None, the law is that of the
            log-probabilities which ``subject`` reports.
        wanted: Request to ``subject``.
        of_reference: Request to ``reference``.
        plan: Sizes and error probabilities.
        limits: Bounds of time and memory.
    """
    from specverify.base.verdict import Status, Verdict
    from specverify.report.progress import progress_shown
    from specverify.run.black_boxes import Words, law_of_file, opened, smaller_calls
    from specverify.run.greedy import judged_greedily
    from specverify.run.told_laws import law_from_logprobs, told_logits, with_doubts
    from specverify.subjects.subject import UnusableSubject

    words, told = Words({}, set()), None
    try:
        law = None if file is None else law_of_file(file)
        with ExitStack() as stack:
            box = stack.enter_context(opened(subject, wanted, limits, words))
            other = stack.enter_context(opened(reference, of_reference, limits, words)) if reference else None
            boxes = [box] if other is None else [box, other]
            for each in boxes:
                plan = smaller_calls(each, plan)
            if law is None and other is None:
                told = law_from_logprobs(box, wanted, words, plan.rounding)
                law, plan = told.law, plan._replace(rounding=(1 + plan.rounding) ** 2 - 1)
            with progress_shown(f"sampling {subject}", console=errors) as progress:
                verdicts = judged_greedily(
                    box.sampler,
                    plan,
                    None if other is None else told_logits(other, of_reference, words, plan.rounding),
                    law=law,
                    reference=other and other.sampler,
                    progress=lambda done, most: progress.now(f"{done} of {most} samples at most"),
                )
    except UnusableSubject as error:
        return [Verdict(subject, "samples_fit_law", Status.UNUSABLE, str(error))]
    except ValueError as error:
        stop(str(error))
    notes = [f"{each.sampler.name}: {note}" for each in boxes for note in each.notes]
    if told is not None:
        notes += told.notes
        verdicts = with_doubts(verdicts, told)
    return _with_notes([_with_words(verdict, words.numbers) for verdict in verdicts], notes)


def _with_notes(verdicts: Sequence[Verdict], notes: Sequence[str]) -> Sequence[Verdict]:
    """Return ``verdicts`` with ``notes``, sentences about the requests to the black boxes, added to the first one."""
    first, *others = verdicts
    return [first._replace(figures={**first.figures, "notes": [*first.figures.get("notes", ()), *notes]}), *others]


def _prefixes(after: Sequence[str], prompt: Any, law: Path | None) -> list[tuple[int, ...]]:
    """Return the token ids in each of the ``--after`` options ``after``, to be appended to ``prompt``.

    With such an option, the prompt and all options must be token ids, and ``law``, the file of ``--law``, must not be
    given. Otherwise the command stops.
    """
    if after and (law is not None or not isinstance(prompt, tuple)):
        stop("--after needs a prompt of token ids, and --logprobs or --reference: each prefix has its own law")
    result = [_ids_or_text(prefix) for prefix in after]
    for prefix in result:
        if not isinstance(prefix, tuple) or not prefix:
            stop(f"--after is {prefix!r}, expected token ids with spaces between")
    return result


def _with_words(verdict: Verdict, numbers: dict[str, int]) -> Verdict:
    """Return ``verdict`` with a legend of the token numbers in its counterexample, such as ``0 is 'the'``.

    ``numbers`` maps each word to its number. Return ``verdict`` unchanged if ``numbers`` is empty (tokens are ids), or
    if there is no counterexample.
    """
    if not numbers or verdict.counterexample is None:
        return verdict
    legend = ", ".join(f"{number} is {word!r}" for word, number in list(numbers.items())[:20])
    example = verdict.counterexample
    return verdict._replace(counterexample=example._replace(let=(*example.let, f"tokens: {legend}")))


def _ids_or_text(prompt: str) -> Any:
    parts = prompt.split()
    return tuple(map(int, parts)) if all(part.isdecimal() for part in parts) else prompt


def _id_or_word(token: str | None) -> int | str | None:
    return int(token) if token is not None and token.isdecimal() else token
