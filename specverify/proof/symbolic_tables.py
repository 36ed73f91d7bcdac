"""Tables of symbolic pmfs: for every text a pmf of free probabilities, created on first use.

An *open question* is a question of yes or no whose answer a proof leaves free, such as whether a length rule drafts
another token after a text. Each has an unknown of its own: the answer is yes where the unknown is positive.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, NamedTuple, Protocol

import numpy as np

from specverify.proof.polynomial import ONE, Polynomial, unknown
from specverify.proof.solver import SignCondition
from specverify.proof.symbolic import POSITIVE, ZERO, Oracle, Real
from specverify.reference import LanguageModel, Pmf, Task, Tokens

TARGET, DRAFT, CHOICE = "target", "draft", "choice"


class UnknownRow(NamedTuple):
    """The unknowns of one pmf, or the unknown of one open question, and the conditions on them (``axioms``).

    * For a pmf, ``kind`` is the model ("target" or "draft"), ``text`` the text before the token, and ``entries`` has
      the entries of the pmf as polynomials in the unknowns.
    * For an open question, one of yes or no whose answer the proof leaves free, ``kind`` is "choice", ``text`` is the
      question, and ``entries`` has its unknown.
    """

    kind: str
    text: Tokens
    unknowns: tuple[int, ...]
    entries: tuple[Polynomial, ...]
    axioms: tuple[SignCondition, ...]


class UnknownTables:
    """All symbolic pmfs of one proof. A pmf over V tokens has V - 1 unknowns; its last entry is 1 minus their sum."""

    def __init__(self, vocabulary: int) -> None:
        """Start without pmfs; ``vocabulary`` is V, at least 2."""
        self.vocabulary = vocabulary
        self.rows: dict[tuple[str, Tokens], UnknownRow] = {}
        self._owners: list[UnknownRow] = []
        self.never_negative: set[Polynomial] = set()

    def row(self, kind: str, text: Tokens) -> UnknownRow:
        """Return the unknowns of the pmf of a model after ``text``, or the unknown of an open question.

        For a pmf, ``kind`` is the model, "target" or "draft". For an open question, ``kind`` is "choice" and ``text``
        is the question. The unknowns are created on first use.
        """
        if (kind, text) not in self.rows:
            self.rows[kind, text] = self._made(kind, text)
        return self.rows[kind, text]

    def pmf(self, run: Oracle, kind: str, text: Tokens) -> Pmf:
        """Return the pmf of the model ``kind`` (target or draft) after ``text``.

        It is an object array of symbolic numbers of ``run``.
        """
        return np.array([Real(run, entry) for entry in self.row(kind, text).entries], dtype=object)

    def axioms(self, number: int) -> tuple[UnknownRow, tuple[SignCondition, ...]]:
        """Return the row (pmf) of the unknown ``number``, and the conditions that the row's entries always satisfy."""
        return self._owners[number], self._owners[number].axioms

    def _made(self, kind: str, text: Tokens) -> UnknownRow:
        count = 1 if kind == CHOICE else self.vocabulary - 1
        numbers = tuple(range(len(self._owners), len(self._owners) + count))
        entries = tuple(unknown(number) for number in numbers)
        if kind == CHOICE:
            row = UnknownRow(kind, text, numbers, entries, ())
        else:
            entries = (*entries, ONE - sum(entries[1:], start=entries[0]))
            signs = frozenset({ZERO, POSITIVE})
            row = UnknownRow(kind, text, numbers, entries, tuple(SignCondition(entry, signs) for entry in entries))
            self.never_negative.update(entries)
        self._owners += [row] * count
        return row


class World(Protocol):
    """The interface of the models on which a statement is tested: target, draft model, and answers to open questions.

    An open question is one of yes or no whose answer the proof leaves free, such as whether to draft another token.
    """

    @property
    def vocabulary(self) -> int:
        """Return the number of tokens in the vocabulary."""
        ...

    def task(self, horizon: int, greedy: bool = False) -> Task:
        """Return the task to decode ``horizon`` tokens; with ``greedy``, the target's pmfs are one-hot."""
        ...

    def chosen(self, *question: Any) -> bool:
        """Return the answer to an open question (True is yes). Equal questions have equal answers.

        An open question is one of yes or no whose answer the proof leaves free. ``question`` is a name, such as
        ``"draft"`` for whether another token is drafted, followed by tokens, such as the text so far.
        """
        ...


