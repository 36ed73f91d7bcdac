"""The engine asked for the text of a test vector: its first request is the vector's, the situation stays its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from specverify.mutants.serving.decode import outcome
from specverify.mutants.serving.model import models_of
from specverify.mutants.serving.parts import EngineParts
from specverify.mutants.serving.request import Grammar, Parameters
from specverify.mutants.serving.setup import LETTERS, Setup
from specverify.reference import Draws, LanguageModel, Tokens


def text_asked(
    parts: EngineParts, setup: Setup, target: LanguageModel, draft: LanguageModel, inputs: Mapping[str, Any]
) -> Callable[[Draws], Tokens] | None:
    """Return the program whose outcome is the text of the first request; None where the situation has other models.

    ``inputs`` are those of a vector: ``vocabulary``, ``prompt``, ``horizon``, ``eos``, ``stop`` and ``parameters``.
    """
    size = inputs["vocabulary"]
    tied = len(setup.bodies) > 1 or setup.draft_ids
    if size > len(LETTERS) or (tied and size != setup.vocabulary) or setup.ranks > 1:
        return None
    first = {
        "prompt": tuple(inputs["prompt"]),
        "max_new": inputs["horizon"],
        "eos": tuple(inputs["eos"]),
        "stop_strings": tuple(_letters(end) for end in inputs.get("stop", ())),
        **_prescribed(inputs.get("parameters", {})),
    }
    asked = setup._replace(bodies=(first, *setup.bodies[1:]), vocabulary=size, outcome="tokens", reports=False)
    models = models_of(target, draft)

    def program(draws: Draws) -> Tokens:
        ends = outcome(parts, asked, models, draws)
        text: Tokens = ends if len(setup.bodies) == 1 else ends[0]
        return text

    return program


def _prescribed(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters and the grammar of a body, from those of a vector."""
    temperature = Fraction(given.get("temperature", 1))
    parameters = Parameters(
        temperature=int(1 / temperature) if temperature else 0,
        repetition=Fraction(given.get("presence", 1)),
        frequency=Fraction(given.get("frequency", 1)),
        bias=tuple((int(token), Fraction(factor)) for token, factor in given.get("bias", {}).items()),
        top_k=given.get("top_k", 0),
        top_p=Fraction(given.get("top_p", 1)),
        min_p=Fraction(given.get("min_p", 0)),
        bad_words=tuple(map(tuple, given.get("bad_words", ()))),
        allowed=tuple(given.get("allowed", ())),
        min_new=given.get("min_new", 0),
    )
    edges = tuple((state, token, after) for state, token, after in given.get("grammar", ()))
    return {"parameters": parameters} | ({"grammar": Grammar(edges, given.get("trigger"))} if edges else {})


def _letters(tokens: list[int]) -> str:
    return b"".join(LETTERS[token] for token in tokens if token < len(LETTERS)).decode()
