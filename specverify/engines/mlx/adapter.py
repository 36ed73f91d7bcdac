"""Calls of mlx-lm on the CPU: ``generate_step`` and ``speculative_generate_step``, on the tiny Llamas.

The parameter ``decoding`` of the functions here is the call: its prompt, sampling options, end tokens and drafting.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

from specverify.reference import Tokens
from specverify.subjects.decoding import DRAFT_SEED, TARGET_SEED, Decoding, Texts, seeds_of, tiny_llama

try:
    import mlx.core as mx
    from mlx_lm.generate import generate_step, speculative_generate_step
    from mlx_lm.models.llama import Model, ModelArgs
    from mlx_lm.sample_utils import make_logits_processors, make_sampler
except ImportError as error:
    raise ImportError('the subject of MLX needs mlx-lm and mlx: pip install mlx-lm "mlx[cpu]"') from error

Way = Callable[[Decoding, dict[str, Any]], Sequence[int]]
"""``way(decoding, options)`` returns new tokens; ``options`` are the sampler and the logits processors."""


@cache
def model(seed: int) -> Any:
    """Return the tiny Llama with this seed as an MLX model in float32."""
    mx.set_default_device(mx.cpu)
    ours = tiny_llama(seed)
    sizes = ours.sizes
    made = Model(
        ModelArgs(
            "llama",
            sizes.width,
            sizes.layers,
            sizes.inner,
            sizes.heads,
            sizes.epsilon,
            sizes.vocabulary,
            head_dim=sizes.head_width,
            num_key_value_heads=sizes.kv_heads,
            rope_theta=sizes.theta,
            tie_word_embeddings=False,
        )
    )
    made.load_weights([(name, mx.array(value)) for name, value in ours.weights.items()])
    return made


def plain(decoding: Decoding, options: dict[str, Any]) -> Sequence[int]:
    """Return the new tokens of decoding without speculation; ``options`` are the sampler and the logits processors."""
    steps = generate_step(mx.array(decoding.prompt), model(TARGET_SEED), max_tokens=decoding.horizon, **options)
    return _until_end(steps, decoding)


def draft(decoding: Decoding, options: dict[str, Any], decode: Any = speculative_generate_step) -> Sequence[int]:
    """Return the new tokens of decoding with a draft model; ``decode`` is the library's function.

    ``options`` are the sampler and the logits processors.
    """
    models = model(TARGET_SEED), model(DRAFT_SEED)
    lengths = {"num_draft_tokens": decoding.gamma, "max_tokens": decoding.horizon}
    return _until_end(decode(mx.array(decoding.prompt), *models, **lengths, **options), decoding)


def texts(way: Way, decoding: Decoding) -> Texts:
    """Return a function of (seed, number) that returns ``number`` texts by calls ``way(decoding, options)``."""
    return partial(_texts, way, decoding)


def _texts(way: Way, decoding: Decoding, seed: int, number: int) -> Sequence[Tokens]:
    result = []
    mx.set_default_device(mx.cpu)
    for each in seeds_of(seed, number):
        mx.random.seed(each)
        result.append(tuple(way(decoding, _options(decoding))))
    return result


def _options(decoding: Decoding) -> dict[str, Any]:
    more = dict(decoding.more)
    sampler = make_sampler(
        temp=decoding.temperature,
        top_p=decoding.top_p or 0.0,
        min_p=decoding.min_p or 0.0,
        top_k=decoding.top_k or 0,
        **dict(more.get("sampler", ())),
    )
    penalty = decoding.repetition_penalty if decoding.repetition_penalty != 1 else None
    processors = make_logits_processors(repetition_penalty=penalty, **dict(more.get("processors", ())))
    return {"sampler": sampler, "logits_processors": processors or None} | dict(more.get("cache", ()))


def _until_end(steps: Any, decoding: Decoding) -> list[int]:
    """Return the tokens that ``steps`` yields, up to and including the first end token of ``decoding``.

    The library's ``stream_generate`` ends a text in the same way.
    """
    result = []
    for token, *_ in steps:
        result.append(int(token))
        if result[-1] in decoding.eos:
            break
    return result