class UnknownWorld:
    """The world of a proof, on one path: the pmfs of ``tables`` as symbolic numbers of ``run``."""

    def __init__(self, tables: UnknownTables, run: Oracle) -> None:
        """Store the tables and the run.

        Each path gets a new object, so that data cached by a decoder do not reach another path.
        """
        self._tables, self._run, self.vocabulary = tables, run, tables.vocabulary

    def task(self, horizon: int, greedy: bool = False) -> Task:
        """Return the task to decode ``horizon`` tokens with these pmfs; with ``greedy``, the target is one-hot."""
        target = _one_hot(self) if greedy else lambda text: self._tables.pmf(self._run, TARGET, text)
        return Task(target, lambda text: self._tables.pmf(self._run, DRAFT, text), horizon=horizon)

    def chosen(self, *question: Any) -> bool:
        """Return the answer to an open question on this path: yes if the question's own unknown is positive.

        An open question is one of yes or no whose answer the proof leaves free, such as whether to draft another token.
        """
        return self._run.holds(self._tables.row(CHOICE, question).entries[0], frozenset({POSITIVE}))


class Model(NamedTuple):
    """Concrete models at which a statement fails: pmfs of target and draft by text, and answers to open questions.

    An open question is one of yes or no whose answer the proof leaves free. ``choices`` maps an open question to its
    answer. A text without a stored pmf has the uniform pmf; an open question without a stored answer has the answer no.
    """

    vocabulary: int
    target: Mapping[Tokens, tuple[Fraction, ...]]
    draft: Mapping[Tokens, tuple[Fraction, ...]]
    choices: Mapping[tuple[Any, ...], bool]

    def task(self, horizon: int, greedy: bool = False) -> Task:
        """Return the task to decode ``horizon`` tokens with these models; with ``greedy``, the target is one-hot."""
        uniform = np.array([Fraction(1, self.vocabulary)] * self.vocabulary, dtype=object)

        def table(rows: Mapping[Tokens, tuple[Fraction, ...]]) -> LanguageModel:
            return lambda text: np.array(rows[text], dtype=object) if text in rows else uniform

        return Task(_one_hot(self) if greedy else table(self.target), table(self.draft), horizon=horizon)

    def chosen(self, *question: Any) -> bool:
        """Return the stored answer to an open question, given as for ``World.chosen``; False (no) if none is stored."""
        return self.choices.get(question, False)


def _one_hot(world: World) -> LanguageModel:
    """Return a model with one-hot pmfs.

    After each text, ``world`` chooses which token has probability 1: it answers, for one token after another, the open
    question whether this is the token.
    """

    def row(text: Tokens) -> Pmf:
        last = world.vocabulary - 1
        hot = next((token for token in range(last) if world.chosen("hot", token, *text)), last)
        return np.array([Fraction(int(token == hot)) for token in range(world.vocabulary)], dtype=object)

    return row


def model_at(tables: UnknownTables, point: Mapping[int, Fraction]) -> Model:
    """Return the concrete models at ``point``, which maps unknowns of ``tables`` to values.

    A pmf none of whose unknowns has a value is omitted. In any other pmf or answer, an unknown without a value is 0.
    """
    target: dict[Tokens, tuple[Fraction, ...]] = {}
    draft: dict[Tokens, tuple[Fraction, ...]] = {}
    choices: dict[tuple[Any, ...], bool] = {}
    for row in tables.rows.values():
        if not any(number in point for number in row.unknowns):
            continue
        known = {number: point.get(number, Fraction(0)) for number in row.unknowns}
        values = tuple(entry.at(known) for entry in row.entries)
        if row.kind == CHOICE:
            choices[row.text] = values[0] > 0
        else:
            (target if row.kind == TARGET else draft)[row.text] = values
    return Model(tables.vocabulary, target, draft, choices)


def any_model(tables: UnknownTables, rng: random.Random) -> Model:
    """Return random concrete models, drawn by ``rng``, with a pmf for every text that has one in ``tables``.

    Less than a quarter of the entries are 0, on average. Open questions (free decisions of yes or no) have random
    answers.
    """
    point: dict[int, Fraction] = {}
    for row in tables.rows.values():
        weights = [rng.choice((0, 1, 2, 3)) for _ in row.entries]
        weights[rng.randrange(len(weights))] += 1
        values = [Fraction(weight, sum(weights)) for weight in weights]
        point |= zip(row.unknowns, values if row.kind != CHOICE else [Fraction(rng.choice((-1, 1)))], strict=False)
    return model_at(tables, point)
