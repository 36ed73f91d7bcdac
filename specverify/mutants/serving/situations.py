"""The situations in which the serving engine is examined, as data: requests, models, drafter, batch, outcome."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, NamedTuple

from specverify.mutants.serving.output import Pieces
from specverify.mutants.serving.request import Grammar, Parameters
from specverify.reference import Tokens

# A situation of the engine, as plain data: requests, models, drafter, batch, and what comes out of it

LETTERS: Pieces = (b"a", b"b", b"c", b"d", b"e")
HALVES: Pieces = (b"a", b"\xc3", b"\xa9", b"d")
"""Bytes of four tokens; tokens 1 and 2 together are one character, and neither is a character alone."""


class Setup(NamedTuple):
    """One situation of the serving engine: everything but the engine's own functions.

    * ``shape``, ``vocabulary`` and ``seed`` select the models (see ``model.table_sides``).
    * ``page_size`` is the number of entries of a page, and ``pages`` the number of pages.
    * ``rotates``: the order of the requests in the batch is reversed in every second step.
    * ``rectangular``: the rows of a pass are padded to the longest.
    * ``waits``: each step waits for the results of the step before.
    * ``ranks`` is the number of processes that decode together, ``pieces`` has the bytes of each token.
    * ``top`` is the number of most probable tokens that are returned.
    """

    bodies: tuple[Mapping[str, Any], ...]
    """Request bodies that the callers send; see ``request.Request``."""
    name: str = ""
    vocabulary: int = 3
    shape: str = "generic"
    seed: int = 0
    gammas: Tokens = (2,)
    """Draft lengths, cycled over the rounds of a request; request i starts at entry i."""
    drafting: str = "sampled"
    """``sampled`` from the draft model, its ``argmax``, or ``lookup`` in the text."""
    draft_processed: bool = False
    """Whether the request's parameters and grammar also apply to the draft's rows."""
    draft_ids: Tokens = ()
    """Target id of each draft token; () if the ids are the same."""
    flavour: str = "attention"
    """``attention`` or ``recurrent``."""
    window: int = 0
    """Number of cache entries that the newest token attends to, itself included; 0: all."""
    spare: int = 2
    """Number of cache entries stored beyond the window."""
    page_size: int = 2
    pages: int = 16
    chunk: int = 0
    """Number of prompt tokens per pass; 0: all of them and the first drafts in one pass."""
    alone_first: bool = False
    """Whether the pass over the prompt samples the first new token, without drafts."""
    capacity: int = 4
    """Largest number of requests in the batch."""
    rotates: bool = False
    rectangular: bool = False
    padding: int = 0
    """Number of padding rows in a pass."""
    preempted: tuple[tuple[int, int], ...] = ()
    """Pairs (step, request): the request is preempted and loses its caches before the step."""
    aborted: tuple[tuple[int, int], ...] = ()
    """Pairs (step, request): the caller disconnects during the pass of the step."""
    waits: bool = False
    ranks: int = 1
    pieces: Pieces = LETTERS
    outcome: str = "tokens"
    """Outcome of a request: its new ``tokens``; tokens and their ``reported`` probabilities; or the text that was
    ``streamed``. For a disconnected caller it is the number of accepted drafts."""
    reports: bool = False
    """Whether the answer contains the most probable tokens and the prompt's probabilities besides the tokens."""
    top: int = 2


# The situations of the engine: one word, one thing that can go wrong. Small, so that every run is enumerated

HALF, THIRD = Fraction(1, 2), Fraction(1, 3)
BALANCED = Grammar(((0, 0, 1), (0, 1, 0), (1, 2, 2), (1, 1, 0), (2, 0, -1), (2, 1, 2)))
"""A grammar over tokens 0, 1 and 2 that alternates 0 and 2: after a 0 the next 0 is allowed only after a 2. The text is
complete after 0 .. 2 .. 0."""
SHORT_GRAMMAR = Grammar(((0, 0, 1), (0, 1, 1), (1, 2, -1)))
"""A grammar whose complete texts are 0 2 and 1 2."""


