"""The parts of a result that has several, such as tokens and a count, by the names under which programs return them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Final

TOKENS: Final = (
    "new_token_ids",
    "output_token_ids",
    "output_ids",
    "token_ids",
    "tokens",
    "new_tokens",
    "generated_tokens",
    "generated_ids",
    "sequences",
    "outputs[0].token_ids",  # a request's outputs, one for each sample: n is 1
)
"""Names under which an object contains token ids, of one text or of several."""


def tokens_of(answer: Any) -> Any:
    """Return the part of a verifier's result ``answer`` that holds the emitted tokens.

    This is the only field or key with one of the names ``TOKENS``, if ``answer`` is a mapping, a named tuple or a data
    class. Any other result is returned unchanged.
    """
    if not has_parts(answer):
        return answer
    parts = [part for path in TOKENS if (part := value_at(answer, path)) is not None]
    return parts[0] if len(parts) == 1 else answer


def has_parts(kind: Any) -> bool:
    """Return whether ``kind``, a value or a class, is a mapping, a named tuple or a data class."""
    return isinstance(kind, Mapping) or hasattr(kind, "_fields") or is_dataclass(kind)


def parts_of(answer: Any) -> tuple[Any, ...] | None:
    """Return the parts of a verifier's result as a tuple; None if it has no parts, or if one is named as the tokens.

    The result may be a tuple, a mapping, a named tuple or a data class.
    """
    if type(answer) is tuple:
        return answer
    if not has_parts(answer) or tokens_of(answer) is not answer:
        return None
    if isinstance(answer, Mapping):
        return tuple(answer.values())
    return tuple(answer) if hasattr(answer, "_fields") else tuple(getattr(answer, item.name) for item in fields(answer))


def value_at(answer: Any, path: str) -> Any:
    """Return the value in ``answer`` at ``path``, such as ``outputs[0].token_ids``; None if there is none.

    A path consists of names (of fields or keys) and indices.
    """
    for step in re.findall(r"[^.\[\]]+|\[\d+\]", path):
        if step.startswith("["):
            index = int(step[1:-1])
            answer = answer[index] if isinstance(answer, list | tuple) and index < len(answer) else None
        elif isinstance(answer, Mapping):
            answer = answer.get(step)
        else:
            answer = getattr(answer, step, None)
        if answer is None or callable(answer):
            return None
    return answer


def is_none_at(answer: Any, path: str) -> bool:
    """Return whether ``answer`` has a field or key at ``path``, such as ``outputs[0].stop_reason``, that is None."""
    *above, name = path.split(".")
    holder = value_at(answer, ".".join(above)) if above else answer
    if isinstance(holder, Mapping):
        return name in holder and holder[name] is None
    return holder is not None and getattr(holder, name, path) is None
