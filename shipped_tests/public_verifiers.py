"""Verifiers of public repositories: of one draft, of trees, of the candidates of beams."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import torch
from sources import functions_of

from reference.tree_layouts import child_lists


def shreyansh_probabilistic() -> Any:
    """``probabilistic_verify`` of shreyansh26's Speculative-Decoding."""
    names = ("VerificationResult", "_as_batch_tensor", "probabilistic_verify")
    given = dict(torch=torch, dataclass=dataclass, Sequence=Sequence)
    own = functions_of("Speculative-Decoding-shreyansh26", "common/verification.py", *names, **given)

    def verify(p: Any, q: Any, draft_tokens: Any) -> Any:
        class Model:
            device = torch.device("cpu")

            def __call__(self, _: Any) -> Any:
                return SimpleNamespace(logits=p.log()[None])

        return own.probabilistic_verify(Model(), [0], draft_tokens.tolist(), q).emitted_ids

    return verify


V2 = "speculative_decoding/algorithms/optimized_speculative_decoding_v2.py"


def optimized(method: str) -> Any:
    """A method of ``OptimizedSpeculativeDecoderV2`` of txxnrd."""
    given = dict(torch=torch, F=torch.nn.functional, Any=Any)
    own = functions_of("Speculative_Decoding", V2, "OptimizedSpeculativeDecoderV2", **given)
    return getattr(own.OptimizedSpeculativeDecoderV2, method)


def txxnrd() -> Any:
    """``_verify_and_accept_tokens`` of txxnrd, with its logits of the target behind the last draft left out."""
    decide = optimized("_verify_and_accept_tokens")

    def verify(p: Any, q: Any, draft_tokens: Any) -> Any:
        if len(draft_tokens) == 0:
            return torch.multinomial(p[-1], 1)
        made, *_ = decide(None, draft_tokens[None], q.log()[None], p[:-1].log()[None])
        return made[0]

    return verify


def mcsd(name: str) -> Any:
    """An acceptance check of MCSD, node by node as its ``TreeStrategy.verify`` walks, and the draw behind it."""
    check = functions_of("MCSD", "MCSD/inference/strategies.py", name, torch=torch, Optional=None, Tuple=None)
    accept = getattr(check, name)

    def verify(p: Any, q: Any, parents: Any, tokens: Any) -> Any:
        below, node, taken = child_lists(parents), 0, []
        while below[node]:
            row = q[below[node][0] - 1].clone() if q is not None else None
            kept = accept(p[node], row, tokens[torch.tensor(below[node]) - 1])
            if kept is None:
                break
            node = below[node][kept]
            taken.append(int(tokens[node - 1]))
        return [*taken, torch.multinomial(p[node], 1)[0]]

    return verify


def specinfer() -> Any:
    """``SpecInfer._inference_step`` of specexec, node by node as its ``validate_tree`` walks."""
    given = dict(torch=torch, SpecBase=object, Tuple=tuple)
    step = functions_of("specexec", "specdec/spec_SI.py", "SpecInfer", **given).SpecInfer._inference_step

    def verify(p: Any, q: Any, parents: Any, tokens: Any) -> Any:
        below, node, taken = child_lists(parents), 0, []
        while below[node]:
            nodes = torch.tensor(below[node])
            kept, token = step(p[node], q[nodes[0] - 1], nodes, tokens[nodes - 1])
            taken.append(int(token))
            if kept is None:
                return taken
            node = int(kept)
        return [*taken, torch.multinomial(p[node], 1)[0]]

    return verify


def next_token_chooser() -> Any:
    """``HeterogeneousNextTokenChooser`` of text-generation-inference, one for as long as it is asked."""
    names = ("HeterogeneousNextTokenChooser", "HeterogeneousSampling", "Sampling", "Greedy", "create_n_gram_speculation")
    typing: Any = __import__("typing")
    given = {name: getattr(typing, name) for name in ("List", "Optional", "Tuple")}
    own = functions_of(
        "text-generation-inference", "server/text_generation_server/utils/tokens.py", *names, torch=torch, **given,
        PreTrainedTokenizerBase=object, generate_pb2=SimpleNamespace(NextTokenChooserParameters=object),
    )
    plain = dict(watermark=False, temperature=1.0, repetition_penalty=1.0, frequency_penalty=0.0, top_k=0, top_p=1.0,
                 typical_p=1.0, do_sample=True, grammars="", grammar_types=0)
    made: dict[int, Any] = {}

    def verify(p: Any, q: Any, draft_tokens: Any) -> Any:
        rows = len(p)
        if rows not in made:
            options = {name: [value] * rows for name, value in plain.items()}
            made[rows] = own.HeterogeneousNextTokenChooser(
                torch.float64, "cpu", seeds=list(range(rows)), tokenizer=None, fsm_grammar_states=[0] * rows, **options
            )
        scores = p.log().flatten(0, 1)
        new, _, _, accepted, _ = made[rows](draft_tokens, scores, 0, draft_tokens)
        return [row.tolist() for row in new.split(accepted.tolist())]

    return verify
