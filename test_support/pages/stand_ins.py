"""Engines of a few lines with the interface that the reproducers use: right ones, and ones with the reported defect.

Each function returns the fake modules by name; ``wrong`` adds the defect. The engines do not decode well.
"""

from __future__ import annotations

import random
import re
from functools import partial
from itertools import product
from types import ModuleType, SimpleNamespace

import numpy as np


def module(name, **content):
    made = ModuleType(name)
    made.__dict__.update(content, __version__="stand-in")
    return made


def llama(wrong, drafting=True):
    class Llama:
        def __init__(self, _, **__):
            self.draft_model = None

        def reset(self):
            pass

        def generate(self, prompt, *, logits_processor, **_):
            text = list(prompt)
            while True:
                drafts = self.draft_model(np.array(text)).tolist() if self.draft_model and drafting else []
                for process in logits_processor:
                    process(np.array(text + drafts * wrong), None)
                text.append(1)
                yield 1

    return {"llama_cpp": module("llama_cpp", Llama=Llama, LogitsProcessorList=list)}


def llama_criteria(wrong):
    class Llama:
        def __init__(self, _, **__):
            self.draft_model = None

        def reset(self):
            pass

        def create_completion(self, prompt, *, stopping_criteria=(), **_):
            text = [*prompt, 4]
            stopped = any(criterion(text, None) for criterion in stopping_criteria)
            drafts = list(self.draft_model(np.array(text))) if self.draft_model and wrong else []
            lost = stopped and not any(criterion(text + drafts, None) for criterion in stopping_criteria)
            return {
                "choices": [
                    {"text": "" if lost else "d", "finish_reason": "stop" if stopped and not lost else "length"}
                ]
            }

    return {"llama_cpp": module("llama_cpp", Llama=Llama, StoppingCriteriaList=list)}


def _llamacpp(answer):
    """Return a fake server module.

    ``answer(params, body)`` returns a text as a list of ``(id, logprob, alternatives)``.
    """

    def params():
        models = {"mparams": SimpleNamespace(path=""), "p_min": 0.0, "probabilistic": False}
        speculative = SimpleNamespace(types=[], draft=SimpleNamespace(**models))
        threads = {name: SimpleNamespace(n_threads=4) for name in ("cpuparams", "cpuparams_batch")}
        return SimpleNamespace(model=SimpleNamespace(path=""), speculative=speculative, **threads)

    class Server:
        def __init__(self, given):
            self.given = given

        def handle_completions(self, body):
            rows = answer(self.given, body)
            content = [{"id": token, "logprob": told, "top_logprobs": [0] * more} for token, told, more in rows]
            text = "".join("abcdefgh"[token] for token, *_ in rows)
            drafted = {"draft_n": 2} if self.given.speculative.types else {}
            return {"choices": [{"text": text, "logprobs": {"content": content}}], "timings": drafted}

    kinds = SimpleNamespace(COMMON_SPECULATIVE_TYPE_DRAFT_SIMPLE=1)
    return {"xllamacpp": module("xl", CommonParams=params, Server=Server, common_speculative_type=kinds)}


def llamacpp_xtc(wrong):
    def answer(_, body):
        numbers, new = random.Random(body["seed"]), []
        for _ in range(body["max_tokens"]):
            excluded = numbers.random() < 0.5 or (wrong and new == [0])
            new.append(int(numbers.random() < (0.1 if excluded else 0.7)))
        return [(token, -1.0, 1) for token in new]

    return _llamacpp(answer)


def llamacpp_logprobs(wrong, drafting=True):
    def answer(given, body):
        if not drafting:
            given.speculative.types = []
        lost = wrong and given.speculative.types
        return [(3, -1.0, 2), (6, 0.0, 0) if lost else (6, -2.0, 2)]

    return _llamacpp(answer)


def llamacpp_adaptive_p(wrong):
    def answer(given, body):
        drawn = given.speculative.draft.probabilistic
        first = int(random.Random(body["seed"]).random() < (0.9 if wrong and drawn else 0.4))
        return [(first, -1.0, 1), (2, -1.0, 1), (3, -1.0, 1)]

    return _llamacpp(answer)


