"""Black boxes of one small model, as samplers and as servers of completions on the loopback address."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np

from specverify.testing import server_sampler

P = np.array([[0.2, 0.3, 0.5], [0.5, 0.25, 0.25], [0.1, 0.8, 0.1]])
Q = np.array([[0.6, 0.3, 0.1], [0.2, 0.4, 0.4], [0.3, 0.4, 0.3]])
PROMPT = (3, 1)
"""What the servers are asked with; the first row of the model follows it."""
LENGTH = 2
LAW = {(a, b): float(P[0][a] * P[a][b]) for a in range(3) for b in range(3)}


def inverse(pmf, u):
    return min(int(np.searchsorted(np.cumsum(pmf), u, side="right")), len(pmf) - 1)


def handler(answer, shape):

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            prefix = tuple(asked["prompt"][len(PROMPT) :])
            made = answer(asked["seed"], asked["n"], *([prefix] if prefix else []))
            self.send_response(200)
            self.end_headers()
            if asked.get("stream"):
                for event in events(made[0]):
                    self.wfile.write(f"data: {json.dumps(event)}\n\n".encode())
                self.wfile.write(b"data: [DONE]\n\n")
                return
            choices = [{"index": place, **choice(each, shape)} for place, each in enumerate(made)]
            count = sum(each.get("usage", {}).get("completion_tokens", len(each["tokens"])) for each in made)
            whole = made[0].get("whole", {})
            body = {"choices": choices, "usage": {"completion_tokens": count}, **whole}
            self.wfile.write(json.dumps(body).encode())

        def log_message(self, *_):
            pass

    return Handler


def choice(each, shape):
    ids = {"token_ids": each["tokens"]} if shape in {"completions", "ids"} else {}
    if shape == "ids":
        return {**ids, **each.get("report", {})}
    if shape == "chat":
        content = [
            {
                "token": f"token_id:{token}",
                "logprob": value,
                "top_logprobs": [{"token": f"token_id:{t}", "logprob": v} for t, v in top],
            }
            for token, value, top in zip(each["tokens"], each["logprobs"], each["top_logprobs"], strict=True)
        ]
        logprobs, text = {"content": content}, {"message": {"content": each["text"]}}
    else:
        logprobs = {
            "tokens": [f"token_id:{token}" for token in each["tokens"]],
            "token_logprobs": each["logprobs"],
            "top_logprobs": [{f"token_id:{t}": v for t, v in top} for top in each["top_logprobs"]],
        }
        text = {"text": each["text"]}
    return {**text, **ids, "logprobs": logprobs, "finish_reason": each["finish_reason"]}


def events(each):
    chunks = each.get("chunks", ())
    for place in range(max(len(each["tokens"]), len(chunks))):
        event = {"index": 0, "text": chunks[place] if place < len(chunks) else ""}
        if place < len(each["tokens"]):
            event["token_ids"] = [each["tokens"][place]]
        yield {"choices": [event]}
    if "whole" in each:
        yield {"choices": [], **each["whole"]}


@contextmanager
def served(answer, shape, *, length=LENGTH, **how):
    """Context manager that serves ``answer(seed, n, prefix)`` on this machine; it yields a sampler of the server."""
    running = ThreadingHTTPServer(("127.0.0.1", 0), handler(answer, shape))
    thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server_sampler(f"http://127.0.0.1:{running.server_port}/v1/completions", PROMPT, length, top=2, **how)
    finally:
        running.shutdown()
        running.server_close()
        thread.join()


@contextmanager
def called(answer, shape, **how):
    """Context manager that yields ``answer`` itself as a sampler whose reports are values of each row."""

    def sample(seed, n, prefix=()):
        rows = answer(seed, n, *([prefix] if prefix else []))
        return [{**row, **row.get("report", {})} for row in rows]

    yield sample


WAYS = {"sampler": called, "http": served}
