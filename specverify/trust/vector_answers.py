"""Let planted bugs answer the published test vectors.

A test vector has inputs (pmfs, drafts, uniforms) and the right answer. If the answer is a law, the decoder is
enumerated with the vector's models. If the answer is the result of one round, the decoder's drafts are replaced by
those of the vector, and its other draws use the vector's uniforms. If the answer is the length of a cache, an engine
decodes texts, and an observer reads the lengths of its cache.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from specverify.intercept.everywhere import answered_everywhere
from specverify.intercept.refusals import NeedsValue
from specverify.laws.enumeration import EnumerationTooLarge, decoder_law, program_law
from specverify.laws.law import Law
from specverify.laws.tables import as_float64
from specverify.mutants import Mutant
from specverify.mutants.mutant import TextAsked
from specverify.reference import Decoder, Draws, LanguageModel, Pmf, Sampled, Task, Tokens, generate
from specverify.subjects.array_kinds import BareVerifier
from specverify.subjects.subject import EngineProgram, Subject, Variant, committed_before, drafts_of
from specverify.trust.vector_draws import Forced, NotAsked
from specverify.vectors.all_vectors import all_vectors
from specverify.vectors.json_models import pmf_of, sparse_pmf_of
from specverify.vectors.kinds.boundary import LARGEST, ZERO
from specverify.vectors.kinds.law_of_round import LOSSLESS, PROCESSED, options_data, task_of
from specverify.vectors.vector import Answer, Vector

BUDGET = 20_000
"""Largest number of runs of one law; a vector that needs more is not answered."""
LEAST, SMALL = 3, 10
"""Range of vocabulary sizes: with two tokens a coin is indistinguishable from a token, and with thousands rationals
take too long."""
SEEDS = range(8)
"""Seeds with which an engine decodes until a round has the numbers of a vector."""


class QuestionedSide(NamedTuple):
    """A planted bug, or its control, as a program that answers test vectors.

    ``text`` decodes a vector's text, and ``verifier`` is the bare verifier; each is None if the program has none.
    ``algorithm`` is the registry algorithm whose vectors it answers.
    """

    subject: Subject
    text: TextAsked | None
    verifier: BareVerifier | None
    algorithm: str


def sides(mutant: Mutant) -> tuple[QuestionedSide, QuestionedSide]:
    """Return (bug, control) of a mutant, each as a program that answers test vectors."""
    bug, control = mutant.open(), mutant.control()
    name = control.name.removeprefix("reference:")
    known = {vector.inputs.get("algorithm") for vector in all_vectors().values()}
    algorithm = name if name in known else "speculative-sampling"
    texts, verifiers = mutant.texts or (None, None), mutant.verifiers or (None, None)
    return QuestionedSide(bug, texts[0], verifiers[0], algorithm), QuestionedSide(
        control, texts[1], verifiers[1], algorithm
    )


def questions(asked: QuestionedSide) -> Iterator[tuple[Vector, Callable[[QuestionedSide], Answer]]]:
    """Yield every test vector that may apply to the program ``asked``, with a function that answers it.

    The function takes the bug or its control and returns its answer. It raises ``NotAsked`` if the vector does not
    apply. A vector is yielded once for each variant of the program, which has its own options.
    """
    for vector in all_vectors().values():
        for answer in _ways(asked, vector):
            yield vector, answer


def _ways(asked: QuestionedSide, vector: Vector) -> Iterator[Callable[[QuestionedSide], Answer]]:
    variants = range(len(asked.subject.variants))
    if vector.kind == "law_of_round":
        if asked.text is not None and vector.group.endswith((LOSSLESS, PROCESSED)):
            yield partial(_text_answer, vector)
        elif vector.flags[0] in (LOSSLESS, asked.algorithm):
            yield from (partial(_law_answer, vector, place) for place in variants)
    elif vector.kind == "stop" and not vector.inputs.get("min_new"):
        if asked.text is not None:
            yield partial(_stopped_text, vector)
        elif not vector.inputs["stop"] and asked.subject.stops_at_eos:
            yield from (partial(_stopped, vector, place) for place in variants[:1])
    elif vector.kind in {"verify_chain", "boundary"}:
        if asked.verifier is not None:
            yield partial(_bare_answer, vector)
        else:
            yield from (partial(_round_answer, vector, place) for place in variants)
    elif vector.kind == "cache_lengths" and vector.flags[0] == "target":
        yield from (partial(_cache_answer, vector, program) for program in range(len(asked.subject.programs)))


def _variant(asked: QuestionedSide, place: int) -> Variant:
    variant = asked.subject.variants[place]
    if variant.process is not None:
        raise NotAsked("it processes the models by itself")
    return variant


def _task(asked: QuestionedSide, task: Task) -> Task:
    if asked.subject.rational:
        return task
    assert task.draft is not None
    return task._replace(target=as_float64(task.target), draft=as_float64(task.draft))


def _law_answer(vector: Vector, place: int, asked: QuestionedSide) -> Answer:
    """Return the law of a program's tokens with the models of a vector: of one round, or of whole texts.

    The kind of the vector decides which. ``asked`` holds the program; ``place`` is the index of the program's variant
    (its options) in ``asked.subject.variants``. Raises ``NotAsked`` if the vector does not apply to the variant.
    """
    inputs, variant = vector.inputs, _variant(asked, place)
    if inputs.get("options") is not None and inputs["options"] != _options(variant):
        raise NotAsked("another option")
    if inputs["eos"] and not asked.subject.stops_at_eos:
        raise NotAsked("it has no end-of-sequence token")
    task, prompt = _task(asked, task_of(inputs)), tuple(inputs["prompt"])
    decoder = (variant.remembered or variant.build)(task)
    if inputs["what"] == "round":
        state = decoder.init(prompt)
        return _as_answer(program_law(lambda draws: decoder.step(draws, state)[1].tokens, BUDGET))
    return _as_answer(decoder_law(decoder, prompt, BUDGET))


def _options(variant: Variant) -> dict[str, Any]:
    """Return the options of ``variant``, with the names that the inputs of a vector use as keys.

    They are the keyword arguments of its builder, or for a verifier the integers in its label, such as ``gamma=3``.
    """
    keywords = getattr(variant.build, "keywords", {})
    if keywords:
        return {name: options_data(value) for name, value in keywords.items()}
    words = dict(word.split("=") for word in variant.label.split() if "=" in word)
    return {name: int(value) for name, value in words.items() if value.isdecimal()}


def _as_answer(law: Law) -> Answer:
    if law.missing:
        raise NotAsked("too many paths")
    rows = [
        {"tokens": list(tokens), "probability": str(mass) if isinstance(mass, (Fraction, int)) else float(mass)}
        for tokens, mass in law.probabilities.items()
    ]
    return {"law": rows}


def _text_answer(vector: Vector, asked: QuestionedSide) -> Answer:
    inputs = vector.inputs
    task = task_of(inputs)
    assert asked.text is not None
    assert task.draft is not None
    program = asked.text(task.target, task.draft, {**inputs, "vocabulary": len(inputs["target"][0])})
    if program is None:
        raise NotAsked("its situation has other models")
    return _as_answer(program_law(program, BUDGET))


def _spelt(inputs: Mapping[str, Any]) -> tuple[LanguageModel, Tokens, int]:
    """Return the inputs of a decode for a ``stop`` vector: a model, the prompt, and the vocabulary size.

    A ``stop`` vector tests where a text ends. The model emits the text in ``inputs`` with certainty. Raises
    ``NotAsked`` if the text is shorter than the number of tokens to decode.
    """
    text = tuple(token for tokens in inputs["rounds"] for token in tokens)
    size, prompt = max(*text, *inputs["eos"], 3) + 1, (0, 0)
    if inputs["max_new"] > len(text):
        raise NotAsked("the text is shorter than its length")

    def model(tokens: Tokens) -> Pmf:
        place = min(len(tokens) - len(prompt), len(text) - 1)
        return np.array([Fraction(int(token == text[place])) for token in range(size)], dtype=object)

    return model, prompt, size


def _stopped(vector: Vector, place: int, asked: QuestionedSide) -> Answer:
    """Return the text that a program decodes for a ``stop`` vector, which tests where a text ends.

    Target and draft model emit the text of the vector with certainty, so every draft is accepted. ``asked`` holds the
    program; ``place`` is the index of its variant (its options) in ``asked.subject.variants``.
    """
    model, prompt, _ = _spelt(vector.inputs)
    task = Task(model, model, eos=tuple(vector.inputs["eos"]), horizon=vector.inputs["max_new"])
    decoder = _variant(asked, place).build(_task(asked, task))
    return {"tokens": list(generate(decoder, prompt, Sampled(0)).tokens), "finished": True}


def _stopped_text(vector: Vector, asked: QuestionedSide) -> Answer:
    inputs = vector.inputs
    model, prompt, size = _spelt(inputs)
    assert asked.text is not None
    program = asked.text(
        model,
        model,
        {"prompt": prompt, "vocabulary": size, "horizon": inputs["max_new"], **inputs},
    )
    if program is None:
        raise NotAsked("its situation has other models")
    return {"tokens": list(program(Sampled(0))), "finished": True}


def _first_round(decoder: Decoder, draws: Draws, gamma: int) -> Answer:
    _, done = decoder.step(draws, decoder.init((0,)))
    if len(done.draft) != gamma:
        raise NotAsked("another number of drafts")
    return {"accepted": done.accepted, "tokens": list(done.tokens)}


def _by_rows(p: Sequence[Pmf], q: Sequence[Pmf]) -> Task:
    """Return a task whose first round, after a prompt of one token, has the pmfs ``p`` and ``q``."""
    rows = [[*side, *[side[-1]] * 2] for side in (p, q)]
    models = [lambda tokens, side=side: side[min(len(tokens) - 1, len(side) - 1)] for side in rows]
    return Task(models[0], models[1], horizon=len(q) + 1)


def _given_rows(inputs: Mapping[str, Any]) -> tuple[list[Pmf], list[Pmf]]:
    """Return the target's and the draft model's pmfs of a ``verify_chain`` or ``boundary`` vector, one per position.

    ``inputs`` are those of the vector. Raises ``NotAsked`` if a pmf of the drafter is missing, if ``inputs`` contain
    NaN or the keys of an exponential race, or if the vocabulary is too small: a draw of a token could then be taken for
    an acceptance test.
    """
    if None in inputs["q"] or "keys" in inputs or "nan" in str(inputs):
        raise NotAsked("it draws its drafts, from rows of numbers")
    if "vocabulary" not in inputs:
        p, q = ([pmf_of(row) for row in inputs[name]] for name in ("p", "q"))
    else:
        p, q = ([sparse_pmf_of(row, inputs["vocabulary"]) for row in inputs[name]] for name in ("p", "q"))
    if len(p[0]) < LEAST or not all(0 <= token < len(p[0]) for token in inputs["draft"]):
        raise NotAsked("a coin is indistinguishable from a token")
    return p, q


def _check_coins(inputs: Mapping[str, Any], p: Sequence[Pmf], q: Sequence[Pmf]) -> None:
    """Raise ``NotAsked`` unless every acceptance test of a vector is random: 0 < p(token) < q(token) for each draft.

    ``inputs`` has the drafts of the vector, ``p`` and ``q`` are its pmfs by position. A program may skip a test that is
    not random.
    """
    for i, token in enumerate(inputs["draft"]):
        if not 0 < p[i][token] < q[i][token]:
            raise NotAsked("a coin that is not requested")


def _end_of(inputs: Mapping[str, Any]) -> float | None:
    """Return 0.0 if all uniforms in ``inputs`` are 0, 1.0 if all are the largest float below 1, else None."""
    numbers = {*inputs.get("coins", ()), inputs.get("final")}
    return {ZERO: 0.0, LARGEST: 1.0}.get(numbers.pop()) if len(numbers) == 1 else None


def _round_answer(vector: Vector, place: int, asked: QuestionedSide) -> Answer:
    """Run the first round of a program on the models and draws of a vector; return its tokens and accepted drafts.

    Drafts become those of the vector, and its uniforms decide all other draws. A ``boundary`` vector may have all
    uniforms equal to 0, or to the largest float below 1; in foreign code every uniform then has this value. ``asked``
    holds the program; ``place`` is the index of its variant (its options) in ``asked.subject.variants``. Raises
    ``NotAsked`` if the vector does not apply.
    """
    inputs, variant = vector.inputs, _variant(asked, place)
    gamma = len(inputs["draft"])
    if gamma > _options(variant).get("gamma", 0) or inputs.get("vocabulary", 0) > SMALL:
        raise NotAsked("another number of drafts")
    task = _task(asked, _by_rows(*_given_rows(inputs)))
    end = _end_of(inputs) if vector.kind == "boundary" else None
    if end is None or variant.intercepted is None:
        if variant.intercepted is not None:
            _check_coins(inputs, *_given_rows(inputs))
        return _first_round(variant.build(task), Forced(inputs), gamma)
    forced = partial(variant.intercepted.answered, forced_uniform=end)
    return _first_round(variant.intercepted.build(task, forced), Forced(inputs), gamma)


def _bare_answer(vector: Vector, asked: QuestionedSide) -> Answer:
    """Return the tokens and the number of accepted drafts of one call of the bare verifier for a vector.

    ``asked`` holds the verifier. Raises ``NotAsked`` if the vector does not apply to a bare verifier.
    """
    inputs = vector.inputs
    rows = [np.array(side, dtype=np.float64) for side in _given_rows(inputs)]
    end = _end_of(inputs) if vector.kind == "boundary" else None
    if end is None:
        _check_coins(inputs, *_given_rows(inputs))
    assert asked.verifier is not None
    with answered_everywhere(Forced(inputs), end):
        tokens = [int(token) for token in asked.verifier(*rows, np.array(inputs["draft"]))]
    return {"accepted": len(tokens) - 1, "tokens": tokens}


def _cache_answer(vector: Vector, place: int, asked: QuestionedSide) -> Answer:
    """Return an engine's cache length after the round that a vector describes, and the positions that the cache lacks.

    The engine is ``asked.subject.programs[place]``. It decodes with several seeds until a round has the vector's
    numbers of known, drafted and accepted tokens. Raises ``NotAsked`` if no seed gives such a round.
    """
    program = asked.subject.programs[place]
    wanted = tuple(vector.inputs[name] for name in ("known", "gamma", "accepted"))
    for seed in SEEDS:
        for (known, gamma, accepted), held in _rounds_seen(program, seed):
            if (known, gamma, accepted) == wanted:
                return {"keep": held, "unfed": list(range(held, known + accepted + 1))}
    raise NotAsked("no such round was seen")


def _rounds_seen(program: EngineProgram, seed: int) -> Iterator[tuple[tuple[int, int, int], int]]:
    """Yield (sizes, cache length before the next round) for each round but the last of a text that ``program`` decodes.

    The sizes are the numbers of tokens before the round, of drafted tokens, and of accepted drafts. ``seed`` is the
    seed of the draws. Raises ``NotAsked`` if the program has no observer.
    """
    if program.watch is None:
        raise NotAsked("it cannot be looked into")
    with program.watch() as watched:
        seen = watched.run(Sampled(seed))
        text = (*watched.prompt, *(token for token in seen.new if isinstance(token, int)))
        known = committed_before(seen.forwards[0], watched.prompt)
        for before, after in zip(seen.forwards, seen.forwards[1:], strict=False):
            drafts = drafts_of(before, watched.prompt)
            accepted = next(
                (i for i, draft in enumerate(drafts) if text[known + i : known + i + 1] != (draft,)), len(drafts)
            )
            yield (known, len(drafts), accepted), after.held
            known += accepted + 1


UNABLE = (NotAsked, EnumerationTooLarge, NeedsValue)
"""Errors that mean "cannot be answered" and are no wrong answer."""
