"""Search for a proof of a statement: enumerate the paths of both programs and decide each outcome."""

from __future__ import annotations

import random
import time
from collections import defaultdict
from collections.abc import Callable, Hashable
from fractions import Fraction
from itertools import product
from typing import Any

from specverify.laws.draws import NotAFunctionOfItsDraws
from specverify.laws.paths import paths
from specverify.proof.proved_subject import ProofSubject
from specverify.proof.result import Proof, ProofStatus, ReplayFailed
from specverify.proof.solver import Feasibility, ProofOutOfTime
from specverify.proof.statements import Program, RoundStart, Statement
from specverify.proof.sums import ConditionalWeight, decide_sign
from specverify.proof.symbolic import NeedsNumber, sign
from specverify.proof.symbolic_paths import NotAPmf, PathDraws, guarded_paths
from specverify.proof.symbolic_tables import (
    DRAFT,
    TARGET,
    Model,
    UnknownTables,
    UnknownWorld,
    World,
    any_model,
    model_at,
)
from specverify.reference import Draws, Tokens

WORLDS = 3
"""Number of concrete pairs of models on which a proved statement is enumerated as a cross-check."""
GUESSES = 60
"""Number of concrete pairs of models on which a subject without symbolic execution is enumerated. They can refute the
statement but not prove it."""
LONGEST_TEXT = 3
"""Number of tokens of the longest text shown to a drafter that reads no draft model."""


