"""Promises that pairs of runs decide, broken and kept by engines of unlike kinds."""

import random
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from specverify.mutants.promising import DRAFTS_UNSEEDED, SEEDS, seeded_engine
from specverify.promises.pairs import OF_PROMISE, PROMISES
from specverify.testing import Made, check_engine, check_sampler

CHECK = {name: promise.check for name, promise in OF_PROMISE.items()}


def verdict(make, promise, **how):
    found = check_engine(make, promises={promise}, checks=[CHECK[promise]], on_fail=None, quick=True, **how)
    return next(v for v in found if v.check == CHECK[promise])


@pytest.mark.parametrize("fault", SEEDS)
def test_a_broken_promise_is_refuted_by_a_pair(fault):
    found = verdict(partial(seeded_engine, fault), SEEDS[fault][0])
    assert found.status == "refuted", found
    assert found.counterexample.fault.startswith(OF_PROMISE[SEEDS[fault][0]].fault)


@pytest.mark.thorough(keep=4)
@pytest.mark.parametrize("promise", PROMISES)
def test_the_right_engine_keeps_every_promise(promise):
    assert verdict(partial(seeded_engine, ""), promise).status == "holds"


@pytest.mark.thorough
def test_drafts_may_be_drawn_without_a_seed_where_the_text_does_not_depend_on_them():
    assert verdict(partial(seeded_engine, DRAFTS_UNSEEDED), "seed").status == "holds"


def inverse(u, pmf):
    return min(int(np.searchsorted(np.cumsum(pmf), u, side="right")), len(pmf) - 1)


def agreeing(scenario, uniforms, drafts=True):
    """Return new tokens by agreement, the uniforms in the order of the tokens."""
    new = ()
    while len(new) < scenario.horizon:
        text = scenario.prompt + new
        draft = int(np.argmax(scenario.draft(text))) if drafts else None
        new += (inverse(uniforms(), scenario.target(text)),)
        if draft == new[-1]:
            new += (inverse(uniforms(), scenario.target((*text, draft))),)
    return new[: scenario.horizon]


def by_global_random(s):
    return Made(lambda: agreeing(s, random.random), lambda: agreeing(s, random.random, drafts=False))


def by_torch_generator(s):
    def decode(drafts, seed):
        generator = torch.Generator().manual_seed(seed)
        return agreeing(s, lambda: torch.rand((), generator=generator, dtype=torch.float64).item(), drafts)

    return Made(lambda seed: decode(True, seed), lambda seed: decode(False, seed))


def by_parameters(s):
    def decode(drafts, params):
        rng = np.random.default_rng(params["seed"])
        return agreeing(s, rng.random, drafts)

    return Made(lambda prompt, params: decode(True, params), lambda prompt, params: decode(False, params))


def by_optional_seed(s):
    def decode(prompt, seed=None, drafts=True):
        rng = np.random.default_rng(seed)
        return agreeing(SimpleNamespace(**{**s._asdict(), "prompt": tuple(prompt)}), rng.random, drafts)

    return Made(decode, partial(decode, drafts=False))


RIGHT_SEEDS = (by_global_random, by_torch_generator, by_parameters, by_optional_seed)


@pytest.mark.thorough(keep=8)
@pytest.mark.parametrize("make", RIGHT_SEEDS)
@pytest.mark.parametrize("promise", ["seed", "seed-as-plain"])
def test_right_engines_of_unlike_kinds_hold(make, promise):
    assert verdict(make, promise).status == "holds"


def coins_elsewhere(s):
    """The seed is that of torch, and NumPy draws the tokens."""

    def decode(seed):
        torch.manual_seed(seed)
        return agreeing(s, np.random.random)

    return Made(decode)


def made_without_seed(s):
    return Made(lambda seed: agreeing(s, np.random.default_rng().random))


def kept_generator(s):
    kept = []

    def decode(seed):
        kept[:] = kept or [np.random.default_rng(seed)]
        return agreeing(s, kept[0].random)

    return Made(decode)


def seeds_of_two_kinds(s):
    """Where the seed is even it is not passed on."""

    def decode(seed):
        return agreeing(s, np.random.default_rng(seed if seed % 2 else None).random)

    return Made(decode)


