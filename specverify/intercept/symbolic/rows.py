"""Operations on arrays of elements that all front ends share: map, reduce, scan, choose, sort, look up and move.

A front end is the module that intercepts one library. An element is a number, a symbolic number, or an outcome that is
drawn when it is read. Every front end passes object arrays of elements, with axes as NumPy counts them. A NumPy array
itself cannot hold unread outcomes, so NumPy's front end draws the results.

The rules of the table (``primitives``) take one row of elements, and an ``Ask``: the operation and line for a refusal.
They draw no more elements than they need. If a sum of non-negative integers is compared with a bound, terms are drawn
from the left until the partial sum reaches the bound. The factors of a product are drawn up to the first 0. An index,
such as the result of ``argmax``, is drawn when it is read; if it is never read, nothing is drawn.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial, reduce
from itertools import repeat
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np

from specverify.intercept.cpython.patches import array, asarray, broadcast_arrays, concatenate, empty, moveaxis
from specverify.intercept.refusals import Declined, NeedsValue, tried
from specverify.intercept.symbolic.continuous import SYMBOLIC, any_symbolic, at_rank, largest_of
from specverify.intercept.symbolic.deferred import (
    ByOneDraw,
    Choice,
    Count,
    Deferred,
    Law,
    Product,
    Truth,
    is_count,
    is_open,
    is_truth,
    known,
    number,
    single,
)
from specverify.intercept.symbolic.races import law_of_winner, ranked_from_either_end, winner

Elements: TypeAlias = "np.ndarray[Any, Any]"
Row: TypeAlias = Sequence[Any]
Answer = TypeVar("Answer")


class Ask(NamedTuple):
    """The operation and line of the foreign code that a refusal names.

    An element of the result may be drawn later, when it is read; a refusal then still names the operation that made it.
    """

    operation: str = ""
    """Name of the operation in the user's library, for a refusal."""
    place: str = ""
    """File and line of the operation."""
    dtype: Any = None
    """Dtype in which NumPy computes on concrete numbers; None: NumPy's default."""

    def put(self, question: Callable[[], Answer]) -> Answer:
        """Return the result of ``question()``, a draw that is made when the program reads an element.

        If ``question`` raises a refusal, the refusal gets the operation and the line that made the element, not the
        line that runs now.
        """
        try:
            return question()
        except NeedsValue as refused:
            raise (refused.during(self.operation, self.place) if self.operation else refused.at(self.place)) from None


# Containers


def each(function: Callable[..., Any], *arrays: Elements) -> Elements:
    """Return the array of ``function`` applied to the elements of the arrays, which are broadcast."""
    if not any(elements.ndim for elements in arrays):
        return single(function(*(elements.item() for elements in arrays)))
    shapes = {elements.shape for elements in arrays if elements.ndim}
    alike = arrays if len(shapes) == 1 else broadcast_arrays(*arrays)
    result = empty(shapes.pop() if len(shapes) == 1 else alike[0].shape, dtype=object)
    flat = result.reshape(-1)  # the same memory
    columns = (elements.ravel().tolist() if elements.ndim else repeat(elements.item()) for elements in alike)
    for place, outcome in enumerate(map(function, *columns)):
        flat[place] = outcome
    return result


def reduced(
    rule: Callable[[Row], Any], elements: Elements, axes: Sequence[int] | None = None, *, keepdims: bool = False
) -> Elements:
    """Return ``rule(row)`` for the elements along ``axes`` (None: all axes), as an array over the other axes.

    With ``keepdims`` the reduced axes remain, with length 1. Raises ``AxisError`` for an axis that does not exist.
    """
    chosen = range(elements.ndim) if axes is None or not elements.ndim else axes
    along = {_checked_axis(axis, elements) for axis in chosen}
    kept = [axis for axis in range(elements.ndim) if axis not in along]
    shape = tuple(elements.shape[axis] for axis in kept)
    length = math.prod(elements.shape[axis] for axis in along)
    rows = elements.transpose(*kept, *sorted(along)).reshape(*shape, length)
    result = empty(shape, dtype=object)
    for index in np.ndindex(*shape):
        result[index] = rule(rows[index].tolist())
    if keepdims:
        return result.reshape([1 if axis in along else elements.shape[axis] for axis in range(elements.ndim)])
    return result


def _checked_axis(axis: int, elements: Elements) -> int:
    """Return the index, from 0 on, of ``axis`` of ``elements``; raises NumPy's error if there is no such axis."""
    if not -elements.ndim <= axis < elements.ndim:
        raise np.exceptions.AxisError(axis, elements.ndim)
    return axis % elements.ndim


