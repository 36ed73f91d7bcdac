"""Write certificates of proofs: the case tree of every place, with the reason for each branch that is left out.

``specverify.certificates`` checks certificates and shares only the format of the file with this module. A place is a
text and the number of remaining tokens. The tree of a place is the tree that ``search`` walks: draws with their
weights, and comparisons with both answers.

A proof uses claims of z3, for example:

* No p and q takes a branch of the tree.
* The weight of a draw is never negative.
* The program and the target give an outcome the same probability in a cell: the pmfs p and q at which some polynomials
  have given signs.

For each claim, the certificate has a sum of products of polynomials which shows that the opposite is impossible
(``contradiction``). The checker multiplies the products out, and needs no z3.
"""

from __future__ import annotations

import json
import time
from ast import literal_eval
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

from specverify.certificates import FORMAT
from specverify.laws.enumeration import whole_run
from specverify.proof.contradiction import Contradictions
from specverify.proof.polynomial import ONE, Polynomial, constant_polynomial, quotient
from specverify.proof.proved_subject import ANY_LENGTH, ProofSubject
from specverify.proof.result import Proof, ProofStatus
from specverify.proof.search import LONGEST_TEXT
from specverify.proof.solver import ANY, Feasibility, SignCondition
from specverify.proof.statements import STATEMENTS, RoundStart, one_round
from specverify.proof.sums import conditions_left, free_number, sign_classes
from specverify.proof.symbolic import NEGATIVE, POSITIVE, ZERO, Real
from specverify.proof.symbolic_paths import PathDraws, runs_of_paths
from specverify.proof.symbolic_tables import DRAFT, TARGET, UnknownTables, UnknownWorld
from specverify.reference import Tokens

CERTIFIED = ("law", "stopping", "joint")
"""Statements that have certificates. They state that a law is the target's, which the checker computes itself."""
_RELATIONS = {
    frozenset({NEGATIVE}): "<",
    frozenset({ZERO}): "=",
    frozenset({POSITIVE}): ">",
    frozenset({NEGATIVE, ZERO}): "<=",
    frozenset({ZERO, POSITIVE}): ">=",
    frozenset({NEGATIVE, POSITIVE}): "!=",
}
_ABOVE, _BELOW, _NOT_ABOVE = frozenset({POSITIVE}), frozenset({NEGATIVE}), frozenset({NEGATIVE, ZERO})
Node = dict[str, Any]


class NoCertificate(ValueError):  # noqa: N818 - named for what it says of the proof
    """Raised if a proof has no certificate, for example because no sum of products was found for one of its steps."""


class _ProofPath:
    """One path of a program's tree: the tokens that it emits, its weight, and the conditions under which it exists.

    ``asked`` has the conditions of the path's comparisons. ``drawn`` has the conditions of the path's draws: that each
    drawn outcome has positive probability.
    """

    def __init__(self, tokens: Tokens, weight: Any, asked: list[SignCondition], drawn: list[SignCondition]) -> None:
        self.tokens, self.weight, self.asked, self.drawn = tokens, weight, asked, drawn