def one(prompt: Tokens = (0, 1), max_new: int = 4, **body: Any) -> tuple[dict[str, Any], ...]:
    """Return the request bodies of a situation with a single request.

    ``max_new`` is the largest number of new tokens, and ``body`` has further fields of ``Request``.
    """
    return ({"prompt": prompt, "max_new": max_new, **body},)


def with_parameters(**parameters: Any) -> tuple[dict[str, Any], ...]:
    """Return a tuple with the body of one request; ``parameters`` are fields of its ``Parameters``."""
    return one(parameters=Parameters(**parameters))


GREEDY = Parameters(temperature=0)
_TWO = (*one((0, 1), 3), *one((2, 0, 1), 2))
_LONGER = (*one((0, 1), 3), *one((2, 0, 1), 3))

_ARGMAX = Setup((), drafting="argmax")
_BATCH = _ARGMAX._replace(bodies=_TWO, shape="zeros", seed=3)
_LONG = _ARGMAX._replace(bodies=one((0, 1, 2, 1, 0), 3))

_ALL: dict[str, Setup] = {
    "one request": _ARGMAX._replace(bodies=one()),
    "sampled drafts": Setup(one(max_new=3)),
    "greedy": _ARGMAX._replace(bodies=with_parameters(temperature=0)),
    "temperature": _ARGMAX._replace(bodies=with_parameters(temperature=2)),
    "penalties": _ARGMAX._replace(bodies=with_parameters(repetition=HALF, frequency=THIRD)),
    "bias": _ARGMAX._replace(bodies=with_parameters(bias=((0, Fraction(5)),))),
    "top-k and top-p": _ARGMAX._replace(bodies=with_parameters(top_k=3, top_p=Fraction(2, 3)), vocabulary=5),
    "min-p": _ARGMAX._replace(bodies=with_parameters(min_p=HALF)),
    "bad words": _ARGMAX._replace(bodies=with_parameters(bad_words=((1, 2), (2, 0, 1), (0, 0)))),
    "allowed tokens": _ARGMAX._replace(bodies=with_parameters(allowed=(0, 2))),
    "minimum length": _ARGMAX._replace(bodies=one(eos=(1,), parameters=Parameters(min_new=3))),
    "everything": _ARGMAX._replace(
        bodies=with_parameters(
            temperature=2, repetition=HALF, bias=((1, Fraction(2)),), bad_words=((0, 0),), top_k=2, min_new=1
        ),
        draft_processed=True,
    ),
    "grammar": _ARGMAX._replace(bodies=one(grammar=BALANCED)),
    "grammar with drafts under it": Setup(one(max_new=4, grammar=BALANCED), draft_processed=True),
    "grammar after a trigger": _ARGMAX._replace(bodies=one(grammar=BALANCED._replace(trigger=1))),
    "grammar that ends": _ARGMAX._replace(bodies=one(grammar=SHORT_GRAMMAR)),
    "grammar from the first token": _ARGMAX._replace(bodies=one(grammar=BALANCED), alone_first=True),
    "first token alone": _ARGMAX._replace(bodies=with_parameters(repetition=HALF), alone_first=True),
    "chunks": _LONG._replace(chunk=2),
    "prompt at once": _LONG,
    "recurrent": _ARGMAX._replace(bodies=one(), flavour="recurrent"),
    "recurrent, rounds without drafts": _ARGMAX._replace(bodies=one(), flavour="recurrent", gammas=(2, 0)),
    "recurrent, four drafts": Setup(
        one(max_new=6), flavour="recurrent", shape="peaked", vocabulary=2, gammas=(4,), drafting="argmax"
    ),
    "recurrent in chunks": _LONG._replace(chunk=2, flavour="recurrent", preempted=((2, 0),)),
    "recurrent to the end of the context": _ARGMAX._replace(bodies=one(max_new=9, max_context=6), flavour="recurrent"),
    "window": _ARGMAX._replace(bodies=one(), window=3),
    "end of sequence": _ARGMAX._replace(bodies=one(eos=(1,))),
    "two ends of sequence": _ARGMAX._replace(bodies=one(eos=(1, 2)), seed=1),
    "stop strings": _ARGMAX._replace(bodies=one(stop_strings=("ab", "ca")), seed=3),
    "context length": _ARGMAX._replace(bodies=one(max_new=9, max_context=6)),
    "lookup to the end of the context": Setup(one((0, 1, 0), 9, max_context=7), drafting="lookup"),
    "lookup": Setup(one((0, 1, 0), 4), drafting="lookup"),
    "streamed": _ARGMAX._replace(bodies=one(), pieces=HALVES, outcome="streamed"),
    "reports": _ARGMAX._replace(bodies=one((0, 1, 2), 4), reports=True),
    "reported probabilities": _ARGMAX._replace(bodies=one(), outcome="reported"),
    "reported probabilities of lookup": Setup(one((0, 1, 0), 4), drafting="lookup", outcome="reported"),
    "reported probabilities, in chunks": _LONG._replace(outcome="reported", chunk=2),
    "reported probabilities, each step waiting": _ARGMAX._replace(bodies=one(), outcome="reported", waits=True),
    "draft in its own ids": Setup(one(max_new=3), draft_ids=(1, 2, 0)),
    "batch": _BATCH,
    "batch of different parameters": _BATCH._replace(
        bodies=(
            *one((0, 1), 3, parameters=Parameters(temperature=2, bias=((0, Fraction(5)),))),
            *one((2, 0, 1), 3, eos=(2,), parameters=Parameters(min_p=HALF)),
        ),
        rotates=True,
    ),
    "greedy beside sampled": _BATCH._replace(
        bodies=(*one((0, 1), 3, parameters=GREEDY), *one((2, 0, 1), 3)),
    ),
    "different stop strings": _BATCH._replace(
        bodies=(*one((0, 1), 3, stop_strings=("aa", "b")), *one((2, 0, 1), 3, stop_strings=("c",)))
    ),
    "ragged batch": _BATCH._replace(bodies=_LONGER, gammas=(2, 0, 1), seed=5),
    "ragged batch, padded": _BATCH._replace(bodies=_LONGER, gammas=(2, 0, 1), seed=5, rectangular=True),
    "padding rows": _BATCH._replace(bodies=(*one((1, 0), 3), *one((2, 0, 1), 3)), padding=1),
    "rows in turn": _BATCH._replace(rotates=True),
    "staggered prompts": _BATCH._replace(
        bodies=(*one((0, 1), 4), *one((2, 0, 1, 1, 0), 2, arrives=1)), chunk=2, rotates=True
    ),
    "one after the other": _BATCH._replace(capacity=1),
    "one after the other, recurrent": _BATCH._replace(capacity=1, flavour="recurrent"),
    "conversation": _BATCH._replace(
        bodies=(*one((0, 1), 3, eos=(0,)), *one((1, 2, 1), 2, continues=True)), capacity=1, seed=1
    ),
    "recurrent conversation": _BATCH._replace(
        bodies=(*one((0, 1), 3, eos=(0,)), *one((1, 2, 1), 2, continues=True)), capacity=1, seed=1, flavour="recurrent"
    ),
    "preempted": _ARGMAX._replace(bodies=one(), preempted=((1, 0),)),
    "preempted under a grammar": _ARGMAX._replace(bodies=one(grammar=BALANCED), preempted=((1, 0),)),
    "aborted": _BATCH._replace(aborted=((0, 1),)),
    "two ranks": _ARGMAX._replace(bodies=one(max_new=2), ranks=2, gammas=(1,)),
    "two ranks with lookup": Setup(one((0, 1, 0, 2, 0), 3), drafting="lookup", ranks=2, gammas=(1,)),
    "few pages": _ARGMAX._replace(bodies=one(), pages=4),
}
SITUATIONS: dict[str, Setup] = {name: setup._replace(name=name) for name, setup in _ALL.items()}
