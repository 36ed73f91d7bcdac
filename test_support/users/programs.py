"""Programs and a small server for the tests of black boxes: right ones, and some with a planted bug.

Two tokens after any prompt: the first from P, the second from P rolled by the first, so that they depend.

    python programs.py KIND       answers lines of JSON
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from math import log
from pathlib import Path
from threading import Thread

P = (0.1, 0.2, 0.3, 0.4)
WORDS = ("a", "b", "4", "d")


def pmf_after(tokens):
    """Return the pmf of the token after these tokens."""
    turn = tokens[-1] if tokens else 0
    return [P[(token - turn) % 4] for token in range(4)]


def law():
    return {f"{a} {b}": pmf_after(())[a] * pmf_after((a,))[b] for a in range(4) for b in range(4)}


def pair(rng, biased=False):
    first = rng.choices(range(4), pmf_after(()))[0]
    return [first, rng.choices(range(4), pmf_after(() if biased and rng.random() < 0.5 else (first,)))[0]]


def right(seed, n):
    rng = random.Random(seed)
    return [pair(rng) for _ in range(n)]


def biased(seed, n):
    """Wrong: the second token sometimes ignores the first."""
    rng = random.Random(seed)
    return [pair(rng, biased=True) for _ in range(n)]


def with_prompt(seed, n, prompt, max_tokens):
    assert (prompt, max_tokens) == ([3, 1], 2), (prompt, max_tokens)
    print("loading the model, 100 %")  # noqa: T201 - it must not end up among the answers
    return right(seed, n)


def with_options(seed, n, top_k):
    """Correct with the option ``top_k``: draws two equal tokens, the first from the ``top_k`` most probable."""
    pmf = [mass if mass in sorted(P)[-top_k:] else 0.0 for mass in P]
    return [[token, token] for token in random.Random(seed).choices(range(4), pmf, k=n)]


def raises(seed, n):
    raise RuntimeError("no device")


def seed_ignored(seed, n):
    return right(0, n)


def hungry(seed, n):
    return [[len(bytearray(2**33)), 0]] * n


def _once(signal_number):
    """Send a signal to the parent process, in the first call only."""
    with suppress(FileExistsError), Path(os.environ["BLACK_BOX_FLAG"]).open("x"):
        os.kill(os.getppid(), signal_number)


def stops_who_asks(seed, n):
    _once(signal.SIGSTOP)
    return right(seed, n)


def kills_who_asks(seed, n):
    _once(signal.SIGKILL)
    return right(seed, n)


def hangs_once(seed, n):
    with suppress(FileExistsError), Path(os.environ["BLACK_BOX_FLAG"]).open("x"):
        time.sleep(60)
    return right(seed, n)


def short(seed, n):
    return [row[:1] if row[0] == 0 else row for row in right(seed, n)]


def greedy(seed, n):
    return [[3, 2]] * n


def second_likeliest(seed, n):
    """Wrong: greedy, except that the second token has probability 0.3 although another has 0.4."""
    return [[3, 1]] * n


ANSWERS = {
    "short": short,
    "biased": biased,
    "seed-ignored": seed_ignored,
    "greedy": greedy,
    "second-likeliest": second_likeliest,
}
"""Of the other kinds, the right one."""


def answer_lines(kind):
    for line in sys.stdin:
        question = json.loads(line)
        if question["ask"] == "logprobs":
            told = sorted(enumerate(pmf_after(question["prompt"])), key=lambda item: -item[1])
            kept = told[: 2 if kind == "tells-two" else 4]
            answer = {"logprobs": [[i, round(log(p), 2 if kind == "rounds" else 12)] for i, p in kept]}
        elif kind == "dies":
            sys.stderr.write("out of device memory\n")
            sys.stderr.flush()
            os._exit(7)
        elif kind == "killed":
            os.kill(os.getpid(), 9)
        elif kind == "hangs":
            time.sleep(60)
        elif kind == "garbage":
            answer = "loading ..."
        elif kind in {"follows", "forgets"}:
            prompt = question["prompt"][: 2 if kind == "forgets" else None]
            drawn = random.Random(question["seed"]).choices(range(4), pmf_after(prompt), k=question["n"])
            answer = {"tokens": [[token] for token in drawn], "accepted": [token % 2 for token in drawn]}
        elif kind == "takes-two":
            answer = {"tokens": right(question["seed"], question["n"]), "at_once": 2, "notes": ["two at a time"]}
        elif kind == "other-shape":
            answer = {"tokens": [[0, 1]]}
        else:
            answer = {"tokens": ANSWERS.get(kind, right)(question["seed"], question["n"])}
        sys.stdout.write((answer if isinstance(answer, str) else json.dumps(answer)) + "\n")
        sys.stdout.flush()


@contextmanager
def server(answers=right, tokens="ids"):
    """Serve completions on a port of this machine, and yield the URL.

    ``tokens`` is the form of the tokens in answers.
    """

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            status, body = (500, b"out of memory") if tokens == "no" else (200, json.dumps(completed(asked)).encode())
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    def completed(asked):
        if asked["max_tokens"] == 1:
            named = [f"token_id:{i}" if tokens == "ids" else WORDS[i] for i in range(4)]
            top = dict(zip(named, map(log, pmf_after(asked["prompt"])), strict=True))
            return {"choices": [{"index": 0, "text": "", "logprobs": {"tokens": named[:1], "top_logprobs": [top]}}]}
        rows = answers(asked["seed"], asked["n"])
        return {"choices": [choice(i, row) for i, row in reversed(list(enumerate(rows)))]}

    def choice(index, row):
        words = [WORDS[token] for token in row]
        shown = {"ids": {"token_ids": row}, "words": {"logprobs": {"tokens": words}}, "text": {}}[tokens]
        return {"index": index, "text": "".join(words), **shown}

    running = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=running.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{running.server_address[1]}/v1/completions"
    finally:
        running.shutdown()
        thread.join()
        running.server_close()


if __name__ == "__main__":
    answer_lines(sys.argv[1])
