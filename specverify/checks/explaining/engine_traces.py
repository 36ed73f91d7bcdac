"""Find the round in which a text of an engine first differs, from the recorded queries to its models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

from specverify.base.prefixes import common_length
from specverify.checks.explaining.counterexample_parts import NEAR_LAW
from specverify.checks.explaining.first_difference import CERTAIN
from specverify.checks.explaining.reused_rows import REUSED, reused_row
from specverify.checks.explaining.round_rules import same_row
from specverify.checks.explaining.row_names import replaced_tokens, text_difference
from specverify.checks.explaining.wording import ends_of, short_row
from specverify.reference import LanguageModel, Tokens
from specverify.subjects.subject import Trace

KEPT = "the target's context "
"""The beginning of a sentence about a token that the context of a row should not contain."""
OF_DRAFT_MODEL = "the token after accepted drafts is the draft model's"
"""The beginning of the sentence about a bonus for which p is not computed."""
BUT_AFTER = ", but after "
"""Precedes the other text for which the row of p is computed."""
LEAST_CHOSEN = 2
"""The least number of different tokens from which it is inferred that a program chooses the argmax."""
LEAST_SHOWN = 3
"""The number of texts that must agree before two requests are said to have exchanged texts."""


def listed_tokens(tokens: Tokens) -> str:
    """Format tokens as ``0 1 2``; "nothing" if there are none."""
    return " ".join(map(str, tokens)) or "nothing"


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
    return [asked for asked in shared if asked[-1:] == text[-1:] and not any(_begins(one, asked) for one in right)]


def _other_draft(trace: Trace, asked: Tokens, text: Tokens) -> str:
    """Return words about a draft that was replaced in ``text``, but not in the queried text ``asked``; "" if none.

    The draft must be the first of the tokens that ``asked`` has in addition to ``text``, and the draft model must be
    queried with it. ``trace`` has the queries.
    """
    extra = _inserted(asked, text, trace.texts[0][0])
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
    return max((prompt for prompt, _ in trace.texts if _begins(text, prompt)), key=len, default=())


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
    if _has_same_prompt(trace, index):
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


def _has_same_prompt(trace: Trace, index: int) -> bool:
    """Return whether another request in the call of request ``index`` has the same prompt."""
    return sum(trace.texts[i][0] == trace.texts[index][0] for i in trace.call_of(index)) > 1


def _others(trace: Trace, index: int) -> list[int]:
    """Return the indices of the other requests; those in the call of request ``index`` come first."""
    call = trace.call_of(index)
    return sorted((i for i in range(len(trace.texts)) if i != index), key=lambda i: i not in call)


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
        decided = goes_on or _begins(before, asked[0])
    else:
        earlier = trace.queries[: trace.queries.index(("draft", asked[0]))]
        decided = any(name == "target" and _begins(asked[0], queried) for name, queried in earlier)
    last = len(asked) if decided else 1
    return [
        i
        for i in range(last)
        if _begins(text, asked[i])
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


def wrong_row(trace: Trace, index: int, wanted: Tokens) -> str:
    """Explain the first wrong token of request ``index``; "" if no explanation fits.

    Two kinds of explanation are tried: the token is the argmax of p after another text, or it is the draft itself.
    ``wanted`` are the right new tokens, and ``trace`` has the texts and the model queries of the run.
    """
    prompt, new = trace.texts[index]
    wrong = next((i for i, pair in enumerate(zip(wanted, new, strict=False)) if pair[0] != pair[1]), None)
    repeated, others, whole = _has_same_prompt(trace, index), _others(trace, index), trace
    trace = trace.of_call(index)
    if wrong is None or trace.target is None:
        return ""
    text, token = prompt + new[:wrong], new[wrong]
    served = [number for number, (_, asked) in enumerate(trace.queries) if asked == prompt]
    starts = served[-1:] if repeated else served[:1]
    later = trace.queries[starts[0] : _end_of_request(trace, index, served[-1])] if served else ()
    behind = trace.queries[starts[0] :] if served else ()
    context = (
        _lost_token(trace.target, later, text, (wanted[wrong], *new[wrong:]))
        or _stale_context(trace, behind, text, len(prompt))
        or _lost_context(trace, later, text, token, len(prompt))
    )
    if context:
        return context
    if own_fault := _draft_or_cache(trace, later, text, (wanted[wrong], token), len(prompt)):
        return own_fault
    own = prompt[:1] if len(trace.texts) == 1 else prompt
    foreign = [asked for model, asked in later if model == "target" and asked[: len(own)] != own]
    for asked in reversed(foreign):
        if len(asked) == len(text) and _chosen(trace.target, asked) == token:
            other = next((i for i in others if _is_rather_of(trace, i, asked, text)), None)
            whose = f", a text of request {other + 1}" if other is not None else _replaced(asked, text, len(prompt))
            return f"it is the choice of p after ({listed_tokens(asked)}){whose}"
    if len(trace.texts) > 1:
        padded = _padded_text(trace.target, text, token, [other for _, other in trace.queries])
        return padded or _text_of_another_request(whole, index, text, token, foreign) or reused_row(whole, index, wrong)
    draft = None if trace.draft is None else _chosen(trace.draft, text)
    fitting = []
    if draft is not None and _chosen(trace.target, (*text, draft)) == token:
        fitting.append(f"the choice of p one position late, after draft {draft}")
    if wrong and _chosen(trace.target, text[:-1]) == token:
        fitting.append("the choice of p one position early")
    if draft == token:
        fitting.append("the draft itself, kept although p has another choice")
    return f"it is {fitting[0]}" if len(fitting) == 1 else ""  # of several, none is proved


def _lost_token(target: LanguageModel, later: Sequence[tuple[str, Tokens]], text: Tokens, rest: Tokens) -> str:
    """Return the sentence that a token is emitted in the text that the models see, but not in the answer; or "".

    ``text`` is the text before this token, and ``rest`` has this token and the answer from its place on. All tokens of
    the answer must be the choices of p behind this token, and p must be computed there. ``later`` are the queries.
    """
    chosen = len(rest) > LEAST_SHOWN and all(
        _chosen(target, text + rest[:place]) == rest[place] for place in range(len(rest))
    )
    if not chosen or ("target", text + rest[:2]) not in later:
        return ""
    return f"{rest[0]} is missing in the answer; the next ones are the choices of p after {_context(text + rest[:1])}"


def _end_of_request(trace: Trace, index: int, start: int) -> int:
    """Return the index in ``trace.queries`` just after the queries of request ``index``.

    A request ends where the prompt of a later request is first queried, or at the end of the run. If later queries
    still begin with the prompt of this request, it ends after the last of them. ``start`` is the index of one query of
    this request.
    """
    prompt = trace.texts[index][0]
    own, end = start, len(trace.queries)
    for number in range(start + 1, len(trace.queries)):
        asked = trace.queries[number][1]
        if any(asked == other for other, _ in trace.texts[index + 1 :] if other != prompt):
            end = min(end, number)
        elif asked[: len(prompt)] == prompt:
            own = number
    return max(own + 1, end)


def _draft_or_cache(
    trace: Trace, later: Sequence[tuple[str, Tokens]], text: Tokens, tokens: tuple[int, int], prompt: int
) -> str:
    """Explain a wrong token as the draft itself, or as the argmax of p after rejected drafts.

    If neither fits, the result is that of ``_other_text``. Returns "" if the target is not known.

    Args:
        trace: The texts and the model queries of the run.
        later: The queries (model, text) made while the request is served.
        text: The right text before the token.
        tokens: The expected and the emitted token.
        prompt: The length of the prompt.
    """
    wanted, token = tokens
    if trace.target is None:
        return ""
    several = len(trace.texts) > 1
    kept = several and trace.draft is not None and ("draft", text) in later and _chosen(trace.draft, text) == token
    kept = kept and not _is_computed_elsewhere(trace.target, later, text, token)
    draft = f"it is the draft, which p does not choose: p has {wanted} there" if kept else ""
    if kept and (untested := _unqueried(later, text)):
        return f"{untested} (p has {wanted} there)"
    for model, asked in reversed(later):
        extra = _inserted(asked, text, text[:prompt]) if model == "target" else ()
        if extra and _are_drafts(trace, later, asked, text, extra) and _chosen(trace.target, asked) == token:
            said = f"it is the choice of p after {_context(asked)}, which still holds {listed_tokens(extra)}"
            cache = f"{said}: tokens that are no part of the text (a cache that keeps rejected drafts)"
            return f"{draft}; or {cache}" if draft else cache
    return draft or _other_text((trace.target, trace.draft), later, text, token, prompt)


def _are_drafts(trace: Trace, later: Sequence[tuple[str, Tokens]], asked: Tokens, text: Tokens, extra: Tokens) -> bool:
    """Return whether the tokens ``extra``, which a queried text has in addition to the right text, are all drafts.

    ``asked`` is the queried text: the right text ``text`` with ``extra`` inserted at one position. A token of ``extra``
    is a draft if the draft model was queried with the part of ``asked`` before it, and chooses it. The first token of
    ``extra`` must differ from the token of ``text`` at its position. ``later`` are the queries (model, text) of the
    request; ``trace`` has the draft model.
    """
    starts = (i for i in range(len(text)) if asked == text[:i] + extra + text[i:] and text[i] != extra[0])
    return any(
        trace.draft is not None
        and all(
            ("draft", asked[: start + i]) in later and _chosen(trace.draft, asked[: start + i]) == token
            for i, token in enumerate(extra)
        )
        for start in starts
    )


def context_with_draft(trace: Trace, index: int, new: Tokens) -> tuple[Tokens, int] | None:
    """Return the wrong text after which p is computed, and the rejected draft that this text still has; or None.

    ``new`` is the beginning of the text of request ``index``, up to its first wrong token. The queries in ``trace``
    must prove that the program computes p of this token after a wrong text:

    * The target was never queried with the right text, after which p and q of the token are 0.
    * The target was queried with exactly one text that has one more token than the right text and gives the wrong token
      a positive p.
    * The additional token is a draft: the draft model was queried before it, and gives it a positive probability.
    """
    *before, token = new
    text = trace.texts[index][0] + tuple(before)
    target, draft = trace.target, trace.draft
    if target is None or draft is None or ("target", text) in trace.queries or target(text)[token] > 0:
        return None
    if draft(text)[token] > 0:
        return None
    prompt = len(trace.texts[index][0])
    fitting = dict[Tokens, int]()
    for asked in dict.fromkeys(trace.asked("target")):
        for start in range(prompt, len(text)):
            extra = asked[start : start + 1]
            if asked == text[:start] + extra + text[start:] and extra != text[start : start + 1]:
                is_draft = ("draft", text[:start]) in trace.queries and draft(text[:start])[extra[0]] > 0
                if is_draft and target(asked)[token] > 0:
                    fitting[asked] = extra[0]
    return next(iter(fitting.items())) if len(fitting) == 1 else None


def _is_computed_elsewhere(
    target: LanguageModel, later: Sequence[tuple[str, Tokens]], text: Tokens, token: int
) -> bool:
    """Return whether ``target`` is queried with another text in place of ``text``, and chooses ``token`` there.

    If so, a draft that equals ``token`` is accepted because p is computed after the wrong text. ``later`` are the
    queries (model, text) of the request.
    """
    asked = {other for model, other in later if model == "target" and len(other) == len(text)}
    return text not in asked and any(_chosen(target, other) == token for other in asked)


def _unqueried(later: Sequence[tuple[str, Tokens]], text: Tokens) -> str:
    """Return the sentence that the token after ``text`` comes from the draft model, and that p is not computed for it.

    Returns "" if the target is queried with ``text``. The sentence states whether the token follows accepted drafts or
    is an untested draft. ``later`` are the queries (model, text) of the request.
    """
    if ("target", text) in later:
        return ""
    drafted, tested = later.index(("draft", text)), ("target", text[:-1])
    if tested in later and later.index(tested) < drafted:
        return f"{OF_DRAFT_MODEL}, and p is not computed for it"
    return "it is a draft that is not tested: p is not computed for it"


def _context(tokens: Tokens) -> str:
    """Format a text in brackets for a message; of a long text only the last tokens."""
    return f"({ends_of(tokens)})"


def text_of_other_request(trace: Trace, index: int) -> str:
    """Return the sentence that p of request ``index`` is computed after the text of another request; "" if it is not.

    After the draft model is queried with a text of request ``index``, the next query to the target should continue this
    text. If it does not, it is *foreign*. Three conditions must hold:

    * There are at least ``LEAST_SHOWN`` foreign queries.
    * The argmax of p after each foreign query is the token that request ``index`` emits next.
    * All foreign queries belong to one other request.

    ``trace`` has the texts and the model queries of the run.
    """
    prompt, new = trace.texts[index]
    call, fitting, count = trace.call_of(index), _others(trace, index), 0
    trace = trace.of_call(index)
    for i, token in enumerate(new):
        own = prompt + new[:i]
        if trace.target is None or any(_begins(sum(trace.texts[i], ()), own) for i in call if i != index):
            continue
        asked = _target_after(trace, own)
        if not asked or asked[: len(own)] == own:
            continue
        if _chosen(trace.target, asked) != token:
            return ""
        fitting = [i for i in fitting if _is_text_of(trace, i, asked)]
        count += 1
    near = [i for i in fitting if i in call] or fitting
    if count < LEAST_SHOWN or len(near) != 1:
        return ""
    return f"p of request {index + 1} is computed after the text of request {near[0] + 1}, not after its own"


def _is_text_of(trace: Trace, index: int, text: Tokens) -> bool:
    """Return whether ``text`` is the prompt of request ``index``, or the prompt and some of its new tokens."""
    prompt, new = trace.texts[index]
    return len(text) >= len(prompt) and _begins(prompt + new, text)


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


def _target_after(trace: Trace, own: Tokens) -> Tokens:
    """Return the text of the first query to the target after the draft model was queried with ``own``; () without one.

    ``trace`` has the model queries of the run.
    """
    start = next((number for number, query in enumerate(trace.queries) if query == ("draft", own)), None)
    if start is None:
        return ()
    return next((text for name, text in trace.queries[start:] if name == "target"), ())


def _begins(text: Tokens, beginning: Tokens) -> bool:
    return text[: len(beginning)] == beginning


def _other_text(
    models: tuple[LanguageModel, LanguageModel | None],
    later: Sequence[tuple[str, Tokens]],
    text: Tokens,
    token: int,
    prompt: int,
) -> str:
    """Explain a wrong ``token`` as the argmax of p after a text that lacks tokens or has one wrong token.

    Returns "" if no queried text explains it. If the target was queried with the right text, only another candidate
    may explain it.

    Args:
        models: The target and the draft model.
        later: The queries (model, text) made while the request is served.
        text: The right text before the token.
        token: The wrong token.
        prompt: The length of the prompt.
    """
    target, draft = models
    if ("target", text) in later:
        return _other_candidate(target, later, text, token, prompt)
    for model, asked in reversed(later):
        if model != "target" or len(asked) < prompt or _chosen(target, asked) != token:
            continue
        lacking = () if asked == text[: len(asked)] else _inserted(text, asked, text[: prompt - 1])
        if lacking:
            missing = f"token{'s' * (len(lacking) > 1)} {listed_tokens(lacking)} of the text"
            return f"it is the choice of p after {_context(asked)}, where {missing} is left out"
        differ = [i for i, pair in enumerate(zip(asked, text, strict=False)) if pair[0] != pair[1]]
        if len(asked) == len(text) and len(differ) == 1 and differ[0] >= prompt:
            number, other = differ[0] - prompt + 1, asked[differ[0]]
            before = text[: differ[0]]
            is_draft = draft is not None and ("draft", before) in later and _chosen(draft, before) == other
            held = f"{KEPT}still holds the rejected draft token {other}" if is_draft else f"{KEPT}holds {other}"
            place = f"in place of {text[differ[0]]} (new token {number})"
            return f"{held} {place}: the choice of p after {_context(asked)}"
    return ""


def _other_candidate(
    target: LanguageModel, later: Sequence[tuple[str, Tokens]], text: Tokens, token: int, prompt: int
) -> str:
    """Explain the wrong ``token`` as the argmax of p after another candidate for the new tokens of ``text``.

    Exactly one other queried text of its length, with the same prompt of ``prompt`` tokens, must give ``token``.
    Returns "" otherwise, and if a draft model is queried: its rejected drafts are no candidates. ``later`` are the
    queries (model, text) of the request.
    """
    if any(model == "draft" for model, _ in later):
        return ""
    asked = {other for model, other in later if model == "target" and len(other) == len(text)}
    others = {other for other in asked - {text} if _begins(other, text[:prompt]) and _chosen(target, other) == token}
    return f"it is the choice of p after another candidate, {_context(others.pop())}" if len(others) == 1 else ""


def _is_rather_of(trace: Trace, index: int, asked: Tokens, text: Tokens) -> bool:
    """Return whether ``asked`` begins with the prompt of request ``index``, and fits its text longer than ``text``."""
    prompt, new = trace.texts[index]
    return _begins(asked, prompt) and common_length(asked, prompt + new) > common_length(asked, text)


def _replaced(asked: Tokens, text: Tokens, prompt: int) -> str:
    """Return the clause that ``asked`` has other tokens than ``text`` at one place; "" if they are far apart.

    The texts are equally long; the first ``prompt`` tokens of ``text`` are the prompt.
    """
    replaced = replaced_tokens(asked, text)
    if replaced is None:
        return ""
    first, used, right = replaced
    where = f"token {first + 1} of the prompt" if first < prompt else f"new token {first - prompt + 1}"
    return f", which holds {used} in place of {right} ({where})"


def _inserted(asked: Tokens, text: Tokens, prompt: Tokens) -> Tokens:
    """Return the tokens whose insertion in ``text``, at one position, gives ``asked``; () if there are none.

    The position is after ``prompt`` and before the end of ``text``.
    """
    more = len(asked) - len(text)
    if more <= 0 or len(text) <= len(prompt):
        return ()
    for start in range(len(prompt), len(text)):
        if asked[:start] == text[:start] and asked[start + more :] == text[start:]:
            return asked[start : start + more]
    return ()


def _stale_context(trace: Trace, later: Sequence[tuple[str, Tokens]], text: Tokens, prompt: int) -> str:
    """Return the sentence that p is computed after a text that still has a rejected draft; "" if no query fits.

    A query fits if an earlier query has the right token in the place of the draft, so the program had replaced it. The
    sentence names the text after which p is computed if a query has the right text with the draft before its
    replacement, or in the place of it.

    Args:
        trace: The models.
        later: The queries (model, text) of the request.
        text: The right text before the wrong token.
        prompt: The length of the prompt.
    """
    if trace.draft is None or ("target", text) in later:
        return ""
    for j in range(len(text) - 1, prompt - 1, -1):
        begun, known = text[:j], text[: j + 1]
        start = next((i for i, (_, asked) in enumerate(later) if asked[: j + 1] == known), None)
        if start is None or ("draft", begun) not in later:
            continue
        draft = _chosen(trace.draft, begun)
        stale = [asked for name, asked in later[start:] if name == "target" and asked[: j + 1] == (*begun, draft)]
        if draft != text[j] and stale:
            kept, unreplaced = (*begun, draft, *text[j:]), (*begun, draft, *text[j + 1 :])
            used = next((asked for asked in (kept, unreplaced) if asked in stale), None)
            where = f"before {text[j]}, its replacement" if used == kept else f"in place of {text[j]}"
            held = f"{KEPT}still holds the rejected draft token {draft} {where} (new token {j - prompt + 1})"
            if used is None:
                return f"{held}: the target is queried with {_context(stale[0])} and never with {_context(text)}"
            return f"{held}: p is computed after {_context(used)} and not after {_context(text)}"
    return ""


def _lost_context(trace: Trace, later: Sequence[tuple[str, Tokens]], text: Tokens, token: int, prompt: int) -> str:
    """Return the sentence that p is computed after the last tokens of ``text`` alone, as by an emptied cache.

    Returns "" unless exactly one queried text explains the wrong ``token``. Three conditions must hold:

    * The target is not queried with ``text``.
    * The queried text is an end of ``text`` and begins no text of a request.
    * ``token`` is the argmax of p after it.

    Args:
        trace: The texts and the models.
        later: The queries (model, text) of the request.
        text: The right text before the wrong token.
        token: The wrong token.
        prompt: The length of the prompt.
    """
    if trace.target is None or ("target", text) in later:
        return ""
    ends = {asked for name, asked in later if name == "target" and asked and text[-len(asked) :] == asked != text}
    ends = {end for end in ends if not any(_begins(first + new, end) for first, new in trace.texts)}
    fitting = [end for end in ends if _chosen(trace.target, end) == token]
    if len(fitting) != 1:
        return ""
    number = len(text) - len(fitting[0]) - prompt
    lost = f"new token {number + 1}" if number >= 0 else f"the last {len(fitting[0])} tokens"
    where = f"p is computed after {_context(fitting[0])} alone and not after {_context(text)}"
    return f"{KEPT}has lost all tokens before {lost}: {where}"


def _padded_text(target: LanguageModel, text: Tokens, token: int, queried: Sequence[Tokens]) -> str:
    """Return the sentence that ``token`` is the argmax of p after ``text`` with padding before it; "" if it is not.

    Padding is one token, repeated. ``queried`` are the queried texts, and ``target`` gives p.
    """
    for other in queried:
        more = len(other) - len(text)
        if more > 0 and other[more:] == text and len(set(other[:more])) == 1 and _chosen(target, other) == token:
            before = f"token{'s' * (more > 1)} {listed_tokens(other[:more])} before its beginning"
            return f"p is computed after the text with the {before}, as by padding that is not masked"
    return ""


def _text_of_another_request(
    trace: Trace, index: int, text: Tokens, token: int, foreign_texts: Sequence[Tokens]
) -> str:
    """Explain the wrong ``token`` as the argmax of p after a text of another request, computed instead of ``text``.

    Returns a sentence if exactly one queried text of another request fits; "" otherwise, or if the target was queried
    with ``text``. A text fits if ``token`` is the argmax of p after it, and one of these holds:

    * Its last token is that of ``text``: the engine fed the right token, but with the context of the other request.
    * It is the whole text of the other request, after which no further token is needed.

    Args:
        trace: The texts and the model queries of the run.
        index: The request that emits ``token``.
        text: The right text before ``token``.
        token: The wrong token.
        foreign_texts: The queried texts that do not belong to this request.
    """
    if trace.target is None or ("target", text) in trace.of_call(index).queries:
        return ""
    fitting = dict[Tokens, int]()
    for i, other in product(_others(trace, index), foreign_texts):
        is_likely = other[-1:] == text[-1:] or other == sum(trace.texts[i], ())
        if is_likely and _is_text_of(trace, i, other) and _chosen(trace.target, other) == token:
            fitting.setdefault(other, i)
    if len(fitting) != 1:
        return ""
    other, i = fitting.popitem()
    whole = "its complete text " if other == sum(trace.texts[i], ()) else ""
    return (
        f"{REUSED}that was computed after a text of request {i + 1}: p is not computed after {_context(text)}, and "
        f"its choice after {whole}{_context(other)} is used"
    )


def _chosen(model: LanguageModel, tokens: Tokens) -> int:
    row = model(tokens).tolist()
    return int(row.index(max(row)))


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
