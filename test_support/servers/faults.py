"""A proxy in front of a server on the loopback address, with planted faults in its answers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from random import Random
from threading import Thread
from urllib.error import HTTPError
from urllib.request import Request, urlopen

WRONG = 3
"""The id that takes the place of a token."""


def unchanged(body):
    return body


def with_wrong_tokens(answer, rng, share):
    """Replace the second token of a share of the samples of llama.cpp's /completion."""
    for sample in answer if isinstance(answer, list) else [answer]:
        tokens = sample.get("tokens", ())
        if len(tokens) > 1 and rng.random() < share:
            tokens[1] = WRONG
    return answer


def without_option(name, share):
    """Return a function that drops an option from a share of the requests for samples of several tokens."""

    def changed(body):
        dropped = body.get("n_predict", 1) > 1 and Random(body["seed"]).random() < share
        return {key: value for key, value in body.items() if not (dropped and key == name)}

    return changed


@contextmanager
def proxy(address, request=unchanged, share=0.0) -> Iterator[str]:
    """Forward requests to a server and yield the address; ``share`` of the samples get a wrong token."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            data = json.dumps(request(body)).encode()
            try:
                with urlopen(Request(address + self.path, data, {"Content-Type": "application/json"})) as response:
                    status, answer = 200, json.load(response)
            except HTTPError as error:
                status, answer = error.code, json.load(error)
            rng = Random(body.get("seed"))
            text = json.dumps(with_wrong_tokens(answer, rng, share) if status == 200 else answer).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
