"""One call of a verifier of chains: the arguments, the other rows of its batch, and the emitted tokens."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np

from specverify.base.callables import required_positional
from specverify.laws.paths import Undecided
from specverify.laws.rounding import NEGLIGIBLE
from specverify.reference import Draft, Draws, Task, Tokens
from specverify.subjects.array_kinds import SMALL_DRAFT, SMALL_P, SMALL_Q, Attempt, BareVerifier, arrays_of, conversions
from specverify.subjects.batch_answers import check_rows
from specverify.subjects.checked_calls import Convert, called
from specverify.subjects.emitted import OpenEnd, emitted_row, ends_left_open, left_open
from specverify.subjects.forms import Form
from specverify.subjects.logits_verifier import (
    NAMED,
    PLURALS,
    Setting,
    logits_rows,
    names_of_parameters,
    passed,
    untied_logits,
)
from specverify.subjects.named_parts import tokens_of
from specverify.subjects.remembered_calls import memoised
from specverify.subjects.seeded import seeded
from specverify.subjects.subject import Context
from specverify.subjects.verifier_rounds import pmf_rows

GREEDY: Setting = (("temperature", 0.0),)
NARROW: Setting = (("temperature", 2.0), ("top_k", 1), ("top_p", 0.5), ("min_p", 0.5))


class BatchRow(NamedTuple):
    """One row of a batch: its p and q, and its drafts."""

    p: Any
    """Target probabilities ``[drafts + 1, vocabulary]``."""
    q: Any
    """Draft probabilities ``[drafts, vocabulary]``."""
    drafts: Tokens
    setting: Setting | None = None
    """The sampling parameters of a row with a certain outcome, in a batch whose rows may differ in them.
    None: the row has the parameters of the setting that is examined."""


class Arguments(NamedTuple):
    """How p, q and drafts are converted to the arguments of a verifier of probabilities or of logits.

    ``form`` is the form of the verifier (``forms``).
    """

    form: Form
    names: tuple[str, str]
    """Names of the arguments for p and for q."""
    rows: Callable[[Task, Tokens, Draft], tuple[Any, Any]]
    """``rows(task, prefix, draft)`` returns the two arguments, ``[drafts + 1, vocabulary]`` and ``[drafts, ...]``."""
    of_pmfs: Callable[[Any], Any]
    """Converts pmfs ``[number, vocabulary]`` of neighbours and padding to the form of the argument."""
    parameters: Callable[..., Mapping[str, float]]
    """``parameters(vocabulary)`` returns the sampling parameters by name, ``parameters(vocabulary, other)`` those of
    another row of the batch with the setting ``other``, whose temperature differs from the one that is examined."""
    of_each_row: bool = False
    """Whether the sampling parameters are arrays ``[B]``, with one element for each row of the batch."""

    def may_be_greedy(self, vocabulary: int) -> bool:
        """Return whether another row of the batch may have temperature 0, for ``vocabulary`` tokens."""
        given = self.parameters(vocabulary, GREEDY) if self.of_each_row else {}
        return any(NAMED[name] == "temperature" and value == 0 for name, value in given.items())

    def in_common(self, vocabulary: int) -> Mapping[str, float]:
        """Return the sampling parameters that all rows have in common, by name, for ``vocabulary`` tokens."""
        return {} if self.of_each_row else self.parameters(vocabulary)


def arguments_of(verify: BareVerifier, form: Form, setting: Setting = ()) -> Arguments:
    """Return how p, q and drafts are converted to the arguments of ``verify``.

    ``form`` states whether the verifier takes logits or probabilities. ``setting`` has the sampling parameters of a
    verifier of logits; () for a verifier of probabilities, which has none.
    """
    if form.logits:
        given, names = partial(_parameters, verify, setting), ("target_logits", "draft_logits")
        return Arguments(form, names, logits_rows, untied_logits, given, takes_parameters_of_rows(verify, form))
    return Arguments(form, ("p", "q"), pmf_rows, np.asarray, lambda vocabulary: {})


def _parameters(
    verify: BareVerifier, setting: Setting, vocabulary: int, other: Setting | None = None
) -> Mapping[str, float]:
    if other is None:
        return passed(verify, setting, vocabulary)
    same = dict(other)["temperature"] == dict(setting).get("temperature")
    return passed(verify, (*other, ("temperature", 1.0)) if same else other, vocabulary)


@lru_cache(maxsize=256)
def takes_parameters_of_rows(verify: BareVerifier, form: Form) -> bool:
    """Return whether ``verify``, a verifier of batches of logits, takes arrays of sampling parameters.

    Such an array has one element for each row. It has a name of ``PLURALS``, or the verifier runs on a batch of two
    rows with such arrays. Then it is not examined with one number for all rows, even if it takes one too.
    """
    names = names_of_parameters(verify)
    if not (form.batched and form.logits and names):
        return False
    if {*names} & {*PLURALS}:
        return True
    rows = [certain_row(2, accepted, 5, accepted).row for accepted in range(2)]
    batch = [row._replace(p=untied_logits(row.p), q=untied_logits(row.q)) for row in rows]
    arguments = Arguments(form, ("p", "q"), logits_rows, untied_logits, partial(_parameters, verify, ()), True)
    given = arrays_of_rows(batch, takes_lengths(verify), arguments)
    for convert in conversions(verify):
        with suppress(Exception), seeded(0):
            if len(invoked(verify, {}, tuple(given), *convert(given))) == len(batch):
                return True
    return False


@lru_cache(maxsize=256)
def takes_lengths(verify: BareVerifier) -> bool:
    """Return whether ``verify`` takes the number of drafts of each row: ``lengths``, or a fourth required parameter.

    Sampling parameters such as ``temperature`` do not count.
    """
    try:
        signature = inspect.signature(verify)
    except (TypeError, ValueError):
        return False
    needed = [item for item in required_positional(signature) if item.name not in NAMED]
    return len(needed) > 3 or "lengths" in signature.parameters


class Company(NamedTuple):
    """How the row under test is put into a batch: a function that adds the other rows, and the position of the row."""

    rows: Callable[[BatchRow, bool, Callable[[Any], Any]], tuple[BatchRow, ...]]
    """``rows(mine, ragged, of_pmfs)`` returns the batch around row ``mine``, as ``company_of`` does."""
    place: int
    """The index of the examined row."""
    number: int
    """The number of rows; one more if rows may differ in length."""


def company_of(mine: BatchRow, ragged: bool, of_pmfs: Callable[[Any], Any]) -> tuple[BatchRow, ...]:
    """Return a batch whose third row is ``mine``, the row under test; all other rows have certain outcomes.

    ``of_pmfs`` converts pmfs of the other rows to arguments of the verifier. If ``ragged``, the rows have different
    numbers of drafts, to expose a verifier that reads the length of another row.
    """
    count, vocabulary = len(mine.drafts), mine.p.shape[1]
    other = count if not ragged else count - 1 if count > 1 else count + 2
    certain = [accepted_whole(count + ragged, vocabulary), rejected_at_once(other, vocabulary)]
    certain += [accepted_whole(0, vocabulary)] if ragged else []
    first, second, *rest = (row._replace(p=of_pmfs(row.p), q=of_pmfs(row.q)) for row in certain)
    return (first, second, mine, *rest)


def crowd_of(mine: BatchRow, ragged: bool, of_pmfs: Callable[[Any], Any]) -> tuple[BatchRow, ...]:
    """Return a batch of at least seven rows whose fifth row is ``mine``; all other rows have certain outcomes.

    The other rows are those of ``company_of``, repeated. ``of_pmfs`` converts their pmfs to arguments of the verifier.
    If ``ragged``, the rows have different numbers of drafts; the first, the fourth and the last row have none.
    """
    first, second, _, *empty = company_of(mine, ragged, of_pmfs)
    before = (*empty, first, second, *empty) if ragged else (first, second, second, first)
    return (*before, mine, second, first, *empty)


BESIDE = Company(company_of, 2, 3)
CROWD = Company(crowd_of, 4, 7)


def accepted_whole(count: int, vocabulary: int) -> BatchRow:
    """Return a row whose ``count`` drafts are all accepted with probability 1, and whose bonus has one possible value.

    ``vocabulary`` is the number of tokens.
    """
    first, last = _point_masses(vocabulary)
    return BatchRow(
        np.array([*[last] * count, first]),
        _stacked([(first + last) / 2] * count, vocabulary),
        (vocabulary - 1,) * count,
        GREEDY,
    )


def rejected_at_once(count: int, vocabulary: int) -> BatchRow:
    """Return a row with ``count`` drafts: the first is rejected with probability 1, and has one possible replacement.

    ``vocabulary`` is the number of tokens. All its rows of p and q have one possible token, so that its truncations may
    be as narrow as possible: a row beside it without a truncation must not get one.
    """
    first, last = _point_masses(vocabulary)
    return BatchRow(np.array([last] * (count + 1)), _stacked([first] * count, vocabulary), (0,) * count, NARROW)


class CertainRow(NamedTuple):
    """A row of a batch whose outcome has probability 1.

    ``emitted`` are the tokens that a right verifier emits for the row.
    """

    row: BatchRow
    emitted: Tokens

    def with_bonus(self, text: Tokens) -> Tokens:
        """Return the ``text`` that a verifier emits for the row, with the bonus token if the verifier leaves it out.

        A verifier without bonus tokens emits only the drafts if it accepts all of them.
        """
        return self.emitted if text == self.row.drafts == self.emitted[:-1] else text


def certain_row(count: int, accepted: int, vocabulary: int, first: int, *, greedy: bool = False) -> CertainRow:
    """Return a row of which the first ``accepted`` of ``count`` drafts are accepted, and the next one is rejected.

    The last emitted token has one possible value too. The row emits the tokens ``first``, ``first`` + 1, ... modulo
    ``vocabulary``, so rows with different ``first`` emit different tokens. If it is ``greedy``, it has temperature 0
    and rows in which every token is possible at another temperature.
    """
    one_hot = np.eye(vocabulary)
    wanted = [(first + place) % vocabulary for place in range(count + 1)]
    drafts = [token if place < accepted else (token + 1) % vocabulary for place, token in enumerate(wanted[:count])]
    q = [
        (one_hot[draft] + one_hot[draft - 1]) / 2 if place < accepted else one_hot[draft]
        for place, draft in enumerate(drafts)
    ]
    row = BatchRow(one_hot[wanted], _stacked(q, vocabulary), tuple(drafts), (("temperature", 0.5),))
    if greedy:
        row = row._replace(p=_softened(one_hot[wanted]), q=_softened(one_hot[drafts]), setting=GREEDY)
    return CertainRow(row, tuple(wanted[: accepted + 1]))


def _softened(one_hot: Any) -> Any:
    """Return one-hot pmfs ``[number, vocabulary]`` mixed in halves with the uniform pmf."""
    return (one_hot + 1 / one_hot.shape[1]) / 2


def _point_masses(vocabulary: int) -> Any:
    """Return two one-hot pmfs ``[vocabulary]``, on the first and on the last token."""
    result = np.zeros((2, vocabulary))
    result[0, 0] = result[1, -1] = 1.0
    return result


def _stacked(pmfs: list[Any], vocabulary: int) -> Any:
    return np.array(pmfs).reshape(len(pmfs), vocabulary)


def emitted(
    verify: BareVerifier, rows: Sequence[BatchRow], answered: Context, arguments: Arguments
) -> Callable[[Draws], Any]:
    """Return a function of draws that calls ``verify`` once on ``rows`` and returns the emitted tokens.

    ``arguments`` describes the arguments of the call. In the context manager ``answered(draws)`` the draws answer
    random calls. The function returns a tuple with the tokens of each row, or the tokens of the only row if the
    verifier takes no batch. It raises ``UnusableSubject`` unless there is one row of tokens for each of ``rows``.
    """
    given = arrays_of_rows(rows, takes_lengths(verify), arguments)
    convert = arrays_of(verify, attempt_of(arguments.form))
    told = arguments.in_common(rows[0].p.shape[1])
    invoke, read = partial(invoked, verify, told, tuple(given)), partial(_read, rows, arguments.form)
    call = partial(called, convert, given, invoke, read, verify, told)
    return memoised(answered, verify, given, call, tuple(told.items()))


@lru_cache(maxsize=8)
def attempt_of(form: Form) -> Attempt:
    """Return the function ``attempt(verify, convert)`` that calls a verifier of this form once on small arrays.

    The arrays are those of one row whose draft may be accepted or rejected. For a batch there are two rows before it,
    one accepted whole and one rejected at once.
    """

    def attempt(verify: BareVerifier, convert: Convert) -> Any:
        arguments = arguments_of(verify, form)
        if form.batched:
            p, q, draft = np.array([[2, 1], [1, 2]]) / 3, np.array([[1, 2]]) / 3, 1
        else:
            p, q, draft = SMALL_P, SMALL_Q, SMALL_DRAFT
        mine = BatchRow(arguments.of_pmfs(p), arguments.of_pmfs(q), (draft,))
        rows = company_of(mine, False, arguments.of_pmfs) if form.batched else (mine,)
        given = arrays_of_rows(rows, takes_lengths(verify), arguments)
        return _read(rows, form, invoked(verify, arguments.in_common(p.shape[1]), tuple(given), *convert(given)))

    return attempt


def _read(rows: Sequence[BatchRow], form: Form, answer: Any) -> Any:
    if not form.batched:
        return emitted_row(answer, len(rows[0].drafts))
    check_rows(answer, len(rows))
    ends = [_ends(left_open(answer[place], len(row.drafts) + 1)) for place, row in enumerate(rows)]
    last = ends.index(max(ends)) if max(ends) > 1 else None
    result: dict[int, Any] = {}
    for place in sorted(range(len(rows)), key=lambda place: place == last):  # the others may tell what it ends in
        with ends_left_open(int(place == last)):
            result[place] = emitted_row(answer[place], len(rows[place].drafts), f"row {place + 1} of {len(rows)}")
    return _together([result[place] for place in range(len(rows))])


def _ends(found: OpenEnd | None) -> int:
    """Return how many values the last token of a row may have; values of negligible probability do not count.

    ``found`` is the row, and has the law of its last token if the verifier has not determined this token. None means a
    row whose tokens are all known; then the result is 1.
    """
    return 1 if found is None else sum(mass > NEGLIGIBLE for _, mass in found.law)


def _together(found: Sequence[Any]) -> Any:
    """Return the texts ``found``, one for each row of a batch, as one tuple.

    If the last token of a text has no value yet, the text has several possible values (``Undecided``). Then return
    several possible tuples, with their probabilities.
    """
    return next(
        (
            Undecided(tuple(((*found[:place], tokens, *found[place + 1 :]), mass) for tokens, mass in row.outcomes))
            for place, row in enumerate(found)
            if isinstance(row, Undecided)
        ),
        tuple(found),
    )


def invoked(verify: BareVerifier, told: Mapping[str, Any], names: tuple[str, ...], *arrays: Any) -> Any:
    """Call ``verify`` with ``arrays``, which have ``names``, and the named arguments in ``told``; return its tokens.

    The first three arrays are positional. So is ``lengths``, unless ``verify`` has a parameter of this name. The others
    are passed by name.
    """
    by_name = 3 if len(names) > 3 and (names[3] != "lengths" or _names_lengths(verify)) else 4
    return tokens_of(verify(*arrays[:by_name], **dict(zip(names[by_name:], arrays[by_name:], strict=True)), **told))


@lru_cache(maxsize=256)
def _names_lengths(verify: BareVerifier) -> bool:
    return "lengths" in inspect.signature(verify).parameters


def arrays_of_rows(rows: Sequence[BatchRow], ragged: bool, arguments: Arguments) -> dict[str, Any]:
    """Return the NumPy arguments of a call on ``rows``, by name.

    Rows of a batch are padded to the longest row. If the verifier takes one row, the arguments have no dimension for
    the batch. A ``ragged`` batch also has ``lengths``, the numbers of drafts. ``arguments`` describes the form of the
    arguments; sampling parameters that rows have for themselves come last.
    """
    # a batch without drafts has room for one
    width, (first, last) = max(int(ragged), *(len(row.drafts) for row in rows)), _point_masses(rows[0].p.shape[1])
    padding = arguments.of_pmfs(np.array([first, 0.75 * first + 0.25 * last]))
    dtype = (
        np.float32 if any(row.p.dtype == np.float32 for row in rows) else None
    )  # one float32 row makes all of them so
    given = {
        arguments.names[0]: np.array([_padded(row.p, width + 1, padding[0]) for row in rows], dtype),
        arguments.names[1]: np.array([_padded(row.q, width, padding[1]) for row in rows], dtype),
        "draft_tokens": np.array([(*row.drafts, *(-1,) * (width - len(row.drafts))) for row in rows]),
    }
    if not arguments.form.batched:
        return {name: array[0] for name, array in given.items()}
    if ragged:
        given["lengths"] = np.array([len(row.drafts) for row in rows])
    if arguments.of_each_row:
        each = [arguments.parameters(rows[0].p.shape[1], row.setting) for row in rows]
        given |= {name: np.array([parameters[name] for parameters in each]) for name in each[0]}
    return given


def _padded(pmfs: Any, length: int, padding: Any) -> Any:
    missing = length - len(pmfs)
    return np.concatenate([pmfs, np.broadcast_to(padding, (missing, len(padding)))]) if missing else pmfs