def scanned(rule: Callable[[Row], Any], elements: Elements, axis: int, *, reverse: bool = False) -> Elements:
    """Return an array with the results of ``rule`` for every prefix of each row of ``elements`` along ``axis``.

    With ``reverse`` these are the results for every suffix.
    """
    if not elements.ndim:
        return scanned(rule, elements.reshape(1), 0).reshape(())
    _checked_axis(axis, elements)
    rows = moveaxis(elements, axis, -1) if elements.ndim > 1 else elements
    result = empty(rows.shape, dtype=object)
    for *row, place in np.ndindex(rows.shape):
        so_far = rows[tuple(row)][place:][::-1] if reverse else rows[tuple(row)][: place + 1]
        result[(*row, place)] = rule(so_far.tolist())
    return moveaxis(result, -1, axis) if elements.ndim > 1 else result


def along(rule: Callable[[Row], Sequence[Row]], elements: Elements, axis: int) -> list[Elements]:
    """Apply ``rule`` to each row of ``elements`` along ``axis``, and return its results as arrays.

    ``rule`` maps a row to one or several new rows. The i-th array of the result has the i-th new row of every row,
    along ``axis``.
    """
    rows = moveaxis(elements, axis, -1)
    results: list[Elements] = []
    for index in np.ndindex(*rows.shape[:-1]):
        made = rule(rows[index].tolist())
        results = results or [empty((*rows.shape[:-1], len(row)), dtype=object) for row in made]
        for result, row in zip(results, made, strict=True):
            result[index] = row
    return [moveaxis(result, -1, axis) for result in results]


def moved(move: Callable[..., Any], arrays: Sequence[Elements], fill: Any = None) -> Elements:
    """Return the elements of ``arrays`` after ``move``, a library function that only moves elements.

    ``move`` is called with integer arrays that number all elements from 1 on. A number in its result is replaced by the
    element with this number, and 0 by ``fill``.
    """
    return moved_apart(lambda *places: [move(*places)], arrays, fill)[0]


def moved_apart(move: Callable[..., Sequence[Any]], arrays: Sequence[Elements], fill: Any = None) -> list[Elements]:
    """Return the elements of ``arrays`` after ``move``, a library function that only moves elements.

    ``move`` returns several arrays, and so does this function. ``arrays`` and ``fill`` are those of ``moved``, whose
    ``move`` returns one array.
    """
    pool, places, first = [single(fill).reshape(1)], [], 1
    for elements in arrays:
        places.append(np.arange(first, first + elements.size).reshape(elements.shape))
        pool.append(elements.reshape(-1))
        first += elements.size
    whole = concatenate(pool)
    results = (asarray(result) for result in move(*places))
    return [whole[np.maximum(where, 0).reshape(-1)].reshape(where.shape) for where in results]


def accumulated(rule: Callable[[Row], Any], target: Elements, source: Elements, places: Elements) -> Elements:
    """Return ``target`` with each element of ``source`` combined into one of its elements, as ``scatter_add`` does.

    ``places`` has the flat index in ``target`` for each element of ``source``; an element with a negative index is left
    out. For each index ``rule`` gets a row: the element of ``target``, then those of ``source``. It returns the new
    element.
    """
    put: dict[int, list[Any]] = {}
    for place, element in zip(places.ravel().tolist(), source.ravel().tolist(), strict=True):
        put.setdefault(place, []).append(element)
    flat = target.flatten()
    for place, elements in put.items():
        if place >= 0:
            flat[place] = rule([flat[place], *elements])
    return flat.reshape(target.shape)


MOST_PRODUCTS = 1 << 16
"""Above this number of places, or of products of elements, sums at places and products of matrices are not followed."""
NARROWEST = 4
"""Bytes of the narrowest floats whose sums at some places are followed."""


# Choices


def choice(which: Any, *cases: Any) -> Any:
    """Return ``cases[which]``, the element at an index that may be symbolic.

    For a symbolic index:

    * If all cases are equal, the first is returned.
    * If a case is a symbolic number, the index is drawn now.
    * Otherwise the result is an outcome, and the index is drawn when it is read.
    """
    if not is_open(which):
        return cases[int(known(which))]
    if all(_same(case, cases[0]) for case in cases):
        return cases[0]
    if any_symbolic(cases):
        return cases[int(known(which))]
    return Choice(which, cases)


def _same(left: Any, right: Any) -> bool:
    if left is right:
        return True
    plain = not isinstance(left, Deferred) and not isinstance(right, Deferred)
    return plain and type(left) is type(right) and bool(left == right)


# Outcomes that are 0 or 1


