"""Attribute the wrong text of a request to the other requests of its batch, or to a request before it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from specverify.checks.explaining.batch_rules import RequestBatch, rule_of_batch
from specverify.checks.explaining.counterexample_parts import (
    EVIDENCE,
    NEAR,
    NEAR_LAW,
    SEARCHED,
    BeyondOutcome,
    laws_differ,
    or_none,
)
from specverify.checks.explaining.drawn_batches import fault_of_drawn_batch
from specverify.checks.explaining.engine_paths import (
    KeptPaths,
    PathDraw,
    draws_of,
    with_pmfs,
)
from specverify.checks.explaining.engine_rounds import model_of_law
from specverify.checks.explaining.first_difference import CERTAIN, END, Difference, Split, texts_in
from specverify.checks.explaining.given_drafts import place_of
from specverify.checks.explaining.queried_rounds import drafts_of_first_round
from specverify.checks.explaining.reused_numbers import number_used_twice
from specverify.checks.explaining.round_rules import Row, excess, ratio, same_row, scaled, without
from specverify.checks.explaining.wording import apart, listed, listed_tokens, short, short_row
from specverify.checks.explaining.wrong_rows import context_with_draft
from specverify.laws.enumeration import program_law
from specverify.laws.law import total_variation
from specverify.laws.paths import outcomes_of
from specverify.reference import Pmf, Tokens
from specverify.subjects.subject import EngineProgram, Trace

LEAST_PROOFS = 2
"""The least number of paths whose queries prove that a context keeps a rejected draft."""
PATHS_ALONE = 2000
"""The largest number of paths that are followed of one request alone."""

SHOWN_OUTCOME = 16
"""The largest number of tokens of an outcome of several requests that is shown whole."""
MOST_OTHERS = 4
"""The largest number of requests whose sampling parameters are tried."""
SHOWN_ROWS = 3
"""The number of texts of a wrong request whose rows are shown."""


def blame_other_requests(
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
    * One draw decides about several requests, each of which has the right law.
    * The request is right if it is served alone.
    * p is computed after a text that keeps a rejected draft.

    ``laws`` are the observed and the expected law, and ``difference`` is their first difference. ``trace`` has the
    model queries of one path, and ``engine`` all paths of ``program``.
    """
    if difference.expected.get(END, 0) >= CERTAIN:
        return difference.fault, *difference.rows
    alone = "" if difference.request is None else or_none(right_alone, program, difference.request)
    shown = f"{alone}: {difference.sentence}" if alone else difference.fault
    rule = or_none(fault_between_rows, trace, *laws) if trace is not None and program.split is not None else ""
    if trace is None and program.trace is None and difference.request is not None:
        rule = or_none(fault_of_drawn_batch, engine, program.split or tuple, laws) or ""
    decided = or_none(_decided_by, program, trace, engine, difference) or ""
    if rule:
        return f"{rule}{decided or (_line_of_tests(engine) if ' test' in rule else '')}", shown, *difference.rows
    if difference.request is None and (shared := or_none(_shared_draw, program, engine)):
        return *shared, difference.fault
    if not alone:
        kept = or_none(_kept_draft, program, difference, engine)
        return (f"{kept}: {difference.fault}", *difference.rows) if kept else None
    return f"{shown}{decided}", *difference.rows


def _shared_draw(program: EngineProgram, engine: KeptPaths) -> tuple[str, ...]:
    """Return lines about the first draw that decides about several texts of ``program``; () if there is none.

    A draw decides about a text if the law of the text after the draw depends on the outcome. Independent texts have no
    such draw in common. Returns () also if ``engine`` does not have all paths.
    """
    if sum(float(path.weight) for path in engine) < 1 - NEAR:
        return ()
    laws = _laws_after(program.split or texts_in, engine)
    after = defaultdict[tuple[int, ...], list[LawsOfTexts]](list)
    for choices, law in laws.items():
        if choices:
            after[choices[:-1]].append(law)
    for before in sorted(after, key=len):
        decided = [index for index in laws[before] if _differ([law[index] for law in after[before]])]
        if len(decided) > 1:
            path = next(path for path in engine if path.choices[: len(before)] == before)
            place = place_of(path.decisions[len(before)])
            numbers = listed([index + 1 for index in decided])
            at = f" ({place})" if place else ""
            said = f"the {program.each}s share random numbers: one draw{at} decides about {program.each}s {numbers}"
            return tuple(filter(None, (said, or_none(number_used_twice, engine.run))))
    return ()


LawsOfTexts = Mapping[int, Mapping[Tokens, float]]
"""Index of a text -> the text -> its weight."""


