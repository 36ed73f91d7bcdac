"""Build counterexamples: a sentence about the fault, the texts that show it, and the most probable paths to a fault.

A *reading* of a path describes its draws as rounds of speculative decoding: each is a draft, a test, a replacement or a
bonus (``round_readings``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from itertools import islice, zip_longest
from typing import Any, NamedTuple, ParamSpec, TypeVar

import numpy as np

from specverify.base.verdict import Counterexample
from specverify.checks.explaining.batch_rules import RequestBatch, rule_of_batch
from specverify.checks.explaining.drawn_candidates import rule_of_candidates
from specverify.checks.explaining.drawn_trees import trees_of_run
from specverify.checks.explaining.engine_paths import (
    SEARCHED_PATHS,
    KeptPaths,
    PathDraw,
    drawn_together,
    draws_of,
    is_drawn_from_q,
    told,
    with_pmfs,
)
from specverify.checks.explaining.engine_rounds import (
    EngineRounds,
    engine_rounds,
    is_by_other_text,
    model_of_law,
    without_other_cause,
    without_unseen_row,
)
from specverify.checks.explaining.engine_traces import (
    KEPT,
    OF_DRAFT_MODEL,
    argmax_without_draw,
    context_with_draft,
    drafts_of_first_round,
    exchanged_answers,
    listed_tokens,
    round_around,
    text_of_other_request,
    wrong_row,
)
from specverify.checks.explaining.first_difference import CERTAIN, END, Difference, first_difference, text_fault
from specverify.checks.explaining.given_drafts import GENERIC
from specverify.checks.explaining.reused_rows import REUSED
from specverify.checks.explaining.round_faults import Context, RoundFault, fault_of_rounds
from specverify.checks.explaining.round_readings import (
    ROLES,
    UNDRAWN_WORDS,
    Models,
    Reading,
    items_of_decisions,
    reading_of,
)
from specverify.checks.explaining.round_rules import excess, ratio, same_row
from specverify.checks.explaining.round_stories import given_of_path, impossible_step, rounds_of_path
from specverify.checks.explaining.token_rules import name_of_token
from specverify.checks.explaining.tree_readings import tree_reading
from specverify.checks.explaining.tree_rules import TreeRound, has_tree_rule, name_of_tree_rule
from specverify.checks.explaining.wording import apart, listed, short, short_row
from specverify.laws.draws import Decision, Replayed
from specverify.laws.enumeration import program_law, run_toward, whole_run
from specverify.laws.law import total_variation
from specverify.laws.paths import Path, heaviest_paths, outcomes_of
from specverify.reference import Decoder, Draws, LanguageModel, Pmf, Task, Tokens
from specverify.subjects.subject import EngineProgram, InScenario, Trace
from specverify.subjects.warped_tasks import Processed

Found = TypeVar("Found")
Given = ParamSpec("Given")
SHOWN = 3
"""The largest number of paths in a counterexample."""
SEARCHED, EVIDENCE, EVIDENCE_OF_PROBE = 8, 16, 36
"""The number of paths of an engine that are searched for the fault, and the number of further paths as evidence; the
third number is that of a setting that explains a refutation."""
SEARCHED_TREES, MOST_TREE_PATHS = 40, 400
LEAST_PROOFS = 2
"""The least number of paths whose queries prove that a context keeps a rejected draft."""
PATHS_ALONE = 2000
"""The largest number of paths that are followed of one request alone."""
NEAR, NEAR_LAW = 1e-9, 1e-6
COMPARED_TEXTS = 64
"""The largest number of texts at which the rows of the target are compared with the expected law."""

_PHRASES: dict[object, Callable[[Decision], str]] = {
    "draft": lambda d: f"draft {d.outcome}",
    "accept": lambda d: "accepted" if d.outcome == 0 else "rejected",
    "residual": lambda d: f"resampled {d.outcome}",
    "bonus": lambda d: f"bonus {d.outcome}",
    "target": lambda d: f"target draws {d.outcome}",
}


def law_counterexample(here: InScenario, law: Mapping[Any, Any], expected: Mapping[Any, Any]) -> Counterexample:
    """Return a counterexample for the decoder ``here``, whose ``law`` differs from ``expected``.

    It shows the outcome with the largest excess of probability, paths to this outcome, and the fault of the rounds.
    """
    worst, then = _most_beyond(law, expected)
    readings: list[Reading] = []
    example = outcome_counterexample(here, worst, then, readings)
    difference = first_difference(law, expected)
    fault = or_none(fault_of_rounds, here) or or_none(_fault_of_path, here, worst)
    if fault is None and here.decoder.propose is None:
        fault = or_none(_fault_of_named_draws, here)
    read = next((reading.fault for reading in readings if reading.fault), "")
    if difference is None:
        return example if fault is None else example._replace(fault=fault.sentence)
    row = here.variant.label.partition(", ")[2]
    where = f"{row}: " if row.startswith("row") else ""
    named = fault.sentence if fault else where + (f"{read}: {difference.fault}" if read else difference.fault)
    example = example._replace(let=_with_contexts(example.let, fault.contexts if fault else ()))
    return example._replace(fault=named, rows=difference.rows)


def _fault_of_path(here: InScenario, outcome: Tokens) -> RoundFault | None:
    """Return how the rounds of the decoder ``here`` differ from speculative sampling; None if this is not recognised.

    The first rounds are examined, and the rounds on the most probable paths that emit ``outcome``.
    """
    heaviest = _paths_to(outcome, here.variant.build(here.task), here.prompt, SHOWN)
    later = [given for _, path in heaviest for given in given_of_path(here, path.choices)]
    return fault_of_rounds(here, later)


def _fault_of_named_draws(here: InScenario) -> RoundFault | None:
    """Return the fault of the decoder ``here``, which labels its draws but has no separate ``propose`` step.

    Its most probable paths are read as rounds. Returns None if no fault is recognised, or if a path has no labels.
    """
    read = []
    for place in (here, *(here._replace(scenario=scenario) for scenario in GENERIC)):
        program = whole_run(place.variant.build(place.task), place.prompt)
        for _, path in heaviest_paths(program, lambda _: 1, EVIDENCE, SEARCHED_PATHS):
            models = _models_of_decoder(place, path)
            if models is None:
                return None
            read.append((items_of_decisions(path.decisions), path.outcome, models))
    sentence = engine_rounds(read).fault
    return RoundFault(sentence, frozenset()) if sentence else None


def program_counterexample(
    program: EngineProgram,
    run: Callable[[Draws], Any],
    law: Mapping[Any, Any],
    expected: Mapping[Any, Any],
    followed: KeptPaths | None = None,
) -> Counterexample:
    """Return a counterexample for an engine whose ``law`` differs from ``expected``.

    ``run`` is the engine as a program of draws. ``followed`` holds its paths if they were followed before.
    """
    worst, then = _most_beyond(law, expected)

    def share(end: Any) -> Any:
        return sum(part for outcome, part in outcomes_of(end) if outcome == worst)

    engine = followed or KeptPaths(run)
    heaviest = engine.heaviest(share, SEARCHED)
    trace = _trace_of(program, heaviest[0][1]) if heaviest else None
    (wanted, most), *others = sorted(expected.items(), key=lambda item: -item[1])
    if trace is not None and not others and most >= CERTAIN:
        result = certain_counterexample(program, trace, wanted)
        if result is not None:
            return result
    difference = first_difference(law, expected, program.split, program.each)
    size, cells = _vocabulary(expected), dict[tuple[int, ...], Any]()
    more = _varied_paths(engine) if program.is_probe else [path for _, path in engine.heaviest(lambda _: 1, EVIDENCE)]
    drawn = [
        with_pmfs(engine, draws_of(path.decisions), size, cells) for path in (*(path for _, path in heaviest), *more)
    ]
    traces = [trace, *(_trace_of(program, path) for path in (*(path for _, path in heaviest[1:]), *more))][: len(drawn)]
    traces = _with_rows_of_law(traces, expected, size)
    trace = next(iter(traces), None)
    texts = [*[worst] * len(heaviest), *(max(outcomes_of(path.outcome), key=lambda end: end[1])[0] for path in more)]
    open_ends = [len(outcomes_of(path.outcome)) > 1 for path in (*(path for _, path in heaviest), *more)]
    rounds = or_none(_rounds_of, program, drawn, traces, texts, expected, open_ends)
    readings = _told_as_rounds(rounds, traces)[: len(heaviest)] if rounds else [None] * len(heaviest)
    because, shown = _stories_of(heaviest, drawn[: len(heaviest)], readings)
    example = Counterexample(
        let=(described(program), *_rows({**program.rows(worst), **_rows_used(trace, shown)}, shown)),
        then=then,
        because=because,
    )
    if difference is None:
        return example
    beside = _named_beside(program, trace, (law, expected), difference, engine)
    if beside is not None:
        return example._replace(fault=beside[0], rows=beside[1:], sure=True)
    named = or_none(token_without_draw, program, engine) or (rounds.fault if rounds else "")
    if not named and trace is not None and trace.target is not None and program.split is None:
        candidates = (
            (with_pmfs(engine, draws_of(path.decisions), size, cells), text)
            for path in islice(engine, MOST_TREE_PATHS)
            for text, _ in outcomes_of(path.outcome)[:1]
        )
        named = or_none(rule_of_candidates, candidates, trace.target, trace.texts[0][0]) or ""
    if not named:
        paths_drawn = _Paths(engine, [path.decisions for _, path in heaviest], drawn[: len(heaviest)], cells)
        read = next((reading.fault for reading in shown if reading.fault), "") if trace else ""
        read = without_unseen_row(read)
        if UNDRAWN_WORDS in read or (is_by_other_text(read) and len(readings) > 1):
            read = ""  # the reading only fails to find a draw, or the paths do not agree
        named = _token_named(difference, program.rows(worst), paths_drawn, size, read)
    if not named:
        return example._replace(fault=difference.fault, rows=difference.rows, named=False)
    own = rounds if rounds is not None and named == rounds.fault else EngineRounds([], "")
    let = _with_contexts(example.let, own.contexts if trace else ())  # else the prompt of these texts is not known
    rows, sure = (difference.fault, *difference.rows), program.is_probe and own.named
    return example._replace(let=let, fault=named, rows=rows, sure=sure)


def _varied_paths(engine: KeptPaths) -> list[Path[Any]]:
    """Return up to ``EVIDENCE_OF_PROBE`` paths of an engine that begin differently.

    The most probable of each kind come first. Paths with the same outcomes of the first three decisions are of one
    kind.
    """
    kinds = dict[tuple[int, ...], list[Path[Any]]]()
    for path in sorted(engine, key=lambda path: -path.weight):
        kinds.setdefault(path.choices[:3], []).append(path)
    in_turn = (path for same in zip_longest(*kinds.values()) for path in same if path is not None)
    return list(islice(in_turn, EVIDENCE_OF_PROBE))


def _named_beside(
    program: EngineProgram,
    trace: Trace | None,
    laws: tuple[Mapping[Any, Any], Mapping[Any, Any]],
    difference: Difference,
    engine: KeptPaths,
) -> tuple[str, ...] | None:
    """Return lines that attribute a wrong request to the other requests of its batch; None if this is not shown.

    The first line is a sentence, and lines of a table follow. The sentence is the first of these that applies:

    * The request continues after its end.
    * A named fault lets one row of the batch decide about another.
    * The request is right if it is served alone.
    * p is computed after a text that keeps a rejected draft.

    ``laws`` are the observed and the expected law, and ``difference`` is their first difference. ``trace`` has the
    model queries of one path, and ``engine`` all paths of ``program``.
    """
    if difference.expected.get(END, 0) >= CERTAIN:
        return difference.fault, *difference.rows
    alone = "" if difference.request is None else or_none(right_alone, program, difference.request)
    shown = f"{alone}: {difference.sentence}" if alone else difference.fault
    rule = or_none(_rule_of_batch, trace, *laws) if trace is not None and program.split is not None else ""
    decided = or_none(_decided_by, program, trace, engine, difference) or ""
    if rule:
        return f"{rule}{decided or (_line_of_tests(engine) if ' test' in rule else '')}", shown, *difference.rows
    if not alone:
        kept = or_none(_kept_draft, program, difference, engine)
        return (f"{kept}: {difference.fault}", *difference.rows) if kept else None
    return f"{shown}{decided}", *difference.rows


def _kept_draft(program: EngineProgram, difference: Difference, engine: KeptPaths) -> str:
    """Return the sentence that p of the first wrong token is computed after a text that keeps a rejected draft.

    Returns "" unless the queries on at least two paths of ``engine`` prove it, and no such path has another text.
    ``difference`` has the first wrong token.
    """
    if program.trace is None or program.split is None or difference.request is None or difference.wrong is None:
        return ""
    index, wrong = difference.request, difference.wrong
    proofs = list[tuple[Trace, tuple[Tokens, int]]]()
    for path in engine:
        new = program.split(outcomes_of(path.outcome)[0][0])[index]
        if new[: len(wrong)] == wrong and len(proofs) < EVIDENCE:
            trace = program.trace(path.choices)
            proof = context_with_draft(trace, index, wrong)
            proofs += [(trace, proof)] if proof else []
    if len(proofs) < LEAST_PROOFS or len({proof for _, proof in proofs}) > 1:
        return ""
    trace, (asked, draft) = proofs[0]
    if trace.target is None:
        return ""
    text, row = (*trace.texts[index][0], *wrong[:-1]), short_row(trace.target(asked).tolist())
    said = f"the context keeps the rejected draft {draft}: p of new token {len(wrong)} is computed after {asked}"
    return f"{said}, where p = {row}, not after {text}"


def _line_of_tests(engine: KeptPaths) -> str:
    """Return the program line of an engine's accept tests, in brackets; "" if there is not exactly one line.

    Every draw on the paths ``engine`` that is no draw of a token counts as an accept test.
    """
    paths = engine.heaviest(lambda _: 1, EVIDENCE)
    items = (item for _, path in paths for item in draws_of(path.decisions) if item.high - item.low < 1 - NEAR)
    places = {item.place for item in items if not item.is_lookup and item.place}
    return f" ({places.pop()})" if len(places) == 1 else ""


def _decided_by(program: EngineProgram, trace: Trace | None, engine: KeptPaths, difference: Difference) -> str:
    """Return a clause about the wrong draw that decides the first wrong token, with its program line; "" if none does.

    A draw decides the token if all paths with the same outcomes up to this draw have the same token. The draw is wrong
    in two cases:

    * It is a coin whose probability is not min(1, p/q).
    * It is a token from a row that is not p, q or their residual.

    The paths with the wrong token are searched, the most probable first. ``difference`` has the first wrong token,
    ``engine`` the paths of ``program``, and ``trace`` the model queries of one path.
    """
    index = difference.request
    models = trace is not None and trace.target is not None and trace.draft is not None
    if program.split is None or index is None or difference.wrong is None or trace is None or not models:
        return ""
    *before, token = difference.wrong
    begun, number = tuple(before), len(before)
    text = trace.texts[index][0] + begun
    p, q = (
        [float(mass) for mass in model(text).tolist()] for model in (trace.target, trace.draft) if model is not None
    )
    if not 0 <= token < len(p):
        return ""
    begins = [(path, program.split(outcomes_of(path.outcome)[0][0])[index][: number + 1]) for path in engine]
    fitting = sorted((path for path, new in begins if new == (*begun, token)), key=lambda path: -path.weight)
    cells = dict[tuple[int, ...], Any]()
    for path in fitting[:SEARCHED]:
        length = next(
            length
            for length in range(len(path.choices) + 1)
            if len({new for other, new in begins if other.choices[:length] == path.choices[:length]}) == 1
        )
        drawn = with_pmfs(engine, draws_of(path.decisions[:length]), len(p), cells)
        item = next((item for item in reversed(drawn) if item.high - item.low < 1 - NEAR), None)
        if item is None or not item.place:
            continue
        bound = ratio(p[token], q[token])
        if not item.is_lookup and item.low <= 0 and abs(item.high - bound) > NEAR_LAW:
            does, ought = apart(item.high, bound)
            return f"; new token {number + 1} is {token} if u < {does} ({item.place}), and min(1, p/q) is {ought} there"
        if item.pmf and not any(same_row(item.pmf, row, NEAR_LAW) for row in (p, q, excess(p, q))):
            rows = f"where p = {short_row(p)} and q = {short_row(q)}"
            return f"; new token {number + 1} is drawn from {short_row(item.pmf)} ({item.place}), {rows}"
    return ""


def token_without_draw(program: EngineProgram, engine: KeptPaths) -> str:
    """Return the sentence that an engine chooses a token as the argmax of p, without a draw; "" if it does not.

    ``engine`` holds the paths of ``program``. Returns "" also if the program has no recorded queries, or serves several
    requests.
    """
    if program.trace is None or program.split is not None:
        return ""
    paths = [path for _, path in engine.heaviest(lambda _: 1, EVIDENCE)]
    return argmax_without_draw([(program.trace(path.choices), len(path.choices)) for path in paths])


def _rounds_of(
    program: EngineProgram,
    drawn: Sequence[Sequence[PathDraw]],
    traces: Sequence[Trace | None],
    texts: Sequence[Any],
    expected: Mapping[Any, Any],
    open_ends: Sequence[bool],
) -> EngineRounds | None:
    """Read paths of an engine as rounds; None if this is not possible.

    It is not possible if the engine serves several requests, if a token of a text is no integer, or if the models of a
    path are not known.

    Args:
        program: The engine.
        drawn: The draws of each path.
        traces: The model queries of each path; None if they are not recorded. Then p is computed from ``expected``.
        texts: The new tokens of each path.
        expected: The expected law of texts.
        open_ends: For each path, whether its last token is never read.
    """
    horizon, size = max((len(text) for text in expected), default=0), _vocabulary(expected)
    if program.split or not size:
        return None
    by_law = Models(model_of_law(expected, size), None, (), horizon)
    models = [_models_of(trace, horizon) if trace else by_law for trace in traces]
    if any(one is None for one in models):
        return None
    ends = zip(drawn, texts, models, open_ends, strict=True)
    return engine_rounds([(items, new, one._replace(open_end=is_open)) for items, new, one, is_open in ends if one])


def _models_of(trace: Trace, horizon: int) -> Models | None:
    if trace.target is None or len(trace.texts) != 1:
        return None
    asked = tuple(dict.fromkeys(text for _, text in trace.queries))
    queries = tuple((at, *query) for at, query in zip(trace.moments, trace.queries, strict=False))
    return Models(trace.target, trace.draft, trace.texts[0][0], horizon, asked, queries)


def _with_rows_of_law(traces: list[Trace | None], expected: Mapping[Any, Any], size: int) -> list[Trace | None]:
    """Return ``traces``, or None for each path if the first trace has other rows of p than the law ``expected``.

    ``size`` is the vocabulary size.
    """
    first = next(iter(traces), None)
    return traces if first is None or has_law_of_target(first, expected, size) else [None] * len(traces)


def has_law_of_target(trace: Trace, expected: Mapping[Any, Any], size: int) -> bool:
    """Return whether ``expected`` has the rows of the target model that ``trace`` has recorded.

    Otherwise a plain call processes the rows of the target, for example by a penalty. ``size`` is the vocabulary size.
    Returns True also if there are several requests or no model, so that nothing can be compared.
    """
    if trace.target is None or len(trace.texts) != 1 or not size:
        return True
    model, prompt = model_of_law(expected, size), trace.texts[0][0]
    befores = {text[:length] for text in islice(expected, COMPARED_TEXTS) for length in range(len(text))}
    return all(
        np.abs(model(before) - np.asarray(trace.target((*prompt, *before)), dtype=np.float64)[:size]).max() < NEAR_LAW
        for before in befores
        if model(before).any()
    )


def _trace_of(program: EngineProgram, path: Path[Any]) -> Trace | None:
    """Return the model queries on a path of the engine ``program``; None if they are not recorded."""
    return or_none(program.trace, path.choices) if program.trace else None


def _told_as_rounds(rounds: EngineRounds, traces: Sequence[Trace | None]) -> list[Reading | None]:
    """Return the reading of each path as rounds; None where the words of a reading would be about a missing draw only.

    ``traces`` has the model queries of each path, or None. A reading with a token that no draw explains becomes None if
    the path has no queries, or if no wrong rule is known. Such a program may be right: it may draw all tokens before
    all coins, or keep a token that was drawn earlier. If a rule is named, other causes are removed from the words.
    """
    result: list[Reading | None] = []
    for reading, trace in zip(rounds.readings, traces, strict=False):
        unread = reading is not None and UNDRAWN_WORDS in reading.fault and (trace is None or not rounds.fault)
        if reading is None or unread:
            result.append(None)
            continue
        told_words = (
            without_other_cause(said, rounds.fault) if rounds.named else without_unseen_row(said)
            for said in reading.words
        )
        result.append(reading._replace(words=tuple(told_words)))
    return result


def _stories_of(
    heaviest: Sequence[tuple[Any, Path[Any]]], drawn: Sequence[Sequence[PathDraw]], readings: Sequence[Reading | None]
) -> tuple[tuple[str, ...], list[Reading]]:
    """Return lines that describe the most probable paths, and the readings of these paths.

    The ``SHOWN`` most probable paths are described, or only one if it deviates from the rule. Paths with equal
    descriptions are merged.

    Args:
        heaviest: (weight, path) of each path.
        drawn: The draws of each path.
        readings: The reading of each path as rounds, or None.
    """
    weights: dict[str, Any] = {}
    faulty, shown = dict[str, bool](), dict[str, Reading]()
    for (weight, _), items, reading in zip(heaviest, drawn, readings, strict=True):
        line = _in_rounds(reading) if reading else told(items)
        weights[line] = weights.get(line, 0) + weight
        faulty[line] = bool(reading and reading.fault)
        if reading:
            shown[line] = reading
    lines = sorted(weights, key=lambda line: (not faulty[line], -weights[line]))[:SHOWN]
    if faulty[lines[0]]:
        lines = lines[:1]
    return _told_with(lines, weights), [shown[line] for line in lines if line in shown]


def _in_rounds(reading: Reading) -> str:
    """Return the words of a reading, round by round, up to the round with its first deviation, which is marked.

    If no round has this deviation, all rounds are described.
    """
    words = list(reading.words)
    number = next((i for i, one in enumerate(reading.rounds) if one.fault), None)
    if number is not None and reading.rounds[number].fault == reading.fault:
        words = [*words[:number], f"{words[number]}   <- here"]
    if len(reading.words) < 2:
        return "\n".join(words)
    return "\n".join(f"round {i}: {one}" for i, one in enumerate(words, 1))


def _rows_used(trace: Trace | None, readings: Sequence[Reading]) -> dict[Tokens, dict[str, Pmf]]:
    """Return text -> {"p": row, "q": row} for the texts whose rows the descriptions of ``readings`` use.

    ``trace`` has the models and their queries. Returns {} if the target or the draft model is unknown.
    """
    if trace is None or trace.target is None or trace.draft is None:
        return {}
    words = " ".join(word for reading in readings for word in (*reading.words, reading.fault))
    texts = {text: None for reading in readings for text in reading.used}
    texts |= {text: None for _, text in trace.queries if str(text) in words}
    target, draft = trace.target, trace.draft
    return {text: {"p": target(text), "q": draft(text)} for text in sorted(texts, key=lambda text: (len(text), text))}


def right_alone(program: EngineProgram, index: int) -> str:
    """Return the sentence that request ``index`` has the right law alone and a wrong law together with other requests.

    It names the other requests. Returns "" if the law is wrong alone too, or if the engine cannot serve one request
    alone.
    """
    if program.alone is None:
        return ""
    alone = program.alone(index)
    with alone.open() as run:
        law = program_law(run, PATHS_ALONE)
    if not total_variation(law, alone.law()).high < NEAR_LAW:
        return ""
    others = "request 1" if index == 1 else f"the {program.each}s before it"
    where = f"behind {others}" if program.each == "request" and index else f"beside the other {program.each}s"
    if " beside " in program.name and program.each == "request":
        where = _where_in_calls(program.name, index)
    return f"{program.each} {index + 1} is right alone and wrong {where}"


def _rule_of_batch(trace: Trace, law: Mapping[Any, Any], expected: Mapping[Any, Any]) -> str:
    """Return the sentence about a fault that lets one row of a batch decide about another; "" if there is none.

    ``law`` and ``expected`` map the concatenated texts of all requests to probabilities. ``trace`` has the models and
    the prompts.
    """
    if (
        not trace.batches
        or max(trace.batches) < 2
        or trace.target is None
        or trace.draft is None
        or trace.eos is not None
    ):
        return ""
    horizon, left = divmod(max(map(len, expected)), len(trace.texts))
    prompts = tuple(prompt for prompt, _ in trace.texts)
    batch = RequestBatch(trace.target, trace.draft, prompts, horizon, trace.batches)
    gamma = drafts_of_first_round(trace)
    return "" if left else rule_of_batch(batch._replace(gammas=(gamma,)) if gamma else batch, law)


def _where_in_calls(name: str, index: int) -> str:
    """Return a phrase about the requests with which request ``index`` is served.

    ``name`` is the name of a setting, such as ``A beside B, then C beside D``; it is parsed.
    """
    first = name.partition(", then ")[0].count(" beside ") + 1
    if index >= first:
        return "in a batch with others, or after other requests"
    return f"in a batch with request{'s' * (first > 2)} {listed([i + 1 for i in range(first) if i != index])}"


class _Paths(NamedTuple):
    """The most probable paths of an engine, with the draws on each of them."""

    engine: KeptPaths
    decisions: Sequence[Sequence[Decision]]
    """For each path, its decisions in order: outcomes of draws, and answers to comparisons."""
    drawn: Sequence[Sequence[PathDraw]]
    """For each path, its draws in order. All comparisons of one uniform are merged into one draw."""
    cells: dict[tuple[int, ...], Any]
    """Outcomes before a draw -> intervals in which its uniform can lie; filled by the first ``with_pmfs``."""


def _token_named(
    difference: Difference, rows: Mapping[Tokens, Mapping[str, Pmf]], heaviest: _Paths, size: int, read: str
) -> str:
    """Return the sentence that explains the law of the first wrong token; "" if no explanation fits.

    A wrong rule that gives this law comes first, then the sentence ``read``. If ``read`` is "" and q is not known, the
    sentence names the row that the token is drawn from, or states that draws are missing.

    Args:
        difference: The observed and the expected law of the token.
        rows: Text -> {"p": row, "q": row}. Of a text whose p equals the expected law, the row of q is used.
        heaviest: The most probable paths.
        size: The vocabulary size.
        read: A sentence about the first deviation from the rule on these paths, or "".
    """
    seen, p = ([law.get(token, 0) for token in range(size)] for law in (difference.seen, difference.expected))
    if not size or END in difference.seen or not any(seen):
        return read
    firsts = [items[0].pmf for items in heaviest.drawn if items and items[0].pmf]
    q: Sequence[Any] = firsts[0] if firsts and not difference.before else ()
    known = False
    for text, row in rows.items():
        if difference.before == text[len(text) - len(difference.before) :] and same_row(row["p"].tolist(), p, NEAR):
            q, known = row["q"].tolist(), True
            break
    named = name_of_token(seen, p, q) if q else ""
    if named or read or known or q:
        return named or read
    number = len(difference.before) + 1
    return _row_of_token(heaviest, difference.before, seen, p) or _too_few_draws(heaviest, number, p)


def _row_of_token(heaviest: _Paths, before: Tokens, seen: Sequence[Any], p: Sequence[Any]) -> str:
    """Return a sentence about the row from which the token after ``before`` is drawn; the expected row is ``p``.

    ``seen`` is the observed law of the token. Returns "" if no draw on the paths ``heaviest`` has this law.
    """
    number = len(before) + 1
    for items in heaviest.drawn:
        at = next((item.place for item in items if same_row(item.pmf, seen, NEAR)), "")
        if at and _is_from_q(heaviest, seen, p):
            said = f"the token after accepted drafts, new token {number}, is drawn from q = {short_row(seen)} at {at}"
            return f"{said}, expected p = {short_row(p)}"
        if at:
            said = f"new token {number} is drawn from {short_row(seen)} at {at}, expected p = {short_row(p)}"
            other = _other_in_one_token(seen, p)
            if other in before:
                said += f": other odds of token {other} alone, which is new token {before.index(other) + 1}, as if a "
                said += "penalty did not count it"
            return said
    return ""


def _other_in_one_token(seen: Sequence[Any], p: Sequence[Any]) -> int | None:
    """Return the only token whose quotient seen/p differs from that of all other tokens; None if there is none.

    ``seen`` and ``p`` are rows. They must be positive at the same tokens, at least three.
    """
    inside = [token for token, mass in enumerate(p) if mass > 0]
    if len(inside) < 3 or any((mass > 0) != (token in inside) for token, mass in enumerate(seen)):
        return None
    shares = {token: float(seen[token]) / float(p[token]) for token in inside}
    for token in inside:
        others = [share for other, share in shares.items() if other != token]
        if max(others) - min(others) < NEAR_LAW < abs(shares[token] - others[0]):
            return token
    return None


def _is_from_q(heaviest: _Paths, seen: Sequence[Any], p: Sequence[Any]) -> bool:
    return bool(or_none(is_drawn_from_q, heaviest.engine, seen, p, heaviest.cells))


def _too_few_draws(heaviest: _Paths, number: int, p: Sequence[Any]) -> str:
    """Return the sentence that the first ``number`` new tokens come from fewer draws; "" if they do not.

    The first path of ``heaviest`` is examined. ``p`` is the expected law of the first wrong token.
    """
    for decisions in heaviest.decisions[:1] if max(p) < CERTAIN else ():
        items = or_none(drawn_together, heaviest.engine, decisions, number)
        if items:
            with_rows = with_pmfs(heaviest.engine, items, len(p), heaviest.cells)
            count = sum(item.is_lookup for item in items)
            draws = f"{count} token{'s' * (count > 1)}"
            return f"{number} new tokens come from the draws of {draws} ({told(with_rows)}), expected a draw for each"
    return ""


def _vocabulary(law: Mapping[Any, Any]) -> int:
    """Return the vocabulary size of the texts of ``law``: largest token plus 1; 0 if a token is no integer."""
    tokens = {token for text in law for token in text}
    return max(tokens) + 1 if tokens and all(isinstance(token, int) for token in tokens) else 0


def certain_counterexample(program: EngineProgram, trace: Trace, wanted: Tokens) -> Counterexample | None:
    """Return a counterexample for the greedy engine ``program``; None if its texts are right.

    It shows the expected and the emitted text, the first wrong token, and its round. ``wanted`` is the right outcome,
    and ``trace`` has the emitted texts and the model queries.
    """
    texts = program.split(wanted) if program.split else (wanted,)
    for index, (should, (prompt, does)) in enumerate(zip(texts, trace.texts, strict=True)):
        if should != does:
            named = f"{program.each} {index + 1}, " if len(texts) > 1 else ""
            lines = [
                f"prompt {listed_tokens(prompt)}",
                f"expected {listed_tokens(should)}",
                f"got {listed_tokens(does)}",
            ]
            why = wrong_row(trace, index, should)
            lines += [round_around(trace, index, should, bonus=why.startswith(OF_DRAFT_MODEL))]
            if len(texts) > 1:
                lines = [f"{program.each} {index + 1} of {len(texts)}", *lines]
            alone = or_none(right_alone, program, index) if index else ""
            wrong = text_fault(should, does, trace.eos)
            other = exchanged_answers(texts, [new for _, new in trace.texts], program.each, trace.batches)
            emitted = tuple(token for _, new in trace.texts for token in new)
            other = other or or_none(_rule_of_batch, trace, {emitted: 1.0}, {wanted: 1.0}) or ""
            if not other and program.each == "request" and len(texts) > 1:
                other = text_of_other_request(trace, index)
            if other:
                fault = f"{other}: {wrong}{f'; {alone}' if alone else ''}"
            elif why.startswith((KEPT, REUSED)):
                cause, _, row = why.partition(": ")
                fault = f"{named}{cause}: {wrong}, {row}" + (f"; {alone}" if alone else "")
            else:
                fault = (f"{alone}: " if alone else named) + wrong + (f": {why}" if why else "")
            let, rows = (described(program),), tuple(filter(None, lines))
            sure = bool(alone or other) or why.startswith((KEPT, REUSED))
            return Counterexample(let, fault, fault=fault, rows=rows, named=bool(alone or why or other), sure=sure)
    return None


def _most_beyond(law: Mapping[Any, Any], expected: Mapping[Any, Any]) -> tuple[Any, str]:
    """Return the outcome that exceeds its expected probability the most, and a sentence with both probabilities.

    ``law`` and ``expected`` map outcomes to their observed and expected probabilities.
    """
    worst = max(law.keys() | expected.keys(), key=lambda key: (law.get(key, 0) - expected.get(key, 0), key))
    does, should = apart(law.get(worst, 0), expected.get(worst, 0))
    return worst, f"the new tokens should be {worst} with probability {should}, but are with {does}"


def outcome_counterexample(
    here: InScenario, outcome: Tokens, then: str, readings: list[Reading] | None = None
) -> Counterexample:
    """Return a counterexample with the most probable paths of the decoder ``here`` to the forbidden ``outcome``.

    Three paths are shown, or only one if it deviates from the rule. ``then`` is the last sentence of the
    counterexample. The readings of the paths are appended to ``readings``.
    """
    seen: dict[Tokens, dict[str, Pmf]] = {}
    decoder = here.variant.build(_recording(here.task, seen))
    heaviest = [path for _, path in _paths_to(outcome, decoder, here.prompt, SEARCHED)]
    if any(or_none(tree_reading, here, path.choices) is not None for path in heaviest):
        return _tree_counterexample(here, outcome, then, readings)
    weights: dict[str, Any] = {}
    paths_of = dict[str, list[Path[Any]]]()
    for path in heaviest:
        line = _told(here, path, readings)
        weights[line] = weights.get(line, 0) + path.weight
        paths_of.setdefault(line, []).append(path)
    lines = sorted(weights, key=lambda line: ("expected" not in line, -weights[line]))[:SHOWN]
    lines = lines[:1] if lines and "expected" in lines[0] else lines
    seen.clear()
    for line in lines:
        for path in paths_of[line]:
            whole_run(decoder, here.prompt)(Replayed(path.choices))
    return Counterexample(let=(described(here), *_rows(seen)), then=then, because=_told_with(lines, weights))


def _paths_to(outcome: Tokens, decoder: Decoder, prompt: Tokens, number: int) -> list[tuple[Any, Path[Tokens | None]]]:
    """Return (weight, path) of the ``number`` most probable paths of a decode of ``prompt`` to the tokens ``outcome``.

    A path is first given up after the round in which its tokens differ from ``outcome``. If no path is left, whole
    decodes are followed, because a decoder may change earlier tokens.
    """
    return heaviest_paths(
        run_toward(decoder, prompt, outcome), lambda new: new == outcome, number, SEARCHED_PATHS
    ) or heaviest_paths(whole_run(decoder, prompt), lambda new: new == outcome, number, SEARCHED_PATHS)


def impossible_token(here: InScenario, outcome: Tokens) -> str:
    """Describe the step by which the decoder ``here`` emits a token with p = 0; "" if there is none.

    The most probable path to ``outcome`` is examined.
    """
    heaviest = _paths_to(outcome, here.variant.build(here.task), here.prompt, 1)
    return (or_none(impossible_step, here, heaviest[0][1].choices) if heaviest else "") or ""


def _told_with(lines: Sequence[str], weights: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the output lines for descriptions of paths: for each, a line with its probability, then its own lines.

    ``lines`` are the descriptions, each with a line for each round; ``weights`` maps a description to its probability.
    """
    return tuple(part for line in lines for part in (f"with probability {short(weights[line])}:", *line.split("\n")))


