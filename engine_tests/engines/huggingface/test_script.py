"""Parts of scripts: what they look at in an engine that is right, and in one that is broken on purpose."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch

from specverify.checks.acceptance_law import rates
from specverify.checks.observed_runs import seen_in
from specverify.engines.huggingface.generation import assisted_engine, prompt_lookup_engine
from specverify.engines.huggingface.rows import BASE, rows
from specverify.engines.huggingface.script import script_of
from specverify.engines.huggingface.script_causes import CAUSES, cause_of
from specverify.engines.huggingface.script_models import fill_code, tokenizers_code
from specverify.engines.huggingface.script_text import Written, call_code, list_code, texts_code
from specverify.engines.huggingface.situations import letters_tokenizer
from specverify.engines.huggingface.smaller import HOT, clearer_settings
from specverify.engines.huggingface.speculators import two_tokenizers
from specverify.run.catalogue import find_subject
from specverify.subjects.fault import Drafted, Fault, NoScript

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


def test_the_line_of_every_cause_is_in_the_library():
    for cause in CAUSES:
        setting = next(name for name in rows() if any(part.strip("*") in name for part in cause.settings.split()))
        kind = cause.kinds.partition(" ")[0]
        fault = Fault("", returned=kind if kind == "hidden_states" else "", changed=("x",) * (kind == "changed"))
        fault = fault._replace(uniform=0.0 if kind == "boundary" else None)
        assert cause.line in cause_of(setting, fault)


def test_the_line_that_raises_is_the_innermost_of_the_library():
    frames = ((torch.__file__, 1, "a"), (sys.modules["transformers"].__file__, 7, "b"), (torch.__file__, 3, "c"))
    assert cause_of("assisted/plain", Fault("", error="ValueError", frames=frames)) == "transformers/__init__.py:7: b"


def test_a_setting_without_a_known_cause_has_none():
    assert not cause_of("assisted/plain", Fault("", wrong=((0,),)))


@pytest.mark.parametrize("tokenizer", [two_tokenizers(2).assistant_tokenizer, letters_tokenizer(4)])
def test_tokenizers_are_written_by_their_parts(tokenizer):
    written = Written(set(), set(), [], {}, {})
    lines = list(tokenizers_code({"tokenizer": tokenizer}, written))
    names = {}
    exec(
        "from tokenizers import *\nfrom transformers import PreTrainedTokenizerFast\n"
        + "\n".join([*written.before, *lines]),
        names,
    )
    assert "WordLevel" in lines[0]
    assert names["tokenizer"].backend_tokenizer.to_str() == tokenizer.backend_tokenizer.to_str()


def test_vectors_are_filled_by_the_ends_of_their_names():
    def rule(**vectors):
        return fill_code(Written(set(), set(), [], {}, vectors))

    assert "fill_(1.0)" in rule(norm=1.0)
    assert 'fill_(0.0 if name.endswith("bias") else 1.0)' in rule(norm=1.0, first_bias=0.0)
    with pytest.raises(NoScript, match="one dimension"):
        rule(norm=1.0, other=3.0)


def test_a_long_call_takes_several_lines_and_none_is_too_long():
    made = call_code("f", {f"name{number}": "1" * 20 for number in range(12)})
    assert max(map(len, made.splitlines())) <= 120
    assert len(made.splitlines()) == 5
    assert call_code("f", {"": "**same", "a": "1"}) == "f(**same, a=1)"
    assert max(map(len, list_code(["(0, 1, 2)"] * 40).splitlines())) <= 120
    assert list_code(["(0,)"]) == "[(0,)]"


@pytest.mark.parametrize(
    ("texts", "lines"),
    [([(0, 1)], 1), ([(token, 9 - token, 3) for token in range(10)] * 5, 4), ([(10, 2, 3)] * 50, 8), ([()], 1)],
)
def test_texts_are_said_in_few_lines_and_are_what_they_were(texts, lines):
    made = texts_code(texts)
    assert eval(made) == texts
    assert len(made.splitlines()) == lines
    assert max(map(len, made.splitlines())) <= 120


def test_what_may_show_more_is_hotter_or_after_another_prompt():
    first, *others = [setting for _, setting in clearer_settings(BASE)]
    assert first.temperature == HOT
    assert {setting.sample for setting in others} == {True, False}
    assert all(sum(a != b for a, b in zip(setting.prompt, BASE.prompt, strict=True)) == 1 for setting in others)
    assert not list(clearer_settings(GREEDY))
