"""nano-PEARL: one process drafts the next block while the other verifies the last one; here they take turns."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from copy import copy
from enum import Enum, auto
from itertools import count
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest.mock import patch

import torch

from specverify.testing import EngineScenario
from test_support.shipped.loops import silent
from test_support.shipped.networks import Tables, logits_of
from test_support.shipped.sources import functions_of

ENGINE = "nano_pearl/pearl_engine"
RUNNERS = ("ModelRunnerBase", "DraftModelRunner", "TargetModelRunner")


def without_a_device() -> Any:
    """Return a torch module that ignores devices and pinned memory when it makes a tensor."""

    def anywhere(name: str) -> Callable[..., Any]:
        def made(*values: Any, device: Any = None, pin_memory: bool = False, **options: Any) -> Any:
            return getattr(torch, name)(*values, **options)  # looked up now: random calls are answered

        return made

    host = ModuleType("torch")
    host.__getattr__ = lambda name: getattr(torch, name)  # type: ignore[method-assign]
    for name in ("tensor", "zeros", "rand"):
        setattr(host, name, anywhere(name))
    host.compile = lambda function: function  # type: ignore[attr-defined]
    return host


class Turns:
    """What the two processes broadcast: the drafts, and the target's answer, for which it makes its step."""

    drafts: Any = None
    answer: Any = None
    target: Any = None
    target_s = False

    def broadcast(self, tensor: Any, *, group: str = "everyone", **_: Any) -> None:
        """Hand a tensor over, or fill it with what the other one handed over."""
        if group == "verify" and self.target_s:
            tensor.copy_(self.drafts)
        elif group == "verify":
            self.drafts = tensor
        elif group == "everyone" and self.target_s:
            self.answer = tensor
        elif group == "everyone":
            self.target_s = True
            self.target.pearl_step()
            self.target_s = False
            tensor.copy_(self.answer)


def nano_pearl(scenario: EngineScenario, *, gamma: int = 2, beyond: int = 0) -> Any:
    """``prefill``, ``pearl_step`` and ``verify`` of both runners; ``beyond`` are tokens asked for, not looked at."""
    host, functional = without_a_device(), torch.nn.functional
    sampling = "nano_pearl/layers/sampler.py"
    own = functions_of("nano-PEARL", sampling, "norm_logits", "Sampler", torch=host, F=functional, nn=torch.nn)
    asked = SimpleNamespace(temperature=1.0, max_tokens=scenario.horizon + beyond, ignore_eos=True)
    given = dict(copy=copy, Enum=Enum, auto=auto, count=count, SamplingParams=lambda: asked)
    texts = functions_of("nano-PEARL", f"{ENGINE}/sequence.py", "SequenceStatus", "Sequence", **given)
    scheduling = functions_of("nano-PEARL", f"{ENGINE}/scheduler.py", "is_eos", "Scheduler", **vars(texts))
    masters = dict(draft_config=SimpleNamespace(master_rank=0), target_config=SimpleNamespace(master_rank=1))

    def runner(kind: Any, tables: Tables, group: str) -> Any:
        text = texts.Sequence([*scenario.prompt], asked)
        text.block_table = [0]
        alone = object.__new__(scheduling.Scheduler)
        vars(alone).update(running=[text], finished=[], waiting=[], eos=-1)
        alone.schedule = lambda: ([text], False)
        alone.block_manager = SimpleNamespace(rollback=lambda text, n: text.rollback_tokens(n), deallocate=silent)
        made = object.__new__(kind)
        vars(made).update(
            rank=0,
            gamma=gamma,
            group=group,
            verify_group="verify",
            tp_params=SimpleNamespace(local_rank=0, master_rank=0),
            global_config=SimpleNamespace(**masters),
            scheduler=alone,
            sampler=own.Sampler(),
            prepare_block_tables=silent,
            prepare_prefill=lambda _: (None, torch.tensor([len(text) - 1])),
            block_size=256,
            run_model=lambda _, places, first: logits_of(tables, [text.token_ids])[0, places],
        )
        return made

    def prefilled(made: Any) -> Any:
        (text,), _ = schedule = made.scheduler.schedule()
        made.scheduler.schedule = lambda: ([text], True)
        made.prefill()
        made.scheduler.schedule = lambda: schedule
        return text

    def speculative() -> Any:
        turns = Turns()
        context = dict(
            set_context=silent, reset_context=silent, is_eos=scheduling.is_eos, abstractmethod=abstractmethod
        )
        given = dict(norm_logits=own.norm_logits, SequenceStatus=texts.SequenceStatus, **context)
        runners = functions_of(
            "nano-PEARL", f"{ENGINE}/pearl_model_runner.py", *RUNNERS, torch=host, dist=turns, **given
        )
        draft = runner(runners.DraftModelRunner, scenario.draft, "draft")
        turns.target = runner(runners.TargetModelRunner, scenario.target, "target")
        with patch.object(torch.Tensor, "cuda", lambda tensor, **_: tensor):
            made = [prefilled(one) for one in (draft, turns.target)][1]
            while made in turns.target.scheduler.running:
                draft.pearl_step()
        return made.completion_token_ids[: scenario.horizon]

    return speculative
