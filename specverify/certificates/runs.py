"""Run the algorithm of a proof on tables of p and q with random rational entries; compare each run with the tree."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from math import prod
from typing import Any, NamedTuple

import numpy as np

from specverify.certificates.checker import SIGNS, CertificateRefused, Polynomial, Ratio, Tables, require
from specverify.reference import ALGORITHMS, Decoder, LengthRule, Plan, Pmf, Site, Task, Tokens, assembled

Chosen = Callable[[Tokens], bool]
Row = tuple[Fraction, ...]


class RunStep(NamedTuple):
    """One draw in a run of the algorithm: the call that draws (``site``), its pmf, and the outcome."""

    site: Site
    pmf: Row
    outcome: int


class Scripted:
    """A source of draws: it returns the outcomes of a script first, then the first possible outcome of each draw.

    The other possible outcomes of these later draws are recorded as scripts of later runs, so that every path is run
    once.
    """

    def __init__(self, script: Sequence[int]) -> None:
        """Store ``script``, the outcomes of the first draws."""
        self._script, self.steps, self.others = script, list[RunStep](), list[list[int]]()

    def categorical(self, pmf: Pmf, site: Site) -> int:
        """Return the outcome of the next draw, which is made from ``pmf`` at ``site``.

        It is the next outcome of the script, or after its end the first possible one.
        """
        row = tuple(Fraction(mass) for mass in pmf.tolist())
        taken = [step.outcome for step in self.steps]
        if len(taken) < len(self._script):
            outcome = self._script[len(taken)]
        else:
            outcome, *others = (index for index, mass in enumerate(row) if mass > 0)
            self.others += [[*taken, other] for other in others]
        self.steps.append(RunStep(site, row, outcome))
        return outcome


def every_run(program: Callable[[Scripted], Tokens]) -> Iterator[tuple[Tokens, list[RunStep]]]:
    """Yield (tokens that ``program`` returns, its draws) for every path of ``program``.

    A path is a run with one sequence of possible outcomes of the draws.
    """
    left: list[list[int]] = [[]]
    while left:
        draws = Scripted(left.pop())
        yield program(draws), draws.steps
        left += draws.others


def run_beside(
    data: Mapping[str, Any],
    place: Mapping[str, Any],
    known: Tables,
    tables: int,
    where: str,
) -> int:
    """Run the algorithm of the certificate ``data`` on ``tables`` random p and q, and compare each run with a tree.

    The tree is that of ``place``, a text with a number of remaining tokens. Each run must make the draws of one path of
    the tree, with the probabilities that the polynomials ``known`` have for these p and q, and return its tokens.
    ``where`` names the place in messages. Returns the number of runs. Raises ``CertificateRefused`` if a draw or a
    result differs.
    """
    vocabulary, text, runs = data["vocabulary"], tuple(place["text"]), 0
    for seed in range(tables):
        point, rows = _random_tables(place["rows"], vocabulary, random.Random(seed))  # noqa: S311 - tables, no secrets
        for tokens, steps in every_run(_program(data, rows, text, place["remaining"])):
            _follow(place["tree"], tokens, steps, point, known, where)
            runs += 1
    return runs


def _follow(
    node: Any,
    tokens: Tokens,
    steps: Sequence[RunStep],
    point: Mapping[int, Fraction],
    known: Tables,
    where: str,
) -> None:
    def next_node(branch: Any) -> Any:
        while branch is not None and "ask" in branch:
            number, relation = branch["ask"]
            value = evaluate(known.polynomials[number], point)
            branch = branch["yes" if (value > 0) - (value < 0) in SIGNS[relation] else "no"]
        if branch is None:
            raise CertificateRefused(f"{where}: the tree leaves out a path that {point} takes")
        return branch

    node = next_node(node)
    for step in steps:
        weights = [_value(known.ratios[number], point) for number in node.get("draw", ())]
        if weights != list(step.pmf):
            raise CertificateRefused(f"{where}: the algorithm draws at {step.site} from {step.pmf}, the tree does not")
        node = next_node(node["branches"].get(str(step.outcome)))
    if node.get("end") != list(tokens):
        raise CertificateRefused(f"{where}: the algorithm returns {tokens} where the tree does not")


def evaluate(polynomial: Polynomial, point: Mapping[int, Fraction]) -> Fraction:
    """Return the value of a polynomial at ``point``, which maps each unknown, by its number, to a value."""
    terms = (value * prod(point[unknown] for unknown in monomial) for monomial, value in polynomial.items())
    return sum(terms, start=Fraction(0))


def _value(ratio: Ratio, point: Mapping[int, Fraction]) -> Fraction:
    return evaluate(ratio.top, point) / prod((evaluate(factor, point) for factor in ratio.below), start=Fraction(1))


Rows = Mapping[tuple[str, tuple[Any, ...]], Row]


def _random_tables(
    listed: Sequence[Any], vocabulary: int, rng: random.Random
) -> tuple[dict[int, Fraction], dict[tuple[str, tuple[Any, ...]], Row]]:
    """Return a random value for each unknown, by number, and the pmfs with these values, by (kind, text).

    Each of ``listed`` is (kind, text, unknowns): the kind is the model, ``target`` or ``draft``, and the unknowns are
    the entries of its pmf after the text, over ``vocabulary`` tokens. The kind ``choice`` has one unknown, which
    becomes -1 or 1. ``rng`` draws values with many ties and zeros.
    """
    point: dict[int, Fraction] = {}
    rows: dict[tuple[str, tuple[Any, ...]], Row] = {}
    for kind, text, unknowns in listed:
        if kind == "choice":
            values: Row = (Fraction(rng.choice((-1, 1))),)
        else:
            weights = [rng.choice((0, 1, 1, 2, 3)) for _ in range(vocabulary)]
            weights[rng.randrange(vocabulary)] += 1
            values = tuple(Fraction(weight, sum(weights)) for weight in weights)
        point |= dict(zip(unknowns, values, strict=False))
        rows[kind, tuple(text)] = values
    return point, rows


def _program(data: Mapping[str, Any], rows: Rows, text: Tokens, remaining: int) -> Callable[[Scripted], Tokens]:
    """Return a function that runs one round of the algorithm of the certificate ``data`` after ``text``.

    The function takes a source of draws and returns the new tokens. For a certificate about the joint law of several
    rounds, it runs rounds until ``remaining`` tokens are emitted. ``rows`` maps (kind, text) to the pmf of a model,
    with the kind ``target`` or ``draft``; a text without a pmf gets the uniform one. Raises ``CertificateRefused`` if
    there is no algorithm of that name.
    """
    uniform = (Fraction(1, data["vocabulary"]),) * data["vocabulary"]

    def model(kind: str) -> Callable[[Tokens], Pmf]:
        return lambda prefix: np.array(rows.get((kind, tuple(prefix)), uniform), dtype=object)

    task = Task(model("target"), model("draft"), horizon=remaining)
    algorithm = next((row for row in ALGORITHMS if row.name == data["algorithm"]), None)
    if algorithm is None:
        raise CertificateRefused(f"there is no algorithm {data['algorithm']!r}")

    def chosen(prefix: Tokens) -> bool:
        return rows.get(("choice", ("draft", *prefix)), (Fraction(0),))[0] > 0

    def program(draws: Scripted) -> Tokens:
        decoder = _decoder(algorithm, task, data, chosen)
        state, new = decoder.init(text), list[int]()
        while True:
            state, done = decoder.step(draws, state)
            new += done.tokens
            if data["what"] != "joint" or len(new) >= remaining:
                return tuple(new)

    return program


def _decoder(algorithm: Any, task: Task, data: Mapping[str, Any], chosen: Chosen) -> Decoder:
    options = {name: read_option(value) for name, value in data["options"].items()}
    if not data["any_length"]:
        built: Decoder = algorithm.build(task, **options)
        return built
    parts = algorithm.parts(task, **options)
    return assembled(task, parts._replace(length=any_length(chosen, data["gamma"])))


def read_option(written: Any) -> Any:
    """Return the value of an algorithm's option from its JSON form ``written``.

    A dictionary has one entry: the kind (``fraction``, ``tuple``, ``list``, or ``pairs`` for a dictionary) and the
    content. Other values represent themselves.
    """
    if not isinstance(written, dict):
        return written
    ((kind, value),) = written.items()
    if kind == "pairs":
        return {read_option(name): read_option(item) for name, item in value}
    return Fraction(value) if kind == "fraction" else {"tuple": tuple, "list": list}[kind](map(read_option, value))


def any_length(chosen: Chosen, most: int) -> LengthRule:
    """Return a length rule under which ``chosen(text)`` decides, before each draft token, whether to draft it.

    ``text`` includes the drafts so far. ``most`` is the largest number of drafts of a round.
    """
    text: list[Tokens] = [()]

    def plan(state: None, prefix: Tokens) -> Plan:
        text[0] = prefix
        return Plan(most if chosen(prefix) else 0, state)

    def stop_after(q: Pmf, token: int) -> bool:
        text[0] = (*text[0], token)
        return not chosen(text[0])

    return LengthRule(None, plan, stop_after, lambda state, drafted, accepted: state)


def check_refutation(data: Mapping[str, Any]) -> tuple[Fraction, Fraction]:
    """Recompute the probability of the outcome in a refutation; return it with the target's probability of the outcome.

    ``data`` is the content of the certificate: pmfs of target and draft, an outcome and its two stated probabilities.
    Raises ``CertificateRefused`` unless both recomputed probabilities equal the stated ones and differ from each other.
    """
    rows = {
        (kind, tuple(text)): tuple(map(Fraction, values)) for kind in ("target", "draft") for text, values in data[kind]
    }
    rows |= {("choice", tuple(question)): (Fraction(1 if answer else -1),) for question, answer in data["choices"]}
    vocabulary, text, outcome = data["vocabulary"], tuple(data["text"]), tuple(data["outcome"])
    pmfs = [row for (kind, _), row in rows.items() if kind != "choice"]
    require(any(len(row) != vocabulary or sum(row) != 1 or min(row) < 0 for row in pmfs), "a row is no pmf")

    def chance(start: int) -> Fraction:
        uniform = (Fraction(1, vocabulary),) * vocabulary
        places = range(start, len(outcome))
        row = [rows.get(("target", (*text, *outcome[:place])), uniform)[outcome[place]] for place in places]
        return prod(row, start=Fraction(1))

    mass = Fraction(0)
    for tokens, steps in every_run(_program(data, rows, text, len(outcome))):
        if tokens == outcome[: len(tokens)]:
            mass += chance(len(tokens)) * prod((step.pmf[step.outcome] for step in steps), start=Fraction(1))
    stated = (Fraction(data["mass"]), Fraction(data["expected"]))
    wrong = stated != (mass, chance(0)) or mass == chance(0)
    require(wrong, f"{outcome} has mass {mass} and the target's is {chance(0)}, which is not what is stated")
    return mass, chance(0)