class Writer:
    """Writes the part of a certificate for each place of one proof: the start of a round, with the evidence.

    Polynomials and ratios are stored once, and the places refer to them by index.
    """

    def __init__(self, subject: ProofSubject, what: str, vocabulary: int, gamma: int, seconds: float) -> None:
        """Prepare a certificate of the statement ``what`` about ``subject``.

        ``vocabulary`` is the number of tokens, and ``gamma`` the number of drafts of a round. ``seconds`` is the time
        limit, which begins now.
        """
        self._subject, self._what, self._vocabulary, self._gamma = subject, what, vocabulary, gamma
        self._deadline = time.perf_counter() + seconds
        self._polynomials: dict[Polynomial, int] = {}
        self._ratios: dict[tuple[int, tuple[int, ...]], int] = {}
        self._contradictions = Contradictions(self._number)

    def places(self, progress: Callable[[str], None]) -> list[Node]:
        """Return the part of the certificate for every place that the statement covers.

        A place is a text and a number of remaining tokens. ``progress`` is called with a short text on how much is
        done.
        """
        places, reads_draft = self._after((0,), progress)
        if reads_draft:
            return places
        texts = [text for size in range(1, LONGEST_TEXT + 1) for text in product(range(self._vocabulary), repeat=size)]
        return [place for text in texts for place in self._after(text, progress)[0]]

    def tables(self) -> Node:
        """Return the polynomials and ratios that the places refer to."""
        written = [
            {",".join(map(str, monomial)): str(value) for monomial, value in polynomial.terms.items()}
            for polynomial in self._polynomials
        ]
        return {"polynomials": written, "ratios": [[top, list(below)] for top, below in self._ratios]}

    def _after(self, text: Tokens, progress: Callable[[str], None]) -> tuple[list[Node], bool]:
        longest = self._gamma + 1 + STATEMENTS[self._what].beyond
        places = []
        for remaining in range(1, longest + 1):
            places.append(self._place(RoundStart(text, remaining)))
            progress(f"{len(places)} places, {len(self._polynomials)} polynomials")
        return places, any(kind == DRAFT for place in places for kind, _, _ in place["rows"])

    def _place(self, place: RoundStart) -> Node:
        tables = UnknownTables(self._vocabulary)
        solver = Feasibility(tables.axioms, self._deadline)
        root: Node = {}
        for steps, tokens in self._runs(tables, solver, place):
            _insert(root, steps, tokens)
        for size in range(place.horizon):
            for new in product(range(self._vocabulary), repeat=size):
                tables.row(TARGET, place.prompt + new)
        axioms = [axiom for row in tables.rows.values() for axiom in row.axioms]
        paths: list[_ProofPath] = []
        tree = self._tree(root, axioms, _ProofPath((), Fraction(1), [], []), [], paths)
        outcomes = {
            ",".join(map(str, outcome)): self._sum(outcome, paths, tables, place, axioms, solver)
            for outcome in product(range(self._vocabulary), repeat=place.horizon)
        }
        rows = [[row.kind, list(row.text), list(row.unknowns)] for row in tables.rows.values()]
        written = {"text": list(place.prompt), "remaining": place.horizon, "rows": rows}
        return {**written, "tree": tree, "outcomes": outcomes}

    def _runs(
        self, tables: UnknownTables, solver: Feasibility, place: RoundStart
    ) -> Iterator[tuple[list[tuple[Any, tuple[Any, ...], Any, frozenset[Any]]], Tokens]]:
        """Yield the steps and the tokens of every path of a round that starts at ``place``.

        A step is (question, weights, answer, possible answers). For a draw, the question is its name, the weights are
        its pmf and the answer is the outcome; a comparison asks for the sign of a polynomial and has no weights.
        ``tables`` has the symbolic pmfs, and ``solver`` decides which paths are feasible.
        """

        def program(run: PathDraws) -> Tokens:
            world = UnknownWorld(tables, run)
            task = world.task(place.horizon)
            if self._what == "joint":
                return whole_run(self._subject.build(world, task), place.prompt)(run)
            return one_round(self._subject, world, run, place, task)

        for tokens, steps in runs_of_paths(program, tables, solver):
            taken = [
                (step.question, step.weights, step.answer, frozenset(answer for answer, _ in step.answers))
                for step in steps
            ]
            yield taken, tokens

    def _tree(
        self,
        node: Node,
        axioms: list[SignCondition],
        path: _ProofPath,
        known: list[SignCondition],
        paths: list[_ProofPath],
    ) -> Node:
        """Return ``node`` and all nodes below it as part of the certificate.

        A branch that no p and q takes is stored with the reason. ``axioms`` are the conditions that all pmfs satisfy,
        and ``known`` those that also hold at the node. ``path`` is the path up to the node; each finished path is
        appended to ``paths``.
        """

        def shown(condition: SignCondition) -> Any:
            return self._contradiction([*axioms, *known, condition])

        if "end" in node:
            paths.append(_ProofPath(node["end"], path.weight, path.asked, path.drawn))
            return {"end": list(node["end"])}
        if "ask" in node:
            atom, wanted = node["ask"]
            written: Node = {"ask": [self._number(atom), _RELATIONS[wanted]], "yes": None, "no": None}
            for name, answer, signs in (("yes", True, wanted), ("no", False, ANY - wanted)):
                condition = SignCondition(atom, signs)
                if answer not in node["branches"]:
                    written["impossible"] = shown(condition)
                    continue
                free = len(node["branches"]) > 1
                after = _ProofPath((), path.weight, [*path.asked, condition] if free else path.asked, path.drawn)
                branch = node["branches"][answer]
                written[name] = self._tree(branch, axioms, after, [*known, condition], paths)
            return written
        weights = [_ratio(weight) for weight in node["draw"]]
        factors = dict.fromkeys(factor for _, below in weights for factor in below)
        missing = common_numerator([*weights, (constant_polynomial(-1), ())])
        relations = (("<", _BELOW), (">", _ABOVE)) if missing else ()
        written = {
            "whole": {relation: shown(SignCondition(missing, signs)) for relation, signs in relations},
            "draw": [self._ratio_number(weight) for weight in node["draw"]],
            "branches": {},
            "impossible": {},
            "not_negative": {str(at): shown(SignCondition(top, _BELOW)) for at, (top, _) in enumerate(weights)},
            "positive": {str(self._number(factor)): shown(SignCondition(factor, _NOT_ABOVE)) for factor in factors},
        }
        for outcome, (weight, (top, _)) in enumerate(zip(node["draw"], weights, strict=True)):
            possible = SignCondition(top, _ABOVE)
            if outcome not in node["branches"]:
                if top:
                    written["impossible"][str(outcome)] = shown(possible)
                continue
            drawn = path.drawn if not isinstance(weight, Real) else [*path.drawn, possible]
            after = _ProofPath((), free_number(weight) * path.weight, path.asked, drawn)
            branch = node["branches"][outcome]
            written["branches"][str(outcome)] = self._tree(branch, axioms, after, [*known, possible], paths)
        return written

    def _sum(
        self,
        outcome: Tokens,
        paths: Sequence[_ProofPath],
        tables: UnknownTables,
        place: RoundStart,
        axioms: list[SignCondition],
        solver: Feasibility,
    ) -> Node:
        """Return the evidence that the program and the target give ``outcome`` the same probability.

        ``outcome`` has as many tokens as remain at ``place``. A path of ``paths`` counts if ``outcome`` begins with the
        tokens of the path; the weight of the path is multiplied by the target's probability of the rest. ``axioms`` are
        the conditions that all pmfs of ``tables`` satisfy. A cell is a part of all pmfs, on which some polynomials have
        given signs; ``solver`` decides which cells are empty.
        """
        terms, written = [], []
        for end, path in enumerate(paths):
            if path.tokens != outcome[: len(path.tokens)]:
                continue
            weight = path.weight * _of_target(tables, place.prompt, outcome, len(path.tokens))
            dropped = self._dropped(path, weight, axioms)
            kept = [*path.asked, *(condition for condition in path.drawn if condition not in dropped)]
            terms.append((weight, frozenset(kept)))
            numbered = {str(self._number(condition.polynomial)): why for condition, why in dropped.items()}
            written.append({"end": end, "weight": self._ratio_number(weight), "dropped": numbered})
        terms.append((-_of_target(tables, place.prompt, outcome, 0), frozenset()))
        return {"terms": written, "cells": self._cell(terms, {}, axioms, solver)}

    def _dropped(self, path: _ProofPath, weight: Any, axioms: list[SignCondition]) -> dict[SignCondition, Any]:
        """Return condition -> evidence, for each condition of a draw that may be left out of ``path``.

        The condition of a draw is that the drawn outcome has positive probability. It may be left out if

        * the comparisons of the path imply it, or
        * this probability is a factor of ``weight``, and the denominators of ``weight`` are positive wherever the
          probability is 0.

        ``axioms`` are the conditions that all pmfs satisfy.
        """
        top, below = _ratio(weight)
        compared = [*axioms, *path.asked]
        dropped: dict[SignCondition, Any] = {}
        for condition in dict.fromkeys(item for item in path.drawn if item not in path.asked):
            chance = condition.polynomial
            implied = self._contradictions.find([*compared, SignCondition(chance, _NOT_ABOVE)])
            if implied is not None:
                dropped[condition] = {"implied": implied}
                continue
            factor = quotient(top, chance)
            none = SignCondition(chance, frozenset({ZERO}))
            reasons = {
                str(self._number(item)): self._contradictions.find([*compared, none, SignCondition(item, _NOT_ABOVE)])
                for item in dict.fromkeys(below)
            }
            if factor is not None and None not in reasons.values():
                dropped[condition] = {"factor": self._number(factor), "positive": reasons}
        return dropped

    def _cell(
        self,
        terms: Sequence[tuple[Any, frozenset[SignCondition]]],
        facts: dict[Polynomial, frozenset[int]],
        axioms: list[SignCondition],
        solver: Feasibility,
    ) -> Node:
        """Return the evidence that the sum of ``terms`` is 0, in a tree of cells.

        A term is (weight, conditions) and counts where its conditions hold. A cell is a part of all pmfs, on which some
        polynomials have given signs. A cell is split by the signs of polynomials until each term either counts in the
        whole cell or nowhere in it. ``facts`` maps polynomials to their signs in the present cell. ``axioms`` are the
        conditions that all pmfs satisfy, and ``solver`` decides which cells are empty.
        """
        known = [*axioms, *(SignCondition(polynomial, signs) for polynomial, signs in facts.items())]
        alive = [
            (weight, frozenset(left))
            for weight, conditions in terms
            if (left := conditions_left(conditions, facts)) is not None
        ]
        asked = Counter(condition.polynomial for _, conditions in alive for condition in conditions)
        if asked:
            atom = max(asked, key=lambda polynomial: (-polynomial.degree, asked[polynomial]))
            answers = {item.signs for _, conditions in alive for item in conditions if item.polynomial == atom}
            cells = {}
            for signs in sign_classes(facts.get(atom, ANY), answers):
                condition = SignCondition(atom, signs)
                inside = {name: value for name, value in facts.items() if name != atom} | {atom: signs}
                if solver.feasible(condition):
                    solver.push(condition)
                    cells[_RELATIONS[signs]] = self._cell(alive, inside, axioms, solver)
                    solver.pop()
                else:
                    cells[_RELATIONS[signs]] = {"empty": self._contradiction([*known, condition])}
            return {"by": self._number(atom), "cells": cells}
        factors = dict.fromkeys(factor for weight, _ in alive for factor in _ratio(weight)[1])
        positive = {
            str(self._number(factor)): self._contradiction([*known, SignCondition(factor, _NOT_ABOVE)])
            for factor in factors
        }
        top = common_numerator([_ratio(weight) for weight, _ in alive])
        relations = ((">", _ABOVE), ("<", _BELOW)) if top else ()
        zero = {relation: self._contradiction([*known, SignCondition(top, signs)]) for relation, signs in relations}
        return {"positive": positive, "zero": zero}

    def _contradiction(self, conditions: list[SignCondition]) -> Node:
        result = self._contradictions.find(conditions)
        if result is None:
            last = conditions[-1]
            relation = f"{dict(last.polynomial.terms)} {_RELATIONS[last.signs]} 0"
            raise NoCertificate(f"no sum of products of few conditions shows that {relation} is impossible there")
        return result

    def _number(self, polynomial: Polynomial) -> int:
        return self._polynomials.setdefault(polynomial, len(self._polynomials))

    def _ratio_number(self, weight: Any) -> int:
        top, below = _ratio(weight)
        ratio = (self._number(top), tuple(self._number(factor) for factor in below))
        return self._ratios.setdefault(ratio, len(self._ratios))


