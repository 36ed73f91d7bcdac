"""Values that an engine returns with its tokens: log-probabilities, top-k lists, text, finish reason, statistics.

  tokens, {"logprobs": [...], "text": "..."}        a pair: the tokens, and a mapping or an object with the values
  tokens, logprobs                                  a tuple, in the order of ``returns=``
  {"tokens": [...], "logprobs": [...]}              a mapping, named tuple, data class or object that has both
  objects of objects, such as outputs[0].logprobs   what engines and servers return, by the places of ``NAMES``

In an answer to a batch each value is a list with an element for each row, or each row is an object of its own.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple

from specverify.intercept.symbolic.deferred import known
from specverify.laws.rounding import FLOAT32, spacing
from specverify.reference import Tokens
from specverify.reference.validation import shown
from specverify.subjects.awaited import Stream, awaited
from specverify.subjects.engine_answers import elements_of_row
from specverify.subjects.named_parts import TOKENS, is_none_at, value_at
from specverify.subjects.subject import UnusableSubject

_BLOCKS: Final = ("speculative_decoding_stats", "spec_decode_metrics")
"""Fields of an answer, or of each of its completions, that hold the statistics in current versions of vLLM."""


def _in_blocks(name: str) -> tuple[str, ...]:
    """Return the paths of attributes at which an answer of vLLM may hold the statistic ``name``.

    They lead through a field with a name in ``_BLOCKS``, such as ``spec_decode_metrics``, of the answer or of its first
    completion.
    """
    return tuple(f"{place}{block}.{name}" for block in _BLOCKS for place in ("", "outputs[0].", "choices[0]."))


NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "logprobs": (
        "logprobs.content",
        "logprobs.token_logprobs",
        "logprobs",
        "token_logprobs",
        "log_probs",
        "logps",
        "output_token_logprobs",
        "outputs[0].logprobs",
        "choices[0].logprobs.content",
        "choices[0].logprobs.token_logprobs",
        "meta_info.output_token_logprobs",
    ),
    "top_logprobs": (
        "top_logprobs",
        "logprobs.top_logprobs",
        "output_top_logprobs",
        "choices[0].logprobs.top_logprobs",
        "meta_info.output_top_logprobs",
        "logprobs.content",
        "choices[0].logprobs.content",
        "outputs[0].logprobs",
    ),
    "cumulative_logprob": ("cumulative_logprob", "outputs[0].cumulative_logprob"),
    "prompt_logprobs": ("prompt_logprobs", "meta_info.input_token_logprobs"),
    "text": ("text", "outputs[0].text", "choices[0].message.content", "choices[0].text"),
    "chunks": ("chunks", "deltas"),
    "snapshots": ("snapshots",),
    "finish_reason": (
        "finish_reason",
        "outputs[0].finish_reason",
        "choices[0].finish_reason",
        "meta_info.finish_reason.type",
    ),
    "stop_reason": ("stop_reason", "outputs[0].stop_reason", "choices[0].stop_reason"),
    "scores": ("scores",),
    "logits": ("logits",),
    "drafted": (
        "drafted",
        "num_drafted",
        "num_draft_tokens",
        "spec_draft_tokens",
        *_in_blocks("num_draft_tokens"),
        "meta_info.spec_draft_token_num",
        "meta_info.spec_num_proposed_drafts",
        "meta_info.spec_proposed_drafts",
        "timings.draft_n",
    ),
    "accepted": (
        "accepted",
        "num_accepted",
        "num_accepted_tokens",
        "num_accepted_draft_tokens",
        "spec_accepted_tokens",
        *_in_blocks("num_accepted_draft_tokens"),
        "meta_info.spec_accept_token_num",
        "meta_info.spec_num_correct_drafts",
        "meta_info.spec_accepted_drafts",
        "timings.draft_n_accepted",
        "usage.completion_tokens_details.accepted_prediction_tokens",
    ),
    "rejected": (
        "rejected",
        "num_rejected_draft_tokens",
        *_in_blocks("num_rejected_draft_tokens"),
        "usage.completion_tokens_details.rejected_prediction_tokens",
    ),
    "rounds": (
        "rounds",
        "num_rounds",
        "num_drafts",
        "num_spec_steps",
        "verify_steps",
        "spec_verify_ct",
        *_in_blocks("num_spec_steps"),
        "meta_info.spec_verify_ct",
    ),
    "acceptance_histogram": (
        "acceptance_histogram",
        *_in_blocks("acceptance_histogram"),
        "meta_info.spec_correct_drafts_histogram",
    ),
    "accepted_per_position": ("accepted_per_position", "num_accepted_tokens_per_pos"),
    "acceptance_rate": (
        "acceptance_rate",
        "draft_acceptance_rate",
        *_in_blocks("draft_acceptance_rate"),
        "meta_info.spec_accept_rate",
    ),
    "tokens_per_round": (
        "tokens_per_round",
        "mean_acceptance_length",
        "acceptance_length",
        *_in_blocks("mean_acceptance_length"),
        "meta_info.spec_accept_length",
    ),
    "usage": ("usage", "meta_info"),
}
"""Value -> the names and attribute paths under which an answer may hold it; the first that exists is used."""
STATISTICS: Final = frozenset(
    {
        "drafted",
        "accepted",
        "rejected",
        "rounds",
        "accepted_per_position",
        "acceptance_histogram",
        "acceptance_rate",
        "tokens_per_round",
        "usage",
    }
)
"""Values about the drafting and the acceptance; all other values are functions of the tokens."""
OF_TOKENS: Final = frozenset({"logprobs", "top_logprobs", "scores", "logits"})
"""Values with one element for each new token."""


class Answer(NamedTuple):
    """The answer to one request: its new tokens (``new``), up to the horizon, and the values returned with them.

    ``prompt`` is the prompt of the request.
    """

    prompt: Tokens
    new: Tokens
    values: Mapping[str, Any]
    """Name -> value as the engine returned it; a value that is missing in the answer has no entry."""
    length: int
    """Number of new tokens of the whole answer, including those beyond the horizon."""
    queries: Sequence[tuple[str, Tokens]] = ()
    """The engine's model queries so far, including those for earlier requests, such as ``("draft", tokens)``."""


