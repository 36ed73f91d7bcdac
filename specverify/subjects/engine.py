"""A user's engine as a subject: a call that decodes with speculation, and the same call without.

  speculative() -> new tokens        plain() -> new tokens

Both take no arguments except a seed (``call_arguments``), decode the same prompt and return the new token ids in any
form of ``engine_answers``: a list, a tensor, an object with token ids, possibly awaited or in pieces (``awaited``).
Both may return the texts of several prompts, as rows; then the law is that of all rows together. They draw from torch,
NumPy or ``random``, and are enumerated unchanged. Their state must be the same at the beginning of every call. Each is
called once beforehand, so that lazy initialisation does not count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

from specverify.base.callables import first_line, told_apart
from specverify.intercept.distributions import Forced
from specverify.intercept.everywhere import answered_everywhere
from specverify.intercept.run import aside
from specverify.intercept.symbolic.deferred import known
from specverify.intercept.symbolic.numbers import final_outcome
from specverify.laws.enumeration import complete_law
from specverify.laws.near_ties import Logits
from specverify.laws.paths import Undecided
from specverify.reference import Claim, Draws, Tokens
from specverify.reference.validation import shown
from specverify.subjects.awaited import Stream, awaited
from specverify.subjects.call_arguments import run_seeds, sample_seeds, with_seeds
from specverify.subjects.emitted import check_type, in_order, number_of
from specverify.subjects.engine_answers import (
    EXPECTED,
    grows,
    new_tokens,
    read_answer_rows,
    refuse_growing,
    without_padding,
)
from specverify.subjects.observer import Observer
from specverify.subjects.seeded import seeded
from specverify.subjects.subject import (
    EngineProgram,
    Observed,
    SampledPair,
    SampledSetting,
    Subject,
    UnusableSubject,
    Watched,
)

if TYPE_CHECKING:
    from specverify.intercept.torch.passes import Passes

Decode = Callable[[], Any]
ModelsWithPasses = tuple[tuple[Any, "Passes"], ...]
"""Pairs of a model and a description of the data on which its forward passes depend."""
LOSSLESS = frozenset({Claim.LOSSLESS, Claim.GREEDY, Claim.SUPPORTED})
"""The default claims of an engine."""
DETECT = 0.05
"""Total variation that samples of an engine detect."""


def engine_subject(
    speculative: Decode,
    plain: Decode | Mapping[Tokens, float],
    name: str,
    models: ModelsWithPasses = (),
    claims: frozenset[Claim] = LOSSLESS,
    observer: Observer | None = None,
    logits: Logits | None = None,
) -> Subject:
    """Return the subject of one call with and without speculation; by default it claims to be lossless.

    * ``speculative``, ``plain``: The call with speculation; and the one without, or the law of its new tokens.
    * ``name``: The name of the subject.
    * ``models``: Models whose forward passes are cached between runs.
    * ``observer``: Records both calls while they run.
    * ``logits``: The target's logits, whose argmax both calls take in greedy decoding.
    """
    subject = Subject(
        name=name,
        summary=first_line(speculative, "an engine"),
        claims=claims,
        rational=False,
    )
    speculative = with_seeds(speculative)
    alone = plain if isinstance(plain, Mapping) else told_apart(with_seeds(plain))
    sample = partial(_counted, speculative)
    program = program_of("as called", speculative, alone, models, observer, one_text=logits is not None)
    program = program._replace(logits=logits)
    if isinstance(alone, Mapping):
        law = partial(_given_law, alone)
        return (
            subject._replace(warm=partial(_warm, speculative))
            .with_programs((program,))
            .with_situations(SampledSetting, (SampledSetting(SAMPLED, sample, law, DETECT),))
        )
    return (
        subject._replace(warm=partial(_warm, speculative, alone))
        .with_programs((program,))
        .with_situations(SampledPair, (SampledPair(SAMPLED, sample, partial(_counted, alone), DETECT, logits),))
    )


def program_of(
    name: str,
    speculative: Decode,
    plain: Decode | Mapping[Tokens, float],
    models: ModelsWithPasses = (),
    observer: Observer | None = None,
    *,
    one_text: bool = False,
) -> EngineProgram:
    """Return the call ``speculative`` as the program ``name``: its draws can be chosen, so its law can be enumerated.

    The expected law is that of ``plain``, a call or a law. Forward passes of ``models`` are cached, and ``observer``
    records the runs. Both calls may return the texts of several prompts, unless ``one_text`` is set or an observer is
    used.
    """
    like = None if isinstance(plain, Mapping) or observer is not None or one_text else plain
    program = EngineProgram(name, partial(opened, speculative, models, like=like), law=dict)
    if isinstance(plain, Mapping):
        program = program._replace(law=partial(_given_law, plain))
    else:
        program = program._replace(
            law=partial(_plain_law, plain, models, like), plain=partial(opened, plain, models, like=like)
        )
    if observer is None:
        return program
    alone = None if isinstance(plain, Mapping) else plain
    watch = partial(watched, observer, speculative, alone, models)
    return program._replace(watch=watch, tells=observer.tells, draft=observer.draft)


SAMPLED = "as called, its own random numbers"


@contextmanager
def opened(
    decode: Decode,
    models: ModelsWithPasses,
    forced_uniform: Forced = None,
    horizon: int | None = None,
    anew: Callable[[], Decode] | None = None,
    like: Decode | None = None,
    *,
    empty: bool = False,
    read: bool = False,
) -> Iterator[Callable[[Draws], Any]]:
    """Yield ``decode`` as a function of draws, which answer its random calls; the function returns the new tokens.

    * ``models``: Pairs of a model and the data on which its forward passes depend; the passes are cached between runs.
    * ``forced_uniform``: The value of all uniforms, if given.
    * ``horizon``: The number of tokens after which a text is cut; None: it is not cut.
    * ``anew``: If given, every run first calls ``anew()`` to create the call; draws made there are not part of the run.
    * ``like``: If given, the outcome is a tuple of as many texts as this call returns; else it is one text.
    * ``empty``: Whether a text may have no tokens.
    * ``read``: Whether the result of ``decode`` is the outcome, unchanged; otherwise its tokens are read and checked.
    """
    rows = 1 if like is None else _rows_returned(like)
    if like is not None:
        _rows_returned(decode)

    def program(draws: Draws) -> Any:
        with aside():
            call = anew() if anew else decode
        with run_seeds(), answered_everywhere(draws, forced_uniform):
            return call() if read else _outcome(call(), horizon, rows, empty=empty)

    with ExitStack() as stack:
        if models:
            import torch  # noqa: PLC0415 - whoever passes models has it

            from specverify.intercept.torch.passes import Memory, remembered  # noqa: PLC0415

            stack.enter_context(torch.no_grad())
            for model, passes in models:
                stack.enter_context(remembered(model, Memory({}, [0]), passes))
        yield program


@contextmanager
def watched(
    observer: Observer, speculative: Decode, plain: Decode | None, models: ModelsWithPasses, horizon: int | None = None
) -> Iterator[Watched]:
    """Yield the calls ``speculative`` and ``plain`` as functions of draws that return the observer's record of a run.

    Forward passes of ``models`` are cached. New tokens beyond ``horizon`` are cut off (None: none are). If ``plain`` is
    None, the records of the call without speculation are empty.
    """

    def looked_into(decode: Decode) -> Callable[[Draws], Observed]:
        def run(draws: Draws) -> Observed:
            observer.begin()
            with run_seeds(), answered_everywhere(draws), observer.hooked():
                new = _outcome(decode(), horizon)
            return Observed(new, tuple(observer.forwards), tuple(map(tuple, observer.shown)))

        return run

    with opened(speculative, models):
        yield Watched(looked_into(speculative), looked_into(plain) if plain else _nothing, observer.prompt)


def _nothing(_: Draws) -> Observed:
    return Observed((), ())


def _warm(*calls: Decode) -> None:
    """Call each function once without interception, so that lazy initialisation is done.

    Errors are ignored here; the checks report them.
    """
    for decode in calls:
        with seeded(0), run_seeds(), suppress(Exception):
            awaited(decode())


def _counted(decode: Decode, number: int, seed: int) -> Counter[Tokens]:
    """Count how often each text occurs in ``number`` calls of ``decode``, which draws its own random numbers.

    ``seed`` seeds the generators of libraries once, and selects the seeds that are passed to the calls.
    """
    with seeded(seed), sample_seeds(seed):
        return Counter(_outcome(decode(), rows=None) for _ in range(number))


LOOKS = 4
"""The number of calls whose streams are examined."""


@lru_cache(maxsize=16)
def _rows_returned(decode: Decode) -> int | None:
    """Return the number of texts that the call ``decode`` returns; None if no result can be read.

    Raises ``UnusableSubject`` for a generator that repeats the whole text so far in each piece.
    """
    growing, result = list[bool](), None
    for seed in range(LOOKS):
        with seeded(seed), run_seeds(), suppress(Exception):
            answer = awaited(decode())
            result = len(read_answer_rows(answer).rows)
            if not isinstance(answer, Stream):
                return result
            growing.append(grows(answer))
    refuse_growing(growing)
    return result


def _outcome(answer: Any, horizon: int | None = None, rows: int | None = 1, *, empty: bool = False) -> Any:
    """Return the new tokens in ``answer``, the result of a run: one text, or a tuple of several texts.

    One text is cut at ``horizon`` (None: not cut); several are not cut. If the last token of one text was never read,
    all possible texts are returned, with their probabilities (``Undecided``). ``rows`` is the expected number of texts;
    None permits any number. ``empty`` permits one text without tokens. Raises ``UnusableSubject`` for another number.
    """
    result = read_answer_rows(answer)
    if rows is not None and len(result.rows) != rows:
        plain = f"{rows} rows, as the call without speculation returns" if rows > 1 else "one text"
        raise UnusableSubject(f"it returned {len(result.rows)} rows, expected {plain}: {shown(answer)}")
    texts = new_tokens(result, ())
    if len(texts) != 1:
        return tuple(tokens_of(text) for text in texts)
    (tokens,) = texts
    if empty and not len(tokens):
        return ()
    if not hasattr(tokens, "detach"):
        return tokens_of(tokens)[:horizon]
    from specverify.intercept.torch.tensors import elements_of  # noqa: PLC0415 - it is a tensor

    outcome = final_outcome(list(elements_of(tokens))[:horizon])
    if not isinstance(outcome, Undecided):
        return tokens_of(without_padding(list(outcome), left=False))
    return Undecided(
        tuple((tuple(without_padding(list(values), left=False)), mass) for values, mass in outcome.outcomes)
    )


def tokens_of(row: Any) -> Tokens:
    """Return a sequence of new tokens as integers.

    Raises ``UnusableSubject`` unless ``row`` is a sequence of at least one token.
    """
    check_type(row, "it")
    try:
        if isinstance(row, (str, bytes)):
            raise TypeError  # noqa: TRY301 - it can be walked through, and is no sequence of numbers
        listed = row.tolist() if hasattr(row, "tolist") else in_order(row)
        result = tuple(number_of(known(token), "it") for token in listed)
    except TypeError:
        raise UnusableSubject(f"it returned {shown(row)}, {EXPECTED}") from None
    if fractions := [token for token in result if not isinstance(token, int)]:
        raise UnusableSubject(f"it returned the token {fractions[0]}, {EXPECTED}")
    if not result:
        raise UnusableSubject("it returned no token, expected at least one")
    return result


@lru_cache(maxsize=4)
def _plain_law(plain: Decode, models: ModelsWithPasses, like: Decode | None) -> Mapping[Tokens, float]:
    with opened(plain, models, like=like) as program:
        return complete_law(program)


def _given_law(law: Mapping[Tokens, float]) -> Mapping[Tokens, float]:
    total = sum(law.values())
    if any(mass < 0 for mass in law.values()) or abs(total - 1) > 1e-6:
        raise UnusableSubject(f"the law that was given sums to {total:.6g}, expected probabilities that sum to 1")
    return law