def both(left: Any, right: Any) -> Truth:
    """Return ``left and right`` as a symbolic outcome; ``right`` is not drawn if ``left`` is False."""
    return Truth(lambda: int(bool(known(left)) and bool(known(right))))


def either(left: Any, right: Any) -> Truth:
    """Return ``left or right`` as a symbolic outcome; ``right`` is not drawn if ``left`` is True."""
    return Truth(lambda: int(bool(known(left)) or bool(known(right))))


def one_of_two(left: Any, right: Any) -> Truth:
    """Return as a symbolic outcome whether exactly one of ``left`` and ``right`` is true (exclusive or)."""
    return Truth(lambda: int(bool(known(left)) != bool(known(right))))


def turned(element: Any) -> Truth:
    """Return the logical not of ``element`` as a symbolic outcome."""
    return Truth(lambda: int(not known(element)))


# Reductions

NO_RULE_OF_FLOATS = Declined("libraries add up floats in another order, and each computes it of outcomes")


def folded(
    combine: Callable[[Any, Any], Any],
    of_numbers: Callable[..., Any],
    of_counts: type[Count | Product],
    row: Row,
    ask: Ask,
) -> Any:
    """Return the sum or the product of a row; ``ask`` gives the dtype of the result.

    * With a symbolic number, ``combine`` adds or multiplies one element after the other.
    * Plain numbers: ``of_numbers``, the function of NumPy, computes it.
    * Counts (non-negative integers, some unread): an outcome of the class ``of_counts``.
    * Otherwise: an outcome that ``of_numbers`` computes when it is read.
    """
    if any_symbolic(row):
        return reduce(combine, map(number, row))
    if not any(map(is_open, row)):
        return _of_numbers(of_numbers, row, ask.dtype)
    if all(map(is_count, row)):
        return of_counts(row)
    return Deferred(lambda: _of_numbers(of_numbers, row, ask.dtype))


def _of_numbers(function: Callable[..., Any], row: Row, dtype: Any) -> Any:
    with np.errstate(all="ignore"):
        result = asarray(function(array([known(element) for element in row], dtype=dtype)))
    return (result if dtype is None else result.astype(dtype)).item()


def some(row: Row, ask: Ask) -> Any:
    """Return whether any element of ``row`` is true, as a symbolic outcome. ``ask`` is not used.

    When the outcome is read, elements are drawn in order up to the first that is true.
    """
    return Truth(lambda: int(any(bool(known(element)) for element in row)))


def every(row: Row, ask: Ask) -> Any:
    """Return whether all elements of ``row`` are true, as a symbolic outcome. ``ask`` is not used.

    When the outcome is read, elements are drawn in order up to the first that is false.
    """
    return Truth(lambda: int(all(bool(known(element)) for element in row)))


def extreme(row: Row, ask: Ask, *, largest: bool) -> Any:
    """Return the largest or smallest element of ``row``, as a symbolic number or an outcome. ``ask`` is not used."""
    if any_symbolic(row):
        return largest_of(tuple(map(number, row)), largest=largest)
    if all(map(is_truth, row)):
        return some(row, ask) if largest else every(row, ask)
    return Deferred(lambda: (max if largest else min)(map(known, row)))


def place_of_extreme(row: Row, ask: Ask, *, largest: bool) -> Any:
    """Return the index of the largest or smallest element of ``row``, drawn when it is read.

    ``ask`` has the operation and the line that a refusal names.
    """
    compute = partial(ask.put, partial(_winner, row, ask.place, largest=largest))
    return ByOneDraw(compute, partial(ask.put, partial(_law_of_winner, row, ask.place, largest=largest)))


def _winner(row: Row, place: str, *, largest: bool) -> int:
    row = _scores(row)
    if any_symbolic(row):
        return winner([number(element) for element in row], largest=largest, place=place)
    if all(map(is_truth, row)):
        return next((index for index, element in enumerate(row) if bool(known(element)) == largest), 0)
    values = array([known(element) for element in row])
    return int(values.argmax() if largest else values.argmin())


def _law_of_winner(row: Row, place: str, *, largest: bool) -> Law | None:
    row = _scores(row)
    if not any_symbolic(row) or any(isinstance(each, Deferred) for each in row):
        return None
    return law_of_winner(row, largest=largest, place=place)


# Orders


class Ordered(Deferred):
    """An entry of a row, such as a softmax of noise, whose value is not known, but whose order in the row is."""

    def __init__(self, score: Any, row: object) -> None:
        """Store ``score``, the symbolic number that has the same order as this entry.

        All entries of one row have the same object ``row``.
        """
        self.score, self.row = score, row
        super().__init__(_refusing("the value of a softmax of random numbers is needed, not only which is the largest"))


