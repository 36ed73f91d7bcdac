"""An algorithm of the registry as a subject: its law is enumerated with each dictionary of options in ``examples``.

At sizes that are too large to enumerate, the algorithm is sampled.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

from specverify.laws.divided import divided_counts
from specverify.laws.law import target_law
from specverify.laws.tables import mixed_with, softmax_table, unchangeable
from specverify.reference import Algorithm, Draws, LanguageModel, Sampled, Task, Tokens, generate
from specverify.subjects.subject import Cost, EngineProgram, Method, SampledSetting, Subject, Variant

SAMPLED_SIZE: tuple[int, float, int | None, int] = (64, 1.0, 8, 3)
"""(vocabulary, temperature, top-k, horizon) of the statistical setting of every row."""
SECONDS_OF_A_DECODE = 1e-4
DETECT = 0.02
"""Total variation that the samples in addition to the exact checks detect; ``specverify stats`` plans finer ones."""
DETECT_RUN_BY_RUN = 0.15
"""Total variation that samples detect if each sample is a separate run."""


def algorithm_subject(algorithm: Algorithm, prefix: str = "reference", ours: bool = True) -> Subject:
    """Return the subject ``prefix:name`` of a registry algorithm.

    ``ours`` states that the algorithm is one of ``reference``. Any other algorithm is also sampled in separate runs, to
    find state that it keeps between runs.
    """
    plain = sampled_setting(algorithm, *SAMPLED_SIZE, detect=DETECT_RUN_BY_RUN, method=Method.PLAIN)
    return Subject(
        name=f"{prefix}:{algorithm.name}",
        summary=algorithm.summary,
        claims=algorithm.claims,
        paper=algorithm.paper,
        kind="decoder",
        situations=(
            *tuple(_variant(algorithm, options) for options in algorithm.examples),
            sampled_setting(algorithm, *SAMPLED_SIZE),
            *(() if ours else (plain._replace(name=f"{plain.name}, run by run"),)),
        ),
    )


def sampled_setting(
    algorithm: Algorithm,
    vocabulary: int,
    temperature: float,
    top_k: int | None,
    horizon: int,
    detect: float = DETECT,
    method: Method = Method.DIVIDED,
) -> SampledSetting:
    """Return a setting in which ``algorithm`` is sampled with float64 models.

    The options are the last entry of ``algorithm.examples`` with which tokens are drafted (gamma is not 0).

    * ``vocabulary``, ``temperature``, ``top_k``: Those of the models; ``top_k`` None means no truncation.
    * ``horizon``: The number of new tokens.
    * ``detect``: The total variation from the expected law that the samples must detect.
    * ``method``: Whether each sample is a run of its own, or the number of samples is divided at each draw among the
      outcomes of the draw.
    """
    options = algorithm.examples[-1] if algorithm.examples[-1].get("gamma") != 0 else algorithm.examples[-2]
    make = partial(float_task, vocabulary, temperature, horizon, top_k)
    declared = algorithm.declared_law
    truncated = f" top_k={top_k}" if top_k else ""
    draw = {Method.DIVIDED: _divided, Method.PLAIN: _run_by_run}[method]
    return SampledSetting(
        name=f"V={vocabulary} T={temperature:g}{truncated} horizon={horizon} {_label(options)}",
        sample=partial(draw, algorithm, dict(options), make),
        law=partial(_law, algorithm, dict(options), make),
        detect=detect,
        target=None if declared is None else partial(_target_law, make),
        method=method,
        cost=Cost() if method is Method.DIVIDED else Cost(each=SECONDS_OF_A_DECODE),
    )


PROMPT = (0, 1, 0, 2, 0, 1)
"""A prompt with repeated n-grams, so that n-gram drafters find drafts."""


def float_task(vocabulary: int, temperature: float, horizon: int, top_k: int | None = None) -> Task:
    """Return a task of ``horizon`` new tokens with float64 tables of pmfs for target and draft model.

    The tables, over ``vocabulary`` tokens, are a softmax at ``temperature``. The target is truncated to ``top_k``
    tokens (None: all). The draft model is a mixture of the target and another such table, so with ``top_k`` it also
    drafts tokens of target probability 0.
    """
    target = softmax_table(vocabulary, temperature, seed=1, top_k=top_k)
    other = softmax_table(vocabulary, temperature, seed=2, top_k=top_k)
    draft: LanguageModel = mixed_with(target, other, share=0.4)
    return Task(unchangeable(target), unchangeable(draft), horizon=horizon)


def _divided(algorithm: Algorithm, options: dict[str, Any], make: Any, number: int, seed: int) -> Mapping[Tokens, int]:
    return divided_counts(algorithm.build(make(), **options), PROMPT, number, seed)


def _run_by_run(
    algorithm: Algorithm, options: dict[str, Any], make: Any, number: int, seed: int
) -> Mapping[Tokens, int]:
    decoder, draws = algorithm.build(make(), **options), Sampled(seed)
    return Counter(generate(decoder, PROMPT, draws).tokens for _ in range(number))


def _law(algorithm: Algorithm, options: dict[str, Any], make: Any) -> Mapping[Tokens, float]:
    if algorithm.declared_law is None:
        return target_law(make(), PROMPT)
    return algorithm.declared_law(make(), PROMPT, **options)


def _target_law(make: Any) -> Mapping[Tokens, float]:
    return target_law(make(), PROMPT)


def _variant(algorithm: Algorithm, options: Mapping[str, Any]) -> Variant:
    declared = algorithm.declared_law
    return Variant(
        label=_label(options),
        build=partial(algorithm.build, **options),
        declared_law=None if declared is None else partial(declared, **options),
        joint=None if algorithm.batch is None else partial(_together, algorithm, options),
    )


def _together(algorithm: Algorithm, options: Mapping[str, Any], task: Task, prompt: Tokens) -> EngineProgram:
    """Return a program that serves two requests in one batch: ``prompt`` and ``(*prompt, 0)``.

    ``algorithm`` with ``options`` serves them, with the models of ``task``. The outcome is the pair of the two texts.
    They should be independent and have the target's law.
    """
    prompts = (prompt, (*prompt, 0))

    @contextmanager
    def opened(forced_uniform: float | None = None) -> Iterator[Callable[[Draws], Any]]:
        assert algorithm.batch is not None
        yield algorithm.batch(task, prompts, **options)

    return EngineProgram(f"two requests, {_label(options)}", opened, partial(_product, task, prompts))


def _product(task: Task, prompts: tuple[Tokens, ...]) -> Mapping[Any, Any]:
    """Return (text, text) -> probability for two independent texts, one after each of the two ``prompts``.

    The target of ``task`` alone decodes both texts.
    """
    first, second = (target_law(task, prompt) for prompt in prompts)
    return {(one, other): mass * share for one, mass in first.items() for other, share in second.items()}


def _label(options: Mapping[str, Any]) -> str:
    return " ".join(f"{name}={value}" for name, value in options.items())