def _insert(root: Node, steps: Sequence[Any], tokens: Tokens) -> None:
    """Insert one path into the tree with the root ``root``, in which a node is a draw or a comparison.

    Each of ``steps``, in the form of ``Writer._runs``, is a node, and its answer selects the branch to the next one.
    ``tokens`` are stored at the end of the path.
    """
    node = root
    for question, weights, answer, answers in steps:
        if not node:
            node.update({"draw": list(weights)} if weights else {"ask": question}, branches={}, answers=answers)
        node = node["branches"].setdefault(answer, {})
    node["end"] = tokens


def _of_target(tables: UnknownTables, text: Tokens, outcome: Tokens, start: int) -> Any:
    """Return the target's probability of the tokens ``outcome[start:]``, given ``text`` and ``outcome[:start]``.

    The probability is a product of entries of ``tables``, as a symbolic number outside of any run (``free_number``).
    """
    factors = [
        tables.row(TARGET, text + outcome[:position]).entries[outcome[position]]
        for position in range(start, len(outcome))
    ]
    return free_number(prod(factors, start=ONE))


def _ratio(weight: Any) -> tuple[Polynomial, tuple[Polynomial, ...]]:
    if isinstance(weight, Real):
        return weight.numerator, weight.denominators
    return constant_polynomial(Fraction(weight)), ()