def llamacpp_mirostat(wrong):
    def answer(given, body):
        other = wrong and given.speculative.draft.probabilistic and body["seed"] % 10 == 0
        return [(1 if other else 0, -1.0, 1), (2, -1.0, 1)]

    return _llamacpp(answer)


def _torch():
    init = SimpleNamespace(normal_=lambda *_: None)
    names = {"tensor": np.array, "ones_like": np.ones_like, "nn": SimpleNamespace(init=init)}
    return module("torch", manual_seed=lambda seed: None, **names)


def litgpt(wrong):
    class GPT:
        def __init__(self, _):
            pass

        def parameters(self):
            return [SimpleNamespace(dim=lambda: 2)]

        def set_kv_cache(self, batch_size):
            pass

        def eval(self):
            return self

    def decode(*given, **_):
        return np.arange(given[-1])[int(wrong) :]

    whole = module("it", GPT=GPT, Config=lambda **_: None)
    parts = (
        module("it", generate=lambda *_, **__: np.arange(15)),
        module("it", generate=lambda *it, **_: (decode(*it),)),
    )
    names = ("litgpt.generate.base", "litgpt.generate.speculative_decoding")
    within = dict(zip(names, parts, strict=True))
    return {"torch": _torch(), "litgpt": whole, "litgpt.generate": module("it"), **within}


def lucidrains_batch(wrong):
    class Decoder:
        def __init__(self, **_):
            pass

        def parameters(self):
            return [SimpleNamespace(dim=lambda: 2), SimpleNamespace(dim=lambda: 1)]

        def eval(self):
            return self

    def decode(target, draft, prompts, length, gamma, temperature):
        return (prompts.sum(axis=1, keepdims=True) + wrong * len(prompts) + np.arange(length),)

    return {"torch": _torch(), "speculative_decoding": module("it", Decoder=Decoder, speculative_decoding=decode)}


def lucidrains_early_exit(wrong):
    def decoder(**_):
        if wrong:
            raise NameError("name 'RMSNorm' is not defined")

    return {"speculative_decoding": module("it", Decoder=decoder)}


def _mlx(**content):
    random = SimpleNamespace(seed=lambda seed: None)
    numbers = {"array": np.array, "log": np.log, "repeat": np.repeat, "random": random}
    core = module("mlx.core", cpu=0, set_default_device=lambda device: None, **numbers)
    return {"mlx": module("mlx", core=core), "mlx.core": core, "mlx_lm": module("mlx_lm"), **content}


def mlx_penalties(wrong):
    def steps(prompt, *models, max_tokens, logits_processors, **_):
        new = []
        for _ in range(max_tokens):
            for process in logits_processors:
                process(np.array([*prompt[-1 if wrong and len(models) == 2 else 0 :], *new]), None)
            new.append(1)
            yield 1, None

    found = module("it", generate_step=steps, speculative_generate_step=steps)
    classes = module("it", Model=lambda options: options, ModelArgs=dict)
    return _mlx(**{"mlx_lm.generate": found, "mlx_lm.models": module("it"), "mlx_lm.models.llama": classes})


def mlx_xtc(wrong, share=0.5):
    rng = np.random.default_rng(0)

    def sampler(logits):
        coins = rng.random(1 if wrong else len(logits)) < share
        return np.broadcast_to(coins, len(logits)).astype(int)

    return _mlx(**{"mlx_lm.sample_utils": module("it", make_sampler=lambda **_: sampler)})


def _parameters(_):
    made = SimpleNamespace(search={}, speculative={})
    made.set_search_options, made.set_speculative_options = made.search.update, made.speculative.update
    return made


def onnxruntime_append(wrong):
    class Generator:
        def __init__(self, *_):
            self.read, self.waiting = [], []

        def append_tokens(self, tokens):
            self.read += [*([] if wrong else self.waiting), *tokens]
            self.waiting = []

        def generate_next_token(self):
            self.waiting = [2]

        def get_next_tokens(self):
            return np.array(self.waiting)

        def get_logits(self):
            return np.arange(5.0) * sum(self.read)

    return {"onnxruntime_genai": module("og", Model=str, GeneratorParams=_parameters, Generator=Generator)}


