"""A loop of two processes with the same seed before each coin, and a loop that draws with NumPy."""

from __future__ import annotations

from contextlib import nullcontext
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from specverify.testing import EngineScenario
from test_support.shipped.loops import silent
from test_support.shipped.networks import Cached, Tables, logits_of
from test_support.shipped.shipped import BOUNDARY, LAW, REUSE, Shipped
from test_support.shipped.sources import functions_of

PEARL = "ParallelSpeculativeDecoding"
SEED = "self.seed + prefix_len - self.args.gamma + i"
OF_ITS_PLACE = (f"{SEED})", f"{SEED} + 1)")
"""The seed of a coin in the later rounds, which is that of the draft before, and that of the draft's own place."""


def pearl(scenario: EngineScenario, *, mended: tuple[str, str] | None = None) -> Any:
    """``parallel_speculative_decoding`` of PEARL, gamma 1: its first process, which is told the rows of the second.

    Both seed themselves alike and decide the same. It reads the row before the last token, so its text has one more in
    front, which the tables are not told of.
    """
    functions = torch.nn.functional
    names = ("norm_logits", "sample", "max_fn", "top_k_top_p_filter")
    own = functions_of(PEARL, "src/util.py", *names, torch=torch, F=functions)
    given = dict(torch=torch, norm_logits=own.norm_logits, sample=own.sample)
    cache = functions_of(PEARL, "src/kvcache.py", "KVCacheModel", **given).KVCacheModel
    seen: list[Any] = []

    class Draft(cache):  # type: ignore[misc,valid-type]
        def generate(self, prefix: Any, gamma: int) -> Any:
            seen[:] = [prefix]
            return super().generate(prefix, gamma)

    given |= dict(KVCacheModel=Draft, max_fn=own.max_fn)
    name, mend = "parallel_speculative_decoding", None if mended is None else partial(_in_its_first_loop, *mended)
    decode = functions_of(PEARL, "src/engine.py", name, mended=mend, **given).parallel_speculative_decoding

    def gather(of_draft: Any) -> Any:
        (text,) = seen
        of_target = logits_of(_behind_one(scenario.target), text).exp()[:, text.shape[1] - 2 : text.shape[1]]
        return torch.cat([of_draft, of_target.to(of_draft.dtype)])

    both = SimpleNamespace(is_main_process=True, wait_for_everyone=silent, gather=gather)
    asked = SimpleNamespace(temp=1.0, top_k=0, top_p=0.0, gamma=1, max_tokens=scenario.horizon)

    def speculative() -> Any:
        counted = dict(draft_forward_times=0, num_acc_tokens=[], vocab_size=scenario.vocabulary)
        net = Cached(_behind_one(scenario.draft))
        itself = SimpleNamespace(accelerator=both, draft_model=net, seed=1234, args=asked, **counted)
        made = decode(itself, torch.tensor([(0, *scenario.prompt)]))
        return made[0, 1 + len(scenario.prompt) :][: scenario.horizon].tolist()

    return speculative


def _behind_one(tables: Tables) -> Tables:
    return lambda tokens: tables(tuple(tokens[1:]) or (0,))


def _in_its_first_loop(old: str, new: str, text: str) -> str:
    """Return ``text`` with ``new`` for the first ``old``: the loops without a strategy hold it too."""
    if old not in text:
        raise ValueError(f"the file does not hold {old!r}")
    return text.replace(old, new, 1)


def jaymody(scenario: EngineScenario) -> Any:
    """``speculative_sampling`` of jaymody, K = 2, over functions that answer with tables."""
    names = ("max_fn", "sample", "speculative_sampling")
    given: dict[str, Any] = dict(np=np, tqdm=lambda **_: nullcontext(silent()))
    decode = functions_of("speculative-sampling", "main.py", *names, **given).speculative_sampling

    def network(tables: Tables) -> Any:
        return lambda text: logits_of(tables, [text]).exp()[0].numpy()

    def speculative() -> Any:
        nets = network(scenario.draft), network(scenario.target)
        made = decode(np.array(scenario.prompt), *nets, scenario.horizon, 2)
        return made[len(scenario.prompt) :][: scenario.horizon].tolist()

    return speculative


ROWS = (
    Shipped(
        "PEARL, `parallel_speculative_decoding`",
        lambda: pearl,
        pearl,
        expected=frozenset({LAW, REUSE, BOUNDARY}),
        engine=True,
    ),
    Shipped(
        "PEARL with each coin seeded by its own place",
        lambda: partial(pearl, mended=OF_ITS_PLACE),
        pearl,
        expected=frozenset({BOUNDARY}),
        engine=True,
    ),
    Shipped("jaymody, `speculative_sampling`", lambda: jaymody, jaymody, engine=True),
)