def in_one_way(row: Row) -> list[Ordered]:
    """Return the row that an increasing function, such as a softmax, makes of ``row``, as entries without values.

    Only the order of the entries can be used: it is that of the elements of ``row``.
    """
    shared = object()
    return [Ordered(number(element), shared) for element in row]


def _scores(row: Row) -> Row:
    """Return the numbers by which the entries of ``row`` are ordered.

    These are the symbolic numbers in ``Ordered`` entries. A row of other entries is its own result.
    """
    if not all(isinstance(element, Ordered) for element in row) or len({id(element.row) for element in row}) > 1:
        return row
    return [element.score for element in row]


def ordered(row: Row, ask: Ask, ranks: range, *, largest: bool, stable: bool = False) -> tuple[list[Any], list[Any]]:
    """Return two lists: the elements of ``row`` at the given ``ranks``, and the indices of these elements.

    Rank 0 is the largest, or with ``largest`` False the smallest. With ``stable``, equal numbers keep their order;
    otherwise symbolic numbers that may be equal are refused. ``ask`` has the operation and line for a refusal.
    """
    scores = _scores(row)
    if not any_symbolic(scores):
        order = Deferred(lambda: _order_of_numbers([known(element) for element in row], largest=largest))
        places = [Deferred(partial(_entry, order, rank)) for rank in ranks]
        return [entry_at(row, place) for place in places], places
    entries = [number(element) for element in scores]

    def ask_for(rank: int) -> int:
        return int(ranked_from_either_end(entries, rank, largest=largest, first_of_ties=stable, place=ask.place))

    places = [Deferred(partial(ask.put, partial(ask_for, rank))) for rank in ranks]
    if scores is not row:
        return [Deferred(_refusing(NO_VALUE)) for _ in ranks], places
    return [_value(tuple(entries), rank, largest=largest) for rank in ranks], places


NO_VALUE = "the value of one of several random numbers is needed, not only its place"


def _value(entries: tuple[Any, ...], rank: int, *, largest: bool) -> Any:
    if rank == 0:
        return largest_of(entries, largest=largest)
    try:
        with tried():
            return at_rank(entries, rank, largest=largest)
    except NeedsValue as refused:
        return Deferred(partial(_refuse_again, refused))


def _refuse_again(refused: NeedsValue) -> Any:
    raise refused.again()


def _order_of_numbers(row: list[Any], *, largest: bool) -> Any:
    numbers = array(row)
    return np.argsort(-numbers.astype(np.float64) if largest else numbers, kind="stable")


def _entry(order: Deferred, rank: int) -> int:
    return int(order.value()[rank])


def entry_at(row: Row, place: Any) -> Any:
    """Return ``row[place]`` for an index ``place`` that is a symbolic outcome.

    If ``row`` has symbolic numbers, the index is drawn now. Otherwise the result is an outcome, and the index is drawn
    when it is read.
    """
    if any_symbolic(row):
        return row[int(known(place))]
    return Deferred(lambda: known(row[int(known(place))]))


def _refusing(sentence: str) -> Callable[[], Any]:
    def refuse() -> Any:
        raise NeedsValue("order-alone-is-known", sentence)

    return refuse


def all_ranks(length: int, _: int | None) -> range:
    """Return all ranks of a row of this ``length``, as a range from 0."""
    return range(length)


def first_ranks(_: int, count: int | None) -> range:
    """Return the range of the first ``count`` ranks of a row; an empty range if ``count`` is None."""
    return range(count or 0)


def one_rank(_: int, rank: int | None) -> range:
    """Return the range that contains only ``rank - 1``: the library counts ``rank`` from 1. None stands for 1."""
    return range((rank or 1) - 1, rank or 1)


def middle_rank(length: int, _: int | None) -> range:
    """Return a range with the rank of the median of a row of this ``length``; the lower one if there are two."""
    return one_rank(length, (length + 1) // 2)


# Lookups


def looked_up(bounds: Sequence[float], element: Any, ask: Ask, *, right: bool) -> Any:
    """Return how many of the sorted ``bounds`` are below ``element``, or with ``right`` at most equal to it.

    The result is an outcome that is drawn when it is read; ``ask`` has the operation and the line that a refusal names.
    """
    if isinstance(element, SYMBOLIC):
        return Deferred(partial(ask.put, partial(element.interval_of, bounds, ask.place, or_equal=right)))
    return Deferred(lambda: int(np.searchsorted(bounds, known(element), "right" if right else "left")))
