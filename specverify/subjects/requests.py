"""Requests that one engine serves in turn or at once: none may change the tokens of another.

An engine whose calls take the prompt, ``speculative(prompt)``, is created anew and called for several texts in turn.
Its texts are concatenated and compared with the product of their laws. The prompts follow each other as those of users
do: shorter and longer ones, the next turn of a conversation, others with the same beginning, length or end, the first
one again. An engine then returns other tokens if it does not empty its cache, looks a prefix up by its length or its
blocks alone, or keeps state after a rejection.

An engine that takes several prompts, ``speculative(prompts)``, also serves them in one batch: rows of different
lengths, some of which accept drafts that others reject, and rows of one prompt, whose random numbers must be
independent. It also serves one batch after another: the state that a row leaves in its slot must not affect the next
row in that slot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import product
from typing import Any, Final, NamedTuple

import numpy as np

from specverify.intercept.streams import begin_request
from specverify.laws.scenarios import Scenario
from specverify.reference import Tokens
from specverify.reference.validation import shown
from specverify.subjects.awaited import awaited
from specverify.subjects.call_arguments import takes_prompt, takes_seed
from specverify.subjects.engine import tokens_of
from specverify.subjects.engine_answers import elements_of_row, expected_rows, new_tokens, read_answer_rows
from specverify.subjects.engine_forms import PLAIN_FORM, EngineForm
from specverify.subjects.subject import KeptObjects, UnusableSubject


class Requests(NamedTuple):
    """The requests that an engine serves in one run: one after the other, or as rows of batches."""

    scenario: Scenario
    """The first request; its models and its horizon are those of all requests."""
    others: tuple[Tokens, ...]
    """The prompts of the other requests."""
    at_once: bool = False
    """Whether the requests are the rows of one batch."""
    rows: int = 0
    """The number of requests per batch, if they are several batches; 0 means one batch."""

    @property
    def name(self) -> str:
        """Return a name for the requests: the scenario, which has the first prompt, and the further prompts."""
        words = [self.scenario.name, *("".join(map(str, prompt)) for prompt in self.others)]
        groups = [" beside ".join(_few(batch)) for batch in self.batches(words)]
        return ", then ".join(_few(groups))

    def batches(self, items: Sequence[Any]) -> list[Sequence[Any]]:
        """Split ``items``, one for each request, into the groups that are served together."""
        size = (self.rows or len(items)) if self.at_once else 1
        return [items[start : start + size] for start in range(0, len(items), size)]

    @property
    def places(self) -> list[int]:
        """Return the index of the sampling parameters of each request: that of its row plus that of its batch.

        Two requests that are served in one row, one after the other, have other parameters.
        """
        rows = self.batches(range(len(self.each)))
        return [turn + row for turn, batch in enumerate(rows) for row in range(len(batch))]

    @property
    def each(self) -> tuple[Scenario, ...]:
        """Return each request as a ``Scenario``, which has the prompt of the request."""
        return (self.scenario, *(self.scenario._replace(prompt=prompt) for prompt in self.others))


_MOST_NAMED: Final = 12
"""If there are more rows of a batch, or requests or batches in turn, only the first two are named."""


def _few(names: Sequence[str]) -> list[str]:
    return list(names) if len(names) <= _MOST_NAMED else [*names[:2], f"{len(names) - 2} more"]


def texts_of(
    decode: Callable[..., Any],
    prompts: Sequence[Tokens],
    *,
    batched: bool,
    form: EngineForm = PLAIN_FORM,
    horizon: int = 0,
    eos: Tokens = (),
) -> list[Any]:
    """Return the row of new tokens for each prompt, not yet converted to integers.

    ``decode`` takes a prompt, or nothing; if ``batched``, a list of prompts. ``form`` states how prompts are passed,
    and whether rows begin with them. ``horizon`` is the number of new tokens, and ``eos`` are the end tokens. Raises
    ``UnusableSubject`` if the result does not have one row for each prompt.
    """
    given = [form.give(prompt) for prompt in prompts]
    answer = _answered(decode, given, prompts, batched=batched, form=form, horizon=horizon)
    return _rows_in(answer, prompts, batched=batched, form=form, horizon=horizon, eos=eos)


def _answered(
    decode: Callable[..., Any],
    given: list[Any],
    prompts: Sequence[Tokens],
    *,
    batched: bool,
    form: EngineForm,
    horizon: int,
) -> Any:
    """Return the answer of one call that passes the ``prompts`` as the objects ``given``."""
    wanted = horizon + (max(map(len, prompts)) if form.in_front else 0)
    enough = form.is_enough(wanted) if horizon and not batched else _never
    return awaited(decode(given) if batched else decode(*given) if takes_prompt(decode) else decode(), enough)


def _rows_in(
    answer: Any, prompts: Sequence[Tokens], *, batched: bool, form: EngineForm, horizon: int, eos: Tokens
) -> list[Any]:
    """Return the row of new tokens for each prompt in ``answer``, as ``texts_of`` does."""
    result = read_answer_rows(answer, len(prompts)) if batched else read_answer_rows(answer)
    if len(result.rows) != len(prompts) or (batched and not result.several):
        raise UnusableSubject(f"it returned {shown(answer)}, {expected_rows(len(prompts) if batched else None)}")
    return new_tokens(result, prompts, in_front=form.in_front, horizon=horizon, eos=eos)


ENDED: Final[Tokens] = (-1,)
"""It follows a text that ends before its horizon without an end token, in the concatenated texts of several requests.
"""


def may_be_empty(prompt: Tokens, eos: Tokens) -> bool:
    """Return whether an engine may return no token after ``prompt``: whether the prompt has a token of ``eos``.

    An engine may take this token for the end of the text and decode nothing. After any other prompt, an empty answer
    more likely means that its tokens were not found.
    """
    return any(token in eos for token in prompt)


def text_after(prompt: Tokens, row: Any, eos: Tokens) -> Tokens:
    """Return the new tokens in ``row``, the answer to ``prompt``; () if it is empty and ``prompt`` has an end token.

    ``eos`` are the end tokens. Raises ``UnusableSubject``, which names the prompt, for any other empty row.
    """
    if len(row):
        return tokens_of(row)
    if may_be_empty(prompt, eos):
        return ()
    raise UnusableSubject(f"it returned no token for the prompt {prompt}, expected at least one")


def _never(_: list[Any]) -> bool:
    return False


def served(requests: Requests, decode: Callable[[Any], Any], *, batched: bool, form: EngineForm = PLAIN_FORM) -> Tokens:
    """Serve ``requests`` by an engine, and return all texts concatenated, each cut at its horizon.

    ``decode``, the call of the engine, takes a prompt; if ``batched``, a list of prompts. ``form`` states how prompts
    are passed, and whether rows begin with them.
    """
    return joined(requests, served_each(requests, decode, batched=batched, form=form))


def joined(requests: Requests, texts: Iterable[Tokens]) -> Tokens:
    """Return the concatenation of ``texts``, one for each of ``requests``, which ``each_text`` takes apart again.

    ``ENDED`` follows a text that ends before the horizon without an end token: it may be empty, or end at a stop
    string.
    """
    return tuple(token for text in texts for token in _with_end(requests, text))


def _with_end(requests: Requests, text: Tokens) -> Tokens:
    scenario = requests.scenario
    seen = len(text) >= scenario.horizon or (bool(text) and text[-1] in scenario.eos)
    return text if seen else text + ENDED


def served_each(
    requests: Requests,
    decode: Callable[[Any], Any],
    *,
    batched: bool,
    form: EngineForm = PLAIN_FORM,
    before_call: Callable[[int], Any] | None = None,
) -> tuple[Tokens, ...]:
    """Serve ``requests`` by an engine, and return the text of each, in order, cut at its horizon.

    ``decode``, the call of the engine, takes a prompt; if ``batched``, a list of prompts. ``form`` states how prompts
    are passed, and whether rows begin with them. ``before_call`` is called before each call of the engine, with the
    index of its first request. Raises ``UnusableSubject`` for an unreadable result.
    """
    result, seeded = list[Tokens](), takes_seed(decode)
    horizon, eos = requests.scenario.horizon, requests.scenario.eos
    for prompts in requests.batches([each.prompt for each in requests.each]):
        begin_request(seeded=seeded)
        if before_call is not None:
            before_call(len(result))
        rows = texts_of(decode, prompts, batched=batched, form=form, horizon=horizon, eos=eos)
        texts = [text_after(prompt, row, eos) for prompt, row in zip(prompts, rows, strict=True)]
        _refuse_padding(texts, eos if requests.at_once else ())
        result += texts
    return tuple(text[:horizon] for text in result)


def kept_objects(
    requests: Requests, decode: Callable[[Any], Any], *, batched: bool, form: EngineForm = PLAIN_FORM
) -> KeptObjects:
    """Serve ``requests`` by an engine; return which prompts and answers of the caller have changed after the last one.

    The parameters are those of ``served``.
    """
    scenario, kept, prompts_changed, answers_changed = requests.scenario, list[Any](), list[str](), list[str]()
    for prompts in requests.batches([each.prompt for each in requests.each]):
        given = [form.give(prompt) for prompt in prompts]
        objects = list(given)
        answer = _answered(decode, given, prompts, batched=batched, form=form, horizon=scenario.horizon)
        read = partial(
            _tokens_in, answer, prompts, batched=batched, form=form, horizon=scenario.horizon, eos=scenario.eos
        )
        if len(given) != len(objects):
            prompts_changed.append(f"the list of {len(objects)} prompts has {len(given)} after the call")
        prompts_changed += [
            f"the prompt {prompt} is {found} after the call"
            for prompt, found in zip(prompts, map(_ids_in, objects), strict=True)
            if found != prompt
        ]
        kept.append((prompts, read, read()))
    for prompts, read, before in kept:
        try:
            after = read()
        except UnusableSubject:
            after = [()] * len(prompts)
        answers_changed += [
            f"the answer {told} to the prompt {prompt} is {now} after a later call"
            for prompt, told, now in zip(prompts, before, after, strict=True)
            if told != now
        ]
    return KeptObjects(tuple(prompts_changed), tuple(answers_changed), len(kept))


def _tokens_in(answer: Any, prompts: Sequence[Tokens], **how: Any) -> list[Tokens]:
    return [tuple(map(int, elements_of_row(row))) for row in _rows_in(answer, prompts, **how)]


def _ids_in(prompt: Any) -> Tokens:
    """Return the token ids in ``prompt``, an object that a prompt was passed as."""
    return tuple(int(token) for token in np.asarray(prompt).reshape(-1).tolist())


def _refuse_padding(rows: list[Tokens], eos: Tokens) -> None:
    """Raise ``UnusableSubject`` if rows of equal length repeat one token after an end token (one of ``eos``).

    The repetition may be padding.
    """
    for place, row in enumerate(rows if len(set(map(len, rows))) == 1 else ()):
        behind = next((row[at:] for at, token in enumerate(row, 1) if token in eos), ())
        if len(set(behind)) == 1:
            raise UnusableSubject(
                f"row {place + 1} of its answer repeats the token {behind[0]} {len(behind)} times after its end, like "
                "padding, expected each row up to its end: cut it after scenario.eos, or return lengths too"
            )


def each_text(requests: Requests, new: Tokens) -> Iterator[Tokens]:
    """Yield the text of each of ``requests``, in order, from ``new``, their concatenated texts.

    A text ends with its first end-of-sequence token, before ``ENDED``, or at the horizon if it has neither before.
    """
    horizon, eos = requests.scenario.horizon, requests.scenario.eos
    for _ in requests.each:
        length = 0
        while length < min(len(new), horizon) and new[length : length + 1] != ENDED:
            length += 1
            if new[length - 1] in eos:
                break
        text, new = new[:length], new[length:]
        yield text
        if new[:1] == ENDED:
            new = new[1:]


def law_of_all(requests: Requests, laws: Any) -> dict[Tokens, Any]:
    """Return the law of the concatenation (``joined``) of independent texts, one for each of ``requests``.

    ``laws`` has the law of each, text -> probability.
    """
    joint: dict[Tokens, Any] = {(): 1}
    for law in laws:
        pairs = product(joint.items(), law.items())
        joint = {before + _with_end(requests, new): mass * share for (before, mass), (new, share) in pairs}
    return joint
