"""``python -m specverify.foreign.callable_answers module:callable`` samples a Python function.

Each line of standard input is a question in JSON, and each line of standard output its answer. The function takes
``seed`` and ``n``, and ``prompt`` and ``max_tokens`` if it has parameters of these names. Sampling options and a
temperature, if set, are keyword arguments. What the function prints goes to standard error.
"""

from __future__ import annotations

import importlib
import inspect
import json
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from specverify.foreign.places import sentence_of
from specverify.subjects.sampler import Sampler
from specverify.subjects.sampler import answered as answers_of


def main() -> None:
    """Read questions, one JSON object per line, from standard input until it ends, and print the answers."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    place, function, failure = sys.argv[1], None, ""
    try:
        function = loaded(place)
    except BaseException as error:  # noqa: BLE001 - whatever an import does is told
        failure = f"{place} cannot be loaded: {sentence_of(error, '')}"
    for line in sys.stdin:
        answer = {"error": failure} if function is None else answered(function, json.loads(line), place)
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


def loaded(place: str) -> Callable[..., Any]:
    """Import and return the function ``place``, ``module:callable``; the current folder is searched first."""
    module, _, attribute = place.partition(":")
    sys.path.insert(0, str(Path.cwd()))
    result: Callable[..., Any] = getattr(importlib.import_module(module), attribute)
    return result


def answered(function: Callable[..., Any], question: Mapping[str, Any], place: str) -> Mapping[str, Any]:
    """Return the samples of ``function`` for one question, or ``{"error": sentence}`` if it cannot be answered.

    ``question`` has the keys ``ask`` ("sample"), ``seed`` and ``n``, and perhaps ``prompt``, ``max_tokens``,
    ``temperature`` and ``options``. The answer has the samples as ``tokens``, with ``accepted`` if the function returns
    the accepted drafts. ``place``, ``module:callable``, stands in an error that no line of the function raised.
    """
    try:
        if question.get("ask") != "sample":
            return {"error": "a Python function returns no log-probabilities, expected a law or a reference"}
        parameters = inspect.signature(function).parameters
        given = {name: question[name] for name in ("prompt", "max_tokens") if name in parameters}
        temperature = {"temperature": question["temperature"]} if "temperature" in question else {}
        given |= _options(temperature | question.get("options", {}), parameters)
        it = Sampler("it", lambda seed, n: function(seed=seed, n=n, **given))
        result = answers_of(it, question["seed"], question["n"])
    except Exception as error:  # noqa: BLE001 - whatever somebody's code raises is told
        return {"error": sentence_of(error.__cause__, place) if error.__cause__ else str(error)}
    return {"tokens": result.tokens} if result.accepted is None else result._asdict()


def _options(options: Mapping[str, Any], parameters: Mapping[str, inspect.Parameter]) -> Mapping[str, Any]:
    """Return ``options``, the sampling options of a question, after validation.

    ``parameters`` are those of the function. Raises ``TypeError`` for an option that is no parameter of the function,
    unless the function takes any keyword argument (``**options``).
    """
    if not any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters.values()):
        for name in options.keys() - parameters.keys():
            raise TypeError(f"the function has no parameter {name!r}, which is set")
    return options


if __name__ == "__main__":
    main()
