"""Build counterexamples of engines: their draws are read as rounds, and the fault is named where it can be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import islice, zip_longest
from typing import Any

import numpy as np

from specverify.base.verdict import Counterexample
from specverify.checks.explaining.changed_rows import change_of_all
from specverify.checks.explaining.chosen_candidates import rule_of_chosen
from specverify.checks.explaining.counterexample_parts import (
    EVIDENCE,
    MOST_TREE_PATHS,
    NEAR_LAW,
    SEARCHED,
    SHOWN,
    described,
    lines_of_paths,
    lines_of_rows,
    most_beyond,
    or_none,
    with_contexts,
    words_of_rounds,
)
from specverify.checks.explaining.drawn_candidates import has_several_drafters, rule_of_candidates, rule_of_drafters
from specverify.checks.explaining.earlier_tests import only_after, wrong_after_tests
from specverify.checks.explaining.engine_paths import KeptPaths, PathDraw, describe_draws, draws_of, with_pmfs
from specverify.checks.explaining.engine_rounds import (
    EngineRounds,
    changed_odds_of,
    engine_rounds,
    is_by_other_text,
    is_of_draft_row,
    model_of_law,
    without_other_cause,
    without_unseen_row,
)
from specverify.checks.explaining.first_difference import (
    CERTAIN,
    NOT_EXCLUDED,
    Difference,
    first_difference,
    text_fault,
)
from specverify.checks.explaining.numbered_tokens import numbered_tokens
from specverify.checks.explaining.other_requests import (
    PATHS_ALONE,
    blame_other_requests,
    fault_between_rows,
    right_alone,
    rows_of_request,
    then_of_request,
)
from specverify.checks.explaining.queried_rounds import (
    BUT_AFTER,
    argmax_without_draw,
    exchanged_answers,
    rejected_end,
    round_around,
    row_not_computed,
)
from specverify.checks.explaining.queried_tokens import QueriedTokens
from specverify.checks.explaining.readings import UNDRAWN_WORDS, Models, Reading
from specverify.checks.explaining.reused_numbers import USED_TWICE, number_used_twice
from specverify.checks.explaining.reused_rows import REUSED
from specverify.checks.explaining.used_rows import REJECTED_CHANGES, wrong_row_used
from specverify.checks.explaining.wording import listed_tokens
from specverify.checks.explaining.wrong_rows import KEPT, OF_DRAFT_MODEL, text_of_other_request, wrong_row
from specverify.checks.explaining.wrong_tokens import HeaviestPaths, draft_of_other_text, explain_token, quoted_row
from specverify.laws.enumeration import program_law
from specverify.laws.law import Law, total_variation
from specverify.laws.paths import Path, outcomes_of
from specverify.reference import Draws, LanguageModel, Pmf, Tokens
from specverify.subjects.subject import EngineProgram, Trace

EVIDENCE_OF_PROBE = 36
"""The number of further paths as evidence in a setting that explains a refutation."""
PROCESSED = "p as in the call without speculation"
"""Follows the name of a case whose rows of p are processed, for example by a temperature."""
COMPARED_TEXTS = 64
"""The largest number of texts at which the rows of the target are compared with the expected law."""

TWO = 2
"""The size of a vocabulary in which a wrong row shows no cause."""
LONGEST_ROW = 1024
"""Without the models of a program, its paths are not read as rounds if its rows of p would be longer than this."""
MOST_LAWS = 500
"""The largest number of next tokens whose laws are compared with a changed p."""


def program_counterexample(
    program: EngineProgram,
    run: Callable[[Draws], Any],
    law: Mapping[Any, Any],
    expected: Mapping[Any, Any],
    followed: KeptPaths | None = None,
) -> Counterexample:
    """Return a counterexample for an engine whose ``law`` differs from ``expected``.

    ``run`` is the engine as a program of draws. ``followed`` holds its paths if they were followed before. Large ids of
    tokens are numbered (``numbered_tokens``), and a last line of the case states their numbers.
    """
    engine = followed or KeptPaths(run)
    of_models = program.trace is not None or program.split is not None
    numbered = None if of_models else numbered_tokens((law, expected), engine)
    if numbered is None and not of_models and _vocabulary(expected) > LONGEST_ROW:
        difference = first_difference(law, expected, program.split, program.each)
        told = Counterexample((described(program),), most_beyond(law, expected).sentence)
        return told._replace(fault=difference.fault, rows=difference.rows) if difference else told
    if numbered is None:
        return _counterexample(program, engine, law, expected)
    engine = KeptPaths(run, [numbered.path(path) for path in engine])
    example = _counterexample(program, engine, numbered.law(law), numbered.law(expected))
    return example._replace(let=(*example.let, numbered.legend))


def _counterexample(
    program: EngineProgram, engine: KeptPaths, law: Mapping[Any, Any], expected: Mapping[Any, Any]
) -> Counterexample:
    """Return the counterexample of ``program_counterexample``; ``engine`` has the paths of ``program``."""
    beyond = most_beyond(law, expected)
    worst = beyond.outcome

    def share(end: Any) -> Any:
        return sum(part for outcome, part in outcomes_of(end) if outcome == worst)

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
    drawn = or_none(_with_queried_tokens, program, engine, drawn, traces, (size, cells)) or drawn
    asked, traces = trace, _with_rows_of_law(traces, expected, size)
    trace = next(iter(traces), None)
    texts = [*[worst] * len(heaviest), *(max(outcomes_of(path.outcome), key=lambda end: end[1])[0] for path in more)]
    open_ends = [len(outcomes_of(path.outcome)) > 1 for path in (*(path for _, path in heaviest), *more)]
    rounds = or_none(_rounds_of, program, drawn, traces, texts, (law, expected), open_ends)
    readings = _told_as_rounds(rounds, traces)[: len(heaviest)] if rounds else [None] * len(heaviest)
    because, shown = _stories_of(heaviest, drawn[: len(heaviest)], readings)
    by_law = None if asked is None or trace is not None else (asked.texts[0][0], model_of_law(expected, size))
    rows_told = {**rows_of_request(program.rows(worst), trace, difference), **_rows_used(trace, shown)}
    if trace and trace.queries and not trace.asked("draft"):  # the program has no draft model
        rows_told = {text: {name: row for name, row in rows.items() if name != "q"} for text, rows in rows_told.items()}
    let = (described(program), *lines_of_rows(rows_told, shown)) if by_law is None else _let(program, worst, *by_law)
    example = Counterexample(
        let=let,
        then=then_of_request(program, beyond, difference),
        because=because,
    )
    if difference is None:
        return example
    beside = blame_other_requests(program, trace, (law, expected), difference, engine)
    if beside is not None:
        return example._replace(fault=beside[0], rows=beside[1:], sure=True)
    model = _after(trace.texts[0][0], trace.target) if trace and trace.target else model_of_law(expected, size)
    named, proved = _fault_of_first_rounds(program, engine, trace, rounds, (size, cells))
    of_rounds = named or _fault_of(rounds, engine, drawn, (model, size), cells, difference)
    named = _or_fault_of_queries((rounds, of_rounds), program, traces, difference)
    late = None if program.split else or_none(_one_late, asked, law, expected)
    named = (changed := late or or_none(_changed_p, named, law, expected, size)) or named
    if not named:
        decisions = [path.decisions for _, path in heaviest]
        paths_drawn = HeaviestPaths(engine, expected, decisions, drawn[: len(heaviest)], cells)
        read = _read_fault(shown, len(readings)) if trace else ""
        named = (
            explain_token(difference, program.rows(worst), paths_drawn, size, read)
            or changed_odds_of(readings)
            or (asked and or_none(draft_of_other_text, difference, asked, drawn[0]))
            or ""
        )
    if not named:
        alone = or_none(_of_request_alone, program, difference)
        return alone or _without_cause(example, difference, paths_drawn, size, share, shown)
    own = rounds if rounds is not None and named == rounds.fault else EngineRounds([], "")
    let = with_contexts(example.let, own.contexts if trace else ())  # else the prompt of these texts is not known
    sure = program.is_probe and (own.named or proved or bool(changed) or REJECTED_CHANGES in named)
    found = example._replace(let=let, fault=named, rows=(difference.fault, *difference.rows), sure=sure)
    return _with_reuse(found, None if proved or changed else engine.run)


def _with_reuse(example: Counterexample, run: Callable[[Draws], Any] | None) -> Counterexample:
    """Return ``example`` with a random number that the engine ``run`` uses twice as its cause, if there is one.

    The cause that the paths show follows it: they are read as if every decision had a number of its own. Noise that a
    drafter shares with the target on purpose is left out. ``run`` is None if the cause is certain.
    """
    reused = run and or_none(number_used_twice, run, noise=False)
    return example._replace(fault=USED_TWICE + reused, rows=(example.fault, *example.rows)) if reused else example


def _without_cause(
    example: Counterexample,
    difference: Difference,
    heaviest: HeaviestPaths,
    size: int,
    share: Callable[[Any], Any],
    shown: Sequence[Reading],
) -> Counterexample:
    """Return ``example`` with a sentence about the first wrong token, whose cause is not known.

    The sentence quotes the row from which the token is drawn, if a draw on the paths ``heaviest`` shows it, and states
    after which earlier test alone the token is wrong, if there is one. A token that no mask excludes is a cause. A row
    of more than two tokens is taken for one too: the odds of two tokens differ in any other row, whatever its cause.

    Without such a cause, a random number that the program uses twice is named, and then the token.

    If no path in ``shown`` deviates from the rule, the paths of the result are those after whose draws the token is
    wrong. ``share`` returns the part of an end of a path that is the wrong text.
    """
    quoted = quoted_row(difference, heaviest, size)
    rows = (difference.fault, *difference.rows) if quoted else difference.rows
    after = or_none(only_after, heaviest.engine, difference, heaviest.expected) or ""
    deviates = any(reading.fault for reading in shown)
    wrong = None if deviates else or_none(wrong_after_tests, heaviest.engine, difference, heaviest.expected)
    if wrong and (paths := heaviest.engine.heaviest(share, SEARCHED, wrong)):
        drawn = [with_pmfs(heaviest.engine, draws_of(path.decisions), size, heaviest.cells) for _, path in paths]
        example = example._replace(because=_stories_of(paths, drawn, [None] * len(paths))[0])
    named = NOT_EXCLUDED in difference.sentence or (bool(quoted) and size > TWO)
    if not named and (reused := or_none(number_used_twice, heaviest.engine.run)):
        return example._replace(fault=USED_TWICE + reused, rows=(difference.fault + after, *difference.rows))
    return example._replace(fault=(quoted or difference.fault) + after, rows=rows, named=named)


def _read_fault(shown: Sequence[Reading], paths: int) -> str:
    """Return the first sentence about a fault in the readings ``shown``; "" if it may fail to find a draw or a text.

    ``paths`` is the number of paths that were read.
    """
    read = without_unseen_row(next((reading.fault for reading in shown if reading.fault), ""))
    return "" if UNDRAWN_WORDS in read or (is_by_other_text(read) and paths > 1) else read


def _one_late(trace: Trace | None, law: Mapping[Any, Any], expected: Mapping[Any, Any]) -> str:
    """Return the sentence that every text of ``law`` is a right one behind the last token of the prompt; "" if not.

    ``expected`` is the law of the right texts, and ``trace`` has the prompt; None: it is not known.
    """
    prompt, late = trace.texts[0][0] if trace else (), Counter[Any]()
    for text, mass in expected.items():
        late[(*prompt[-1:], *text[:-1])] += mass
    if not prompt or total_variation(Law(dict(law)), late).high > NEAR_LAW:
        return ""
    return f"the answer begins with the last token of the prompt, {prompt[-1]}, and all new tokens come one place late"


def _changed_p(named: str, law: Mapping[Any, Any], expected: Mapping[Any, Any], size: int) -> str:
    """Return the sentence that ``law`` is the law of a changed p, for example cut by top-k; "" if it is not.

    The law of each next token must have the same change, compared with the law in ``expected``. Both laws map texts to
    probabilities. Returns "" also if there are more than ``MOST_LAWS`` next tokens, and if ``named`` states a fault,
    unless it is the fault of the row of a draft, which may be changed like p. ``size`` is the vocabulary size.
    """
    if named and not is_of_draft_row(named):
        return ""
    befores = {text[:length] for text in law for length in range(len(text))}
    if not size or len(befores) > MOST_LAWS:
        return ""
    seen, p = model_of_law(law, size), model_of_law(expected, size)
    pairs = [(row, p(before)) for before in befores if (row := seen(before)).any()]
    words = change_of_all(pairs, NEAR_LAW)
    return f"every new token has the law of {words}, expected p" if words else ""


def _with_queried_tokens(
    program: EngineProgram,
    engine: KeptPaths,
    drawn: Sequence[Sequence[PathDraw]],
    traces: Sequence[Trace | None],
    known: tuple[int, dict[tuple[int, ...], Any]],
) -> list[list[PathDraw]]:
    """Return ``drawn``, the draws of several paths, with the tokens added that only the queries of the engine show.

    A query to a model with a text shows the tokens of the text. ``engine`` has all paths of ``program``, and ``traces``
    the queries of the paths in ``drawn``. ``known`` is the vocabulary size, and a cache of the intervals of each
    uniform (see ``with_pmfs``).
    """
    tokens = QueriedTokens(engine, lambda path: _trace_of(program, path), *known)
    return [tokens.added(*one) for one in zip(drawn, traces, strict=True)]


def _let(program: EngineProgram, new: Tokens, prompt: Tokens, model: LanguageModel) -> tuple[str, ...]:
    """Return one line that identifies the case of ``program``, and lines with the rows of p that decide the text.

    These are the rows after ``prompt`` and each beginning of the text ``new``; ``model`` gives them. Impossible texts
    have no line.
    """
    rows = {new[:length]: model(new[:length]) for length in range(len(new))}
    told = {prompt + before: {"p": row} for before, row in rows.items() if row.any()}
    return f"{described(program)}; {PROCESSED}", *lines_of_rows(told)


def _of_request_alone(program: EngineProgram, difference: Difference) -> Counterexample | None:
    """Return the counterexample of the wrong request served alone; None if it names no cause, or if it is right alone.

    ``difference`` has the index of the request, which ``program`` serves together with others. Draws that serve several
    requests cannot be read as drafts, tests and replacements; draws for one request often can.
    """
    if program.alone is None or difference.request is None:
        return None
    alone = program.alone(difference.request)
    with alone.open() as run:
        law, expected = program_law(run, PATHS_ALONE), alone.law()
        if law.missing or not total_variation(law, expected).low > NEAR_LAW:
            return None
        example = program_counterexample(alone, run, law.probabilities, expected)
    told = f"{program.each} {difference.request + 1} of {described(program)}, which is wrong alone too"
    return example._replace(let=(told, *example.let[1:])) if example.named else None


def _fault_of(
    rounds: EngineRounds | None,
    engine: KeptPaths,
    drawn: Sequence[Sequence[PathDraw]],
    target: tuple[LanguageModel, int],
    cells: dict[tuple[int, ...], Any],
    difference: Difference,
) -> str:
    """Return the sentence about the fault of ``rounds``; "" if none is known.

    If one rule explains all wrong parts of the rounds, the sentence names this rule. Otherwise it names a wrong row of
    p or q with which the rounds follow the right rule, if there is one (``wrong_row_used``).

    Args:
        rounds: Paths of the engine, read as rounds; None if they could not be read.
        engine: All paths of the engine.
        drawn: The draws of each path in ``rounds``.
        target: The target as a function of the new tokens, and the vocabulary size.
        cells: The cache of ``with_pmfs``.
        difference: The first wrong token; its law may say more than the numbers of one round.
    """
    if rounds is None or (rounds.named and rounds.whole):
        return rounds.fault if rounds else ""
    by_law = not rounds.named and NOT_EXCLUDED in difference.sentence
    return or_none(wrong_row_used, engine, drawn, rounds.readings, target, cells) or ("" if by_law else rounds.fault)


def _or_fault_of_queries(
    known: tuple[EngineRounds | None, str],
    program: EngineProgram,
    traces: Sequence[Trace | None],
    difference: Difference,
) -> str:
    """Return the sentence that a row of p is computed for another text; the known sentence if there is no such fault.

    The known sentence is also returned if it names a rule or a row.

    Args:
        known: The rounds, and the sentence about their fault or "".
        program: The engine.
        traces: The queries of several paths, or None.
        difference: The first wrong token.
    """
    rounds, named = known
    quotes = rounds is not None and named == rounds.fault and not rounds.named
    if next(iter(traces), None) is None or program.split is not None or (named and not quotes):
        return named
    missing = row_not_computed(traces, difference.before, difference.seen)
    return missing if not named or BUT_AFTER in missing else named


def _fault_of_first_rounds(
    program: EngineProgram,
    engine: KeptPaths,
    trace: Trace | None,
    rounds: EngineRounds | None,
    size_and_cells: tuple[int, dict[tuple[int, ...], Any]],
) -> tuple[str, bool]:
    """Return (sentence, whether it is a rule that all first rounds follow) about a token without a draw, or candidates.

    The sentence is "" if there is neither, or if one rule already explains all wrong parts of ``rounds``. The other
    parameters are those of ``_fault_of_candidates``.
    """
    if undrawn := or_none(token_without_draw, program, engine):
        return undrawn, False
    if rounds and rounds.named and rounds.whole:
        return "", False
    of_candidates = _fault_of_candidates(program, engine, trace, size_and_cells)
    return of_candidates, bool(of_candidates)


def _fault_of_candidates(
    program: EngineProgram,
    engine: KeptPaths,
    trace: Trace | None,
    size_and_cells: tuple[int, dict[tuple[int, ...], Any]],
) -> str:
    """Return the sentence about a wrong rule for several candidates of one position; "" if none is recognised.

    ``engine`` holds the paths of ``program``, and ``trace`` has the models. ``size_and_cells`` is the vocabulary size,
    and a cache of the intervals of each uniform (see ``with_pmfs``). Returns "" also if the program serves several
    requests.
    """
    if trace is None or trace.target is None or program.split is not None:
        return ""
    size, cells = size_and_cells
    candidates = [
        (with_pmfs(engine, draws_of(path.decisions), size, cells), text)
        for path in islice(engine, MOST_TREE_PATHS)
        for text, _ in outcomes_of(path.outcome)[:1]
    ]
    prompt = trace.texts[0][0]
    drawn = or_none(rule_of_candidates, candidates, trace.target, prompt)
    drawn = drawn or or_none(rule_of_drafters, candidates, trace)
    return drawn or or_none(rule_of_chosen, candidates, trace.target, prompt) or ""


def _after(prompt: Tokens, model: LanguageModel) -> LanguageModel:
    """Return ``model`` as a function of the new tokens, which follow ``prompt``."""
    return lambda new: model(prompt + new)


def _behind(prompt: Tokens, model: LanguageModel) -> LanguageModel:
    """Return ``model``, a function of the new tokens, as a function of whole texts, which begin with ``prompt``."""
    return lambda text: model(text[len(prompt) :])


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
    laws: tuple[Mapping[Any, Any], Mapping[Any, Any]],
    open_ends: Sequence[bool],
) -> EngineRounds | None:
    """Read paths of an engine as rounds; None if this is not possible.

    Reasons are that the engine serves several requests, that a token of a text is no integer, and that the models of a
    path are not known.

    Args:
        program: The engine.
        drawn: The draws of each path.
        traces: The model queries of each path; None if they are not recorded. Then p is computed from the expected law.
        texts: The new tokens of each path.
        laws: The law of texts, and the expected law.
        open_ends: For each path, whether the engine never reads the value of its last token.
    """
    law, expected = laws
    horizon, size = max((len(text) for text in expected), default=0), _vocabulary(expected)
    if program.split or not size:
        return None
    emitted = model_of_law(law, size)
    by_law = Models(model_of_law(expected, size), None, (), horizon)
    if any(has_several_drafters(items, trace) for items, trace in zip(drawn, traces, strict=True) if trace):
        return None
    models = [_models_of(trace, horizon) if trace else by_law for trace in traces]
    if any(one is None for one in models):
        return None
    ends = zip(drawn, texts, models, open_ends, strict=True)
    return engine_rounds(
        [
            (items, new, one._replace(open_end=is_open, emitted=_behind(one.prompt, emitted)))
            for items, new, one, is_open in ends
            if one
        ]
    )


def _models_of(trace: Trace, horizon: int) -> Models | None:
    if trace.target is None or len(trace.texts) != 1:
        return None
    asked = tuple(dict.fromkeys(text for _, text in trace.queries))
    queries = tuple((at, *query) for at, query in zip(trace.moments, trace.queries, strict=False))
    return Models(trace.target, trace.draft, trace.texts[0][0], horizon, asked, queries, eos=trace.eos)


def _with_rows_of_law(traces: list[Trace | None], expected: Mapping[Any, Any], size: int) -> list[Trace | None]:
    """Return ``traces`` if their target explains the expected law, else a list with None for each path.

    The target of the first trace is compared with the rows of p in the law ``expected``. They differ, for example, if a
    penalty changes the rows. The recorded models would then explain the paths wrongly. ``size`` is the vocabulary size.
    """
    first = next(iter(traces), None)
    return traces if first is None or has_law_of_target(first, expected, size) else [None] * len(traces)


def has_law_of_target(trace: Trace, expected: Mapping[Any, Any], size: int) -> bool:
    """Return whether ``expected`` is the law of the target model recorded in ``trace``, without further processing.

    If not, plain decoding processes the rows of the target, for example by a penalty. ``size`` is the vocabulary size.
    Returns True also if nothing can be compared, because there are several requests or no model.
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
    """Return the queries to the models on a path of the engine ``program``; None if the engine does not record them."""
    return or_none(program.trace, path.choices) if program.trace else None


