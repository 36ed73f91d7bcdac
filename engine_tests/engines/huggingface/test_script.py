"""Parts of scripts: what they look at in an engine that is right, and in one that is broken on purpose."""

from __future__ import annotations

import subprocess
import sys

import pytest

from specverify.checks.acceptance_law import rates
from specverify.checks.observed_runs import seen_in
from specverify.engines.huggingface import special
from specverify.engines.huggingface.generation import assisted_engine, prompt_lookup_engine
from specverify.engines.huggingface.rows import BASE
from specverify.engines.huggingface.script import script_of
from specverify.run.catalogue import find_subject
from specverify.subjects.fault import Drafted, Fault

GREEDY = BASE._replace(name="greedy", sample=False)
BROKEN = """
from transformers.cache_utils import DynamicLayer
right = DynamicLayer.crop
def crop(self, *given, **named):
    right(self, *given, **named)
    self.values = self.values * 2
DynamicLayer.crop = crop
"""


def ended(script, tmp_path):
    (tmp_path / "script.py").write_text(script, "utf-8")
    done = subprocess.run(
        [sys.executable, "-I", "script.py"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.thorough
@pytest.mark.parametrize(("cache", "before", "status"), [("fed", "", 0), ("held", "", 0), ("held", BROKEN, 1)])
def test_a_script_about_a_cache_tells_a_right_one_from_a_wrong_one(cache, before, status, tmp_path):
    setting = GREEDY._replace(horizon=4, gamma=3)
    script = script_of(lambda: prompt_lookup_engine(setting), Fault("a cache", cache=cache))
    ended_with, said = ended(before + script, tmp_path)
    assert (ended_with, "expected" in said) == (status, bool(status)), said


@pytest.mark.thorough
@pytest.mark.parametrize(("right", "status"), [(True, 0), (False, 125)])
def test_a_rate_of_drafts_that_is_right_ends_with_0_and_another_target_with_125(right, status, tmp_path):
    program = find_subject("hf:all/assisted/plain").programs[0]
    rate = max(rates(seen_in(program.watch), program.law()), key=lambda rate: rate.reached * rate.emitted)
    drafted = Drafted(rate.rounds, rate.before, rate.token, rate.p if right else rate.p / 2)
    fault = Fault("a rate", expected=rate.expected, got=rate.expected / 2, calls=200, drafted=drafted)
    got, said = ended(script_of(lambda: assisted_engine(BASE), fault), tmp_path)
    assert got == status, said


def test_a_script_of_several_calls_copies_what_the_library_changes_in_each_call():
    build = special.universal_engine(special.IN_ORDER)
    fault = Fault("a text", wrong=((0, 0, 0),), expected=0.1, got=0.2, calls=40)
    script = script_of(lambda: build(BASE._replace(vocabulary=5)), fault)
    before, _, speculative = script.partition("def speculative():")
    assert "    assistant = fill(" in speculative
    assert "assistant" not in before
    assert "assistant = fill(" in script_of(lambda: assisted_engine(BASE), fault).partition("def speculative():")[0]
