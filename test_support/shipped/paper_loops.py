"""Loops around drafts of the target itself or of a head on it: ReDrafter, LayerSkip, Lookahead."""

from __future__ import annotations

import random
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import torch

from specverify.testing import EngineScenario
from test_support.shipped.networks import Tables, logits_of
from test_support.shipped.sources import functions_of

NAMESAKE = SimpleNamespace
FOLDER = "recurrent_drafting"
TAKEN = "log_p_beam, topk_indices = torch.topk(tokens_times_beams, k=beam_shape.width, dim=-1)"
DRAWN = (
    "topk_indices = torch.multinomial(tokens_times_beams.exp(), 1); "
    "log_p_beam = tokens_times_beams.gather(-1, topk_indices)"
)
"""Where the drafter takes the tokens that are most likely, and one beam that is drawn from q in their place."""


class Tokens:
    """An embedding that returns the tokens themselves, because the tables need nothing else."""

    def __init__(self, row: Any) -> None:
        """Know how many there are."""
        self.num_embeddings = row.shape[-1]

    def __call__(self, ids: Any) -> Any:
        """Return a zero for each."""
        return torch.zeros(*ids.shape, 1)


def redrafter(scenario: EngineScenario, *, width: int = 1, drawn: bool = False) -> Any:
    """The drafter's beams of one token, the choice among them and the next token; the loop around them is this one."""
    names = ("_choose_from_candidates", "_prepare_next_input", "_select_one_per_row")
    own = functions_of(
        "ml-recurrent-drafter", f"{FOLDER}/recurrent_drafting.py", *names, torch=torch, dist=torch.distributions,
        Tuple=tuple,
    )  # fmt: skip
    drafter = functions_of(
        "ml-recurrent-drafter", f"{FOLDER}/modeling_drafter.py", "Drafter", "BeamShape", "_add_decoding_dim",
        "_gather_beams", torch=torch, dataclass=dataclass, configuration_drafter=NAMESAKE(DrafterConfig=object),
        transformers=NAMESAKE(PreTrainedModel=object), LOG_0=-50000.0, LOG_1=0.0,
        mended=(TAKEN, DRAWN) if drawn else None,
    )  # fmt: skip

    def speculative() -> Any:
        text = list(scenario.prompt)
        token = torch.distributions.Categorical(logits=logits_of(scenario.target, [text])[0, -1]).sample()[None]
        while len(text) < len(scenario.prompt) + scenario.horizon:
            row = logits_of(scenario.draft, [[*text, int(token)]])[:, -1].expand(1, width, -1)
            head = NAMESAKE(config=NAMESAKE(rnn=False), compute_logits=lambda _, row=row: row)
            shape = NAMESAKE(width=width, length=2)
            beams, by_drafter = drafter.Drafter.beam_search_candidates(
                head, torch.zeros(1, 1), token, Tokens(row), shape
            )
            read = [logits_of(scenario.target, [[*text, *beam]])[0, -2:] for beam in beams[0].tolist()]
            by_llm = torch.stack(read)[None]
            kept, which = own._choose_from_candidates(beams, by_llm, by_drafter)
            after = own._prepare_next_input(by_drafter, by_llm, torch.zeros(1, width, 2, 1), which, kept)
            text += beams[0, int(which), : 1 + int(kept)].tolist()
            token = after[1]
        return text[len(scenario.prompt) :]

    return speculative


def layerskip(scenario: EngineScenario, *, gamma: int = 2) -> Any:
    """``SelfSpeculativeGenerationStrategy`` of LayerSkip; its cache holds the tokens that were fed."""
    utils = "self_speculation/llama_model_utils.py"
    unfiltered = dict(top_k_top_p_filtering=lambda logits, **_: logits)
    own = functions_of("LayerSkip", utils, "decode_next_token", "crop_past_key_values", torch=torch, **unfiltered)

    def fed(tables: Tables, ids: Any, past: Any) -> Any:
        before = [] if past is None else past[0][0].flatten().long().tolist()
        text = before + ids[0].tolist()
        entries = torch.tensor(text, dtype=torch.float64).reshape(1, 1, -1, 1)
        return logits_of(tables, [text]), ((entries, entries.clone()),), len(before)

    def early(_: Any, ids: Any, past: Any, *__: Any) -> Any:
        logits, past, before = fed(scenario.draft, ids, past)
        return NAMESAKE(logits=logits[:, before:], past_key_values=past, exit_query_cache=None)

    def remainder(_: Any, ids: Any, past: Any, *__: Any) -> Any:
        before = 0 if past is None else past[0][0].shape[2]
        drafted = before + 1 - ids.shape[1] if before else 0
        known = None if past is None else own.crop_past_key_values(past, drafted if before else 0)
        logits, past, _ = fed(scenario.target, ids, known)
        return NAMESAKE(logits=logits[:, -ids.shape[1] :], past_key_values=past)

    typing: Any = __import__("typing")
    decode = functions_of(
        "LayerSkip", "self_speculation/self_speculation_generator.py", "SelfSpeculativeGenerationStrategy", "max_fn",
        torch=torch, GenerationStrategy=object, GenerationStrategyResult=NAMESAKE, forward_early=early,
        forward_remainder=remainder, decode_next_token=own.decode_next_token,
        crop_past_key_values=own.crop_past_key_values, List=list, Optional=typing.Optional,
    ).SelfSpeculativeGenerationStrategy()  # fmt: skip
    options = NAMESAKE(max_steps=scenario.horizon, num_speculations=gamma, exit_layer=1, sample=True, temperature=1.0,
                       top_k=0, top_p=1.0)  # fmt: skip

    def speculative() -> Any:
        model = NAMESAKE(device=torch.device("cpu"))
        return decode.generate_token_ids(model, list(scenario.prompt), [-1], options).predicted_tokens

    return speculative


