"""Exact laws of whole vLLM: right calls hold, planted faults of its files and of the statements are refuted.

Run by ``nox -s engines -- vllm``, where the engine is installed.
"""

from __future__ import annotations

from collections import Counter

import pytest

pytest.importorskip("vllm", reason="needs the engine: nox -s engines -- vllm")

import numpy as np
import torch
from mends.mending import Edit, mended

from specverify.engines.vllm import kernel_statements as kernels
from specverify.engines.vllm.adapter import BESIDE, EngineSetup, engine, generate, parameters
from specverify.engines.vllm.exact import DRAFT, exact_subject
from specverify.engines.vllm.mends import EXPAND, RANDOM, around
from specverify.testing import SpeculationRefuted, check_subject

pytestmark = pytest.mark.filterwarnings("ignore")  # those of the engine
CALL = "draft/top-k 2/three tokens"
"""All tests share one engine: a process has one."""
RECOVERED = "vllm.v1.sample.rejection_sampler.sample_recovered_tokens_kernel"
BREAKS = {
    "scheduler": Edit(
        "vllm.v1.core.sched.scheduler:Scheduler.update_from_output",
        "request.num_computed_tokens -= num_rejected",
        "request.num_computed_tokens -= max(num_rejected - 1, 0)",
    ),
    "sampler": Edit(
        "vllm.v1.sample.rejection_sampler:rejection_sample",
        "target_probs = target_logits.softmax(",
        "target_probs = (0.3 * target_logits).softmax(",
    ),
    "cache slot": Edit(
        "vllm.v1.worker.block_table:BlockTable.compute_slot_mapping",
        "        query_start_loc,\n        positions,\n",
        "        query_start_loc,\n        positions - (positions == 6).long(),\n",
    ),
}
SAID = {
    "scheduler": r"before forward pass \d the cache holds 7 entries and is fed \(.*\), expected \(\d,\) first",
    "sampler": r"rejection_sampler\.py",
    "cache slot": r"before forward pass \d the keys of layer 0 differ by .* at entry 5 of",
}
"""What leads to the place of each."""


def test_a_whole_call_has_an_exact_law_and_the_caches_of_the_kept_tokens():
    verdicts = check_subject(exact_subject(CALL))
    assert {"law_is_target", "cache_equals_prefill"} <= {
        each.check for each in verdicts if each.status.value == "holds"
    }


@pytest.mark.parametrize("name", BREAKS)
def test_a_planted_fault_of_a_file_is_refuted_by_a_message_that_leads_there(name):
    with mended((BREAKS[name],)), pytest.raises(SpeculationRefuted, match=SAID[name]) as error:
        check_subject(exact_subject(CALL))
    assert "law is target - refuted, exact" in str(error.value)


def with_the_draft(output, ends, drafts, draft_probs, target_probs, noise, *_):
    """Planted bug: recover from p, which includes the rejected draft."""
    for request, places in kernels.places_of(ends):
        for row in places:
            output[row] = (target_probs[row] * noise[request]).argmax()


def test_a_wrong_statement_of_a_kernel_is_refuted(monkeypatch):
    monkeypatch.setitem(kernels.STATEMENTS, RECOVERED, with_the_draft)
    with pytest.raises(SpeculationRefuted, match="law is target - refuted, exact"):
        check_subject(exact_subject("draft/top-k 2/two tokens"))


def copied(given):
    return [each.clone() if isinstance(each, torch.Tensor) else each for each in given]


def same(given, other):
    pairs = zip(given, other, strict=True)
    return all(torch.equal(one, two) for one, two in pairs if isinstance(one, torch.Tensor))


def test_the_compiled_kernels_compute_what_is_stated_in_thousands_of_calls_of_the_engine():
    way, numbers = EngineSetup(DRAFT), np.random.default_rng(0)
    engine(way)
    calls, different, planted = Counter(), Counter(), Counter()

    def beside(name, theirs):  # noqa: ANN202
        def launch(*given):  # noqa: ANN202
            assert name != RANDOM or not (given[2] == kernels.NOTHING).any(), "the mend launches the statement there"
            own, wrong = copied(given), copied(given)
            theirs(*given)
            kernels.STATEMENTS[name](*own)
            calls[name] += 1
            different[name] += not same(given, own)
            if name == RECOVERED:
                with_the_draft(*wrong)
                planted[name] += not same(given, wrong)

        return launch

    compared = sorted(kernels.STATEMENTS.keys() - {EXPAND})
    with around({name: lambda theirs, name=name: beside(name, theirs) for name in compared}):
        for _ in range(800):
            asked = [BESIDE[i] for i in numbers.integers(len(BESIDE), size=numbers.integers(1, 5))]
            generate(way, asked, [parameters(each) for each in asked])
    assert sum(calls.values()) > 10_000
    assert min(calls[name] for name in compared) > 300
    assert not +different
    assert planted[RECOVERED] > 100