def _laws_after(split: Split, engine: KeptPaths) -> Mapping[tuple[int, ...], LawsOfTexts]:
    """Return the outcomes of the first draws -> the law of each text after them, not normalised, for all beginnings."""
    laws = defaultdict[tuple[int, ...], Any](lambda: defaultdict[int, Counter[Tokens]](Counter))
    for path in engine:
        for outcome, share in outcomes_of(path.outcome):
            for index, text in enumerate(split(outcome)):
                for length in range(len(path.choices) + 1):
                    laws[path.choices[:length]][index][text] += float(path.weight) * float(share)
    return laws


def _differ(laws: Sequence[Mapping[Tokens, float]]) -> bool:
    """Return whether two of ``laws``, each text -> weight, differ after they are normalised."""
    first, *others = [{text: mass / sum(law.values()) for text, mass in law.items()} for law in laws]
    return any(laws_differ(law, first) for law in others)


def _kept_draft(program: EngineProgram, difference: Difference, engine: KeptPaths) -> str:
    """Return the sentence that p of the first wrong token is computed after a text that keeps a rejected draft.

    The queries on at least two paths of ``engine`` must prove this, all with the same wrong text; otherwise the result
    is "". ``difference`` has the first wrong token of ``program``.
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
    said = f"the context keeps the rejected draft token {draft}: p of new token {len(wrong)} is computed after {asked}"
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
    in four cases:

    * It is a coin whose probability is not min(1, p/q), neither here nor for a draft of another request.
    * It is a token from a row that is not p, q or their residual.
    * It is a draft from q, which is then surely accepted, but min(1, p/q) is below 1.
    * It is a token from p with the sampling parameters of another request.

    If sampling parameters change p, only the last case is examined, because q is not known then. The paths with the
    wrong token are searched, the most probable first. ``difference`` has the first wrong token, ``engine`` the paths of
    ``program``, and ``trace`` the model queries of one path.
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
    own = or_none(_row_alone, program, index, index, begun, len(p)) or p
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
        if _tests_other_request(item, trace, index, program.split(outcomes_of(path.outcome)[0][0])):
            continue
        if same_row(own, p, NEAR_LAW):
            said = _wrong_draw(item, (number + 1, token), p, q)
        else:
            said = _with_parameters_of(program, item, (index, len(trace.texts)), begun, own)
        if said:
            return said
    return ""


def _tests_other_request(item: PathDraw, trace: Trace, index: int, texts: Sequence[Tokens]) -> bool:
    """Return whether ``item`` is a coin with the probability min(1, p/q) of a possible draft of another request.

    In a batch whose rows depend on each other, such a coin may decide a token of request ``index`` too, though it is a
    right test. ``texts`` are the new tokens of all requests on the path of ``item``, and ``trace`` has the models.
    """
    if item.is_lookup or trace.target is None or trace.draft is None:
        return False
    bound = item.bound
    for other, ((prompt, _), new) in enumerate(zip(trace.texts, texts, strict=True)):
        for length in range(len(new) if other != index else 0):
            text = prompt + new[:length]
            rows = zip(trace.target(text).tolist(), trace.draft(text).tolist(), strict=True)
            if any(q > 0 and abs(float(ratio(p, q)) - bound) <= NEAR_LAW for p, q in rows):
                return True
    return False


def _left_out(row: Row, p: Row) -> int | None:
    """Return the one token that was removed from ``p`` to make ``row``, which has sum 1 again; None if there is none.

    At least two tokens must remain.
    """
    gone = [token for token, (mass, ought) in enumerate(zip(row, p, strict=True)) if mass <= NEAR_LAW < ought]
    if len(gone) != 1 or max(row) > 1 - NEAR_LAW:
        return None
    return gone[0] if same_row(row, scaled(without(p, *gone)), NEAR_LAW) else None


def _wrong_draw(item: PathDraw, emitted: tuple[int, int], p: Row, q: Row) -> str:
    """Return a clause about the draw ``item`` if it is wrong by the rule of speculative sampling; else "".

    The draw decides that a token is emitted. ``emitted`` is (number of the new token, counted from 1; token), and ``p``
    and ``q`` are the rows at this position.
    """
    number, token = emitted
    bound = ratio(p[token], q[token])
    if not item.is_lookup and item.low <= 0 and abs(item.high - bound) > NEAR_LAW:
        does, ought = apart(item.high, bound)
        return f"; new token {number} is {token} if u < {does} ({item.place}), and min(1, p/q) is {ought} there"
    if item.pmf and not any(same_row(item.pmf, row, NEAR_LAW) for row in (p, q, excess(p, q))):
        rows = f"where p = {short_row(p)} and q = {short_row(q)}"
        left_out = _left_out(item.pmf, p)
        name = "" if left_out is None else f"p without token {left_out} = "
        return f"; new token {number} is drawn from {name}{short_row(item.pmf)} ({item.place}), {rows}"
    if item.outcome == token and same_row(item.pmf, q, NEAR_LAW) and bound < 1 - NEAR_LAW:
        rows = f"p = {short_row(p)} and q = {short_row(q)}"
        said = f"; the draft, token {token} from q ({item.place}), is surely accepted on some paths, expected with"
        return f"{said} probability {short(bound)} = min(1, p/q), where {rows}"
    return ""


def _with_parameters_of(program: EngineProgram, item: PathDraw, request: tuple[int, int], new: Tokens, own: Row) -> str:
    """Return the clause that ``item`` draws a token from p with the parameters of another request; "" if it does not.

    ``request`` is (index of the request that gets the token, number of requests), ``new`` are its new tokens before,
    and ``own`` is its own p. ``program`` is the engine that serves the requests.
    """
    index, count = request
    if not item.pmf or same_row(item.pmf, own, NEAR_LAW):
        return ""
    for other in range(min(count, MOST_OTHERS)):
        row = or_none(_row_alone, program, index, other, new, len(own)) if other != index else None
        if row and same_row(item.pmf, row, NEAR_LAW):
            whose = f"p with the sampling parameters of {program.each} {other + 1}"
            drawn = f"new token {len(new) + 1} is drawn from {whose}, {short_row(item.pmf)} ({item.place})"
            return f"; {drawn}, expected with those of {program.each} {index + 1}: p = {short_row(own)}"
    return ""


def _row_alone(program: EngineProgram, index: int, other: int, new: Tokens, size: int) -> Row | None:
    """Return p after the new tokens ``new`` of request ``index``, with the sampling parameters of request ``other``.

    The row ``[size]`` is that of the expected law of the request alone. Returns None if the engine ``program`` cannot
    serve one request alone, or if the expected law has no text that continues ``new``.
    """
    if program.alone is None:
        return None
    row = model_of_law(program.alone(index, other).law(), size)(new).tolist()
    return row if sum(row) > 0 else None


def right_alone(program: EngineProgram, index: int) -> str:
    """Return the sentence that request ``index`` has the right law alone and a wrong law together with other requests.

    The sentence names the other requests that the engine ``program`` serves. Returns "" if the law is wrong alone too,
    or if the engine cannot serve one request alone.
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