def onnxruntime_ngram(wrong, repeating=True):
    class Generator:
        def __init__(self, _, parameters):
            self.text, self.length = [], parameters.search["max_length"]
            heeded = "no_repeat_ngram_size" in parameters.search and not (wrong and parameters.speculative)
            self.fresh = heeded or not repeating

        def append_tokens(self, tokens):
            self.text += tokens

        def is_done(self):
            return len(self.text) >= self.length

        def generate_next_token(self):
            pairs = set(zip(self.text, self.text[1:], strict=False)) if self.fresh else ()
            self.text.append(next(token for token in range(9) if (self.text[-1], token) not in pairs))

        def get_sequence(self, _):
            return np.array(self.text)

    return {"onnxruntime_genai": module("og", Model=str, GeneratorParams=_parameters, Generator=Generator)}


def openvino(wrong, sampling=True):
    class Pipeline:
        def __init__(self, *_, scheduler_config, draft_model=None):
            self.drafting, self.prefixes = draft_model is not None, scheduler_config.enable_prefix_caching

        def generate(self, _, config):
            if not sampling or (wrong and self.drafting and self.prefixes):
                raise RuntimeError("sampling is not supported")
            bits = np.random.default_rng(config.rng_seed).integers(2, size=3)
            return SimpleNamespace(tokens=[(bits + 4 * (wrong and self.drafting)).tolist()])

    names = {"SchedulerConfig": SimpleNamespace, "GenerationConfig": SimpleNamespace, "LLMPipeline": Pipeline}
    genai = module("og", draft_model=lambda *_, **__: "a draft", **names)
    return {"openvino": module("openvino", Tensor=lambda numbers: numbers), "openvino_genai": genai}


def openvino_scores(wrong):
    class Pipeline:
        def __init__(self, *_, prompt_lookup=False, **__):
            self.lookup = prompt_lookup

        def generate(self, *_):
            return SimpleNamespace(tokens=[[3, 1]], scores=[-1.0 if wrong and self.lookup else -2.0])

    genai = module("og", GenerationConfig=SimpleNamespace, LLMPipeline=Pipeline)
    return {"openvino": module("openvino", Tensor=lambda numbers: numbers), "openvino_genai": genai}


def openvino_stops(wrong):
    class Pipeline:
        def __init__(self, *_, prompt_lookup=False, draft_model=None, **__):
            self.drafting = prompt_lookup or draft_model is not None

        def generate(self, _, config):
            missed = not config.stop_strings or (wrong and self.drafting)
            return SimpleNamespace(tokens=[[3, 1, 3] if missed else [3, 1]])

    names = {"SchedulerConfig": SimpleNamespace, "GenerationConfig": SimpleNamespace, "LLMPipeline": Pipeline}
    genai = module("og", draft_model=lambda *_, **__: "a draft", **names)
    return {"openvino": module("openvino", Tensor=lambda numbers: numbers), "openvino_genai": genai}


def transformers(wrong):
    class Llama:
        def __init__(self, _):
            pass

        def eval(self):
            return self

        def get_input_embeddings(self):
            return np.array

        def generate(self, *, max_new_tokens, **asked):
            logits = [np.ones((1, 8)) for _ in range(max_new_tokens)]
            scores = np.ones((max_new_tokens, 1, 8))
            if "top_h" in asked:
                scores[0, 0, 8 if wrong else 6 :] = -np.inf
            for option, place, right, instead in (
                ("encoder_repetition_penalty", (0, 0, 3), 1.0, 1.5),
                ("no_repeat_ngram_size", (0, 0, 3), 1.0, -np.inf),
                ("min_length", (0, 0, 4), -np.inf, 1.0),
                ("bad_words_ids", (0, 0, 4), -np.inf, 1.0),
                ("repetition_penalty", (-1, 0, 0), 1 / 1.5, 1.0),
            ):
                scores[place] = (instead if wrong else right) if option in asked else scores[place]
            return {"sequences": np.zeros((1, 2), dtype=int), "logits": logits, "scores": scores}

    return {"torch": _torch(), "transformers": module("it", LlamaConfig=lambda **_: None, LlamaForCausalLM=Llama)}