WRONG_SEEDS = (coins_elsewhere, made_without_seed, kept_generator, seeds_of_two_kinds)


@pytest.mark.parametrize("make", WRONG_SEEDS)
def test_wrong_engines_of_unlike_kinds_are_refuted(make):
    assert verdict(make, "seed").status == "refuted"


T = np.array([[0.2, 0.3, 0.5], [0.5, 0.25, 0.25], [0.1, 0.8, 0.1]])


def sampler(seed_of, drafts=True):
    scenario = SimpleNamespace(
        prompt=(0,), horizon=2, target=lambda text: T[text[-1]], draft=lambda text: np.array([0.1, 0.2, 0.7])
    )

    def sample(seed, n):
        return [agreeing(scenario, np.random.default_rng(seed_of(seed, row)).random, drafts) for row in range(n)]

    return sample


def test_samplers_are_judged_by_rows_of_one_seed():
    plain = sampler(lambda seed, row: (seed, row), drafts=False)
    right = sampler(lambda seed, row: (seed, row))
    how = {"law": plain, "tv": 0.3, "promises": {"seed", "seed-as-plain"}, "on_fail": None}
    assert {v.status for v in check_sampler(right, **how)} == {"holds"}
    for seed_of, check in (
        (lambda seed, row: None, "seed_repeats"),
        (lambda seed, row: (seed, row, 1), "seed_as_plain"),
    ):
        found = check_sampler(sampler(seed_of), **how)
        assert check in {v.check for v in found if v.status == "refuted"}


def test_a_promise_that_cannot_be_compared_is_unknown():
    found = verdict(lambda s: lambda: agreeing(s, random.random), "seed-as-plain")
    assert found.status == "unknown"
    assert "no call without speculation" in found.statement


def test_names_of_promises_are_looked_at():
    with pytest.raises(ValueError, match="a promise"):
        check_engine(by_global_random, promises={"sead"})
    with pytest.raises(ValueError, match="law is "):
        check_sampler(sampler(lambda seed, row: seed), law={(0, 0): 1}, promises={"seed-as-plain"})


def after(s, prompt):
    """Return the scenario with another prompt."""
    return SimpleNamespace(**{**s._asdict(), "prompt": tuple(prompt)})


def row_by_row(s):
    """Each request is decoded to its end before the next."""
    return Made(
        lambda prompts, seeds: [
            agreeing(after(s, prompt), np.random.default_rng(seed).random)
            for prompt, seed in zip(prompts, seeds, strict=True)
        ],
        batched=True,
    )


def in_lockstep(s):
    """All requests get a token, then all get the next."""

    def decode(prompts, seeds):
        streams = [random.Random(seed) for seed in seeds]
        texts = [tuple(prompt) for prompt in prompts]
        for _ in range(s.horizon):
            texts = [
                (*text, inverse(stream.random(), s.target(text))) for text, stream in zip(texts, streams, strict=True)
            ]
        return [text[len(prompt) :] for text, prompt in zip(texts, prompts, strict=True)]

    return Made(decode, batched=True)


def longest_first(s):
    """The requests are decoded in another order than they are returned in."""

    def decode(prompts, seeds):
        result = [None] * len(prompts)
        for row in sorted(range(len(prompts)), key=lambda row: -len(prompts[row])):
            generator = torch.Generator().manual_seed(int(seeds[row]))
            uniforms = lambda: torch.rand((), generator=generator, dtype=torch.float64).item()  # noqa: B023, E731
            result[row] = agreeing(after(s, prompts[row]), uniforms)
        return result

    return Made(decode, batched=True)


def noise_of_all_places(s):
    """The uniforms of all places of all requests are drawn first."""

    def decode(prompts, seeds):
        noise = [np.random.default_rng(seed).random(s.horizon + 1) for seed in seeds]  # one behind the end
        return [
            agreeing(after(s, prompt), iter(row.tolist()).__next__) for prompt, row in zip(prompts, noise, strict=True)
        ]

    return Made(decode, batched=True)


RIGHT_BATCHES = (row_by_row, in_lockstep, longest_first, noise_of_all_places)