def _tree_counterexample(
    here: InScenario, outcome: Tokens, then: str, readings: list[Reading] | None
) -> Counterexample:
    """Return a counterexample with paths of draft trees of the decoder ``here`` to the forbidden ``outcome``.

    If a path deviates from the rule, it alone is shown. ``then`` is the last sentence of the counterexample. The
    readings of the paths are appended to ``readings``.
    """
    seen: dict[Tokens, dict[str, Pmf]] = {}
    decoder = here.variant.build(_recording(here.task, seen))
    heaviest = _paths_to(outcome, decoder, here.prompt, SEARCHED_TREES)
    weights: dict[str, Any] = {}
    paths_of, faults = dict[str, Path[Any]](), dict[str, str]()
    rounds, deviation, end = list[TreeRound](), "", ""
    for weight, path in heaviest:
        result = or_none(tree_reading, here, path.choices)
        rounds += result.rounds if result else ()
        deviation = deviation or (result.example if result else "")
        end = end or (result.end if result else "")
        line = result.words if result else _told(here, path, None)
        weights[line] = weights.get(line, 0) + weight
        paths_of.setdefault(line, path)
        faults[line] = (result.fault or result.example or result.last) if result else ""
    rule = or_none(_rule_of_trees, here, rounds) or ""
    if deviation and not rule:
        deviation += " by recursive rejection"
    named = ":".join(filter(None, (rule, deviation))).strip() or end
    lines = sorted(weights, key=lambda line: (not faults[line], -weights[line]))[:SHOWN]
    seen.clear()
    for line in lines:
        whole_run(decoder, here.prompt)(Replayed(paths_of[line].choices))
    if readings is not None:
        unseen = bool(rule) and not any(faults.values())  # the rule shows on other paths
        readings += [Reading((line,), named if faults[line] or unseen else "", (), 0.0) for line in lines]
    lines = lines[:1] if faults[lines[0]] else lines
    said = _told_with(lines, weights)
    return Counterexample(let=(described(here), *_rows(seen)), then=then, because=said)