def common_numerator(ratios: Sequence[tuple[Polynomial, tuple[Polynomial, ...]]]) -> Polynomial:
    """Return the numerator of the sum of ``ratios``, written over the least common product of their denominators.

    A ratio is (numerator, factors of its denominator).
    """
    common: Counter[Polynomial] = Counter()
    for _, below in ratios:
        common |= Counter(below)
    tops = [prod((common - Counter(below)).elements(), start=top) for top, below in ratios]
    return sum(tops, start=constant_polynomial(0))


def write_certificate(
    file: Path,
    proof: Proof,
    subject: ProofSubject,
    seconds: float,
    progress: Callable[[str], None] = lambda doing: None,
) -> None:
    """Write the certificate of a proof or of a refutation.

    Args:
        file: Where it is written, as JSON.
        proof: The result of ``prove`` for a statement in ``CERTIFIED``.
        subject: The rule that the proof is about, from ``find_rule``.
        seconds: Time limit in seconds.
        progress: Called with a short text on how many places and polynomials are done.

    Raises:
        NoCertificate: The statement has no certificates, the proof is open, or no sum of products was found
            that proves a step.
    """
    if proof.subject.startswith("mutant:"):
        raise NoCertificate("there are no certificates of planted bugs, expected an algorithm of 'specverify list'")
    if proof.status is ProofStatus.UNKNOWN:
        raise NoCertificate(f"nothing is proved: {proof.statement}")
    head = {
        "format": FORMAT,
        "algorithm": subject.name,
        "options": {name: written_option(value) for name, value in subject.chosen.items()},
        "any_length": subject.length == ANY_LENGTH,
        "what": proof.what,
        "vocabulary": proof.vocabulary,
        "gamma": proof.gamma,
        "verdict": proof.status.value,
    }
    if proof.status is ProofStatus.REFUTED:
        body = _refutation(proof)
    else:
        writer = Writer(subject, proof.what, proof.vocabulary, proof.gamma, seconds)
        places = writer.places(progress)
        body = {**writer.tables(), "places": places}
    file.write_text(json.dumps({**head, **body}), "utf-8")


def written_option(value: Any) -> Any:
    """Return an option of an algorithm as JSON, the inverse of ``specverify.certificates.runs.read_option``."""
    if isinstance(value, Fraction):
        return {"fraction": str(value)}
    if isinstance(value, (tuple, list)):
        return {type(value).__name__: [written_option(item) for item in value]}
    if isinstance(value, Mapping):
        return {"pairs": [[written_option(name), written_option(item)] for name, item in value.items()]}
    return value


def _refutation(proof: Proof) -> Node:
    model, figures = proof.model, proof.figures
    if model is None or "mass" not in figures:
        raise NoCertificate(f"the refutation names no outcome and its mass: {proof.statement}")
    rows = {
        kind: [[list(text), list(map(str, row))] for text, row in table.items()]
        for kind, table in ((TARGET, model.target), (DRAFT, model.draft))
    }
    return {
        **rows,
        "choices": [[list(question), answer] for question, answer in model.choices.items()],
        "text": figures["prompt"],
        "outcome": literal_eval(figures["outcome"]),
        "mass": figures["mass"],
        "expected": figures["expected"],
    }
