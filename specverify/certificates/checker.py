"""The checker of proof certificates: it uses exact arithmetic of polynomials and nothing else.

A certificate proves that an algorithm has the target's law for all p and q. It consists of places. A place is a text
together with the number of tokens that remain to be generated, and it has the tree of one round of the algorithm after
this text. A node of the tree is a draw or a comparison. The probabilities of a draw are ratios of polynomials in the
unknown entries of p and q. A comparison has a branch for each of its two answers. For every outcome the checker adds up
the probabilities of its paths and compares the sum with the target's probability.

A branch may be missing if its conditions contradict each other. The certificate then lists a sum that is the zero
polynomial, although under the conditions no term is negative and one is positive (``contradicted``). So no p and q
satisfy all of the conditions.

Parameters with the same meaning everywhere: ``where`` names the place in messages, ``known`` has the conditions that
hold there, and ``tables`` has the polynomials and ratios, which the certificate refers to by number.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import product
from typing import Any, NamedTuple, TypeAlias

Polynomial: TypeAlias = Mapping[tuple[int, ...], Fraction]
"""Monomial -> coefficient. A monomial lists its unknowns in ascending order, repeated for powers; () is 1."""
Signed: TypeAlias = tuple[int, frozenset[int]]
"""The index of a polynomial in the certificate, and the signs that it may have."""
ONE: Polynomial = {(): Fraction(1)}
ANY = frozenset({-1, 0, 1})
SIGNS = {"<": {-1}, "=": {0}, ">": {1}, "<=": {-1, 0}, ">=": {0, 1}, "!=": {-1, 1}}
"""Relation to 0 -> the signs that it admits."""
NEGATED = {"<": ">=", "=": "!=", ">": "<=", "<=": ">", ">=": "<", "!=": "="}
RELATIONS = {frozenset(signs): relation for relation, signs in SIGNS.items()}


class CertificateRefused(Exception):  # noqa: N818 - named for what it says of the certificate
    """The certificate does not prove its statement; the message names the place in the tree."""


class Ratio(NamedTuple):
    """A quotient: the numerator ``top`` over the product of the denominators ``below``, which is 1 if there is none."""

    top: Polynomial
    below: tuple[Polynomial, ...] = ()


class Condition(NamedTuple):
    """The condition ``polynomial relation 0``, for example ``p_0 - q_0 >= 0``; ``relation`` is a key of ``SIGNS``."""

    polynomial: Polynomial
    relation: str


class PathEnd(NamedTuple):
    """The end of a path through the tree of one round: the emitted tokens, the probability, and the assumed conditions.

    ``weight`` is the probability of the path, the product of the probabilities of its draws. ``asked`` has the
    conditions of the comparisons on the path, without the comparisons that have only one possible answer. ``drawn`` has
    the conditions that the draws on the path have probabilities above 0, without the draws of constant probability. A
    condition is a pair: the number of a polynomial, and the signs that it may have.
    """

    tokens: tuple[int, ...]
    weight: Ratio
    asked: tuple[Signed, ...] = ()
    drawn: tuple[Signed, ...] = ()


class Term(NamedTuple):
    """What one path contributes to the probability of an outcome: a weight, if all of the conditions hold, else 0.

    A condition is a pair: the number of a polynomial, and the signs that it may have.
    """

    weight: Ratio
    conditions: frozenset[Signed]


class Tables(NamedTuple):
    """The polynomials and ratios that a certificate refers to by number.

    ``numbers`` maps each polynomial, by its ``key``, to its number.
    """

    polynomials: Sequence[Polynomial]
    ratios: Sequence[Ratio]
    numbers: Mapping[Any, int]

    def number(self, polynomial: Polynomial) -> str:
        """Return the number of ``polynomial`` as a text, because the keys of a certificate (JSON) are texts."""
        return str(self.numbers[key(polynomial)])


def key(polynomial: Polynomial) -> Any:
    """Return the polynomial as a hashable key: its pairs (monomial, coefficient), sorted."""
    return tuple(sorted(polynomial.items()))


def add(*terms: Polynomial) -> Polynomial:
    """Return the sum of the polynomials ``terms``; monomials with the coefficient 0 are left out."""
    total: dict[tuple[int, ...], Fraction] = {}
    for term in terms:
        for monomial, value in term.items():
            total[monomial] = total.get(monomial, Fraction(0)) + value
    return {monomial: value for monomial, value in total.items() if value}


def multiply(*factors: Polynomial) -> Polynomial:
    """Return the product of polynomials; 1 for none."""
    result = ONE
    for factor in factors:
        result = add(*({tuple(sorted(m + n)): x * y for m, x in result.items()} for n, y in factor.items()))
    return result


def negative(polynomial: Polynomial) -> Polynomial:
    """Return the polynomial times -1."""
    return {monomial: -value for monomial, value in polynomial.items()}


def top_of_sum(ratios: Iterable[Ratio]) -> Polynomial:
    """Return the numerator of the sum of ``ratios`` over their common denominator.

    The common denominator is the smallest product that contains the factors of every denominator.
    """
    listed = list(ratios)
    by_key = {key(factor): factor for ratio in listed for factor in ratio.below}
    counts = [Counter(map(key, ratio.below)) for ratio in listed]
    common: Counter[Any] = Counter()
    for count in counts:
        common |= count
    missing = [[by_key[one] for one in (common - count).elements()] for count in counts]
    return add(*(multiply(ratio.top, *factors) for ratio, factors in zip(listed, missing, strict=True)))


def require(fault: str | bool, where: str) -> None:
    """Raise ``CertificateRefused`` if ``fault`` is True or a sentence; do nothing if it is False or "".

    The message is ``where``, the place in the certificate, followed by the sentence if there is one.
    """
    if fault:
        raise CertificateRefused(f"{where}: {fault}" if isinstance(fault, str) else where)


def contradicted(written: Any, conditions: Sequence[Condition], polynomials: Sequence[Polynomial]) -> str:
    """Return why ``written`` does not prove that ``conditions`` contradict each other; "" if it proves it.

    ``written``, a part of the certificate, refers to ``conditions`` and ``polynomials`` by index. It has one of two
    forms:

    * Lists ``terms`` and ``equalities``, whose total sum must be the zero polynomial. Each entry of ``terms`` is a
      number c > 0 and some conditions with ``>``, ``>=``, ``<`` or ``<=``; it stands for c times the product of their
      polynomials, negated for ``<`` and ``<=``. Under the conditions this product is not negative, and it is positive
      if all of them are strict; one entry must be so. Each entry of ``equalities`` is the product of any polynomial and
      the polynomial of a condition ``=``, so it is 0. A sum that is 0 and positive is the contradiction.
    * An index ``split`` of a condition ``!=``, with two proofs: ``below`` with ``<`` in place of ``!=``, and ``above``
      with ``>``.
    """
    if "split" in written:
        split = conditions[written["split"]]
        if split.relation != "!=":
            return "it splits a condition that is no inequation"
        cases = ((written[name], Condition(split.polynomial, sign)) for name, sign in (("below", "<"), ("above", ">")))
        return next(filter(None, (contradicted(case, [*conditions, one], polynomials) for case, one in cases)), "")
    total, positive = [], False
    for coefficient, places in written["terms"]:
        chosen = [conditions[place] for place in places]
        if Fraction(coefficient) <= 0 or any(one.relation in {"=", "!="} for one in chosen):
            return "a term is not known to be non-negative"
        factors = (one.polynomial if ">" in one.relation else negative(one.polynomial) for one in chosen)
        total.append(multiply({(): Fraction(coefficient)}, *factors))
        positive |= all(one.relation in {"<", ">"} for one in chosen)
    for cofactor, place in written["equalities"]:
        if conditions[place].relation != "=":
            return "a condition that is no equation is used as one"
        total.append(multiply(polynomials[cofactor], conditions[place].polynomial))
    if add(*total):
        return "the terms do not add up to the zero polynomial"
    return "" if positive else "no term is known to be positive"


def ends_of(node: Any, tables: Tables, known: Sequence[Condition], path: PathEnd, where: str) -> Iterator[PathEnd]:
    """Yield the end of every path that goes through ``node``, a node of the tree of one round.

    ``path`` has the weight and the conditions of the path from the root to ``node``. ``known`` are the conditions that
    hold at ``node``; ``where`` names it in messages. Raises ``CertificateRefused`` unless the certificate proves:

    * each missing branch is impossible;
    * the probabilities of each draw add up to 1, none is negative, and their denominators are positive.
    """

    def shown(written: Any, polynomial: Polynomial, relation: str) -> str:
        return contradicted(written, [*known, Condition(polynomial, relation)], tables.polynomials)

    if "end" in node:
        yield path._replace(tokens=tuple(node["end"]))
    elif "ask" in node:
        number, relation = node["ask"]
        polynomial = tables.polynomials[number]
        free = node["yes"] is not None and node["no"] is not None
        for answer, holds in (("yes", relation), ("no", NEGATED[relation])):
            here = f"{where}, {answer}" if free else where
            if node[answer] is None:
                require(shown(node["impossible"], polynomial, holds), f"{here}, the answer {answer} left out")
                continue
            asked = (*path.asked, (number, frozenset(SIGNS[holds]))) if free else path.asked
            after = [*known, Condition(polynomial, holds)]
            yield from ends_of(node[answer], tables, after, path._replace(asked=asked), here)
    else:
        weights = [tables.ratios[number] for number in node["draw"]]
        missing, why = top_of_sum([*weights, Ratio(negative(ONE))]), node.get("whole", {})
        for relation in "<>" if missing else "":
            fault = shown(why[relation], missing, relation) if relation in why else "no reason is given"
            require(fault, f"{where}, a draw: its weights do not add up to 1")
        for factor in (factor for weight in weights for factor in weight.below):
            require(shown(node["positive"][tables.number(factor)], factor, "<="), f"{where}, a denominator of a draw")
        for outcome, weight in enumerate(weights):
            here, branch = f"{where}, outcome {outcome}", node["branches"].get(str(outcome))
            require(shown(node["not_negative"][str(outcome)], weight.top, "<"), f"{here}, its sign")
            if branch is None:
                reason = node["impossible"][str(outcome)] if weight.top else {"terms": [[1, [-1]]], "equalities": []}
                require(shown(reason, weight.top, ">"), f"{here}, left out")
                continue
            whole = Ratio(multiply(path.weight.top, weight.top), (*path.weight.below, *weight.below))
            drawn = path.drawn if set(weight.top) == {()} else (*path.drawn, _positive(weight.top, tables))
            after = [*known, Condition(weight.top, ">")]
            yield from ends_of(branch, tables, after, path._replace(weight=whole, drawn=drawn), here)


def _positive(polynomial: Polynomial, tables: Tables) -> Signed:
    return tables.numbers[key(polynomial)], frozenset({1})


def term_of(item: Any, end: PathEnd, share: Ratio, tables: Tables, axioms: Sequence[Condition], where: str) -> Term:
    """Return what the path ``end`` adds to the probability of an outcome: its weight, and the conditions for it.

    The conditions are those of the path. ``item`` may remove some of them: conditions of the form "the probability of
    this draw is above 0". It must prove that the removal changes nothing: the comparisons of the path imply the
    condition, or the weight is 0 where it fails.

    Args:
        item: The part of the certificate about this path; it also states the weight in reduced form.
        end: The end of the path.
        share: The target's probability of those tokens of the outcome that follow the tokens of the path; a factor of
            the weight.
        tables: The polynomials and ratios of the certificate.
        axioms: Conditions that always hold.
        where: Name of the path in messages.

    Raises:
        CertificateRefused: If the weight is wrong or a proof fails.
    """
    reduced = tables.ratios[item["weight"]]
    whole = Ratio(multiply(end.weight.top, share.top), end.weight.below)
    same = multiply(whole.top, *reduced.below) == multiply(reduced.top, *whole.below)
    require(not same, f"{where}: the weight is not the product of its draws")
    compared = [*axioms, *(Condition(tables.polynomials[one], RELATIONS[signs]) for one, signs in end.asked)]
    needless = set()
    for number, reason in item["dropped"].items():
        chance, signed = tables.polynomials[int(number)], (int(number), frozenset({1}))
        require(signed not in end.drawn, f"{where}: a condition left out that is no draw")
        needless.add(signed)
        if "implied" in reason:
            conditions = [*compared, Condition(chance, "<=")]
            require(contradicted(reason["implied"], conditions, tables.polynomials), f"{where}, a draw left out")
            continue
        vanishes = multiply(chance, tables.polynomials[reason["factor"]]) == reduced.top
        require(not vanishes, f"{where}: the weight does not vanish with the draw that is left out")
        for factor in reduced.below:
            conditions = [*compared, Condition(chance, "="), Condition(factor, "<=")]
            why = reason["positive"][tables.number(factor)]
            require(contradicted(why, conditions, tables.polynomials), f"{where}, a denominator of a draw left out")
    return Term(reduced, frozenset({*end.asked, *(set(end.drawn) - needless)}))


def check_cell(
    written: Any,
    terms: Sequence[Term],
    facts: Mapping[int, frozenset[int]],
    known: Sequence[Condition],
    tables: Tables,
    where: str,
) -> int:
    """Check that ``terms`` add up to 0 in one cell; return the number of smaller cells that were checked.

    The terms are the weights of the paths with one outcome, and the target's probability of this outcome with a minus
    sign. Which terms count depends on the signs of some polynomials. A cell is the set of all p and q for which these
    polynomials have certain signs.

    Args:
        written: The part of the certificate about the cell. It divides the cell by the signs of a further polynomial,
            or proves that the cell is empty or that the sum is 0 in it.
        terms: The terms.
        facts: Number of a polynomial -> its possible signs in the cell.
        known: These facts as conditions, and the conditions that hold everywhere.
        tables: The polynomials and ratios of the certificate.
        where: Name of the cell in messages.

    Raises:
        CertificateRefused: If the division is incomplete or a proof fails.
    """
    alive = [term for term in terms if all(facts.get(one, ANY) & signs for one, signs in term.conditions)]
    if "by" in written:
        number = written["by"]
        parts = {relation: frozenset(SIGNS[relation]) for relation in written["cells"]}
        covered = Counter(sign for signs in parts.values() for sign in signs) == Counter(facts.get(number, ANY))
        require(not covered, f"{where}: the cells of polynomial {number} do not cover its signs once each")
        cells = 0
        for relation, cell in written["cells"].items():
            after = [*known, Condition(tables.polynomials[number], relation)]
            here = f"{where}, polynomial {number} {relation} 0"
            cells += check_cell(cell, alive, {**facts, number: parts[relation]}, after, tables, here)
        return cells
    if "empty" in written:
        require(contradicted(written["empty"], known, tables.polynomials), f"{where}, an empty cell")
        return 1
    decided = all(facts.get(one, ANY) <= signs for term in alive for one, signs in term.conditions)
    require(not decided, f"{where}: the cell does not decide which paths exist")
    for factor in (factor for term in alive for factor in term.weight.below):
        conditions = [*known, Condition(factor, "<=")]
        why = written["positive"][tables.number(factor)]
        require(contradicted(why, conditions, tables.polynomials), f"{where}, a denominator")
    total = top_of_sum(term.weight for term in alive)
    for relation in (">", "<") if total else ():
        conditions = [*known, Condition(total, relation)]
        require(contradicted(written["zero"][relation], conditions, tables.polynomials), f"{where}: the masses differ")
    return 1


def check_place(place: Any, tables: Tables, vocabulary: int, where: str) -> Counter[str]:
    """Check one place of a certificate: the tree of one round after a text, with a number of remaining tokens.

    ``place`` is its JSON data, ``where`` its name in messages. Returns the numbers of paths, outcomes and cells that
    were checked. Raises ``CertificateRefused`` if, for some outcome, the paths of the tree do not add up to the
    target's probability.
    """
    rows, axioms = _rows(place["rows"], vocabulary)
    ends = list(ends_of(place["tree"], tables, axioms, PathEnd((), Ratio(ONE)), where))
    text, remaining = tuple(place["text"]), place["remaining"]
    require(any(len(end.tokens) > remaining for end in ends), f"{where}: more tokens come out than are left")
    counted = Counter(paths=len(ends))
    for outcome in product(range(vocabulary), repeat=remaining):

        def of_target(start: int, outcome: tuple[int, ...] = outcome) -> Ratio:
            places = range(start, remaining)
            return Ratio(multiply(*(rows["target", text + outcome[:at]][outcome[at]] for at in places)))

        written, here = place["outcomes"][",".join(map(str, outcome))], f"{where}, outcome {outcome}"
        counting = [number for number, end in enumerate(ends) if end.tokens == outcome[: len(end.tokens)]]
        require(counting != [item["end"] for item in written["terms"]], f"{here}: its paths are not all listed")
        terms = [
            term_of(item, ends[at], of_target(len(ends[at].tokens)), tables, axioms, f"{here}, path {at}")
            for at, item in zip(counting, written["terms"], strict=True)
        ]
        minus = Term(Ratio(negative(of_target(0).top)), frozenset())
        counted["cells"] += check_cell(written["cells"], [*terms, minus], {}, axioms, tables, here)
        counted["outcomes"] += 1
    return counted


def _rows(listed: Sequence[Any], vocabulary: int) -> tuple[dict[Any, list[Polynomial]], list[Condition]]:
    """Return a mapping from (kind, text) to the entries of a pmf, and the conditions that these entries are >= 0.

    Each of ``listed`` is (kind, text, unknowns). The kind is the model, ``target`` or ``draft``; the pmf is the model's
    pmf after ``text``. Its entries are the unknowns and, as last entry, 1 minus their sum. The kind ``choice`` stands
    for a free decision of the algorithm instead: one unknown, without a condition. Raises ``CertificateRefused`` if a
    kind and text are listed twice, or if a pmf does not have ``vocabulary`` entries.
    """
    rows: dict[Any, list[Polynomial]] = {}
    axioms: list[Condition] = []
    every = [unknown for _, _, unknowns in listed for unknown in unknowns]
    require(len(set(every)) < len(every), "an unknown belongs to two rows")
    for kind, text, unknowns in listed:
        entries: list[Polynomial] = [{(unknown,): Fraction(1)} for unknown in unknowns]
        if kind != "choice":
            require(len(unknowns) != vocabulary - 1, f"the row {kind} {text} does not have {vocabulary} entries")
            entries.append(add(ONE, *map(negative, entries)))
            axioms += [Condition(entry, ">=") for entry in entries]
        require((kind, tuple(text)) in rows, f"the row {kind} {text} is listed twice")
        rows[kind, tuple(text)] = entries
    return rows, axioms