def by_position(uniform):
    """Return the engine whose token behind a text is at ``uniform(seed, text)``."""

    def make(s):
        def decode(prompt, seed):
            text = tuple(prompt)
            while len(text) < len(prompt) + s.horizon:
                draft = int(np.argmax(s.draft(text)))
                text += (inverse(uniform(seed, text), s.target(text)),)
                if text[-1] == draft and len(text) < len(prompt) + s.horizon:
                    text += (inverse(uniform(seed, text), s.target(text)),)
            return text[len(prompt) :]

        return Made(decode)

    return make


RIGHT_CUTS = {
    "of the position": by_position(lambda seed, text: np.random.default_rng((seed, len(text))).random()),
    "of the text": by_position(lambda seed, text: np.random.default_rng((seed, *text)).random()),
    "of a stream, by the position": by_position(
        lambda seed, text: np.random.default_rng(seed).random(len(text) + 1)[len(text)]
    ),
    "of a generator of Python": by_position(lambda seed, text: random.Random(7919 * seed + len(text)).random()),
}


@pytest.mark.thorough
@pytest.mark.parametrize("make", RIGHT_BATCHES)
def test_right_batches_of_unlike_kinds_hold(make):
    assert verdict(make, "batch").status == "holds"


def one_generator_of_equal_seeds(s):
    """Requests of one batch with equal seeds draw from one generator in turn."""

    def decode(prompts, seeds):
        generators = {seed: np.random.default_rng(seed) for seed in seeds}
        pairs = zip(prompts, seeds, strict=True)
        return [agreeing(after(s, prompt), generators[seed].random) for prompt, seed in pairs]

    return Made(decode, batched=True)


def test_a_generator_that_two_requests_of_one_seed_share_is_refuted():
    refuted = verdict(one_generator_of_equal_seeds, "batch")
    assert refuted.status == "refuted"
    assert "in a batch beside one with the same seed" in str(refuted.counterexample)


def unseeded_alone(s):
    """In batches of one, as with speculation that is for small batches only, tokens are drawn without the seed."""

    def decode(prompts, seeds):
        streams = [np.random if len(prompts) == 1 else np.random.default_rng(seed) for seed in seeds]
        pairs = zip(prompts, streams, strict=True)
        return [agreeing(after(s, prompt), stream.random) for prompt, stream in pairs]

    return Made(decode, batched=True)


def test_seeds_are_compared_in_batches_of_one_too():
    assert verdict(unseeded_alone, "seed").status == "refuted"


@pytest.mark.thorough
@pytest.mark.parametrize("name", RIGHT_CUTS)
def test_texts_whose_draws_belong_to_places_can_be_continued(name):
    assert verdict(RIGHT_CUTS[name], "resume").status == "holds"


def by_places(s, shifted):
    """Draw each token by noise of (seed, position); ``shifted``: of the next position behind three accepted drafts."""

    def choose(row, seed, place):
        return int(
            np.argmax(np.log(np.maximum(row, 1e-300)) + np.random.default_rng((seed, place)).gumbel(size=len(row)))
        )

    def fast(prompt, seed):
        text, end = tuple(prompt), len(prompt) + s.horizon
        while len(text) < end:
            drafts = ()
            while len(drafts) < min(3, end - len(text) - 1):
                here = text + drafts
                drafts += (choose(s.draft(here), seed, len(here)),)
            for i in range(len(drafts) + 1):
                here = text + drafts[:i]
                token = choose(s.target(here), seed, len(here) + (shifted and i == 3))
                if i == len(drafts) or token != drafts[i]:
                    break
            text += (*drafts[:i], token)
        return text[len(prompt) :]

    def slow(prompt, seed):
        text = tuple(prompt)
        for _ in range(s.horizon):
            text += (choose(s.target(text), seed, len(text)),)
        return text[len(prompt) :]

    return Made(fast, slow)


@pytest.mark.parametrize("shifted", [False, True])
def test_quick_runs_have_texts_of_several_rounds(shifted):
    """A bonus token behind three accepted drafts occurs in no short text."""
    found = verdict(partial(by_places, shifted=shifted), "seed-as-plain")
    assert found.status == ("refuted" if shifted else "holds"), found