def transformers_broken_off(wrong, drafting=True):
    class Llama:
        def __init__(self, _):
            self.config, self.hooks = SimpleNamespace(num_hidden_layers=2), []

        def eval(self):
            return self

        def register_forward_pre_hook(self, hook):
            self.hooks.append(hook)
            return SimpleNamespace(remove=self.hooks.clear)

        def generate(self, ids, *, assistant_early_exit=2, **_):
            layers, self.config.num_hidden_layers = self.config.num_hidden_layers, assistant_early_exit * drafting or 2
            try:
                for hook in self.hooks:
                    hook(self)
            except Exception:
                layers = 1 if wrong else layers
                raise
            finally:
                self.config.num_hidden_layers = layers
            return ids + layers

    return {"torch": _torch(), "transformers": module("it", LlamaConfig=lambda **_: None, LlamaForCausalLM=Llama)}


def _vllm(generate, **more):
    """Return fake modules of vLLM; ``generate(prompt, options, speculation)`` returns new tokens."""

    class LLM:
        def __init__(self, _, speculative_config=None, **__):
            self.speculation = speculative_config or {}

        def generate(self, asked, options, **_):
            one = isinstance(asked, dict)
            listed = [options] * len(asked) if isinstance(options, SimpleNamespace) else options
            pairs = [(asked, options)] if one else zip(asked, listed, strict=True)
            texts = [generate(each["prompt_token_ids"], given, self.speculation) for each, given in pairs]
            outputs = (text if isinstance(text, SimpleNamespace) else SimpleNamespace(token_ids=text) for text in texts)
            return [SimpleNamespace(outputs=[output]) for output in outputs]

    class Saved:
        def __init__(self, *_, **__):
            pass

        def save_pretrained(self, _):
            pass

    of_transformers = {"LlamaConfig": Saved, "LlamaForCausalLM": Saved, "PreTrainedTokenizerFast": Saved}
    return {
        "transformers": module("transformers", set_seed=lambda _: None, **of_transformers),
        "vllm": module("vllm", LLM=LLM, SamplingParams=SimpleNamespace),
        **more,
    }


def _rejection_sampler():
    return {"vllm.v1": module("it"), "vllm.v1.sample": module("it", rejection_sampler=module("it"))}


def vllm_min_tokens(wrong):
    def generate(prompt, options, _):
        text = [(prompt[0] + place) % 8 for place in range(12)]
        stop = getattr(options, "stop_token_ids", [None])[0]
        return (
            text[: text.index(stop) + 1 + (wrong and getattr(options, "min_tokens", 0) > 0)] if stop in text else text
        )

    return _vllm(generate)


def vllm_seed(wrong, seeded=True):
    calls = []

    def generate(_, options, speculation):
        calls.append(0)
        drawn = wrong and speculation["draft_sample_method"] == "probabilistic"
        return [options.seed, len(calls) if drawn or not seeded else 0]

    return _vllm(generate, **_rejection_sampler())


def vllm_structured(wrong, steady=True):
    calls = []

    def generate(_, options, __):
        calls.append(0)
        shifted = (wrong and hasattr(options, "structured_outputs")) or (not steady and len(calls) > 1500)
        return [len(calls) % (2 if shifted else 3)]

    more = {"vllm.sampling_params": module("it", StructuredOutputsParams=SimpleNamespace)}
    return _vllm(generate, **_tokenizers(), **more, **_rejection_sampler())


def _tokenizers():
    return {"tokenizers": module("it", Tokenizer=lambda _: None, models=SimpleNamespace(BPE=lambda *_: None))}


def vllm_thinking_drafts(wrong, steady=True):
    def generate(_, __, speculation):
        return [0, 5] if (wrong and speculation) or not steady else [0, 1]

    return _vllm(generate, **_tokenizers(), **{"vllm.config": module("it", ReasoningConfig=SimpleNamespace)})


def vllm_thinking_end(wrong, steady=True):
    def generate(prompt, options, _):
        early = prompt[0] == 1
        again = options.thinking_token_budget is not None and ((wrong and early) or (not steady and not early))
        return [1 if early else 2, 0, 5, 1, 1 if again else 6]

    return _vllm(generate, **_tokenizers(), **{"vllm.config": module("it", ReasoningConfig=SimpleNamespace)})