class SplitAnswer(NamedTuple):
    """An answer of an engine, split into its tokens (``tokens``) and the values returned with them (``beside``)."""

    tokens: Any
    """The object with the token ids, in any form of ``engine_answers``."""
    beside: Any
    """The mapping or object with the values; the answer itself if it holds both."""


def part_answer(answer: Any, names: Sequence[str], *, of_stream: bool = False) -> SplitAnswer:
    """Split an answer into its tokens and the object that holds its values.

    * A pair of tokens and an object: these two.
    * A tuple (tokens, value, value, ...): the tokens, and a mapping from ``names`` to the values.
    * A stream: see ``_part_stream``.
    * Any other answer: the answer is both the tokens and the object.

    A tuple of whole numbers is a row of tokens. In a piece of a stream (``of_stream``) it is one token and its values.
    """
    answer = awaited(answer)
    if isinstance(answer, Stream):
        return _part_stream(answer, names)
    if _is_pair(answer):
        return SplitAnswer(answer[0], answer[1])
    is_row = not of_stream and type(answer) is tuple and all(map(_is_whole, answer))
    if type(answer) is tuple and len(answer) == len(names) + 1 and _holds_row(answer[0]) and not is_row:
        return SplitAnswer(answer[0], dict(zip(names, answer[1:], strict=True)))
    return SplitAnswer(answer, answer)


