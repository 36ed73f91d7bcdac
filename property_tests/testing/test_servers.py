"""Servers of completions: log-probabilities, streams, usage and seeds over HTTP, right and wrong."""

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from specverify.testing import UnusableSubject, check_sampler, server_sampler

P = np.array([[0.2, 0.3, 0.5], [0.5, 0.25, 0.25], [0.1, 0.8, 0.1]])
PIECES = ("a", "bc", " d")
LAW = {(a, b): float(P[0][a] * P[a][b]) for a in range(3) for b in range(3)}


def text_of(new):
    return "".join(PIECES[token] for token in new)


def completion(fault, rng):
    row, tokens, logprobs, tops = 0, [], [], []
    for place in range(2):
        token = int(rng.choice(3, p=P[row]))
        shown = P[0] if fault == "first row" and place else P[row]
        order = sorted(range(3), key=lambda t: shown[t], reverse=fault != "least first")
        tops.append(
            {f"token_id:{t}": float(np.log(shown[t])) for t in order[:2]}
            | {f"token_id:{token}": float(np.log(shown[token]))}
        )
        logprobs.append(float(np.log(P[row][token] if fault != "bonus is certain" or not place else 1.0)))
        tokens.append(token)
        row = token
    if fault == "first row":
        logprobs[1] = float(np.log(P[0][tokens[1]]))
    if fault == "one missing" and tokens[1] == 2:
        logprobs = logprobs[:1]
    return tokens, logprobs, tops


def handler(fault):
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            rng = np.random.default_rng(None if fault == "seed ignored" else asked["seed"])
            made = [completion(fault, rng) for _ in range(asked["n"])]
            choices = [
                {
                    "index": place,
                    "text": text_of(tokens)[: -1 if fault == "end lost" else None],
                    "token_ids": tokens,
                    "finish_reason": "stop"
                    if fault == "reason by the token" and tokens[1] == 0 and made[0][0][0] == 1
                    else "length",
                    "logprobs": {
                        "tokens": [f"token_id:{t}" for t in tokens],
                        "token_logprobs": values,
                        "top_logprobs": tops,
                    },
                }
                for place, (tokens, values, tops) in enumerate(made)
            ]
            count = 2 * asked["n"] + (1 if fault == "drafts in usage" else 0)
            self.send_response(200)
            self.end_headers()
            if not asked.get("stream"):
                self.wfile.write(json.dumps({"choices": choices, "usage": {"completion_tokens": count}}).encode())
                return
            (tokens, values, tops) = made[0]
            for place, token in enumerate(tokens):
                piece = "" if fault == "last chunk lost" and place else PIECES[token]
                parts = {
                    "tokens": [f"token_id:{token}"],
                    "token_logprobs": [values[place]],
                    "top_logprobs": [tops[place]],
                }
                event = {"choices": [{"index": 0, "text": piece, "token_ids": [token], "logprobs": parts}]}
                self.wfile.write(f"data: {json.dumps(event)}\n\n".encode())
            self.wfile.write(b"data: [DONE]\n\n")

        def log_message(self, *_):
            pass

    return Handler


@contextmanager
def server(fault=""):
    running = ThreadingHTTPServer(("127.0.0.1", 0), handler(fault))
    thread = threading.Thread(target=running.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{running.server_port}/v1/completions"
    finally:
        running.shutdown()
        running.server_close()
        thread.join()


HOW = {"law": LAW, "tv": 0.3, "on_fail": None, "largest_call": 256}
ALL = {"logprobs": None, "top_logprobs": None, "text": text_of, "finish_reason": lambda new: "length", "usage": None}


@pytest.mark.thorough
def test_a_right_server_holds():
    with server() as url:
        found = check_sampler(server_sampler(url, (3, 1), 2, top=2), returns=ALL, promises={"seed"}, **HOW)
    assert {v.status for v in found} == {"holds"}, found
    assert {"values_match", "seed_repeats"} <= {v.check for v in found}


@pytest.mark.thorough(keep=3)
@pytest.mark.parametrize(
    ("fault", "name"),
    [
        ("first row", "logprobs"),
        ("bonus is certain", "logprobs"),
        ("one missing", "logprobs"),
        ("first row", "top_logprobs"),
        ("least first", "top_logprobs"),
        ("end lost", "text"),
        ("drafts in usage", "usage"),
        ("reason by the token", "finish_reason"),
    ],
)
def test_a_wrong_value_is_refuted(fault, name):
    with server(fault) as url:
        found = check_sampler(server_sampler(url, (3, 1), 2, top=2), returns={name: ALL[name]}, **HOW)
    assert [v.check for v in found if v.status == "refuted"] == ["values_match"], found


def test_a_seed_that_is_ignored_is_refuted():
    with server("seed ignored") as url:
        found = check_sampler(server_sampler(url, (3, 1), 2), promises={"seed"}, **HOW)
    assert "seed_repeats" in {v.check for v in found if v.status == "refuted"}


@pytest.mark.thorough(keep=2)
@pytest.mark.parametrize(("fault", "status"), [("", "holds"), ("last chunk lost", "refuted")])
def test_the_chunks_of_a_stream_add_up(fault, status, monkeypatch):
    monkeypatch.setattr("specverify.promises.sampled.SAMPLES", 50)
    with server(fault) as url:
        sample = server_sampler(url, (3, 1), 2, stream=True)
        found = check_sampler(sample, returns={"chunks": text_of, "logprobs": None}, **{**HOW, "tv": 0.45})
    assert next(v for v in found if v.check == "values_match").status == status, found


def test_what_is_no_server_is_said():
    with pytest.raises(ValueError, match="url"):
        server_sampler("localhost", (), 1)


@pytest.mark.parametrize("path", ["completion", "generate", "v1/chat/completions"])
def test_a_path_with_other_requests_is_said(path):
    with pytest.raises(ValueError, match="expected a path with the requests of /v1/completions; `specverify sample"):
        server_sampler(f"http://localhost:1/{path}", (0,), 1)


def test_an_answer_that_is_no_json_is_said():
    class Broken(BaseHTTPRequestHandler):
        def do_POST(self):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"<html>gateway</html>")

        def log_message(self, *_):
            pass

    running = ThreadingHTTPServer(("127.0.0.1", 0), Broken)
    threading.Thread(target=running.serve_forever, daemon=True).start()
    try:
        sample = server_sampler(f"http://127.0.0.1:{running.server_port}/", (3, 1), 2)
        with pytest.raises(UnusableSubject, match=r"gateway.*expected JSON"):
            sample(1, 1)
    finally:
        running.shutdown()
        running.server_close()
