"""Planted bugs of the end of a text, and of its stream of chunks.

A function with the decorator ``engine_part(NAME, ...)`` replaces the function NAME of the serving engine
(``mutants.serving``), which documents its parameters. A function with the decorator ``planted(ORIGINAL, ...)`` changes
the registry algorithm ORIGINAL, and its options are those of that algorithm.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from specverify.mutants.mutant import SHORT, correct, planted
from specverify.mutants.serving.output import Pieces, cut, text_of
from specverify.mutants.serving.planted import engine_part
from specverify.mutants.serving.request import Request
from specverify.reference import Decoder, Draws, Round, State, Task, Tokens

# Speculative sampling that knows no end-of-sequence tokens, and is cut by another rule.


def stopping_at(last: Callable[[Tokens, Round], int | None]) -> Callable[..., Decoder]:
    """Return the build function of a decoder that cuts each round after the token with index ``last(eos, round)``.

    If ``last`` returns None, the round is not cut.
    """

    def build(task: Task, gamma: int = 4) -> Decoder:
        inner = correct("speculative-sampling").build(task._replace(eos=()), gamma=gamma)

        def step(draws: Draws, state: State) -> tuple[State, Round]:
            after, done = inner.step(draws, state)
            place = last(task.eos, done)
            if place is None:
                return after, done
            kept = done.tokens[: place + 1]
            return after._replace(tokens=state.tokens + kept, remaining=0), done._replace(tokens=kept)

        return inner._replace(step=step)

    return build


@engine_part(
    "cut",
    "stop strings",
    "accepted-drafts-after-stop",
    "keeps accepted drafts after the end of the text",
    category="K",
    citation="openvino.genai commit 54f3029b1; PR #1951",
    killed_by="stop_law",
)
def accepted_drafts_after_stop(ends: Callable[[int], bool], new: Tokens, accepted: int, most: int) -> tuple[int, bool]:
    """Return the number of tokens to keep, and whether the text ends; accepted drafts after the end are kept: the bug.

    The first ``accepted`` of the ``new`` tokens are drafts. ``ends(count)`` returns whether the first ``count`` end the
    text. At most ``most`` tokens may be kept.
    """
    count, finished = cut(ends, new, accepted, most)
    return max(count, min(accepted, most)), finished


@engine_part(
    "cut",
    "two ends of sequence",
    "block-kept-whole",
    "keeps all tokens of a round after the end of the text",
    category="K",
    citation="transformers issue #47912, PR #47931; koboldcpp issue #1276",
    killed_by="stop_law",
)
def block_kept_whole(ends: Callable[[int], bool], new: Tokens, accepted: int, most: int) -> tuple[int, bool]:
    """Return the number of tokens to keep, and whether the text ends; tokens after the end are kept: the bug.

    ``ends(count)`` returns whether the first ``count`` of the ``new`` tokens end the text. At most ``most`` tokens are
    kept; ``accepted`` is not used.
    """
    return min(len(new), most), cut(ends, new, accepted, most)[1]


@engine_part(
    "at_end",
    "conversation",
    "block-left-in-slot",
    "counts cache entries of tokens that were cut after the end",
    category="K",
    citation="llama.cpp issue #28049",
)
def block_left_in_slot(held: int, block: int) -> int:
    """Return ``block`` as the number of cache entries that a finished text leaves.

    ``block`` also counts accepted tokens of the last round that were cut from the text; the right number, ``held``,
    does not.
    """
    return block


@planted(
    "speculative-sampling",
    "budget-without-the-prompt",
    "counts the prompt as new tokens",
    category="K",
    citation="romsto/Speculative-Decoding codec_base_decoding.py:45 at db7db67",
    killed_by="horizon_is_respected",
    examples=SHORT,
)
def budget_without_the_prompt(task: Task, gamma: int = 4) -> Decoder:
    """Speculative sampling that emits ``horizon - (len(prompt) - 1)`` tokens, at least one, instead of ``horizon``."""
    inner = correct("speculative-sampling").build(task, gamma=gamma)

    def init(prompt: Tokens) -> State:
        state = inner.init(prompt)
        return state._replace(remaining=max(state.remaining - (len(prompt) - 1), 1))

    return inner._replace(init=init)


@engine_part(
    "cut",
    "end of sequence",
    "cap-before-stop",
    "tests the maximum length before an earlier end",
    category="K",
    citation="SGLang issue #31599, PRs #31569, #33758",
    killed_by="stop_law",
)
def cap_before_stop(ends: Callable[[int], bool], new: Tokens, accepted: int, most: int) -> tuple[int, bool]:
    """Return how many of the round's ``new`` tokens to keep, and whether the text ends.

    If ``new`` has at least ``most`` tokens, the number that may be kept, the result is (``most``, True) without a test
    for an earlier end: the bug. ``ends(count)`` returns whether the first ``count`` tokens end the text; ``accepted``
    is the number of drafts among ``new``.
    """
    return (most, True) if len(new) >= most else cut(ends, new, accepted, most)


@engine_part(
    "draft_budget",
    "context length",
    "clipped-by-free-space",
    "near the end of the context drafts as many tokens as do not fit",
    category="K",
    citation="exllamav2 commit 7019a1b",
)
def clipped_by_free_space(gamma: int, left: int) -> int:
    """Return the number of tokens to draft; near the end of the context, the number of drafts that do not fit: the bug.

    ``left`` tokens may still be emitted, one by the target. If ``gamma`` is at least ``left``, the right number is
    ``left - 1``.
    """
    return gamma if gamma < left else gamma - (left - 1)


@engine_part(
    "draft_budget",
    "lookup to the end of the context",
    "drafts-beyond-context",
    "drafts more tokens than fit the context",
    category="K",
    citation="vLLM issue #42533",
)
def drafts_beyond_context(gamma: int, left: int) -> int:
    """Return ``gamma``, the requested number of drafts, although only ``left`` more tokens fit the context."""
    return gamma


@planted(
    "speculative-sampling",
    "eos-by-id-order",
    "cuts at the end token that comes first in the list of ids, not in the text",
    category="K",
    citation="romsto/Speculative-Decoding speculative_decoding.py:150-152 at db7db67",
    killed_by="eos_is_final",
    examples=SHORT,
)
@stopping_at
def eos_by_id_order(eos: Tokens, done: Round) -> int | None:
    """Return the index of the end-of-sequence token at which the round ``done`` is cut; None without such a token.

    If several ids of ``eos`` occur, the one that comes first in ``eos`` decides: the bug. The right index is the
    smallest at which any of them occurs.
    """
    return next((done.tokens.index(token) for token in eos if token in done.tokens), None)


@planted(
    "speculative-sampling",
    "eos-ignored-in-block",
    "tests only the last token of a round for an end",
    category="K",
    citation="transformers PR #31301, issue #47912; koboldcpp issue #1276",
    killed_by="eos_is_final",
    examples=SHORT,
)
@stopping_at
def eos_ignored_in_block(eos: Tokens, done: Round) -> int | None:
    """Return the index of the last token of the round ``done`` if it is one of ``eos``, else None.

    Earlier tokens of the round are not tested.
    """
    return len(done.tokens) - 1 if done.tokens[-1] in eos else None


@planted(
    "speculative-sampling",
    "eos-of-the-target-ignored",
    "tests only accepted drafts for an end",
    category="K",
    citation="romsto/Speculative-Decoding commits 97b82fb, 9b64b44",
    killed_by="eos_is_final",
    examples=SHORT,
)
@stopping_at
def eos_of_the_target_ignored(eos: Tokens, done: Round) -> int | None:
    """Return the index of the first accepted draft of the round ``done`` that is one of ``eos``; None if none is.

    The token that the target adds is not tested.
    """
    return next((place for place, token in enumerate(done.tokens[: done.accepted]) if token in eos), None)


@planted(
    "nasd",
    "first-token-not-checked",
    "does not test the first token for an end",
    category="K",
    citation="romsto/Speculative-Decoding ngram_assisted.py:73-87 at db7db67",
    killed_by="eos_is_final",
    examples=({"order": 2, "gamma": 2},),
)
def first_token_not_checked(
    task: Task, order: int = 3, gamma: int = 4, filler_top_k: int = 1, backoff: bool = True
) -> Decoder:
    """Speculation by n-grams that does not test its first token for the end of sequence.

    The parameters are those of the original, the registry algorithm ``nasd``.
    """
    inner = correct("nasd").build(task, order, gamma, filler_top_k, backoff)

    def step(draws: Draws, state: State) -> tuple[State, Round]:
        if state.remaining < task.horizon:
            return inner.step(draws, state)
        token = draws.categorical(task.target(state.tokens), ("prefill",))
        after = state._replace(tokens=(*state.tokens, token), remaining=state.remaining - 1)
        return after, Round((token,), (), 0, 0)

    return inner._replace(step=step)


@engine_part(
    "ends_text",
    "one request",
    "no-end-of-sequence-crashes",
    "raises if no end-of-sequence id is set",
    category="K",
    citation="transformers PR #46790",
)
def no_end_of_sequence_crashes(token: int, eos: Tokens) -> bool:
    """Return whether ``token`` is one of the end-of-sequence ids ``eos``.

    Raises ``IndexError`` if there is no end-of-sequence id.
    """
    return token == eos[0] or token in eos


@planted(
    "speculative-sampling",
    "one-token-too-many",
    "does not cut the last round at the horizon",
    category="K",
    citation="vLLM issue #42533; exllamav2 commit 7019a1b",
    killed_by="horizon_is_respected",
    examples=SHORT,
)
def one_token_too_many(task: Task, gamma: int = 4) -> Decoder:
    """Speculative sampling whose last round is not limited by the horizon, so the output is too long."""
    inner = correct("speculative-sampling").build(task._replace(horizon=task.horizon + gamma), gamma=gamma)

    def step(draws: Draws, state: State) -> tuple[State, Round]:
        after, done = inner.step(draws, state)
        return (after._replace(remaining=0) if after.remaining <= gamma else after), done

    return inner._replace(step=step)


@engine_part(
    "cut",
    "end of sequence",
    "only-last-token-stops",
    "tests only the end of each round for a stop",
    category="K",
    citation="transformers PR #31301",
    killed_by="stop_law",
)
def only_last_token_stops(ends: Callable[[int], bool], new: Tokens, accepted: int, most: int) -> tuple[int, bool]:
    """Return how many of the ``new`` tokens to keep, at most ``most``, and whether the text ends.

    ``ends(count)`` returns whether the first ``count`` tokens end the text. Here ``ends`` is called only for all kept
    tokens together, so an earlier end is missed: the bug. ``accepted`` is not used.
    """
    count = min(len(new), most)
    return count, ends(count) or count >= most


@engine_part(
    "cut",
    "two ends of sequence",
    "several-ends-by-id",
    "cuts after the end token with the lowest id, not after the first one",
    category="K",
    citation="romsto/Speculative-Decoding ngram_assisted.py and speculative_decoding.py at db7db67",
    killed_by="stop_law",
)
def several_ends_by_id(ends: Callable[[int], bool], new: Tokens, accepted: int, most: int) -> tuple[int, bool]:
    """Return the number of tokens to keep, and whether the text ends.

    The text is cut after the end-of-sequence token with the lowest id, not after the first one: the bug.
    ``ends(count)`` returns whether the first ``count`` of the ``new`` tokens end the text. At most ``most`` tokens are
    kept. ``accepted`` is not used.
    """
    count = min(len(new), most)
    result = sorted((new[place - 1], place) for place in range(1, count + 1) if ends(place))
    return (result[0][1], True) if result else (count, count >= most)


@engine_part(
    "cut",
    "end of sequence",
    "stop-of-the-target-ignored",
    "does not test the target's token for a stop",
    category="K",
    citation="romsto/Speculative-Decoding commits 97b82fb, 9b64b44",
    killed_by="stop_law",
)
def stop_of_the_target_ignored(ends: Callable[[int], bool], new: Tokens, accepted: int, most: int) -> tuple[int, bool]:
    """Return the number of tokens to keep, and whether the text ends; the token that the target adds is not tested.

    The first ``accepted`` of the ``new`` tokens are drafts, the last is the target's. ``ends(count)`` returns whether
    the first ``count`` end the text. At most ``most`` tokens are kept.
    """
    return cut(lambda count: count <= accepted and ends(count), new, accepted, most)


@engine_part(
    "has_stop_string",
    "stop strings",
    "stop-string-window-of-one",
    "only the first new token of a round can complete a stop string",
    category="K",
    citation="openvino.genai PR #1719 (56fe5bf02)",
    killed_by="stop_law",
)
def stop_string_window_of_one(strings: Sequence[str], tokens: Tokens, fresh: int, pieces: Pieces) -> bool:
    """Return whether ``tokens`` ends with one of ``strings``; False unless ``fresh`` is 1: the bug.

    The function is called after each new token with the tokens so far, of which the last ``fresh`` are new in this
    round. So only the first new token of a round can complete a stop string. ``pieces`` has the bytes of each token.
    """
    return fresh == 1 and text_of(tokens, pieces).endswith(tuple(strings))


@engine_part(
    "stop_strings_of",
    "different stop strings",
    "stop-words-of-all-rows",
    "a request stops at the stop string of another request",
    category="K",
    citation="LMDeploy PR #4671 (80e2de538)",
)
def stop_words_of_all_rows(request: Request, batch: Sequence[Request]) -> tuple[str, ...]:
    """Return the stop strings of all requests of ``batch``, although only those of ``request`` apply."""
    return tuple(string for other in batch for string in other.stop_strings)


@engine_part(
    "streamed",
    "streamed",
    "stream-repeats-itself",
    "a stream sends a character that was split between rounds twice",
    category="K",
    citation="rtp-llm PR #1285 (10d1aba88)",
)
def stream_repeats_itself(sent: str, new: Tokens, fresh: Tokens, drafts: Tokens, pieces: Pieces, last: bool) -> str:
    """Return the text to send next; it may begin with a character that was already sent.

    If the text before this round ended in an incomplete character, the last character of ``sent`` is sent again: the
    bug. ``new`` are all new tokens, of which ``fresh`` are those of this round; ``pieces`` has the bytes of each token.
    An incomplete character at the end is only sent in the ``last`` message. ``drafts`` is not used.
    """
    text, earlier = text_of(new, pieces), text_of(new[: len(new) - len(fresh)], pieces)
    begin = max(len(sent) - 1, 0) if earlier.endswith("\ufffd") else len(sent)
    return (text if last else text.rstrip("\ufffd"))[begin:]


@engine_part(
    "streamed",
    "streamed",
    "streamed-before-verified",
    "sends drafts before they are verified",
    category="K",
    citation="plausible: a callback that cannot take back what it sent",
)
def streamed_before_verified(sent: str, new: Tokens, fresh: Tokens, drafts: Tokens, pieces: Pieces, last: bool) -> str:
    """Return the text of all ``drafts`` of the round and of the round's last new token, as the text to send next.

    So rejected drafts are sent too. ``fresh`` are the new tokens of the round; ``pieces`` has the bytes of each token.
    """
    return text_of(drafts + fresh[-1:], pieces)