def _part_stream(answer: Stream, names: Sequence[str]) -> SplitAnswer:
    """Split ``answer``, a stream of an engine, into a stream of its tokens and a mapping from ``names`` to values.

    The elements of values with one element per token, and the pieces of text in ``chunks``, are collected in one list.
    Of any other value the last one is used. If a piece contains no values, both results are the stream itself.
    """
    parts = [part_answer(piece, names, of_stream=True) for piece in answer.pieces]
    if not parts or any(part.tokens is part.beside and not _has_names(part.tokens) for part in parts):
        return SplitAnswer(answer, answer)
    result: dict[str, Any] = {}
    for name in names:
        values = [value_of(part.beside, name) for part in parts]
        if name == "chunks" and all(value is None for value in values):
            values = [value_of(part.beside, "text") for part in parts]
        given = [value for value in values if value is not None]
        if name in OF_TOKENS:
            result[name] = [item for value in given for item in (_listed(value) if _is_list(value) else [value])]
        elif name == "chunks":
            result[name] = [item for value in given for item in ([value] if isinstance(value, str) else value)]
        elif given or any(is_none(part.beside, name) for part in parts):
            result[name] = given[-1] if given else None
    return SplitAnswer(Stream([part.tokens for part in parts]), result)


def value_of(beside: Any, name: str) -> Any:
    """Return the value called ``name`` in the object ``beside``; None if there is none.

    Engines use several names for one value: the value is also found at the places that ``NAMES`` lists for ``name``.
    """
    for path in NAMES.get(name, (name,)):
        value = value_at(beside, path)
        if value is not None:
            return value
    return None


def is_none(beside: Any, name: str) -> bool:
    """Return whether ``beside`` returns None as the value called ``name``: the value may be None, and is there.

    A reason to stop may be None, and so may a value that is not in ``NAMES``. Any other value that is None is missing.
    """
    return (name == "stop_reason" or name not in NAMES) and any(
        is_none_at(beside, path) for path in NAMES.get(name, (name,))
    )


def values_of_row(beside: Any, names: Collection[str], row: int, rows: int) -> dict[str, Any]:
    """Return the values ``names`` of one row of an answer, by name; a name without a value is left out.

    * ``beside``: The object that holds the values. For a batch, a list with an object for each row, or an object whose
      values are lists with an element for each row. ``scores`` and ``logits`` may be lists of arrays ``[rows,
      vocabulary]``, one for each new token.
    * ``row``: The index of the row.
    * ``rows``: The number of prompts of the batch; 0 if the answer is for one prompt.

    Raises ``UnusableSubject`` for a value of a batch that is no list with an element for each row.
    """
    if rows and _is_list(beside) and len(beside) == rows:
        beside, rows = beside[row], 0
    result: dict[str, Any] = {}
    for name in names:
        value = value_of(beside, name)
        if value is None:
            if is_none(beside, name):
                result[name] = None
            continue
        if rows:
            if name in {"scores", "logits"} and _is_list(value):  # one array ``[rows, vocabulary]`` for each step
                result[name] = [step[row] for step in value]
                continue
            if isinstance(value, Mapping | str) or not hasattr(value, "__len__") or len(value) != rows:
                raise UnusableSubject(f"its {name} are {shown(value)}, expected an element for each of {rows} prompts")
            value = value[row]
        result[name] = value
    return result


def without_values(call: Callable[..., Any], names: Sequence[str]) -> Callable[..., Any]:
    """Return a call that returns only the tokens of ``call``, without the values ``names``."""

    @functools.wraps(call)
    def tokens_alone(*given: Any, **named: Any) -> Any:
        answer = call(*given, **named)
        if isinstance(answer, list | dict) or hasattr(answer, "__next__") or hasattr(answer, "__await__"):
            answer = awaited(answer)
        tokens = part_answer(answer, names).tokens
        return tokens.pieces if isinstance(tokens, Stream) else tokens

    return tokens_alone


def _is_pair(answer: Any) -> bool:
    """Return whether an engine's ``answer`` is a tuple (tokens, values), for example ``([3, 1], {"logprobs": [...]})``.

    The values are a mapping, or an object that has one of the known names as an attribute. For a batch they may also be
    a list of such mappings or objects, one for each row.
    """
    if type(answer) is not tuple or len(answer) != 2 or not _holds_row(answer[0]):
        return False
    beside = answer[1]
    if isinstance(beside, Mapping):
        return not any(isinstance(key, int) for key in beside)
    if _is_list(beside):
        return bool(beside) and all(isinstance(item, Mapping) or _has_names(item) for item in beside)
    return _has_names(beside)


