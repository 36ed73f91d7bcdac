"""Read the answers of another program from its results file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple, NoReturn

from specverify.base.arguments import nearest
from specverify.reference.validation import shown
from specverify.vectors.vector import FORMAT_VERSION, RESULTS_FORMAT, Answer, Vector

EXPECTED = (
    f'expected {{"format": "{RESULTS_FORMAT}", "format_version": {FORMAT_VERSION}, "program": "its name", '
    '"answers": [{"id": "...", "answer": {...}}]}'
)
FIELDS = {"format", "format_version", "program", "answers"}


class Results(NamedTuple):
    """The content of a results file: the name of the tested program, and its answers to the test vectors."""

    program: str
    answers: Mapping[str, Answer]
    """Id of a vector -> the answer."""


def results_of(text: str, name: str, vectors: Mapping[str, Vector]) -> Results:
    """Return the answers in ``text``, the content of the results file ``name``; their ids must be in ``vectors``.

    Raises ``ValueError`` in one sentence for an invalid file, another version, or an unknown or repeated id.
    """
    try:
        data = json.loads(text, parse_constant=_no_number, object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{name} is no JSON ({error}), {EXPECTED}") from None
    if not isinstance(data, dict) or data.get("format") != RESULTS_FORMAT:
        raise ValueError(f"{name} is no file of results, {EXPECTED}")
    version = data.get("format_version")
    if version != FORMAT_VERSION or isinstance(version, bool):
        raise ValueError(
            f"{name} has format_version {shown(version)}, expected {FORMAT_VERSION}: export the vectors again"
        )
    extra = sorted(set(data) ^ FIELDS)
    if extra:
        raise ValueError(f"{name} has too little or too much at {extra[0]!r}, {EXPECTED}")
    kinds = tuple(map(type, (data["program"], data["answers"])))
    if kinds != (str, list):
        raise ValueError(f"{name} has a program that is no word or answers that are no list, {EXPECTED}")
    answers: dict[str, Answer] = {}
    for number, item in enumerate(data["answers"]):
        vector, answer = _answer(item, f"answer {number} of {name}", vectors)
        if vector in answers:
            raise ValueError(f"answer {number} of {name} is the second one to {vector!r}, expected one")
        answers[vector] = answer
    return Results(data["program"], answers)


def _answer(item: Any, where: str, vectors: Mapping[str, Vector]) -> tuple[str, Answer]:
    if not isinstance(item, dict) or set(item) != {"id", "answer"} or not isinstance(item["answer"], dict):
        raise ValueError(f'{where} is {shown(item)}, expected {{"id": "...", "answer": {{...}}}}')
    result = item["id"]
    if not isinstance(result, str) or result not in vectors:
        raise ValueError(f"{where} has the id {shown(result)}, which no vector has{_nearest(result, vectors)}")
    return result, item["answer"]


def _nearest(found: Any, vectors: Mapping[str, Vector]) -> str:
    alike = [name for name in vectors if isinstance(found, str) and name.split("/")[0] == found.split("/")[0]]
    return nearest(found, alike or ({vector.kind for vector in vectors.values()}))


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number of JSON")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"the key {next(name for name in names if names.count(name) > 1)!r} comes twice in one object")
    return result
