"""Small servers on the loopback address that answer in the formats of vLLM, llama.cpp, SGLang and TGI.

All draw from one model of four tokens with the sampling options temperature and top-k. A fault, if there is one, is
another law of the samples. The reported probabilities of next tokens are those before or those after the options.
"""

from __future__ import annotations

import json
import random
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from math import log
from threading import Thread
from typing import NamedTuple

P = (0.1, 0.2, 0.3, 0.4)
TEXTS = ("a", "b", "4", "d")
IDS = tuple(f"token_id:{token}" for token in range(4))


def pmf_after(tokens):
    """Return the pmf of the token after these tokens."""
    turn = tokens[-1] if tokens else 0
    return [P[(token - turn) % 4] for token in range(4)]


def warp(pmf, options):
    """Return the pmf after temperature and top-k."""
    weights = [mass ** (1 / options.get("temperature", 1.0)) for mass in pmf]
    top_k = options.get("top_k", -1)
    least = sorted(weights)[-top_k] if 0 < top_k < 4 else 0
    kept = [weight if weight >= least else 0.0 for weight in weights]
    return [weight / sum(kept) for weight in kept]


class Model(NamedTuple):
    """The model from which the samples are drawn."""

    reversed_share: float = 0.0
    """Share of the samples whose first token comes from the reversed pmf: a fault."""
    tells_options: bool = True
    """Whether log-probabilities include the options."""
    obeys_options: bool = True

    def row(self, asked):
        """Return the new tokens of one sample."""
        rng = random.Random(asked.get("seed", "any"))
        tokens = list(asked["prompt"]) if isinstance(asked["prompt"], list) else []
        new = []
        for place in range(asked["max_tokens"]):
            pmf = warp(pmf_after(tokens + new), asked if self.obeys_options else {})
            wrong = place == 0 and rng.random() < self.reversed_share
            new.append(rng.choices(range(4), pmf[::-1] if wrong else pmf)[0])
        return new

    def rows(self, asked):
        """Return the new tokens of as many samples as are asked for."""
        return [self.row({**asked, "seed": f"{asked.get('seed', 'any')}/{i}"}) for i in range(asked.get("n", 1))]

    def told(self, asked, top):
        """Return pairs of token and probability after the prompt, the likeliest first; none of probability 0."""
        tokens = asked["prompt"] if isinstance(asked["prompt"], list) else []
        pmf = warp(pmf_after(tokens), asked if self.tells_options else {})
        return sorted(((i, mass) for i, mass in enumerate(pmf) if mass), key=lambda pair: -pair[1])[:top]


def named_logprobs(told, names):
    return {names[token]: log(mass) for token, mass in told}


def entry(token, probability=None, **more):
    return {"token": TEXTS[token], "logprob": log(probability or 1.0), **more}


def vllm(model, asked):
    """``/v1/completions`` of vLLM, which returns ids on request."""
    names = IDS if asked.get("return_tokens_as_token_ids") else TEXTS
    told = named_logprobs(model.told(asked, asked.get("logprobs", 0)), names)
    return {
        "choices": [
            {
                "index": i,
                "text": "".join(TEXTS[token] for token in row),
                "logprobs": {"tokens": [names[token] for token in row], "top_logprobs": [told] * len(row)},
                **({"token_ids": row} if asked.get("return_token_ids") else {}),
            }
            for i, row in reversed(list(enumerate(model.rows(asked))))
        ]
    }


def without_ids(model, asked):
    """``/v1/completions`` of SGLang, which returns texts only."""
    return vllm(model, {**asked, "return_token_ids": False, "return_tokens_as_token_ids": False})


def old_vllm(model, asked):
    """``/v1/completions`` of vLLM before it had ``return_token_ids``."""
    return vllm(model, {**asked, "return_token_ids": False})


def texts_alone(model, asked):
    """``/v1/completions`` of a server that returns no tokens."""
    return {
        "choices": [
            {"index": i, "text": "".join(TEXTS[token] for token in row)} for i, row in enumerate(model.rows(asked))
        ]
    }


def content(model, asked, top):
    """Return the log-probabilities of a row in llama.cpp's format, after the options if the request asks for that."""
    if asked.get("post_sampling_probs"):
        told = [{"id": i, "token": TEXTS[i], "prob": mass} for i, mass in model.told(asked, top)]
        return {"top_probs": told}
    told = Model(tells_options=False).told(asked, top)
    return {"top_logprobs": [entry(i, mass, id=i) for i, mass in told]}


def llama(model, asked):
    """``/v1/completions`` of llama.cpp."""
    more = content(model, asked, asked.get("logprobs", 0))
    return {
        "choices": [
            {
                "index": i,
                "text": "".join(TEXTS[token] for token in row),
                "logprobs": {"content": [{**entry(token, id=token), **more} for token in row]},
            }
            for i, row in enumerate(model.rows(asked))
        ]
    }


def llama_chat(model, asked):
    """``/v1/chat/completions`` of llama.cpp."""
    asked = {**asked, "prompt": asked["messages"][0]["content"], "logprobs": asked.get("top_logprobs", 0)}
    choices = llama(model, asked)["choices"]
    return {"choices": [{**choice, "message": {"content": choice.pop("text")}} for choice in choices]}