def _has_names(item: Any) -> bool:
    """Return whether the object ``item`` holds token ids or one of the known values under a known name."""
    if isinstance(item, str | bytes | int | float) or hasattr(item, "ndim"):
        return False
    paths = (*TOKENS, *(path for paths in NAMES.values() for path in paths))
    return any(value_at(item, path) is not None for path in paths)


def _holds_row(item: Any) -> bool:
    """Return whether ``item`` may be the token ids in an answer: a list, an array, or an object that contains ids.

    One token of a stream counts too.
    """
    return hasattr(item, "__len__") or hasattr(item, "ndim") or isinstance(item, int) or _has_names(item)


def _is_whole(item: Any) -> bool:
    """Return whether an item is a single whole number, such as a token id.

    A symbolic number, which has no value yet, is not forced to a value.
    """
    if hasattr(item, "dtype"):
        return math.prod(getattr(item, "shape", ())) == 1 and "int" in str(item.dtype)
    return hasattr(item, "__index__")


def _is_list(item: Any) -> bool:
    return isinstance(item, list | tuple) and not hasattr(item, "_fields")


def _listed(value: Any) -> list[Any]:
    return list(value) if _is_list(value) else elements_of_row(value)


# Reading one value.


def number(value: Any) -> float:
    """Return ``value``, a number of an answer, as a Python float. Raises ``TypeError`` for anything else."""
    value = known(value)
    if hasattr(value, "item"):
        value = known(value.item())
    if isinstance(value, bool | str) or value is None:
        raise TypeError
    return float(value)


def entries_of(value: Any) -> list[Any]:
    """Return the elements of a value with one element per token: rows of an array, or items of a list.

    Raises ``TypeError`` for other values.
    """
    if isinstance(value, Mapping) or not (hasattr(value, "__len__") or hasattr(value, "__iter__")):
        raise TypeError
    if hasattr(value, "ndim") and value.ndim > 1:
        rows = value[0] if value.ndim == 3 and len(value) == 1 else value
        return [rows[place] for place in range(len(rows))]
    return list(value) if _is_list(value) else elements_of_row(value)


def token_logprob(entry: Any, token: int) -> float | None:
    """Return the log-probability of ``token`` in ``entry``, the element of a value for one position.

    ``entry`` is a number, an object with a field ``logprob``, a list that begins with the number, a mapping from tokens
    to one of these, or a row over the vocabulary. Return None if the mapping or the row does not have the token. Raise
    ``TypeError`` for any other value.
    """
    if isinstance(entry, Mapping) and "logprob" not in entry:
        result = entry.get(token, entry.get(str(token)))
        return None if result is None else _logarithm(result)
    if hasattr(entry, "shape") and math.prod(entry.shape) > 1:
        row = entry.reshape(-1)
        return number(row[token]) if token < len(row) else None
    return _logarithm(entry)


def _logarithm(item: Any) -> float:
    if isinstance(item, Mapping):
        return number(item["logprob"])
    if hasattr(item, "logprob"):
        return number(item.logprob)
    if _is_list(item):  # (logarithm, token, piece), as SGLang lists it
        return number(item[0])
    if hasattr(item, "reshape"):
        item = item.reshape(-1)[0]
    return number(item)


class Ranked(NamedTuple):
    """The most probable tokens at one position, in the order in which an engine returns them.

    ``logprobs`` has the log-probability of each token. ``ranks`` has the rank that the engine reports for each token,
    or None; () if the answer has no ranks.
    """

    tokens: tuple[int, ...]
    logprobs: tuple[float, ...]
    ordered: bool
    """Whether the tokens are in the order of their probability; those of a mapping need not be."""
    ranks: tuple[int | None, ...] = ()


