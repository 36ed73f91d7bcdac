"""Explain the first wrong token of a request: p is computed after another text, or the draft is not tested."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from specverify.base.positions import has_wrong_position
from specverify.base.prefixes import begins, common_length, inserted
from specverify.checks.explaining.queried_rounds import has_same_prompt
from specverify.checks.explaining.reused_rows import REUSED, reused_row
from specverify.checks.explaining.row_names import WRONG_POSITIONS, replaced_tokens
from specverify.checks.explaining.wording import ends_of, listed_tokens, short_row
from specverify.reference import LanguageModel, Tokens
from specverify.subjects.subject import Trace

KEPT = "the target's context "
"""The beginning of a sentence about a token that the context of a row should not contain."""
OF_DRAFT_MODEL = "the token after accepted drafts is the draft model's"
"""The beginning of the sentence about a bonus for which p is not computed."""
WRONG_IDS = "a forward pass of the target has wrong position ids, or cache entries of another text"
"""The beginning of a sentence about positions that are not those of the tokens in the text."""
LEAST_SHOWN = 3
"""The number of texts that must agree before two requests are said to have exchanged texts."""


def _others(trace: Trace, index: int) -> list[int]:
    """Return the indices of the other requests; those in the call of request ``index`` come first."""
    call = trace.call_of(index)
    return sorted((i for i in range(len(trace.texts)) if i != index), key=lambda i: i not in call)


def wrong_row(trace: Trace, index: int, wanted: Tokens) -> str:
    """Explain the first wrong token of request ``index``; "" if no explanation fits.

    Two kinds of explanation are tried: the token is the argmax of p after another text, or it is the draft itself.
    ``wanted`` are the right new tokens, and ``trace`` has the texts and the model queries of the run.
    """
    prompt, new = trace.texts[index]
    wrong = next((i for i, pair in enumerate(zip(wanted, new, strict=False)) if pair[0] != pair[1]), None)
    repeated, others, whole = has_same_prompt(trace, index), _others(trace, index), trace
    trace = trace.of_call(index)
    if wrong is None or trace.target is None:
        return ""
    text, token = prompt + new[:wrong], new[wrong]
    served = [number for number, (_, asked) in enumerate(trace.queries) if asked == prompt]
    if not served and len(whole.texts) == 1:
        served = [0]  # a prompt beyond a sliding window is not queried
    starts = served[-1:] if repeated else served[:1]
    later = trace.queries[starts[0] : _end_of_request(trace, index, served[-1])] if served else ()
    behind = trace.queries[starts[0] :] if served else ()
    context = (
        _lost_token(trace.target, later, text, (wanted[wrong], *new[wrong:]))
        or _at_wrong_positions(behind, text)
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
    several = len(trace.texts) > 1
    if several:
        padded = _padded_text(trace.target, text, token, [asked for _, asked in trace.queries])
        of_batch = padded or _text_of_another_request(whole, index, text, token, foreign)
        if of_batch := of_batch or reused_row(whole, index, wrong):
            return of_batch
    shifted = _shifted_choice(trace, prompt, new, wrong, LEAST_SHOWN if several else 1)
    return shifted or _choice_of_residual(trace, text, token)


def _shifted_choice(trace: Trace, prompt: Tokens, new: Tokens, wrong: int, least: int) -> str:
    """Return the sentence that p is read one position late or early, or that drafts are not tested; or "".

    At least ``least`` tokens are compared, from the first wrong one, ``new[wrong]``, on. One of these faults alone must
    give all of them. Drafts are those of the draft model, if it is queried with the text before the first wrong token.
    ``trace`` has the models and queries of the request with this ``prompt`` and the new tokens ``new``.
    """
    target, draft = trace.target, trace.draft
    compared = range(wrong, wrong + least)
    if target is None or len(new) < wrong + least:
        return ""
    texts = [prompt + new[:i] for i in compared]
    is_drafting = draft is not None and ("draft", texts[0]) in trace.queries
    drafts = [_chosen(draft, text) for text in texts] if draft is not None and is_drafting else []
    behind = f"after draft {drafts[0]}" if drafts else ""
    choices = {
        f"the choice of p one position late, {behind}": [
            _chosen(target, (*text, token)) for text, token in zip(texts, drafts, strict=False)
        ],
        "the choice of p one position early": [_chosen(target, text[:-1]) for text in texts] if wrong else [],
        "the draft itself, kept although p has another choice": drafts,
    }
    fitting = [said for said, tokens in choices.items() if tuple(tokens) == new[wrong : wrong + least]]
    return f"it is {fitting[0]}" if len(fitting) == 1 else ""  # of several, none is proved


def _choice_of_residual(trace: Trace, text: Tokens, token: int) -> str:
    """Return the sentence that a wrong ``token`` after ``text`` is the argmax of max(p - q, 0), not that of p; or "".

    The draft after ``text``, the argmax of q, must be another token than both, and the argmax of p not this token.
    """
    if trace.target is None or trace.draft is None:
        return ""
    p, q = trace.target(text), trace.draft(text)
    left = p - q
    chosen = int(p.argmax())
    if _chosen(trace.draft, text) in {token, chosen} or int(left.argmax()) != token or chosen == token:
        return ""
    rows = f"p = {short_row(p.tolist())}, q = {short_row(q.tolist())}"
    return f"it is the argmax of max(p - q, 0), expected that of p: {rows}"


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
        extra = inserted(asked, text, text[:prompt]) if model == "target" else ()
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
        if trace.target is None or any(begins(sum(trace.texts[i], ()), own) for i in call if i != index):
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
    return len(text) >= len(prompt) and begins(prompt + new, text)


def _target_after(trace: Trace, own: Tokens) -> Tokens:
    """Return the text of the first query to the target after the draft model was queried with ``own``; () without one.

    ``trace`` has the model queries of the run.
    """
    start = next((number for number, query in enumerate(trace.queries) if query == ("draft", own)), None)
    if start is None:
        return ()
    return next((text for name, text in trace.queries[start:] if name == "target"), ())


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
        lacking = () if asked == text[: len(asked)] else inserted(text, asked, text[: prompt - 1])
        if lacking:
            several = len(lacking) > 1
            missing = f"token{'s' * several} {listed_tokens(lacking)} of the text {'are' if several else 'is'}"
            return f"it is the choice of p after {_context(asked)}, where {missing} left out"
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
    others = {other for other in asked - {text} if begins(other, text[:prompt]) and _chosen(target, other) == token}
    return f"it is the choice of p after another candidate, {_context(others.pop())}" if len(others) == 1 else ""


def _is_rather_of(trace: Trace, index: int, asked: Tokens, text: Tokens) -> bool:
    """Return whether ``asked`` begins with the prompt of request ``index``, and fits its text longer than ``text``."""
    prompt, new = trace.texts[index]
    return begins(asked, prompt) and common_length(asked, prompt + new) > common_length(asked, text)


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


def _at_wrong_positions(later: Sequence[tuple[str, Tokens]], text: Tokens) -> str:
    """Return the sentence that a forward pass of the target has wrong positions; "" if none of ``later`` shows one.

    ``later`` are the queries (model, text) of the request. A network puts an additional token into a queried text where
    a position is wrong (``has_wrong_position``). Returns "" if the target is also queried with ``text``, the right text
    before the wrong token.
    """
    asked = [other for model, other in later if model == "target" and has_wrong_position(other)]
    if not asked or ("target", text) in later:
        return ""
    nearest = _context(max(asked, key=lambda other: common_length(other, text)))
    return f"{WRONG_IDS}: p is computed after {nearest}{WRONG_POSITIONS}, and never after {_context(text)}"


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
    """Return the sentence that p is computed after a wrong number of the last tokens of ``text``; or "".

    An emptied cache, or another sliding window than that of the call without speculation, has this effect. Returns ""
    unless exactly one queried text explains the wrong ``token``. Three conditions must hold:

    * The target is not queried with ``text``.
    * The queried text is an end of ``text`` and begins no text of a request. If the call without speculation queries
      the target with ends of texts too, this end is not among them.
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
    ends = {end for end in ends if not any(begins(first + new, end) for first, new in trace.texts)}
    fitting = [end for end in ends if _chosen(trace.target, end) == token]
    if len(fitting) != 1:
        return ""
    of_plain = set(trace.of_plain())
    if fitting[0] in of_plain:
        return ""
    # a sliding window is shorter than the text
    right = next((text[start:] for start in range(len(text)) if text[start:] in of_plain), text)
    if right != text:
        other = len(fitting[0]) - len(right)
        tokens = f"{abs(other)} token{'s' * (abs(other) > 1)} {'too many' if other > 0 else 'too few'}"
        where = f"p is computed after {_context(fitting[0])}, without speculation after {_context(right)}"
        return f"{KEPT}has {tokens}: {where}"
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
