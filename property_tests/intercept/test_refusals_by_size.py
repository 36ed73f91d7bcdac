"""Calls of very many numbers or outcomes are refused before anything of that size is built: under a memory limit.

Each call runs in a process of its own library, whose memory may grow by ``ROOM`` at most.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOM = 2**29
"""Bytes: an array of a billion numbers takes sixteen times as many, or eight."""
PROGRAM = """
import json, resource, sys
{imports}
from specverify.intercept.everywhere import answered_everywhere
from specverify.intercept.refusals import NeedsValue
from specverify.laws.draws import Tape

CALLS = json.loads(sys.argv[1])
FORCED = [None, 0.0]
for forced in FORCED:  # what is imported late is imported here
    with answered_everywhere(Tape(0), forced):
        {warm}
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + {room}, used + {room}))
for call in CALLS:
    for forced in FORCED:
        try:
            with answered_everywhere(Tape(0), forced):
                eval(compile(call, "<engine.py>", "eval"))
            print(json.dumps([call, "answered", ""]))
        except NeedsValue as refusal:
            print(json.dumps([call, "refused", str(refusal)]))
        except BaseException as error:
            print(json.dumps([call, "failed", f"{{type(error).__name__}}: {{error}}"]))
"""
LIBRARIES = {
    "numpy": (
        "import numpy as np",
        "np.random.rand(2), np.random.default_rng(0).permutation(3), np.random.choice(2)",
        [
            "np.random.choice(10**9)",
            "np.random.choice(10**9, 2, False)",
            "np.random.choice(3, 10**9)",
            "np.random.permutation(10**9)",
            "np.random.rand(10**9)",
            "np.random.randint(5, size=10**9)",
            "np.random.exponential(size=(10**5, 10**4))",
            "np.random.gumbel(size=10**9)",
            "np.random.geometric(0.5, 10**9)",
            "np.random.binomial(1, 0.5, 10**9)",
            "np.random.multinomial(1, [0.5, 0.5], 10**9)",
            "np.random.default_rng(0).choice(10**9)",
            "np.random.default_rng(0).choice(10**9, 3, replace=False)",
            "np.random.default_rng(0).integers(5, size=10**9)",
            "np.random.default_rng(0).integers(10**9, size=10**9)",
            "np.random.default_rng(0).permutation(10**9)",
            "np.random.default_rng(0).random(10**9)",
            "np.random.default_rng(0).standard_exponential(10**9)",
            "np.random.default_rng(0).hypergeometric(2, 2, 2, 10**9)",
        ],
    ),
    "random": (
        "import random",
        "random.sample(range(3), 2), random.choices(range(3), k=1)",
        [
            "random.sample(range(10**9), 2)",
            "random.sample([1, 2], 1, counts=[10**9, 1])",
            "random.choices(range(3), k=10**9)",
        ],
    ),
    "torch": (
        "import torch",
        "torch.rand(2), torch.randperm(3), torch.randint(5, (2,)), torch.multinomial(torch.ones(2), 1)",
        [
            "torch.rand(10**9)",
            "torch.rand(10**5, 10**4)",
            "torch.rand_like(torch.empty(1).expand(10**9))",
            "torch.randint(5, (10**9,))",
            "torch.randint(10**9, (10**9,))",
            "torch.randint_like(torch.empty(1).expand(10**9), 5)",
            "torch.randperm(10**9)",
            "torch.multinomial(torch.ones(2), 10**9, True)",
            "torch.multinomial(torch.ones(1).expand(10**9), 1)",
            "torch.bernoulli(torch.full((1,), 0.5).expand(10**9))",
        ],
    ),
}
KEPT = {
    "numpy": ["np.random.randint(10**9) < 5", "np.random.default_rng(0).integers(10**9) < 5"],
    "random": ["random.randrange(10**9) < 5", "random.choice(range(10**9)) >= 0", "random.randint(0, 10**9) < 5"],
    "torch": ["bool(torch.randint(10**9, ()) < 5)"],
}
"""What has a law without an expansion keeps it."""


def outcomes(library, calls):
    imports, warm, _ = LIBRARIES[library]
    program = PROGRAM.format(imports=imports, warm=warm, room=ROOM)
    done = subprocess.run(
        [sys.executable, "-c", program, json.dumps(calls)], capture_output=True, text=True, check=True, timeout=300
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.thorough(keep=3)
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the memory in use is read from /proc")
@pytest.mark.parametrize("library", LIBRARIES)
def test_what_is_very_large_is_refused_before_it_is_built(library):
    pytest.importorskip(library)
    calls = LIBRARIES[library][2]
    found = outcomes(library, [*calls, *KEPT[library]])
    assert len(found) == 2 * (len(calls) + len(KEPT[library]))
    assert [line for line in found if line[1] != ("answered" if line[0] in KEPT[library] else "refused")] == []
    assert all("<engine.py>:1" in said for _, outcome, said in found if outcome == "refused")