def ranked(entry: Any) -> Ranked:
    """Return the list of the most probable tokens in ``entry``, the entry of ``top_logprobs`` for one position.

    ``entry`` is a mapping from tokens to log-probabilities, a list of pairs, or an object with the fields ``indices``
    and ``values``. It may also be an object or mapping whose field ``top_logprobs`` has one of these forms. Raises
    ``TypeError`` for other values.
    """
    if isinstance(entry, Mapping) and "top_logprobs" in entry:
        entry = entry["top_logprobs"]
    elif hasattr(entry, "top_logprobs"):
        entry = entry.top_logprobs
    if isinstance(entry, Mapping):
        tokens = tuple(int(key) for key in entry)
        ranks = tuple(getattr(item, "rank", None) for item in entry.values())
        return Ranked(tokens, tuple(map(_logarithm, entry.values())), ordered=False, ranks=ranks)
    if hasattr(entry, "indices") and hasattr(entry, "values"):
        entry = list(zip(_listed(entry.indices), _listed(entry.values), strict=True))
    pairs = [_pair(item) for item in entry]
    return Ranked(tuple(token for token, _ in pairs), tuple(value for _, value in pairs), ordered=True)


def _pair(item: Any) -> tuple[int, float]:
    """Return (token, log-probability) of an item of a list of the most probable tokens."""
    if isinstance(item, Mapping):
        return int(item.get("token_id", item.get("token", item.get("id")))), number(item["logprob"])
    if hasattr(item, "logprob"):
        token = getattr(item, "token_id", None)
        return int(item.token if token is None else token), number(item.logprob)
    one, other = (known(part.item() if hasattr(part, "item") else part) for part in list(item)[:2])
    return (int(one), number(other)) if isinstance(one, int) else (int(number(other)), number(one))


class Unreadable(NamedTuple):
    """A returned value whose form is not supported for its name; ``said`` is a description of the value."""

    said: str


def readable_value(name: str, value: Any, tokens: Tokens) -> Any:
    """Return a returned value ``value`` in a normal form, by its ``name``; ``tokens`` are all new tokens of the answer.

    * logprobs: a logarithm for each token, then 0 for each surplus entry.
    * top_logprobs: a ``Ranked`` for each token.
    * scores, logits: a row of floats for each token.
    * Any other value: numbers, strings, and tuples and dictionaries of these.

    Numbers that had no value yet (symbolic ones) get a value. None stays None in logprobs and top_logprobs. A value of
    another form becomes ``Unreadable``.
    """
    try:
        if name == "logprobs":
            listed = entries_of(value)
            return tuple(
                None if entry is None else token_logprob(entry, token)
                for entry, token in zip(listed, tokens, strict=False)
            ) + (0.0,) * max(len(listed) - len(tokens), 0)
        if name == "top_logprobs":
            return tuple(None if entry is None else ranked(entry) for entry in entries_of(value))
        if name in {"scores", "logits"}:
            return tuple(tuple(map(number, elements_of_row(_flat(row)))) for row in entries_of(value))
        return plain_value(value)
    except (TypeError, ValueError, KeyError, AttributeError, IndexError):
        return Unreadable(shown(value))


def _flat(row: Any) -> Any:
    return row.reshape(-1) if hasattr(row, "reshape") else row


def plain_value(value: Any) -> Any:
    """Return ``value`` converted to numbers, strings, and tuples and dictionaries of these."""
    value = known(value)
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if hasattr(value, "ndim"):
        rows = value if value.ndim > 1 else elements_of_row(value.reshape(-1))
        return tuple(map(plain_value, rows)) if value.ndim else plain_value(value.item())
    if hasattr(value, "_asdict"):
        value = value._asdict()
    elif hasattr(value, "__dict__") and not isinstance(value, Mapping | Sequence):
        value = {key: item for key, item in vars(value).items() if not key.startswith("_")}
    if isinstance(value, Mapping):
        return {key: plain_value(item) for key, item in value.items()}
    return tuple(map(plain_value, value)) if isinstance(value, Sequence) else value


def spacing_of(value: Any) -> float:
    """Return the machine epsilon (spacing at 1) of the coarsest floats of a value, and at least that of float32.

    Plain numbers count as float32.
    """
    if hasattr(value, "dtype"):
        return max(spacing(value.dtype), FLOAT32)
    if isinstance(value, Mapping):
        value = list(value.values())
    return max(map(spacing_of, value), default=FLOAT32) if _is_list(value) else FLOAT32