def _rule_of_trees(here: InScenario, rounds: Sequence[TreeRound]) -> str:
    """Return the name of the wrong rule that the rounds of the decoder ``here`` follow; "" if none fits all.

    ``rounds`` and further rounds are examined, also with a vocabulary of three.
    """
    seen = list(rounds)
    for place in (here, *(here._replace(scenario=scenario) for scenario in GENERIC)):
        if not has_tree_rule(seen):
            return ""
        program = whole_run(place.variant.build(place.task), place.prompt)
        for _, path in heaviest_paths(program, lambda _: 1, SEARCHED_TREES, MOST_TREE_PATHS):
            result = tree_reading(place, path.choices)
            seen += result.rounds if result else ()
    return name_of_tree_rule(seen)


def _told(here: InScenario, path: Path[Any], readings: list[Reading] | None) -> str:
    """Describe a path of the decoder ``here`` round by round, or, if that is not possible, by its trees and decisions.

    If the path can be read as rounds, the reading is appended to ``readings``.
    """
    trees = trees_of_run(here.decoder, here.prompt, path.choices)
    rounds = None if trees else or_none(rounds_of_path, here, path.choices)
    if rounds or trees:
        return rounds or "; ".join([*trees, _story(path.decisions)])
    reading = or_none(_read_decoder, here, path)
    if reading is None:
        return _story(path.decisions)
    if readings is not None:
        readings.append(reading)
    return _in_rounds(reading)


