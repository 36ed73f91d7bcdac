"""A small engine for planted bugs that span rounds: it draws its own drafts, and its passes can be observed.

Its models are order-1 tables of dyadic numbers, so float64 is exact. The rows of both tables after token 2 are equal.
``TableEngine`` decodes ``HORIZON`` tokens after ``PROMPT``. The list ``forwards`` receives a record of every pass of
the target. The records describe the passes that an engine with a KV cache would make.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from specverify.intercept.everywhere import answered_everywhere
from specverify.mutants.mutant import Mutant
from specverify.mutants.numpy_verifiers import decided, drawn
from specverify.reference import Claim, Draws, LanguageModel, Tokens
from specverify.subjects.engine import engine_subject
from specverify.subjects.subject import Forward, Observed, Subject, Watched

PROMPT: Tokens = (2,)
HORIZON = 5
GAMMA = 2


class BigramTables(NamedTuple):
    """The tables of both models, which belong to the engine's caller: row v is the pmf of the token after v."""

    target: Any
    draft: Any


TableEngine = Callable[[BigramTables, list[Forward]], list[int]]
"""``engine(models, forwards)`` returns the new tokens."""
DecideRound = Callable[[Any, Any, Any, Sequence[int]], list[int]]
"""``decide(rng, p, q, drafts)`` returns the accepted drafts and one more token."""


def models() -> BigramTables:
    """Return new tables of the target and the draft model."""
    return BigramTables(
        np.array([[0.5, 0.25, 0.25], [0.25, 0.75, 0.0], [0.0, 0.5, 0.5]]),
        np.array([[0.25, 0.25, 0.5], [0.5, 0.25, 0.25], [0.0, 0.5, 0.5]]),
    )


def engine_of(decide: DecideRound = decided) -> TableEngine:
    """Return an engine: ``engine(tables, forwards)`` decodes with the models ``tables`` and returns the new tokens.

    The engine appends a record of every pass to the list ``forwards``. ``decide(rng, p, q, drafts)`` verifies a round:
    it returns the accepted drafts and one more token.
    """

    def engine(tables: BigramTables, forwards: list[Forward]) -> list[int]:
        rng, text = np.random.default_rng(), list(PROMPT)
        while (left := HORIZON + len(PROMPT) - len(text)) > 0:
            drafts = drafted(rng, tables, text, min(GAMMA, left - 1))
            rows = [text[-1], *drafts]
            forwards.append(Forward(len(text) - 1, tuple(rows)))
            text += decide(rng, tables.target[rows], tables.draft[rows], drafts)
        return text[len(PROMPT) :]

    return engine


def drafted(rng: Any, tables: BigramTables, text: Sequence[int], count: int) -> list[int]:
    """Return ``count`` tokens after ``text``, drawn one after the other from the draft table of ``tables``.

    ``rng`` draws the uniforms.
    """
    drafts: list[int] = []
    for _ in range(count):
        drafts.append(drawn(rng, tables.draft[[*text, *drafts][-1]]))
    return drafts


def plain(tables: BigramTables, forwards: list[Forward]) -> list[int]:
    """Decode ``HORIZON`` tokens from the target table of ``tables``, without speculation.

    ``forwards`` receives a record of every pass.
    """
    rng, text = np.random.default_rng(), list(PROMPT)
    for _ in range(HORIZON):
        forwards.append(Forward(len(text) - 1, (text[-1],)))
        text.append(drawn(rng, tables.target[text[-1]]))
    return text[len(PROMPT) :]


def small_engine(engine: TableEngine, name: str, tables: Callable[[], BigramTables] = models) -> Subject:
    """Return the subject called ``name`` that runs ``engine``.

    It claims to be lossless and to accept drafts as often as possible. ``tables()`` returns the models of each run.
    """
    subject = engine_subject(lambda: engine(tables(), []), lambda: plain(tables(), []), name)
    programs = tuple(program._replace(watch=lambda: _watched(engine, tables)) for program in subject.programs)
    return subject._replace(summary="a small engine", claims=frozenset(Claim)).with_programs(programs)


def planted_engine(
    engine: TableEngine,
    name: str,
    summary: str,
    *,
    category: str,
    citation: str,
    killed_by: str,
    control: TableEngine,
    decide: DecideRound | None = None,
    tables: Callable[[], BigramTables] = models,
) -> Mutant:
    """Return the mutant that decodes by ``engine``; ``control`` is the same engine without the bug.

    ``decide(rng, p, q, drafts)`` is the wrong verifier of a round, or None if the bug is not in the verifier.
    ``tables()`` returns the models. The others are fields of ``Mutant``, such as ``killed_by``, the check that must
    detect the bug.
    """
    return Mutant(
        name,
        summary,
        category,
        citation,
        killed_by,
        open=lambda: small_engine(engine, f"mutant:{name}", tables),
        control=lambda: small_engine(control, f"{name} without the bug", tables),
        verifiers=decide and (partial(_alone, decide), partial(_alone, decided)),
        texts=(partial(text_asked, engine), partial(text_asked, control)),
    )


def text_asked(
    engine: TableEngine, target: LanguageModel, draft: LanguageModel, inputs: Mapping[str, Any]
) -> Callable[[Draws], Tokens] | None:
    """Return the program that decodes the text of a test vector with ``engine`` and returns its new tokens.

    A test vector is a decode with a known law: the models ``target`` and ``draft``, and ``inputs`` such as the prompt.
    Returns None if the engine cannot decode it: its prompt, length or vocabulary is another one, its models read more
    than the last token, or it has end tokens or sampling parameters.
    """
    size = inputs["vocabulary"]
    asked = tuple(inputs["prompt"]), inputs["horizon"], size
    if asked != (PROMPT, HORIZON, 3) or inputs["context"] != "last token" or inputs["eos"] or inputs.get("parameters"):
        return None

    def program(draws: Draws) -> Tokens:
        rows = [np.array([model((token,)) for token in range(size)], dtype=np.float64) for model in (target, draft)]
        with answered_everywhere(draws):
            return tuple(engine(BigramTables(*rows), []))

    return program


def _alone(decide: DecideRound, p: Any, q: Any, draft_tokens: Any) -> list[int]:
    """Verify one round by ``decide``, a function of the engine, as a verifier without the engine.

    ``decide(rng, p, q, drafts)`` returns the accepted drafts and one more token. ``p`` and ``q`` are the rows of the
    target and the draft model.
    """
    return decide(np.random.default_rng(), p, q, draft_tokens.tolist())


@contextmanager
def _watched(engine: TableEngine, tables: Callable[[], BigramTables]) -> Iterator[Watched]:
    speculative, alone = partial(_observed, engine, tables), partial(_observed, plain, tables)
    yield Watched(speculative, alone, PROMPT)


def _observed(engine: TableEngine, tables: Callable[[], BigramTables], draws: Draws) -> Observed:
    given = tables()
    forwards: list[Forward] = []
    with answered_everywhere(draws):
        new = tuple(engine(given, forwards))
    changed = tuple(
        f"the {name} table"
        for name, before, after in zip(given._fields, tables(), given, strict=True)
        if not np.array_equal(before, after)
    )
    return Observed(new, tuple(forwards), changed=changed)
