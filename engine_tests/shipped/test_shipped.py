"""Every verifier as its project ships it: what holds and what does not, each refutation beside a control.

A row without a wrong verdict beside ``expected`` is right as far as it was examined; nothing else may be refuted.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from time import process_time
from typing import Any

import pytest

from reference import Claim
from specverify.base.verdict import Status
from specverify.testing import check_engine, check_verifier
from test_support.shipped import chains, decoders, jax_verifiers, public_loops, reseeded_loops, trees
from test_support.shipped.shipped import BOUNDARY, LAW, Shipped

SAMPLE, ARGMAX, ACCEPTANCE, ROWS = (
    "samples_fit_law",
    "greedy_is_argmax",
    "acceptance_is_optimal",
    "rows_are_independent",
)
GREEDY = frozenset({Claim.GREEDY})


def _tree(drafts: str, **options: Any) -> dict[str, Any]:
    return dict(form="tree", drafts=drafts, **options)


SHIPPED = (
    Shipped(
        "transformers, `_speculative_sampling`",
        chains.transformers_sampling,
        chains.transformers_sampling,
        dict(form="row"),
        frozenset({BOUNDARY}),
    ),
    Shipped(
        "transformers, `_speculative_sampling`, with `<` for `<=`, and p where the residual is empty",
        partial(
            chains.transformers_sampling,
            ("r_i <= ", "r_i < "),
            ("p_prime.div_(p_prime_sum)", "p_prime = p_prime / p_prime_sum if p_prime_sum > 0 else p_n_plus_1"),
        ),
        chains.transformers_sampling,
        dict(form="row"),
    ),
    Shipped("DeepSpec, `verify_draft_tokens`", chains.deepspec, chains.deepspec, dict(form="row")),
    Shipped(
        "TensorRT-LLM, `get_rejected_indices` and `sample_rejected`",
        chains.tensorrt,
        chains.tensorrt,
        dict(form="row"),
        frozenset({BOUNDARY}),
    ),
    Shipped(
        "vLLM 0.6.5, `RejectionSampler`",
        partial(chains.vllm_v0, "vllm-0.6.5"),
        chains.vllm_v0,
        dict(form="batched", gammas=(1,)),
        frozenset({BOUNDARY}),
        seconds=1200,
    ),
    Shipped(
        "vLLM 0.8.0, `RejectionSampler` of its first engine",
        partial(chains.vllm_v0, "vllm-0.8.0"),
        chains.vllm_v0,
        dict(form="batched", gammas=(1,)),
        frozenset({BOUNDARY}),
        seconds=1200,
    ),
    Shipped(
        "vLLM 0.8.0, `RejectionSampler.forward_native`",
        chains.vllm_v1_native,
        chains.vllm_v1_native,
        dict(form="batched", gammas=(1,)),
        frozenset({BOUNDARY}),
    ),
    Shipped(
        "vllm-ascend, `rejection_sample`",
        partial(chains.ascend, block=False),
        chains.ascend,
        dict(form="batched"),
        frozenset({BOUNDARY}),
    ),
    Shipped(
        "vllm-ascend, `rejection_sample` of blocks",
        partial(chains.ascend, block=True),
        chains.ascend,
        dict(form="batched", gammas=(3,), sampled=True),
        frozenset({LAW, ACCEPTANCE, BOUNDARY, SAMPLE}),
        unanswered=True,
        seconds=2400,
    ),
    Shipped("EAGLE `model/utils.py`, sampling", trees.eagle, trees.eagle, _tree("top_k"), frozenset({BOUNDARY})),
    Shipped(
        "EAGLE `model/utils.py`, sampling, with `r < acp` and the only remaining token always accepted",
        partial(trees.eagle, mended=("if r <= acp:", "if r < acp or gtp.sum() <= px:")),
        trees.eagle,
        _tree("top_k"),
    ),
    Shipped(
        "EAGLE `model/utils.py`, `logits_processor=None`",
        partial(trees.eagle, sampling=False),
        trees.eagle,
        _tree("top_k", claims=GREEDY),
    ),
    Shipped(
        "EAGLE `modeling_eagle.py`, batches",
        trees.eagle_batches,
        trees.eagle_batches,
        dict(form="batched_tree", drafts="without_replacement", same_tree=True),
        frozenset({LAW, ARGMAX, ROWS, BOUNDARY}),
    ),
    Shipped(
        "EAGLE `modeling_eagle.py`, batches, with `shape[2]` for `shape[1]`",
        partial(trees.eagle_batches, mended=True),
        trees.eagle_batches,
        dict(form="batched_tree", drafts="without_replacement", same_tree=True),
        frozenset({BOUNDARY}),
    ),
    Shipped(
        "Medusa, `temperature=0`",
        partial(trees.medusa, trees.greedy, temperature=0),
        trees.medusa,
        _tree("top_k", claims=GREEDY),
        frozenset({ARGMAX}),
    ),
    Shipped(
        "Medusa, `temperature=0`, with candidates padded by -1",
        partial(trees.medusa, trees.greedy, padding=-1, temperature=0),
        trees.medusa,
        _tree("top_k", claims=GREEDY),
    ),
    Shipped(
        'Medusa, `sampling="nucleus"`, `top_p=1`, one path in a tree of two',
        partial(trees.medusa, trees.nucleus, temperature=1.0, sampling="nucleus", top_p=1.0),
        trees.medusa,
        _tree("top_k", trees=((-1, -1),)),
        frozenset({LAW, ACCEPTANCE}),
    ),
    Shipped(
        'Medusa, `sampling="nucleus"`, with one draw per node, which becomes the next token if no child equals it',
        partial(
            trees.medusa,
            trees.drawn_already,
            mended=trees.one_draw_a_node,
            temperature=1.0,
            sampling="nucleus",
            top_p=1.0,
        ),
        trees.medusa,
        _tree("top_k", trees=((-1, -1),)),
    ),
    Shipped(
        "Sequoia, `SpecTree.accept_step`",
        trees.sequoia,
        trees.sequoia,
        _tree("without_replacement"),
        frozenset({BOUNDARY}),
    ),
    Shipped(
        "Sequoia, `SpecTree.accept_step`, with p where the residual is empty",
        partial(trees.sequoia, mended=("return residual\n", "return torch.where(residual.isnan(), p, residual)\n")),
        trees.sequoia,
        _tree("without_replacement"),
    ),
    Shipped(
        "lucidrains, `speculative_decoding`, one row",
        lambda: partial(decoders.lucidrains, batch=1),
        decoders.lucidrains,
        {},
        frozenset({BOUNDARY}),
        engine=True,
    ),
    Shipped(
        "lucidrains, the first of two rows",
        lambda: partial(decoders.lucidrains, batch=2),
        decoders.lucidrains,
        {},
        frozenset({BOUNDARY}),
        engine=True,
    ),
    Shipped(
        "lucidrains, the second of two rows",
        lambda: partial(decoders.lucidrains, batch=2, row=1),
        decoders.lucidrains,
        {},
        frozenset({BOUNDARY}),
        engine=True,
    ),
    Shipped(
        "gpt-fast before it knew batches, `generate`",
        lambda: partial(decoders.gpt_fast, source="gpt-fast-unbatched"),
        decoders.gpt_fast,
        {},
        frozenset({BOUNDARY}),
        engine=True,
    ),
    Shipped("shreyansh26, `speculative_sampling`", lambda: decoders.shreyansh, decoders.shreyansh, engine=True),
    *public_loops.ROWS,
    *reseeded_loops.ROWS,
    *jax_verifiers.ROWS,
)


@pytest.mark.parametrize("place", range(len(SHIPPED)), ids=[shipped.what for shipped in SHIPPED])
def test_what_is_shipped_is_right_but_for_what_is_told(place: int, record_property: Callable[..., None]) -> None:
    shipped = SHIPPED[place]
    subject = shipped.make()
    check = check_engine if shipped.engine else check_verifier
    before = process_time()
    verdicts = check(subject, on_fail=None, edge=0.0, timeout=shipped.seconds, **shipped.options)  # type: ignore[operator]
    seconds = process_time() - before
    names = {status: [verdict.check for verdict in verdicts if verdict.status is status] for status in Status}
    unsaid = names[Status.UNKNOWN] + names[Status.UNUSABLE]
    said = (", ".join(name.replace("_", " ") for name in part) for part in (names[Status.REFUTED], unsaid))
    lines = len(inspect.getsource(shipped.adapter).splitlines())
    row = f"| {shipped.what} | {lines} | {len(names[Status.HOLDS])} | {' | '.join(said)} | {seconds:.0f} |"
    record_property("row", (place, row))
    for verdict in verdicts:
        print(f"{verdict.check}: {verdict.status.value}: {verdict.statement}")
    assert set(names[Status.REFUTED]) == shipped.expected
    assert bool(unsaid) == shipped.unanswered
