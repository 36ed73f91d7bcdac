"""Verifiers in JAX that engines on TPUs ship, each called with the arguments that it needs."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import Any, NamedTuple, Optional

import pytest

from reference import Claim
from reference.tree_layouts import linked_siblings, predicted_tokens
from test_support.shipped.shipped import BOUNDARY, LAW, REUSE, Shipped
from test_support.shipped.sources import functions_of

SECONDS = 1200


def tpu_inference(*, drafts_are_certain: bool = False, mended: tuple[str, str] | None = None) -> Any:
    """``rejection_sample`` of tpu-inference, its bonus tokens and keys as its runner draws them.

    The runner gives no pmfs of drafts: then they are taken for certain (``drafts_are_certain``).
    """
    jax = pytest.importorskip("jax")
    names = ("rejection_sample", "_random_rejection_sample_with_segment", "_sample_recovered_tokens")
    file = "tpu_inference/layers/jax/sample/rejection_sampler.py"
    given = dict(jax=jax, jnp=jax.numpy, Optional=Optional, PLACEHOLDER_TOKEN_ID=-1)
    taken = functions_of("tpu-inference", file, *names, "_get_segment_info", mended=mended, **given)

    def verify(p: Any, q: Any, draft_tokens: Any, key: Any) -> Any:
        bonus_key, rejection_key = jax.random.split(key)
        bonus = jax.random.categorical(bonus_key, jax.numpy.log(p[-1:]))
        lengths, drafted = jax.numpy.array([len(draft_tokens)]), None if drafts_are_certain else q
        sample = jax.jit(taken.rejection_sample, static_argnums=5)
        return sample(draft_tokens, lengths, drafted, p[:-1], bonus, True, key=rejection_key)

    return verify


class _Prepared(NamedTuple):
    """The result of ``_verify_rejection_sampling``."""

    hidden_states: Any
    positions: Any
    new_seq_lens: Any
    select_index: Any
    verified_id: Any
    accept_lens: Any
    sel_pos: Any
    safe_index: Any = None
    predict: Any = None


def sglang_chain() -> Any:
    """Return ``_verify_rejection_sampling`` of sglang-jax, with the coins that its caller passes."""
    jax = pytest.importorskip("jax")
    names = ("_verify_rejection_sampling", "_prepare_draft_inputs", "_take_with_index_sharding")
    given = dict(
        jax=jax,
        jnp=jax.numpy,
        NamedSharding=jax.sharding.NamedSharding,
        P=jax.sharding.PartitionSpec,
        GreedyDraftInputs=_Prepared,
        GreedySampleAndPrepareOutput=_Prepared,
        SIMULATED_ACCEPTANCE_CONFIG=SimpleNamespace(enabled=False),
        apply_simulated_acceptance=lambda accept_index, predict, accept_lens, **_: (accept_index, predict, accept_lens),
    )
    taken = functions_of("sglang-jax", "python/sgl_jax/srt/speculative/draft_extend_fused.py", *names, **given)

    def verify(p: Any, q: Any, draft_tokens: Any, key: Any) -> Any:
        jnp, slots = jax.numpy, len(p)
        coins_key, last_key = jax.random.split(key)
        with jax.set_mesh(jax.make_mesh((1,), ("data",), axis_types=(jax.sharding.AxisType.Explicit,))):
            found = taken._verify_rejection_sampling(
                target_hidden=jnp.zeros((slots, 1)), positions=jnp.arange(slots), seq_lens=jnp.array([9]),
                draft_tokens=jnp.concatenate([jnp.zeros(1, draft_tokens.dtype), draft_tokens]), top_ks=None,
                target_logits=jnp.log(p), temperatures=jnp.ones((1, 1)), top_ps=None, threshold_single=1.0,
                threshold_acc=1.0, coins=jax.random.uniform(coins_key, (1, slots - 1)), enable_top_k=False,
                coin_f=jax.random.uniform(last_key, (1,)), enable_top_p=False, speculative_num_steps=slots - 1,
                speculative_num_draft_tokens=slots,
            )  # fmt: skip
        return jnp.where(jnp.arange(slots) < found.accept_lens[0], found.predict, -1)

    return verify


def sglang_tree() -> Any:
    """Return ``tree_speculative_sampling_target_only`` of sglang-jax, in JAX; it reads no pmfs of drafts."""
    jax = pytest.importorskip("jax")
    file, names = "python/sgl_jax/srt/kernels/speculative/kernel.py", ("_sampling_from_prob",)
    word = "tree_speculative_sampling_target_only"
    taken = functions_of("sglang-jax", file, word, *names, jax=jax, jnp=jax.numpy)

    def verify(p: Any, q: Any, parents: Any, tokens: Any, key: Any) -> Any:
        jnp, rows = jax.numpy, len(p)
        _, coins_key, last_key = jax.random.split(key, 3)
        links = [jnp.asarray(each) for each in linked_siblings(parents[None])]
        index, _, predicts = getattr(taken, word)(
            jnp.zeros(rows, jnp.int32), jnp.full((1, rows), -1), jnp.zeros(1, jnp.int32),
            jnp.concatenate([jnp.zeros(1, tokens.dtype), tokens])[None], *links,
            jax.random.uniform(coins_key, (1, rows)), jax.random.uniform(last_key, (1,)), p, jnp.zeros_like(p),
        )  # fmt: skip
        return predicted_tokens(predicts, index[0])

    return verify


ONE_KEY = ("uniform_key, recover_key = jax.random.split(key)", "uniform_key = recover_key = key")
LOSSLESS = frozenset({Claim.LOSSLESS})
"""Without pmfs of the drafts a rule accepts less than it could."""
ROWS = (
    Shipped(
        "tpu-inference, `rejection_sample` with the drafts' pmfs",
        tpu_inference,
        tpu_inference,
        dict(form="row"),
        frozenset({BOUNDARY}),
        seconds=SECONDS,
    ),
    Shipped(
        "tpu-inference, `rejection_sample` as its runner calls it, without them",
        partial(tpu_inference, drafts_are_certain=True),
        tpu_inference,
        dict(form="row", claims=LOSSLESS),
        frozenset({BOUNDARY}),
        seconds=SECONDS,
    ),
    Shipped(
        "tpu-inference, `rejection_sample` with pmfs, coins and replacements of one key",
        partial(tpu_inference, mended=ONE_KEY),
        tpu_inference,
        dict(form="row", claims=LOSSLESS),
        frozenset({LAW, REUSE, BOUNDARY}),
        seconds=SECONDS,
    ),
    Shipped(
        "sglang-jax, `_verify_rejection_sampling`",
        sglang_chain,
        sglang_chain,
        dict(form="row", claims=LOSSLESS),
        frozenset({BOUNDARY}),
        seconds=SECONDS,
    ),
    Shipped(
        "sglang-jax, `tree_speculative_sampling_target_only`",
        sglang_tree,
        sglang_tree,
        dict(form="tree", drafts="top_k"),
        frozenset({BOUNDARY}),
        seconds=SECONDS,
    ),
)
