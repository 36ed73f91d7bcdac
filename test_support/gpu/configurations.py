"""Every algorithm with every drafter and gamma up to 8, and ``cached_run``, which runs one on real caches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from reference import Decoder, LanguageModel, Task, Tokens, warped
from reference.algorithms import egag, greedy_speculation, nasd, prompt_lookup, speculative_sampling
from test_support.gpu.cached_models import NO_PLANT, CachedModel, Plant, Run, speculate
from test_support.gpu.tiny_models import ARCHITECTURES, ATTENTIONS

WITH_DRAFTER: dict[str, Callable[[Task, int], Decoder]] = {
    "greedy-speculation": greedy_speculation.build,
    "speculative-sampling": speculative_sampling.build,
    "egag": lambda task, gamma: egag.build(task, gamma_min=0, gamma_max=gamma),
}
WITHOUT_DRAFTER: dict[str, Callable[[Task, int], Decoder]] = {
    "nasd": lambda task, gamma: nasd.build(task, order=3, gamma=gamma),
    "nasd with filler": lambda task, gamma: nasd.build(task, order=2, gamma=gamma, filler_top_k=2),
    "prompt-lookup": lambda task, gamma: prompt_lookup.build(task, max_ngram=2, gamma=gamma),
}


class ModelDrafter(NamedTuple):
    """A draft model made from the target, or from the model of another seed."""

    identical: bool
    """Whether it has the target's weights."""
    pmfs: Callable[[LanguageModel], LanguageModel]
    """Its pmfs, given its float64 logits."""


DRAFTERS: dict[str, ModelDrafter] = {
    "identical": ModelDrafter(True, lambda logits: warped(logits, temperature=0)),
    "other": ModelDrafter(False, lambda logits: warped(logits, temperature=0)),
    "other, sampled": ModelDrafter(False, warped),
    "least likely": ModelDrafter(True, lambda logits: warped(lambda tokens: -logits(tokens), temperature=0)),
}


class Configuration(NamedTuple):
    """An algorithm at temperature 0, its drafter if it takes one, and gamma."""

    algorithm: str
    drafter: str | None
    gamma: int


CONFIGURATIONS = tuple(
    Configuration(*row)
    for gamma in range(9)
    for row in (
        *((algorithm, drafter, gamma) for algorithm in WITH_DRAFTER for drafter in DRAFTERS),
        *((algorithm, None, gamma) for algorithm in WITHOUT_DRAFTER),
    )
)


def cached_run(
    configuration: Configuration,
    model: Any,
    other: Any,
    prompt: Tokens,
    *,
    horizon: int,
    eos: Tokens = (),
    seed: int = 0,
    plant: Plant = NO_PLANT,
) -> Run:
    """Decode ``prompt`` at temperature 0 with a cache for the target and one for the drafter, if there is one."""
    target = CachedModel(model, prompt, plant)
    greedy_target = warped(target, temperature=0)
    if configuration.drafter is None:
        decoder = WITHOUT_DRAFTER[configuration.algorithm](
            Task(greedy_target, eos=eos, horizon=horizon), configuration.gamma
        )
        return speculate(decoder, prompt, target, seed=seed)
    drafter = DRAFTERS[configuration.drafter]
    draft = CachedModel(model if drafter.identical else other, prompt)

    def logits(tokens: Tokens) -> Any:
        return draft(tokens).double()

    task = Task(greedy_target, drafter.pmfs(logits), warped(logits), eos, horizon)
    decoder = WITH_DRAFTER[configuration.algorithm](task, configuration.gamma)
    return speculate(decoder, prompt, target, draft, seed)


def some_configurations(architecture: str, attention: str, dtype: torch.dtype) -> tuple[Configuration, ...]:
    """Return an eighth of all configurations.

    Two neighbouring architectures, with two attentions and two dtypes, together get all of them.
    """
    narrow = dtype in (torch.float32, torch.float16)
    start = 4 * (ARCHITECTURES.index(architecture) % 2) + 2 * (ATTENTIONS.index(attention) % 2) + narrow
    return CONFIGURATIONS[start::8]