def vllm_logprob_ids(wrong, steady=True):
    def generate(_, options, speculation):
        if wrong and speculation and hasattr(options, "logprobs"):
            raise RuntimeError("shape mismatch")
        told = dict.fromkeys((0, *options.logprob_token_ids), 0.0) if steady else {0: 0.0}
        return SimpleNamespace(logprobs=[] if wrong and speculation else [told] * 4)

    return _vllm(generate)


def vllm_expand(wrong):
    def expand(values, ends, number):
        written = np.repeat(values, np.diff(ends, prepend=0))
        return written + (wrong and values.dtype != np.int64)

    kinds = {"float32": np.dtype("f4"), "int32": np.dtype("i4"), "int64": np.dtype("i8")}
    platform = SimpleNamespace(register_triton_kernel_overrides=lambda: None)
    return {
        "torch": module("torch", tensor=np.array, equal=np.array_equal, **kinds),
        "vllm.platforms": module("it", current_platform=platform),
        "vllm.v1": module("it"),
        "vllm.v1.sample": module("it"),
        "vllm.v1.sample.rejection_sampler": module("it", expand_batch_to_tokens=expand),
    }


def vllm_raises(option, said, wrong):
    def generate(_, options, __):
        if wrong and hasattr(options, option):
            raise RuntimeError(said)
        return [1]

    return _vllm(generate)


def outlines_core(wrong):
    """Return a fake ``outlines_core``, whose guide allows tokens of a pattern.

    It finds them by trying all continuations of three characters.
    """

    class Guide:
        def __init__(self, index):
            self.pattern, self.tokens, self.text = *index, ""

        def get_tokens(self):
            behind = ["".join(item) for size in range(4) for item in product(self.tokens, repeat=size)]
            longer = {token: self.text + token for token in self.tokens}
            allowed = [t for t, text in longer.items() if any(re.fullmatch(self.pattern, text + end) for end in behind)]
            if wrong and re.fullmatch(self.pattern, self.text):
                allowed = [token for token in allowed if re.fullmatch(self.pattern, longer[token])]
            return [self.tokens[token] for token in allowed]

        def advance(self, token):
            self.text += next(name for name, number in self.tokens.items() if number == token)

    vocabulary = lambda _, ids: {token: places[0] for token, places in ids.items()}  # noqa: E731 - as a class
    return {"outlines_core": module("outlines_core", Vocabulary=vocabulary, Index=lambda *it: it, Guide=Guide)}


ENGINES = {
    "llama_min_tokens": llama,
    "llama_stopping_criteria": llama_criteria,
    "llamacpp_adaptive_p": llamacpp_adaptive_p,
    "llamacpp_logprobs": llamacpp_logprobs,
    "llamacpp_mirostat": llamacpp_mirostat,
    "llamacpp_xtc_seed": llamacpp_xtc,
    "litgpt_greedy_draft": litgpt,
    "lucidrains_batch": lucidrains_batch,
    "lucidrains_early_exit": lucidrains_early_exit,
    "mlx_penalties": mlx_penalties,
    "mlx_xtc": mlx_xtc,
    "onnxruntime_append_tokens": onnxruntime_append,
    "onnxruntime_ngram_no_repeat": onnxruntime_ngram,
    "openvino_draft_sampling": openvino,
    "openvino_lookup_scores": openvino_scores,
    "openvino_stop_strings": openvino_stops,
    "outlines_core_repetition": outlines_core,
    "transformers_broken_off": transformers_broken_off,
    "transformers_plain_padding": transformers,
    "transformers_plain_truncation": transformers,
    "vllm_cpu_expand": vllm_expand,
    "vllm_cpu_seed_in_steps": partial(vllm_raises, "seed", "CPU Generator does not use offset"),
    "vllm_cpu_top_k": partial(vllm_raises, "top_k", "max(): Expected reduction dim to be specified"),
    "vllm_logprob_token_ids": vllm_logprob_ids,
    "vllm_min_tokens": vllm_min_tokens,
    "vllm_seed_probabilistic": vllm_seed,
    "vllm_structured_probabilistic": vllm_structured,
    "vllm_thinking_budget_drafts": vllm_thinking_drafts,
    "vllm_thinking_budget_end": vllm_thinking_end,
}
"""By the name of the reproducer."""
