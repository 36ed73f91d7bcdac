"""An engine behind a server, judged by its samples alone: a small server of its own stands for it here."""

import json
import threading
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from specverify.testing import SpeculationRefuted, check_sampler

P, Q = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.2, 0.6])
LAW = {(token, after): float(P[token] * P[after]) for token in range(3) for after in range(3)}


def completion(rng: np.random.Generator, residual: np.ndarray) -> list[int]:
    """Decode two tokens with one draft each."""
    tokens: list[int] = []
    while len(tokens) < 2:
        draft = int(rng.choice(3, p=Q))
        kept = rng.random() * Q[draft] < P[draft]
        tokens.append(draft if kept else int(rng.choice(3, p=residual / residual.sum())))
    return tokens


class Endpoint(BaseHTTPRequestHandler):
    """Answers ``{"seed": ..., "n": ..., "bug": ...}`` with n completions."""

    def do_POST(self) -> None:
        """Decode and answer."""
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        rng = np.random.default_rng(asked["seed"])
        residual = P if asked["bug"] else np.maximum(P - Q, 0)
        body = json.dumps([completion(rng, residual) for _ in range(asked["n"])]).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def url() -> Iterator[str]:
    """Serve on this machine."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Endpoint)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def sampled(url: str, seed: int, n: int, *, bug: bool = False) -> list[list[int]]:
    """Ask the server."""
    asked = json.dumps({"seed": seed, "n": n, "bug": bug}).encode()
    with urllib.request.urlopen(urllib.request.Request(url, asked)) as answer:  # noqa: S310 - the address is ours
        return json.load(answer)


def test_the_endpoint(url: str) -> None:
    """It has the law of the target within a total variation of 0.1."""
    check_sampler(lambda seed, n: sampled(url, seed, n), law=LAW, tv=0.1)


def test_the_bug_is_refuted(url: str) -> None:
    """A rejected draft is replaced from p."""
    with pytest.raises(SpeculationRefuted, match="samples fit law - refuted"):
        check_sampler(lambda seed, n: sampled(url, seed, n, bug=True), law=LAW, tv=0.1)
