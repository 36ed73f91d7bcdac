"""Reproducers end with 0 where the defect is mended, 1 where it is there, 125 where it cannot be tested.

Engines are stood in for. The surveys of real ones, at the versions that are named, saw every one of them end with 1.
"""

from __future__ import annotations

import os
import runpy
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path
from types import ModuleType

import pytest

from test_support.pages import stand_ins

FOLDER = Path(__file__).parents[2] / "docs" / "findings" / "reproducers"
FIXED, PRESENT, UNTESTED = 0, 1, 125
REPORTED = {file.stem.replace("-", "_") for file in (FOLDER.parent / "reports").glob("*.md")}
"""Scripts that are sent to maintainers with a report."""
MOST_LINES, MOST_LINES_REPORTED = 60, 40
PACKAGES = {"mlx_lm.models", "litgpt.generate", "vllm.v1", "vllm.v1.sample"}
"""Modules that are passed over where their submodules are there."""


class OfAnotherVersion(ModuleType):
    """A module in which every name is there, and nothing can be called as it is called here."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)

        def other(*_, **__):
            raise TypeError(f"{name}() got an unexpected keyword argument")

        return other


@pytest.fixture
def status(monkeypatch):
    def run(name, modules, *arguments):
        for module, content in modules.items():
            monkeypatch.setitem(sys.modules, module, content)
        monkeypatch.setattr(sys, "argv", [name, *arguments])
        with pytest.raises(SystemExit) as ended:
            runpy.run_path(str(FOLDER / f"{name}.py"))
        return ended.value.code

    return run


def test_every_reproducer_has_a_stand_in():
    assert {file.stem for file in FOLDER.glob("*.py")} == set(stand_ins.ENGINES)


@pytest.mark.parametrize("name", stand_ins.ENGINES)
def test_a_reproducer_is_read_in_one_go(name):
    most = MOST_LINES_REPORTED if name in REPORTED else MOST_LINES
    assert len((FOLDER / f"{name}.py").read_text("utf-8").splitlines()) <= most


def test_every_report_has_a_script():
    assert {file.stem for file in FOLDER.iterdir()} >= REPORTED


SCRIPTS = sorted(FOLDER.glob("*.mjs"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda file: file.stem)
def test_a_script_of_node_is_short_and_says_where_there_is_no_engine(script, tmp_path):
    text = script.read_text("utf-8")
    assert len(text.splitlines()) <= MOST_LINES_REPORTED
    assert "Status 0 fixed, 1 present, 125 cannot" in text
    if node := shutil.which("node"):
        environment = {"PATH": os.environ["PATH"], "NODE_LLAMA_CPP": str(tmp_path)}
        done = subprocess.run([node, script], env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == UNTESTED
        assert done.stdout.startswith("cannot be tested: Error")


@pytest.mark.parametrize(
    ("name", "option"),
    [
        ("transformers_plain_padding", "encoder_repetition_penalty"),
        ("transformers_plain_padding", "repetition_penalty"),
        ("transformers_plain_truncation", "top_h"),
    ],
)
def test_one_option_alone_can_be_asked_about(status, capsys, name, option):
    assert status(name, stand_ins.ENGINES[name](wrong=True), option) == PRESENT
    assert status(name, stand_ins.ENGINES[name](wrong=False), option) == FIXED
    assert {line.partition(":")[0] for line in capsys.readouterr().out.splitlines()} == {option}


@pytest.mark.parametrize("name", stand_ins.ENGINES)
def test_the_defect_is_told_from_its_absence(status, capsys, name):
    assert status(name, stand_ins.ENGINES[name](wrong=False)) == FIXED
    assert status(name, stand_ins.ENGINES[name](wrong=True)) == PRESENT
    assert "cannot be tested" not in capsys.readouterr().out


@pytest.mark.parametrize("name", stand_ins.ENGINES)
def test_an_engine_that_is_not_there_cannot_be_tested(status, capsys, name):
    modules = stand_ins.ENGINES[name](wrong=False)
    for missing in modules.keys() - PACKAGES:
        assert status(name, modules | {missing: None}) == UNTESTED
        assert "cannot be tested: ModuleNotFoundError" in capsys.readouterr().out


@pytest.mark.parametrize("name", stand_ins.ENGINES)
@pytest.mark.parametrize("kind", [ModuleType, OfAnotherVersion])
def test_an_engine_of_another_version_cannot_be_tested(status, capsys, name, kind):
    """Names are missing from it, or take other arguments."""
    modules = {module: kind(module) for module in stand_ins.ENGINES[name](wrong=False)}
    assert status(name, modules) == UNTESTED
    assert "cannot be tested: " in capsys.readouterr().out


def cannot_be_made(*_, **__):
    raise OSError("the model cannot be read")


@pytest.mark.parametrize(
    ("name", "module", "maker"),
    [
        ("llama_min_tokens", "llama_cpp", "Llama"),
        ("llama_stopping_criteria", "llama_cpp", "Llama"),
        ("llamacpp_adaptive_p", "xllamacpp", "Server"),
        ("llamacpp_logprobs", "xllamacpp", "Server"),
        ("llamacpp_mirostat", "xllamacpp", "Server"),
        ("llamacpp_xtc_seed", "xllamacpp", "Server"),
        ("litgpt_greedy_draft", "litgpt", "GPT"),
        ("lucidrains_batch", "speculative_decoding", "Decoder"),
        ("lucidrains_early_exit", "speculative_decoding", "Decoder"),
        ("mlx_penalties", "mlx_lm.models.llama", "Model"),
        ("mlx_xtc", "mlx_lm.sample_utils", "make_sampler"),
        ("onnxruntime_append_tokens", "onnxruntime_genai", "Model"),
        ("onnxruntime_ngram_no_repeat", "onnxruntime_genai", "Model"),
        ("openvino_draft_sampling", "openvino_genai", "LLMPipeline"),
        ("openvino_stop_strings", "openvino_genai", "LLMPipeline"),
        ("transformers_broken_off", "transformers", "LlamaForCausalLM"),
        ("transformers_plain_padding", "transformers", "LlamaForCausalLM"),
        ("transformers_plain_truncation", "transformers", "LlamaForCausalLM"),
        ("vllm_cpu_seed_in_steps", "transformers", "LlamaForCausalLM"),
        ("vllm_cpu_top_k", "vllm", "LLM"),
        ("vllm_logprob_token_ids", "vllm", "LLM"),
        ("vllm_min_tokens", "vllm", "LLM"),
        ("vllm_seed_probabilistic", "transformers", "LlamaForCausalLM"),
        ("vllm_structured_probabilistic", "vllm", "LLM"),
        ("vllm_thinking_budget_drafts", "vllm", "LLM"),
        ("vllm_thinking_budget_end", "vllm", "LLM"),
    ],
)
def test_a_model_that_cannot_be_made_cannot_be_tested(status, capsys, name, module, maker):
    modules = stand_ins.ENGINES[name](wrong=True)
    setattr(modules[module], maker, cannot_be_made)
    assert status(name, modules) == UNTESTED
    assert "cannot be tested: OSError: the model cannot be read" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "engine", "said"),
    [
        ("llama_min_tokens", partial(stand_ins.llama, drafting=False), "no drafts were asked for"),
        ("llamacpp_logprobs", partial(stand_ins.llamacpp_logprobs, drafting=False), "nothing was drafted"),
        ("mlx_xtc", partial(stand_ins.mlx_xtc, share=0.0), "nothing varies"),
        ("onnxruntime_ngram_no_repeat", partial(stand_ins.onnxruntime_ngram, repeating=False), "or never"),
        ("openvino_draft_sampling", partial(stand_ins.openvino, sampling=False), "sampling is not supported"),
        ("transformers_broken_off", partial(stand_ins.transformers_broken_off, drafting=False), "nothing was drafted"),
        ("vllm_logprob_token_ids", partial(stand_ins.vllm_logprob_ids, steady=False), "returned [[[0]"),
        ("vllm_thinking_budget_drafts", partial(stand_ins.vllm_thinking_drafts, steady=False), "control 512"),
        ("vllm_thinking_budget_end", partial(stand_ins.vllm_thinking_end, steady=False), "control 294"),
    ],
)
def test_an_engine_that_does_not_get_there_is_not_called_mended(status, capsys, name, engine, said):
    """It drafts nothing, draws nothing, repeats nothing, or samples nothing without drafts either."""
    assert status(name, engine(wrong=False)) == UNTESTED
    assert said in capsys.readouterr().out