def lookahead(scenario: EngineScenario, *, level: int = 3, window: int = 2, guesses: int = 2) -> Any:
    """``jacobi_sample_multilevel`` of Lookahead decoding; its window is refined by the target's argmaxes."""
    names = ("jacobi_sample_multilevel", "update_token_map", "append_new_generated_pool", "fill_pool_with_prompt")
    settings = dict(LEVEL=level, WINDOW_SIZE=window, GUESS_SET_SIZE=guesses, POOL_FROM_PROMPT=1)
    transformers: Any = __import__("transformers")
    warpers = ("TemperatureLogitsWarper", "TopPLogitsWarper", "TopKLogitsWarper")
    decode = functions_of(
        "LookaheadDecoding", "lade/decoding.py", *names, "filter_window", torch=torch, random=random,
        CONFIG_MAP=settings, copy=__import__("copy"), inspect=__import__("inspect"), warnings=__import__("warnings"),
        **{name: getattr(transformers, name) for name in warpers}, LogitsProcessorList=transformers.LogitsProcessorList,
        StoppingCriteriaList=transformers.StoppingCriteriaList, SampleOutput=object,
        **{name: getattr(__import__("typing"), name) for name in ("List", "Optional", "Union")},
    ).jacobi_sample_multilevel  # fmt: skip

    class Model:
        config = NAMESAKE(is_encoder_decoder=False, vocab_size=scenario.vocabulary)
        vocab_size = scenario.vocabulary
        generation_config = NAMESAKE(pad_token_id=None, eos_token_id=None, output_scores=False, output_attentions=False,
                                     output_hidden_states=False, return_dict_in_generate=False)  # fmt: skip

        def prepare_inputs_for_generation(self, ids: Any, **_: Any) -> Any:
            return {"input_ids": ids, "position_ids": torch.arange(ids.shape[1])[None], "text": ids}

        def _update_model_kwargs_for_generation(self, outputs: Any, given: Any, **_: Any) -> Any:
            return given | {"past_key_values": outputs.past_key_values}

        def jforward_multilevel(self, text: Any, past_tokens: Any, guess_tokens: Any, fill_level: int, **_: Any) -> Any:
            held = text[0].tolist()
            after = lambda tokens: logits_of(scenario.target, [held + tokens])[:, -1]  # noqa: E731
            phrases = [guess_tokens[at : at + level - 1] for at in range(0, len(guess_tokens or []), level - 1)]
            behind = [after(phrase[: end + 1]) for phrase in phrases for end in range(len(phrase))]
            newest = past_tokens[fill_level]
            inner = torch.stack([after(newest[: place + 1]) for place in range(len(newest))], 1)
            size = len(held) + sum(len(part or []) for part in past_tokens) + len(guess_tokens or [])
            entries = torch.zeros(1, 1, size, 1)
            return NAMESAKE(
                out_logits=after([]), inp_logits=inner, step_len=size,
                guess_logits=torch.stack(behind, 1) if behind else None, kvcache_len=len(held),
                past_key_values=[(entries, entries.clone())],
            )  # fmt: skip

    def speculative() -> Any:
        prompt = torch.tensor([scenario.prompt])
        stop = transformers.StoppingCriteriaList(
            [transformers.MaxLengthCriteria(len(scenario.prompt) + scenario.horizon)]
        )
        made = decode(Model(), prompt, stopping_criteria=stop, attention_mask=torch.ones_like(prompt), chat=False)
        return made[0, len(scenario.prompt) :].tolist()

    return speculative
