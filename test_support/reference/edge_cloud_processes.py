"""A cloud in its own process, which can be killed, and an edge in this process that calls it over HTTP."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np

from reference import constant
from reference.edge_cloud.edge import Edge, EdgeState
from test_support.reference.edge_cloud_sessions import play, seed_for

ROOT = Path(__file__).parents[2]
FLAT_P, FLAT_Q = np.array([0.2, 0.3, 0.5]), np.array([0.6, 0.3, 0.1])
SERVER = """
import os, sys
from pathlib import Path
import numpy as np
from reference import Sampled
from reference.edge_cloud import over_http

seed, journal, fault, left = int(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4])

def dying(function, late=False):
    def call(*arguments):
        global left
        left -= 1
        answer = function(*arguments) if late or left else None
        if left == 0:
            os._exit(9)
        return answer
    return call

target = lambda tokens: np.roll([0.2, 0.3, 0.5], tokens[-1])
if fault in {"before", "after"}:
    over_http.Journal.record = dying(over_http.Journal.record, late=fault == "after")
server = over_http.server(
    dying(target) if fault == "model" else target, Sampled(seed), Path(journal) if journal else None
)
print(server.server_address[1], flush=True)
server.serve_forever()
"""
"""A server that dies at the given call of the model, or before or after that many replies are written down."""


def http_target(tokens):
    """Return fixed rows of p rotated by the last token, so that a context that is off by one shows."""
    return np.roll(FLAT_P, tokens[-1])


def http_draft(tokens):
    return np.roll(FLAT_Q, tokens[-1])


class Running:
    """A server in its own process; each call of ``address`` starts it again, without the fault after the first time."""

    def __init__(self, journal="", fault="", after=0):
        """Choose a fault of the server: "model", "before" or "after"; it happens at call number ``after``."""
        self.journal, self.fault, self.starts, self.process = str(journal), (fault, str(after)), 0, None

    def address(self):
        """Start a server, instead of the previous one; return its address."""
        if self.process is not None:
            self.stop()
        arguments = (str(self.starts), self.journal, *(("", "0") if self.starts else self.fault))
        command = [sys.executable, "-c", SERVER, *arguments]
        self.process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        self.starts += 1
        return "127.0.0.1", int(self.process.stdout.readline())

    def stop(self):
        """Kill the server process."""
        self.process.kill()
        self.process.wait(10)
        self.process.stdout.close()


def http_session(link, draws, mode, name, horizon=2, gamma=1, draft=http_draft, **options):
    edge = Edge(draft, constant(gamma), mode, session=name, **{"seed": seed_for(mode), **options})
    return play(edge, draws, EdgeState((0,), horizon), link).tokens[1:]