def fault_between_rows(trace: Trace, law: Mapping[Any, Any], expected: Mapping[Any, Any]) -> str:
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
    """Return a phrase about the requests of the first call, if request ``index`` is one of them; else a general phrase.

    ``name`` describes in which calls all requests are served, for example ``A beside B, then C beside D``. The general
    phrase states that the request is served with others or after others.
    """
    first = name.partition(", then ")[0].count(" beside ") + 1
    if index >= first:
        return "in a batch with others, or after other requests"
    return f"in a batch with request{'s' * (first > 2)} {listed([i + 1 for i in range(first) if i != index])}"


def then_of_request(program: EngineProgram, beyond: BeyondOutcome, difference: Difference | None) -> str:
    """Return a sentence about the outcome ``beyond``; of several long texts, it shows only the wrong request's.

    ``difference`` is the first difference of the laws of ``program``.
    """
    outcome, does, should = beyond
    if program.split is None or difference is None or difference.request is None or len(outcome) <= SHOWN_OUTCOME:
        return beyond.sentence
    text, each = listed_tokens(program.split(outcome)[difference.request]), program.each
    told = f"the new tokens of all {each}s, with {text} in {each} {difference.request + 1},"
    return f"{told} should come with probability {should}, but come with {does}"


def rows_of_request(
    rows: Mapping[Tokens, Mapping[str, Pmf]], trace: Trace | None, difference: Difference | None
) -> Mapping[Tokens, Mapping[str, Pmf]]:
    """Return those of ``rows`` that decide the first wrong token of a request: after the last tokens before it.

    All rows are returned if the wrong request is not known. ``difference`` has the wrong token, ``trace`` the prompts.
    """
    if trace is None or difference is None or difference.request is None or difference.wrong is None:
        return rows
    text = (*trace.texts[difference.request][0], *difference.wrong[:-1])
    last = {text[:length]: rows[text[:length]] for length in range(1, len(text) + 1) if text[:length] in rows}
    return dict(list(last.items())[-SHOWN_ROWS:]) or rows