def _read_decoder(here: InScenario, path: Path[Any]) -> Reading | None:
    """Read a path of the decoder ``here`` as rounds; None if that fails, or if its draws have no labels."""
    models = _models_of_decoder(here, path)
    return None if models is None else reading_of(items_of_decisions(path.decisions), models, path.outcome)


def _models_of_decoder(here: InScenario, path: Path[Any]) -> Models | None:
    if here.task.draft is None or not any(
        decision.site[:1] in {("draft",), ("accept",)} for decision in path.decisions
    ):
        return None
    horizon = here.scenario.horizon
    return Models(here.task.target, here.task.draft, here.prompt, horizon, roles=ROLES, guesses=False, open_end=False)


def or_none(explain: Callable[Given, Found], *given: Given.args, **named: Given.kwargs) -> Found | None:
    """Return ``explain(*given, **named)``, or None if it raises: a failed explanation must not lose the refutation."""
    try:
        return explain(*given, **named)
    except Exception:  # noqa: BLE001 - an explanation runs the program once more, and that may raise anything
        return None


def described(here: InScenario | EngineProgram) -> str:
    """Return one line about the examined case.

    For a decoder, it states the vocabulary, options, prompt and limits; for an engine, the name of its setting.
    """
    if isinstance(here, EngineProgram):
        return f"setting {here.name}"
    scenario = here.scenario
    tokens = ", ".join(str(token) for token in range(scenario.vocabulary))
    line = f"vocabulary {{{tokens}}}, {here.variant.label}, prompt {scenario.prompt}, horizon {scenario.horizon}"
    return line + (f", end-of-sequence {scenario.eos}" if scenario.eos else "")


