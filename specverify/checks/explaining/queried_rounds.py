"""Find the round in which a text of an engine first differs, from the recorded queries to its models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from specverify.base.prefixes import begins, inserted
from specverify.checks.explaining.counterexample_parts import NEAR_LAW
from specverify.checks.explaining.first_difference import CERTAIN
from specverify.checks.explaining.round_rules import same_row
from specverify.checks.explaining.row_names import text_difference
from specverify.checks.explaining.wording import listed_tokens, short_row
from specverify.reference import Tokens
from specverify.subjects.subject import Trace

BUT_AFTER = ", but after "
"""Precedes the other text for which the row of p is computed."""
LEAST_CHOSEN = 2
"""The least number of different tokens from which it is inferred that a program chooses the argmax."""


def argmax_without_draw(traces: Sequence[tuple[Trace, int]]) -> str:
    """Return the sentence that the token after accepted drafts is the argmax of p, without a draw; "" if it is not.

    ``traces`` has (trace, number of draws) of several paths. A token is examined if the target was queried for it, the
    draft model was not, and p is not certain. Three conditions must hold:

    * Every examined token is the argmax of p.
    * No draw takes place between the query for it and the next query.
    * Not all examined tokens are the same.
    """
    chosen = dict[Tokens, int]()
    for trace, draws in traces:
        if trace.target is None or len(trace.texts) != 1 or len(trace.moments) != len(trace.queries):
            return ""
        prompt, new = trace.texts[0]
        ends = [*trace.moments[1:], draws]
        drafted = set(trace.asked("draft"))
        for (name, text), moment, end in zip(trace.queries, trace.moments, ends, strict=True):
            number = len(text) - len(prompt)
            inside = 0 <= number < len(new) and text == prompt + new[:number]
            if name != "target" or text in drafted or not drafted or not inside:
                continue
            row = trace.target(text).tolist()
            if max(row) >= CERTAIN:
                continue
            if moment != end or new[number] != row.index(max(row)):
                return ""
            chosen[text] = new[number]
    if len(set(chosen.values())) < LEAST_CHOSEN:
        return ""
    text, token = min(chosen.items(), key=lambda item: (len(item[0]), item[0]))
    trace = traces[0][0]
    number, p = len(text) - len(trace.texts[0][0]) + 1, trace.target(text).tolist() if trace.target else []
    said = f"the token after accepted drafts is the argmax of p, without a draw: new token {number} is {token}"
    return f"{said} after {text}, expected a draw from p = {short_row(p)}"


def row_not_computed(traces: Sequence[Trace | None], before: Tokens, seen: Mapping[int, Any]) -> str:
    """Return the sentence that the target is never queried with the text of a wrong token; "" if it is.

    The text of a token is the prompt with all tokens before it. If one other text is queried instead, the sentence adds
    it. There are four ways to find this other text:

    * On all paths, the first query with the text without its last token is followed by a query with the other text.
    * The other text is the only text of the same length that is queried on all paths.
    * The other text is the only wrong one that is queried on all paths and ends with the last token of the text.
    * The other text is the text without its last token, which is queried on all paths.

    It is added only if p after it is the observed law ``seen``. This law must be uncertain, except in the third way.

    Args:
        traces: The queries of several paths, or None.
        before: The new tokens before the wrong one.
        seen: The observed law of the wrong token.
    """
    known = [trace for trace in traces if trace and len(trace.texts) == 1 and trace.target is not None]
    fitting = [trace for trace in known if trace.texts[0][1][: len(before)] == before != trace.texts[0][1]]
    if not fitting:
        return ""
    text = (*fitting[0].texts[0][0], *before)
    asked = [set(trace.asked("target")) for trace in fitting]
    if any(text in queried or not queried for queried in asked):
        return ""
    following = {_asked_behind(trace, text[:-1]) for trace in fitting}
    same = set.intersection(*({other for other in queried if len(other) == len(text)} for queried in asked))
    instead = next((kind.pop() for kind in (following, same) if len(kind) == 1), ())
    said = ""
    fed = _texts_with_last_token(fitting, text)
    if instead and _has_law(fitting[0], instead, seen):
        said = f"{BUT_AFTER}{instead}{text_difference(instead, text, ())}"
    elif len(fed) == 1 and _has_law(fitting[0], fed[0], seen, certain=True):
        said = f"{BUT_AFTER}{fed[0]}{_other_draft(fitting[0], fed[0], text) or text_difference(fed[0], text, ())}"
    elif before and all(text[:-1] in queried for queried in asked) and _lacks_last_token(fitting[0], text, seen):
        said = f"{BUT_AFTER}{text[:-1]}{text_difference(text[:-1], text, ())}"
    return f"p of new token {len(before) + 1} is not computed after {text}{said}"


def _lacks_last_token(trace: Trace, text: Tokens, seen: Mapping[int, Any]) -> bool:
    """Return whether ``seen``, a law of a token, is p after ``text`` without its last token, and not p after ``text``.

    ``trace`` has the target.
    """
    return _has_law(trace, text[:-1], seen) and not _has_law(trace, text, seen)


def _asked_from(trace: Trace, text: Tokens) -> Sequence[Tokens]:
    """Return the texts of the queries to the target from the first one with ``text`` on; all if there is none."""
    asked = trace.asked("target")
    return asked[asked.index(text) :] if text in asked else asked


def _asked_behind(trace: Trace, text: Tokens) -> Tokens:
    """Return the next text with which the target was queried after the query with ``text``; () if there is none.

    ``trace`` has the queries of the run, in order.
    """
    asked = trace.asked("target")
    at = asked.index(text) + 1 if text in asked else len(asked)
    return next(iter(asked[at:]), ())


def _texts_with_last_token(traces: Sequence[Trace], text: Tokens) -> list[Tokens]:
    """Return the texts with which the target is queried on all paths ``traces`` and that end as ``text`` does.

    Such a query is made where the program feeds the last token of ``text``, so queries before the first one with the
    tokens before it do not count. Texts that an emitted text begins with are left out, because they are right. The
    result is [] if ``text`` is a prompt.
    """
    if text == traces[0].texts[0][0]:
        return []
    shared = set.intersection(*(set(_asked_from(trace, text[:-1])) for trace in traces))
    right = [prompt + new for trace in traces for prompt, new in trace.texts]
    return [asked for asked in shared if asked[-1:] == text[-1:] and not any(begins(one, asked) for one in right)]


def _other_draft(trace: Trace, asked: Tokens, text: Tokens) -> str:
    """Return words about a draft that was replaced in ``text``, but not in the queried text ``asked``; "" if none.

    The draft must be the first of the tokens that ``asked`` has in addition to ``text``, and the draft model must be
    queried with it. ``trace`` has the queries.
    """
    extra = inserted(asked, text, trace.texts[0][0])
    start = next((i for i, pair in enumerate(zip(asked, text, strict=False)) if pair[0] != pair[1]), len(text))
    if not extra or ("draft", (*text[:start], asked[start])) not in trace.queries:
        return ""
    return f", which also has {asked[start]}, another draft for the place of {text[start]}"


def _has_law(trace: Trace, text: Tokens, seen: Mapping[int, Any], *, certain: bool = False) -> bool:
    """Return whether p after ``text`` is ``seen``, the observed law of a token. ``trace`` has the target.

    A law with one possible token fits many texts, so the result is then False, unless ``certain`` permits it.
    """
    if trace.target is None:
        return False
    row = trace.target(text).tolist()
    if max(row) > CERTAIN and not certain:
        return False
    return same_row(row, [float(seen.get(token, 0)) for token in range(len(row))], NEAR_LAW)


def drafts_of_first_round(trace: Trace) -> int:
    """Return the number of drafts of the first round, inferred from the queries in ``trace``; 0 without draft queries.

    The result counts the draft-model queries before the first target query that follows them. If several requests are
    served together, their queries for the same position count once.
    """
    names = [name for name, _ in trace.queries]
    if "draft" not in names:
        return 0
    begin = names.index("draft")
    end = names.index("target", begin) if "target" in names[begin:] else len(names)
    return len({len(text) - len(_prompt_of(trace, text)) for _, text in trace.queries[begin:end]})


def _prompt_of(trace: Trace, text: Tokens) -> Tokens:
    """Return the longest prompt in ``trace`` with which ``text`` begins; () if there is none."""
    return max((prompt for prompt, _ in trace.texts if begins(text, prompt)), key=len, default=())


class _InferredRound(NamedTuple):
    """The round that emits the first wrong token of a request, inferred from the queries to the draft model."""

    begin: int
    """The number of new tokens before the round."""
    drafts: Tokens
    accepted: int
    """The number of drafts that are emitted."""
    wrong: int
    """The index of the first wrong new token, or of the end token that should be the last one."""


def round_around(trace: Trace, index: int, wanted: Tokens, *, bonus: bool = False) -> str:
    """Describe the round that emits the first wrong token of request ``index``: its drafts and how many are accepted.

    Returns "" if the round cannot be inferred from the draft-model queries. ``wanted`` is the right text, and ``trace``
    has the texts and the model queries of the run. With ``bonus``, the draft model also chooses the wrong token, as a
    bonus; the query for this token and the later queries are then not counted as drafts of the round.
    """
    one = _round_around(trace, index, wanted, bonus=bonus)
    if one is None or one.begin + one.accepted < one.wrong < len(trace.texts[index][1]):
        return ""  # the last token of this round comes before the wrong one
    kept = f"{one.accepted} of {len(one.drafts)} accepted"
    said = f"round from new token {one.begin + 1}: drafted {listed_tokens(one.drafts)}, {kept}"
    number = one.wrong - one.begin
    if _runs_on(trace, index, wanted) and number < one.accepted:
        return f"{said}: the end token {trace.eos} is draft {number + 1}, and the tokens after it are emitted too"
    return f"{said} (inferred from the tokens)"


def rejected_end(trace: Trace, index: int, wanted: Tokens) -> str:
    """Return the clause that the last round of request ``index`` drafts the end token and rejects it; "" if not.

    The text of the request ends too early. ``wanted`` is the right text, and ``trace`` has the texts and queries.
    """
    one = _round_around(trace, index, wanted, bonus=False)
    if one is None or trace.eos is None or trace.eos not in one.drafts[one.accepted :]:
        return ""
    place = one.drafts.index(trace.eos, one.accepted)
    return f"; draft {place + 1} of the last round is the end token {trace.eos}, and is not accepted"


def _runs_on(trace: Trace, index: int, wanted: Tokens) -> bool:
    """Return whether request ``index`` continues after its end token; ``wanted`` is the right text.

    ``trace`` has the emitted texts.
    """
    new = trace.texts[index][1]
    return trace.eos is not None and wanted[-1:] == (trace.eos,) and new[: len(wanted)] == wanted != new


def _round_around(trace: Trace, index: int, wanted: Tokens, *, bonus: bool) -> _InferredRound | None:
    """Return the round that ``round_around`` describes; None if it cannot be inferred.

    The parameters are those of ``round_around``: ``wanted`` is the right text of request ``index``, and ``trace`` has
    the texts and the model queries of the run. With ``bonus``, the draft model also chooses the wrong token.
    """
    prompt, new = trace.texts[index]
    if has_same_prompt(trace, index):
        return None
    trace = trace.of_call(index)
    shorter = min(len(wanted), len(new))
    wrong = next((i for i, pair in enumerate(zip(wanted, new, strict=False)) if pair[0] != pair[1]), shorter)
    wrong -= _runs_on(trace, index, wanted)
    text = prompt + new
    all_rounds = _rounds(_without_bonus(trace, len(prompt) + wrong) if bonus else trace, prompt)
    starts = [
        (len(drafted[0]) - len(prompt), number)
        for number, drafted in enumerate(all_rounds)
        if drafted[0] == text[: len(drafted[0])] and len(drafted[0]) - len(prompt) <= wrong
    ]
    if not starts:
        return None
    _, number = max(starts, key=lambda item: item[0])
    begins = _possible_begins(trace, all_rounds, number, text)
    if len(begins) != 1:
        return None
    asked = all_rounds[number][begins[0] :]
    begin = len(asked[0]) - len(prompt)
    if begin > wrong:
        return None
    drafts = asked[-1][len(asked[0]) :]
    last = _certain_draft(trace, asked[-1])
    drafts = drafts if last is None else (*drafts, last)
    came = new[begin:]
    accepted = next((i for i, draft in enumerate(drafts) if came[i : i + 1] != (draft,)), len(drafts))
    return _InferredRound(begin, drafts, accepted, wrong)


def has_same_prompt(trace: Trace, index: int) -> bool:
    """Return whether another request in the call of request ``index`` has the same prompt."""
    return sum(trace.texts[i][0] == trace.texts[index][0] for i in trace.call_of(index)) > 1


def _possible_begins(trace: Trace, all_rounds: Sequence[list[Tokens]], number: int, text: Tokens) -> list[int]:
    """Return the indices of the queries with which round ``number`` may begin; the earlier queries are of old tokens.

    A draft network returns a row for every token that it is fed, so it is queried for tokens too that the round before
    emitted: the last accepted draft and the bonus. A begin is possible if the draft model can choose each token after
    it. A later begin than the first query must have emitted tokens before it. It is excluded in two cases:

    * The target is not queried before the round, so no token is emitted yet.
    * The first query already has the last token of the round before, a replacement: it does not continue the drafts.

    ``all_rounds`` are the draft-model queries of the request in rounds, ``text`` its prompt and new tokens, and
    ``trace`` has the queries and the models.
    """
    asked = all_rounds[number]
    if number:
        before = all_rounds[number - 1][-1]
        draft = _certain_draft(trace, before)
        goes_on = asked[0][:-1] == before and draft in {None, asked[0][-1]}
        decided = goes_on or begins(before, asked[0])
    else:
        earlier = trace.queries[: trace.queries.index(("draft", asked[0]))]
        decided = any(name == "target" and begins(asked[0], queried) for name, queried in earlier)
    last = len(asked) if decided else 1
    return [
        i
        for i in range(last)
        if begins(text, asked[i])
        and (trace.draft is None or all(trace.draft(longer[:-1])[longer[-1]] > 0 for longer in asked[i + 1 :]))
    ]


def _without_bonus(trace: Trace, length: int) -> Trace:
    """Return ``trace`` without two kinds of draft-model queries: repeated ones, and those for late tokens.

    A query is for a late token if its text has at least ``length`` tokens. Such queries belong to a bonus or to later
    rounds.
    """
    seen = set[tuple[str, Tokens]]()
    kept = []
    for query in trace.queries:
        if query[0] != "draft" or (query not in seen and len(query[1]) < length):
            kept.append(query)
        seen.add(query)
    return trace._replace(queries=tuple(kept))


def exchanged_answers(wanted: Sequence[Tokens], got: Sequence[Tokens], each: str, batches: Sequence[int] = ()) -> str:
    """Return the sentence that the answers are right but in another order; "" if they are not.

    ``wanted`` and ``got`` are the right and the returned texts of all requests. ``batches`` are the sizes of the
    batches, inside which answers can change places; () is one batch. ``each`` is the word for a request.
    """
    moved: list[tuple[int, int]] = []
    begin = 0
    for size in batches or (len(wanted),):
        right, own = list(wanted[begin : begin + size]), list(got[begin : begin + size])
        if sorted(right) != sorted(own) or (right != own and len(set(right)) < len(right)):
            return ""
        moved += [(begin + i, begin + right.index(text)) for i, text in enumerate(own) if text != right[i]]
        begin += size
    return in_another_order(moved, each) if moved else ""


def in_another_order(moved: Sequence[tuple[int, int]], each: str) -> str:
    """Return the sentence that requests get the answers of others.

    ``moved`` has (index of a request, index of the request whose answer it gets). ``each`` is the word for a request.
    """
    told = ", ".join(f"{each} {place + 1} gets that of {each} {other + 1}" for place, other in moved)
    return f"the answers are returned in another order: {told}"


def _rounds(trace: Trace, prompt: Tokens) -> list[list[Tokens]]:
    """Return the draft model's queries for one request as rounds: a list of texts for each round.

    The request has the prompt ``prompt``. In a round, each text is one token longer than the one before, and no query
    to the target lies between. ``trace`` has the model queries of the run.
    """
    others = [other for other, _ in trace.texts if len(other) > len(prompt)]
    result: list[list[Tokens]] = []
    goes_on = False
    for model, tokens in trace.queries:
        mine = tokens[: len(prompt)] == prompt and not any(tokens[: len(other)] == other for other in others)
        if model != "draft" or not mine:
            goes_on = goes_on and model == "draft"
            continue
        if goes_on and result and tokens[:-1] == result[-1][-1]:
            result[-1].append(tokens)
        elif not goes_on or not result or tokens != result[-1][-1]:
            result.append([tokens])
        goes_on = True
    return result


def _certain_draft(trace: Trace, tokens: Tokens) -> int | None:
    """Return the draft after ``tokens`` if the draft model of ``trace`` gives it probability 1; else None."""
    if trace.draft is None:
        return None
    row = trace.draft(tokens).tolist()
    return row.index(max(row)) if max(row) == 1 else None