class ProofSearch:
    """One attempt to prove one statement, with its progress and its time limit."""

    def __init__(
        self,
        statement: Statement,
        subject: ProofSubject,
        vocabulary: int,
        gamma: int,
        seconds: float,
        progress: Callable[[str], None] = lambda doing: None,
    ) -> None:
        """Prepare the search for a proof of ``statement`` about ``subject``.

        ``vocabulary`` is the number of tokens, ``gamma`` that of drafts, and ``seconds`` the time limit from now.
        ``progress`` is called with a description of the work done.
        """
        self._progress = progress
        self._statement, self._subject, self._vocabulary, self._gamma = statement, subject, vocabulary, gamma
        self._started = time.perf_counter()
        self._deadline = self._started + seconds
        self._figures: dict[str, Any] = {"texts": 0, "paths": 0, "outcomes": 0, "cells": 0, "worlds": 0}
        self._queries = 0
        self._text = "the text (0,)"

    def run(self, what: str) -> Proof:
        """Prove or refute the statement ``what``; return the result.

        An UNKNOWN result states which part is covered, and why the search stopped.
        """
        try:
            reason, model = self._everywhere()
        except ProofOutOfTime:
            reason, model = "the time limit has passed", None
        except NeedsNumber as error:
            self._figures["needs_number"] = True
            reason, model = self._guessed(f"it cannot run on unknown probabilities: {error}")
        except ReplayFailed:
            raise
        except NotAFunctionOfItsDraws as error:
            reason, model = f"it cannot run on unknown probabilities: NotAFunctionOfItsDraws: {error}", None
        except Exception as error:  # noqa: BLE001 - a subject may raise anything; it is named, never passed
            reason, model = self._guessed(f"it cannot run on unknown probabilities: {type(error).__name__}: {error}")
        status = ProofStatus.REFUTED if model else ProofStatus.UNKNOWN if reason else ProofStatus.PROVED
        return Proof(
            self._subject.name,
            what,
            self._vocabulary,
            self._gamma,
            status,
            self._sentence(status, reason),
            self._queries,
            time.perf_counter() - self._started,
            model,
            self._figures,
        )

    def _sentence(self, status: ProofStatus, reason: str) -> str:
        name = f"{self._subject.name} ({self._subject.options})" if self._subject.options else self._subject.name
        said = self._statement.says.format(
            subject=name, texts=f"from {self._text}", vocabulary=self._vocabulary, gamma=self._gamma
        )
        if status is ProofStatus.PROVED:
            return said
        if status is ProofStatus.REFUTED:
            return f"it is false that {said}: {reason}"
        return f"open: {said}; {reason} after {self._done()}"

    def _done(self) -> str:
        return ", ".join(f"{value} {name}" for name, value in self._figures.items() if type(value) is int)

    def _everywhere(self) -> tuple[str, Model | None]:
        reason, model, reads_draft = self._from((0,))
        if reason or reads_draft or self._statement.one_place:
            return reason, model
        texts = [text for size in range(1, LONGEST_TEXT + 1) for text in product(range(self._vocabulary), repeat=size)]
        self._text = f"every text of up to {LONGEST_TEXT} tokens"
        for text in texts:
            reason, model, _ = self._from(text)
            if reason:
                break
        return reason, model

    def _from(self, prompt: Tokens) -> tuple[str, Model | None, bool]:
        """Prove the statement for a round that starts with the text ``prompt``, for each number of remaining tokens.

        Returns three values: the reason why the statement fails or stays open, "" if it is proved; the concrete models
        at which it fails, else None; and whether the program queried the draft model.
        """
        reads_draft = False
        longest = self._gamma + 1 + self._statement.beyond
        for horizon in range(longest if self._statement.one_place else 1, longest + 1):
            tables = UnknownTables(self._vocabulary)
            reason, model = self._search_start(RoundStart(prompt, horizon), tables)
            reads_draft = any(kind == DRAFT for kind, _ in tables.rows)
            if reason:
                return reason, model, reads_draft
        self._figures["texts"] += 1
        return "", None, reads_draft

    def _search_start(self, place: RoundStart, tables: UnknownTables) -> tuple[str, Model | None]:
        solver = Feasibility(tables.axioms, self._deadline)
        try:
            terms = self._terms(place, tables, solver)
            for outcome, guarded in terms.items():
                decided = decide_sign(guarded, solver, self._statement.forbidden)
                self._figures["cells"] += decided.cells
                if decided.failure:
                    if decided.failure.point is None:
                        return f"{decided.failure.reason} for outcome {outcome}", None
                    return self._replayed(model_at(tables, decided.failure.point), place, outcome)
                self._figures["outcomes"] += 1
                self._progress(self._done())
            self._tried(place, tables)
        except NotAPmf as error:
            return self._replayed_crash(model_at(tables, error.point), place, str(error))
        finally:
            self._queries += solver.queries
        return "", None

    def _terms(
        self, place: RoundStart, tables: UnknownTables, solver: Feasibility
    ) -> dict[Hashable, list[ConditionalWeight]]:
        result: dict[Hashable, list[ConditionalWeight]] = defaultdict(list)
        for side, program in ((1, self._statement.left), (-1, self._statement.right)):
            for path in guarded_paths(self._under_unknowns(program, tables, place), tables, solver):
                self._figures["paths"] += 1
                self._progress(self._done())
                for outcome, share in path.outcome:
                    result[outcome].append(ConditionalWeight(path.weight * share * side, path.conditions, path.drawn))
        return result

    def _under_unknowns(
        self, program: Program, tables: UnknownTables, place: RoundStart
    ) -> Callable[[PathDraws], list[tuple[Hashable, Any]]]:
        return lambda run: list(program(self._subject, UnknownWorld(tables, run), run, place))

    def _tried(self, place: RoundStart, tables: UnknownTables) -> None:
        """Cross-check a proved statement: enumerate both programs on a few random concrete models.

        The models have a pmf for every text in ``tables``, and the programs start at ``place``. Raises ``ReplayFailed``
        if the statement fails on one of the models.
        """
        for seed in range(WORLDS):
            model = any_model(tables, random.Random(seed))  # noqa: S311 - worlds, not secrets
            outcome = self._wrong(model, place)
            if outcome is not None:
                raise ReplayFailed(f"{self._subject.name} was proved and is wrong at {model}: {outcome}")
        self._figures["worlds"] += WORLDS

    def _guessed(self, reason: str) -> tuple[str, Model | None]:
        """Search for a refutation on random concrete models, in the order of their denominators, smallest first.

        Returns the refutation as text, and its model. If there is none, or if the programs fail on a model, returns
        ``reason`` and None. ``reason`` states why the proof is open.
        """
        prompt = (0,)
        tables = UnknownTables(self._vocabulary)
        for kind in (TARGET, DRAFT):
            tables.row(kind, prompt)
        models = [any_model(tables, random.Random(seed)) for seed in range(GUESSES)]  # noqa: S311 - worlds, not secrets
        longest = self._gamma + 1 + self._statement.beyond
        for model in sorted(models, key=_size):
            for horizon in range(longest if self._statement.one_place else 1, longest + 1):
                place = RoundStart(prompt, horizon)
                try:
                    outcome = self._wrong(model, place)
                except Exception:  # noqa: BLE001 - it runs on known probabilities no better: ``reason`` stands
                    return reason, None
                if outcome is not None:
                    return self._replayed(model, place, outcome)
            self._figures["worlds"] += 1
        return reason, None

    def _wrong(self, model: Model, place: RoundStart) -> Hashable | None:
        """Return the first outcome for which the statement fails on ``model``, or None.

        The programs of the statement start at ``place``.
        """
        left, right = (self._masses(side, model, place) for side in (self._statement.left, self._statement.right))
        outcomes = sorted(left.keys() | right.keys(), key=repr)
        failures = (x for x in outcomes if sign(left.get(x, 0) - right.get(x, 0)) in self._statement.forbidden)
        return next(failures, None)

    def _replayed(self, model: Model, place: RoundStart, outcome: Hashable) -> tuple[str, Model]:
        """Recompute with fractions the masses that both programs give to the refuted ``outcome``.

        The programs start at ``place`` and use the concrete ``model``. Returns the refutation as text, and the model.
        Raises ``ReplayFailed`` if the statement holds for these masses.
        """
        left = self._masses(self._statement.left, model, place)
        right = self._masses(self._statement.right, model, place)
        one, other = left.get(outcome, Fraction(0)), right.get(outcome, Fraction(0))
        if sign(one - other) not in self._statement.forbidden:
            raise ReplayFailed(f"{self._subject.name} at {model}: {outcome} has mass {one} and {other} by enumeration")
        none = Fraction(0)
        distance = sum((abs(left.get(x, none) - right.get(x, none)) for x in left.keys() | right.keys()), start=none)
        self._text = f"the text {place.prompt}"
        self._figures |= {"prompt": list(place.prompt), "horizon": place.horizon, "outcome": repr(outcome)}
        self._figures |= {"mass": str(one), "expected": str(other), "tv": str(distance / 2)}
        return f"{outcome} has mass {one}, not {other}", model

    def _replayed_crash(self, model: Model, place: RoundStart, sentence: str) -> tuple[str, Model]:
        for program in (self._statement.left, self._statement.right):
            try:
                self._masses(program, model, place)
            except ValueError as error:
                return f"{sentence}: {error}", model
        raise ReplayFailed(f"{self._subject.name} at {model}: {sentence}, but not by enumeration")

    def _masses(self, program: Program, world: World, place: RoundStart) -> dict[Hashable, Fraction]:
        def once(draws: Draws) -> list[tuple[Hashable, Any]]:
            return list(program(self._subject, world, draws, place))

        masses: dict[Hashable, Fraction] = defaultdict(Fraction)
        for path in paths(once):
            for outcome, share in path.outcome:
                masses[outcome] += path.weight * share
        return masses


def _size(model: Model) -> int:
    rows = (*model.target.values(), *model.draft.values())
    return sum(mass.denominator for row in rows for mass in row)