def _told_as_rounds(rounds: EngineRounds, traces: Sequence[Trace | None]) -> list[Reading | None]:
    """Return the reading of each path, in a form that can be shown; None for paths without a reliable reading.

    ``rounds`` has the readings and the fault that all paths show, and ``traces`` the model queries of each path, or
    None. A reading with a token that no draw explains is replaced by None if the path has no queries or ``rounds``
    names no fault. Such a program may be right: it may draw all tokens before all coins, or keep a token that was drawn
    earlier. From the words of the other readings, causes that only one path shows are removed.
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
        line = words_of_rounds(reading) if reading else describe_draws(items)
        weights[line] = weights.get(line, 0) + weight
        faulty[line] = bool(reading and reading.fault)
        if reading:
            shown[line] = reading
    lines = sorted(weights, key=lambda line: (not faulty[line], -weights[line]))[:SHOWN]
    if faulty[lines[0]]:
        lines = lines[:1]
    return lines_of_paths(lines, weights), [shown[line] for line in lines if line in shown]


def _rows_used(trace: Trace | None, readings: Sequence[Reading]) -> dict[Tokens, dict[str, Pmf]]:
    """Return text -> {"p": row, "q": row} for the texts whose rows the descriptions of ``readings`` use.

    ``readings`` are paths described as rounds. ``trace`` has the models and their queries. Returns {} if the target or
    the draft model is unknown.
    """
    if trace is None or trace.target is None or trace.draft is None:
        return {}
    words = " ".join(word for reading in readings for word in (*reading.words, reading.fault))
    texts = {text: None for reading in readings for text in reading.used}
    texts |= {text: None for _, text in trace.queries if str(text) in words}
    target, draft = trace.target, trace.draft
    return {text: {"p": target(text), "q": draft(text)} for text in sorted(texts, key=lambda text: (len(text), text))}


def _vocabulary(law: Mapping[Any, Any]) -> int:
    """Return the vocabulary size of the texts of ``law``: largest token plus 1; 0 if a token is no integer."""
    tokens = {token for text in law for token in text}
    return max(tokens) + 1 if tokens and all(isinstance(token, int) for token in tokens) else 0


def certain_counterexample(program: EngineProgram, trace: Trace, wanted: Tokens) -> Counterexample | None:
    """Return a counterexample for the greedy engine ``program``; None if its texts are right.

    The counterexample shows the expected and the emitted text, the first wrong token, and its round. ``wanted`` is the
    right outcome, and ``trace`` has the emitted texts and the model queries.
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
            if does == should[: len(does)]:
                wrong += or_none(rejected_end, trace, index, should) or ""
            other = exchanged_answers(texts, [new for _, new in trace.texts], program.each, trace.batches)
            emitted = tuple(token for _, new in trace.texts for token in new)
            other = other or or_none(fault_between_rows, trace, {emitted: 1.0}, {wanted: 1.0}) or ""
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