def readable(value: Any) -> str:
    """Format a probability: a rational unchanged, a float with six digits."""
    return str(value) if isinstance(value, (Fraction, int)) else f"{value:.6g}"


def shown_pmf(pmf: Pmf) -> str:
    """Format a pmf as ``(1/2, 1/2)``."""
    return short_row(pmf.tolist())


def _story(decisions: tuple[Decision, ...]) -> str:
    """Return the decisions of a path in words.

    A draw with a label (draft, accept, ...) is described by it, and another draw as a draw or a coin.
    """
    parts, rest = [], list[Decision]()

    def told_rest() -> list[str]:
        said = [told(draws_of(rest))] if any(decision.weights[decision.outcome] != 1 for decision in rest) else []
        rest.clear()
        return said

    for decision in decisions:
        name = decision.site[0] if decision.site else None
        if name not in _PHRASES:
            rest.append(decision)
            continue
        parts += told_rest()
        weight = decision.weights[decision.outcome]
        parts.append(_PHRASES[name](decision) + (f" ({short(weight)})" if weight != 1 else ""))
    return ", ".join([*parts, *told_rest()]) or "without any draw"


def _rows(seen: Mapping[Tokens, Mapping[str, Pmf]], shown: Sequence[Reading] = ()) -> list[str]:
    """Return one line for each text in ``seen``, which maps a text to its rows of p and q.

    If rounds of the readings ``shown`` deviate from the rule, only the rows of these rounds are returned.
    """
    decide = {
        one.text + one.drafts[:i]
        for reading in shown
        for one in reading.rounds
        if one.fault
        for i in range(len(one.drafts) + 1)
    }
    kept = {text: rows for text, rows in seen.items() if text in decide}
    ordered = sorted((kept or seen).items(), key=lambda item: (len(item[0]), item[0]))
    return [
        f"after {tokens}: " + "   ".join(f"{letter} = {shown_pmf(rows[letter])}" for letter in sorted(rows))
        for tokens, rows in ordered
    ]


def _with_contexts(let: tuple[str, ...], contexts: Sequence[Context]) -> tuple[str, ...]:
    """Return the lines ``let``, with further lines for those of ``contexts`` that have no line yet.

    A context is (text, row of p, row of q), and its line begins with "after" and the text.
    """
    lines = list(let)
    for text, p, q in contexts:
        if not any(line.startswith(f"after {text}:") for line in lines):
            lines.append(f"after {text}: p = {short_row(p)}" + (f"   q = {short_row(q)}" if q else ""))
    return tuple(lines)


def _recording(task: Task, seen: dict[Tokens, dict[str, Pmf]]) -> Task:
    def record(model: LanguageModel, letter: str) -> LanguageModel:
        def answer(tokens: Tokens) -> Pmf:
            pmf = model(tokens)
            seen.setdefault(tokens, {})[letter] = pmf
            return pmf

        return model._replace(pmfs=answer) if isinstance(model, Processed) else answer

    return task._replace(target=record(task.target, "p"), draft=None if task.draft is None else record(task.draft, "q"))
