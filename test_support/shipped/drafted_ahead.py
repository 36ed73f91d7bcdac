"""Released code of systems that draft blocks, old responses and schedules, called by a few lines each."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import Any

import torch

from specverify.testing import EngineScenario
from test_support.shipped import chains
from test_support.shipped.networks import Uncached
from test_support.shipped.sources import functions_of


def ascend_entropy() -> Any:
    """``rejection_sample`` of vllm-ascend with entropy verification, one row at a time."""
    of_batches = chains.ascend(block=False, entropy=True)

    def verify(p: Any, q: Any, draft_tokens: Any) -> Any:
        return of_batches(p[None], q[None], draft_tokens[None])[0]

    return verify


def spec_rl(scenario: EngineScenario, *, seed: int | None = None) -> Any:
    """Call ``spec_cut`` of Spec-RL on a response of the draft model, then draw the target's tokens after the cut.

    The trainer passes ``seed=1234``; with None the uniforms are random.
    """
    names = ("_rand_like_compat", "spec_cut")
    cut = functions_of("Spec-RL", "verl/utils/speculative_decoding.py", *names, torch=torch).spec_cut

    def drawn(row: Any) -> int:
        return int(torch.multinomial(torch.as_tensor(row), 1))

    def speculative(prompt: tuple[int, ...]) -> Any:
        old: tuple[int, ...] = ()
        while len(old) < scenario.horizon:
            old = (*old, drawn(scenario.draft(prompt + old)))
        texts = [prompt + old[:i] for i in range(len(old))]
        of_old, of_new = (
            torch.tensor([[float(model(text)[token]) for text, token in zip(texts, old, strict=True)]]).log()
            for model in (scenario.draft, scenario.target)
        )
        kept = int(cut(of_old, of_new, torch.ones_like(of_old), seed=seed)["cut_idx"][0])
        new = old[:kept]
        while len(new) < scenario.horizon:
            new = (*new, drawn(scenario.target(prompt + new)))
        return list(new)

    return speculative


def dspark(scenario: EngineScenario, *, block: int = 1) -> Any:
    """``VanillaMarkov.sample_block_tokens`` and ``verify_draft_tokens`` of DeepSpec; the head's bias is a table's row.

    The rows of the block, whose network is not there, are those of the draft model behind its own argmaxes.
    """
    used = ("logits_to_probs", "sample_from_probs", "sample_tokens", "gather_token_probs", "sample_residual")
    own = functions_of("DeepSpec", "deepspec/utils/sampling.py", *used, torch=torch)
    given = {name: getattr(own, name) for name in used}
    markov = functions_of(
        "DeepSpec", "deepspec/modeling/dspark/markov_head.py", "VanillaMarkov", torch=torch, nn=torch.nn, **given
    ).VanillaMarkov
    verify = functions_of(
        "DeepSpec",
        "deepspec/eval/base_evaluator.py",
        "verify_draft_tokens",
        "VerificationResult",
        torch=torch,
        dataclass=lambda made: type(made.__name__, (SimpleNamespace,), {}),
        **given,
    ).verify_draft_tokens

    class Head(markov):  # type: ignore[misc,valid-type]
        def compute_step_bias(self, token_ids: Any, hidden_states: Any) -> Any:
            del hidden_states
            return row(scenario.draft, (int(token_ids[0]),))

    head = Head(vocab_size=scenario.vocabulary, markov_rank=1)

    def row(model: Any, text: tuple[int, ...]) -> Any:
        return torch.as_tensor(model(text)).log()[None]

    def rows_of_block(text: tuple[int, ...]) -> Any:
        rows = []
        for _ in range(block):
            rows.append(row(scenario.draft, text))
            text = (*text, int(rows[-1].argmax()))
        return torch.stack(rows, 1)

    def speculative() -> Any:
        text = scenario.prompt
        while len(text) < len(scenario.prompt) + scenario.horizon:
            last = torch.tensor([text[-1]])
            tokens, logits = head.sample_block_tokens(
                rows_of_block(text), first_prev_token_ids=last, hidden_states=None, temperature=1.0
            )
            found = verify(
                target_model=Uncached(_behind(scenario.target, text[:-1])),
                proposal=SimpleNamespace(
                    draft_token_count=block,
                    verify_input_ids=torch.cat([last[None], tokens], 1),
                    draft_probs=own.logits_to_probs(logits, 1.0),
                ),
                position_ids=torch.arange(len(text) + block)[None],
                start=len(text) - 1,
                past_key_values_target=None,
                temperature=1.0,
                max_proposal_tokens=block,
            )
            text = (*text, *found.committed_tokens[0].tolist())
        return list(text[len(scenario.prompt) :][: scenario.horizon])

    return speculative


def _behind(tables: Any, before: tuple[int, ...]) -> Any:
    return lambda tokens: tables((*before, *tokens))


def automaton(predict: int) -> Any:
    """Return the draft of ``DynSAM`` of SAM Decoding after a text, called as ``DraftModel`` calls it."""
    file, names = "samd/sam/dyn_sam.py", ("DynSAM",)
    from copy import deepcopy
    from dataclasses import dataclass

    made = functions_of("SAM-Decoding", file, *names, dataclass=dataclass, deepcopy=deepcopy, List=list)

    def draft(text: tuple[int, ...], least: int) -> tuple[int, ...]:
        sam = made.DynSAM(predict)
        sam.add_tokens(list(text[:-1]))
        index, matched = sam.lookup(text[-1])
        if matched < least:
            return ()
        end = sam.states[sam.to_anc(index)].min_endpos
        copied = sam.gen_draft(index, text[-1])
        return tuple(copied[1 : 1 + min(predict - 1, sam.max_length - end)])

    return draft


def vllm_budget(survivals: Any, budget: int) -> list[int]:
    """``_assign_draft_token_budget`` of vLLM for confidences ``[requests, steps]``."""
    path, name = "vllm/v1/worker/gpu/spec_decode/adaptive_verification.py", "_assign_draft_token_budget"
    assign = functions_of("vllm-adaptive", path, name, torch=torch)._assign_draft_token_budget
    requests, steps = survivals.shape
    counts = torch.full((requests,), steps, dtype=torch.int32)
    assign(survivals, torch.arange(requests), counts, budget, steps)
    return [int(count) for count in counts]


def ascend_budget(confidences: Any, each: int) -> list[int]:
    """``DynamicSpecScheduler`` of vllm-ascend for confidences ``[requests, steps]``, none guaranteed to a request."""
    path, name = "vllm_ascend/spec_decode/utils.py", "DynamicSpecScheduler"
    made = functions_of("vllm-ascend", path, name, torch=torch, math=None, Any=Any).DynamicSpecScheduler
    requests, steps = confidences.shape
    scheduler = made(
        method="dspark",
        method_params=dict(min_verify_tokens=0, initial_verify_budget_per_req=each, budget_update_interval=10**9),
        max_batch_size=requests,
        num_speculative_tokens=steps,
        device=torch.device("cpu"),
    )
    return [int(count) for count in scheduler._update_from_token_probs(confidences)]


RESEEDED = partial(spec_rl, seed=1234)