def llama_completion(model, asked):
    """``/completion`` of llama.cpp: a list of samples, or one alone."""
    asked = {**asked, "max_tokens": asked["n_predict"]}
    more = content(model, asked, asked["n_probs"]) if "n_probs" in asked else {}
    samples = [
        {
            "index": i,
            "content": "".join(TEXTS[token] for token in row),
            "tokens": row if asked.get("return_tokens") else [],
            "timings": {"draft_n_accepted": 1} if row[0] == 3 else {},
            **({"completion_probabilities": [{**entry(token, id=token), **more} for token in row]} if more else {}),
        }
        for i, row in enumerate(model.rows(asked))
    ]
    return samples if len(samples) > 1 else samples[0]


def old_llama_completion(model, asked):
    """``/completion`` of llama.cpp before it returned ids; ``n`` is ignored."""
    row = model.row({**asked, "max_tokens": asked["n_predict"]})
    told = model.told(asked, asked.get("n_probs", 0))
    probs = [{"tok_str": TEXTS[token], "prob": mass} for token, mass in told]
    tokens = [{"content": TEXTS[token], "probs": probs} for token in row] if probs else []
    return {"content": "".join(TEXTS[token] for token in row), "completion_probabilities": tokens}


def chat(names):
    """Return ``/v1/chat/completions`` of vLLM, with ids as texts, or of TGI and SGLang, with texts."""

    def answer(model, asked):
        asked = {**asked, "prompt": asked["messages"][0]["content"]}
        told = [
            {"token": names[i], "logprob": log(mass)} for i, mass in model.told(asked, asked.get("top_logprobs", 0))
        ]
        return {
            "choices": [
                {
                    "index": i,
                    "message": {"content": "".join(TEXTS[token] for token in row)},
                    "logprobs": {"content": [{"token": names[token], "top_logprobs": told} for token in row]},
                }
                for i, row in enumerate(model.rows(asked))
            ]
        }

    return answer


def sglang_generate(model, asked):
    """``/generate`` of SGLang."""
    options = asked["sampling_params"]
    question = {
        **options,
        "prompt": asked.get("input_ids") or asked.get("text"),
        "max_tokens": options["max_new_tokens"],
        "seed": options.get("sampling_seed", 1),
    }
    top = [[log(mass), i, None] for i, mass in model.told(question, asked.get("top_logprobs_num", 0))]
    samples = [
        {
            "text": "".join(TEXTS[token] for token in row),
            "output_ids": row,
            "meta_info": {"output_top_logprobs": [top] * len(row)},
        }
        for row in model.rows(question)
    ]
    return samples if len(samples) > 1 else samples[0]


def tgi_generate(model, asked):
    """``/generate`` of TGI, which takes texts and gives one sample."""
    options = asked["parameters"]
    question = {**options, "prompt": asked["inputs"], "max_tokens": options["max_new_tokens"]}
    row = model.row(question)
    told = model.told(question, options.get("top_n_tokens", 0))
    top = [{"id": i, "text": TEXTS[i], "logprob": log(mass)} for i, mass in told]
    tokens = [{"id": token, "text": TEXTS[token], "logprob": 0.0, "special": False} for token in row]
    details = {"tokens": tokens, "top_tokens": [top] * len(row)}
    return {"generated_text": "".join(TEXTS[token] for token in row), "details": details}


class Fake(NamedTuple):
    """A format of answers."""

    path: str
    answer: object
    """``answer(model, body)`` -> the JSON of an answer."""
    ids: bool = True
    tells: bool = True
    """Whether log-probabilities are in it."""
    takes_ids: bool = True
    """Whether the prompt may be token ids."""


FAKES = {
    "vLLM": Fake("/v1/completions", vllm),
    "vLLM of 2024": Fake("/v1/completions", old_vllm),
    "vLLM chat": Fake("/v1/chat/completions", chat(IDS), takes_ids=False),
    "llama.cpp": Fake("/v1/completions", llama),
    "llama.cpp chat": Fake("/v1/chat/completions", llama_chat, takes_ids=False),
    "llama.cpp /completion": Fake("/completion", llama_completion),
    "llama.cpp /completion of 2024": Fake("/completion", old_llama_completion, ids=False),
    "SGLang": Fake("/v1/completions", without_ids, ids=False),
    "SGLang /generate": Fake("/generate", sglang_generate),
    "TGI chat": Fake("/v1/chat/completions", chat(TEXTS), ids=False, takes_ids=False),
    "TGI /generate": Fake("/generate", tgi_generate, takes_ids=False),
    "texts": Fake("/v1/completions", texts_alone, ids=False, tells=False),
}


class Refused(Exception):  # noqa: N818 - an answer
    """``Refused(status, body)``: an answer with another status, and JSON."""


def always(asked):
    """Accept every request."""


@contextmanager
def serve(answer, path="/v1/completions"):
    """Serve ``answer(body, headers)`` -> JSON, or ``Refused``, or None to hang up; yield the URL."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            try:
                status, data = 200, answer(body, self.headers)
                if data is None:
                    return
                data = data if isinstance(data, bytes) else json.dumps(data).encode()
            except Refused as refused:
                status, data = refused.args[0], json.dumps(refused.args[1]).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}{path}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def fake_server(name, model=Model(), check=always):  # noqa: B008 - immutable
    """Serve a format of answers; ``check(body)`` may raise ``Refused``."""
    fake = FAKES[name]

    def answer(body, headers):
        check(body)
        return fake.answer(model, body)

    return serve(answer, fake.path)
