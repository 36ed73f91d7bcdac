"""A failure is written as a script that shows it with the engine alone, and stops showing it when the bug is mended."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from contextlib import nullcontext
from functools import cache

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM
from typer.testing import CliRunner

from specverify.base.identifier import Replay, pack_replay
from specverify.checks import check_named
from specverify.cli import app
from specverify.engines.huggingface.generation import assisted_engine
from specverify.engines.huggingface.rows import BASE
from specverify.engines.huggingface.script import script_of
from specverify.run.catalogue import find_subject, reproducer_of
from specverify.run.replays import again
from specverify.run.reproduce import LARGEST, ORDINARY, _error, reproduction, reproduction_of_error
from specverify.subjects.fault import FEWEST_CALLS, Fault, NoScript
from specverify.subjects.subject import EngineProgram

MOST_LINES, WIDEST = 60, 120
MOST_LINES_OF_GEMMA4 = 100
"""Its two configs differ from the library's in thirty entries, and its assistant is built with a property replaced."""
MENDED = """
import inspect
from transformers.generation import utils
source = inspect.getsource(utils._speculative_sampling)
assert "r_i <= probability_ratio" in source
exec(source.replace("r_i <= probability_ratio", "r_i < probability_ratio"), vars(utils))
"""


@cache
def reproduced(name, check):
    subject = find_subject(f"hf:all/{name}")
    wanted = Replay(subject.name, check, setting=subject.programs[0].name)
    return reproduction(*again(subject, check_named(check), wanted), seconds=20)


def run_alone(script, directory):
    """Run a script where nothing of ours can be imported, whether or not it is installed."""
    (directory / "script.py").write_text(script, "utf-8")
    for ours in ("specverify", "reference"):
        (directory / f"{ours}.py").write_text("raise ImportError", "utf-8")
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [sys.executable, "script.py"]
    return subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True, check=False)


def assert_is_read_in_one_go(script, most=MOST_LINES):
    lines = script.splitlines()
    assert len(lines) <= most
    assert max(map(len, lines)) <= WIDEST


def imported(script):
    nodes = list(ast.walk(ast.parse(script)))
    named = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    return {name.partition(".")[0] for name in named | {n.module for n in nodes if isinstance(n, ast.ImportFrom)}}


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "check", "printed"),
    [
        ("prompt-lookup/guidance", "law_is_target", r"new tokens .* in \d+ calls: expected 0\.\d{4}, got 0\.\d{4} .*"),
        ("prompt-lookup/stop-strings", "stop_law", r"expected new tokens \[2\], got \[2, 2\]"),
        ("prompt-lookup/greedy", "scores_match", r"attentions of .*: expected \d+\.\d{4}, got \d+\.\d{4} at \[.*\]"),
        ("gemma4-assistant/plain", "scores_match", r"attentions of .*: expected shape .*, got .*"),
        ("prompt-lookup/cache-passed-in", "cache_equals_prefill", r"expected to be fed \[1\] first, got \[.*\]"),
        (
            "early-exit/cache-passed-in",
            "processors_see_their_prefix",
            r"expected processors to be shown the same, \[.*\], got \[.*\]",
        ),
        ("prompt-lookup/stop-strings", "acceptance_law", r"expected new tokens \(.*\) never, got them with seed \d+"),
    ],
)
def test_a_finding_is_shown_by_a_script_that_needs_the_engine_alone(name, check, printed, tmp_path):
    script = reproduced(name, check).script
    assert imported(script) <= {"sys", "contextlib", "torch", "transformers", "tokenizers"}
    assert_is_read_in_one_go(script, MOST_LINES_OF_GEMMA4 if name.startswith("gemma4") else MOST_LINES)
    done = run_alone(script, tmp_path)
    assert done.returncode == 1, done.stderr
    assert re.fullmatch(printed, done.stdout.strip().splitlines()[-1])


@pytest.mark.parametrize(
    ("raising", "uniform", "calls"),
    [
        ({None, ORDINARY, LARGEST}, None, FEWEST_CALLS),
        ({None, LARGEST}, LARGEST, 10 * FEWEST_CALLS),
        ({None}, None, FEWEST_CALLS),
    ],
)
def test_what_only_the_largest_uniform_raises_is_shown_with_it(raising, uniform, calls):
    def opened(given):
        def run(draws):
            if given in raising:
                raise RuntimeError("0/0")
            return (0,)

        return nullcontext(run)

    program = EngineProgram(
        "p",
        lambda forced_uniform=None: opened(forced_uniform),
        lambda: {(0,): 0.5, (1,): 0.5},
        plain=lambda: opened("plain"),
    )
    fault = _error(program)
    assert (fault.error, fault.uniform, fault.calls) == ("RuntimeError", uniform, calls)


def test_nothing_that_raises_is_no_fault():
    def opened(**_):
        return nullcontext(lambda draws: (0,))

    assert _error(EngineProgram("p", opened, lambda: {(0,): 1.0}, plain=opened)) is None


FAULTLESS = "def speculative():\n    return plain()\n"


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "check", "printed"),
    [
        (
            "assisted/dynamic-cache",
            "",
            r"expected new tokens, as \[.*\] without speculation, got ValueError: Passing both.*",
        ),
        ("prompt-lookup/fp8-cache", "", r"expected new tokens, as .*, got IndexError: too many indices.*"),
        ("assisted/by-a-copy", "", r"expected new tokens, as .*, got RuntimeError: probability tensor contains.*"),
        ("prompt-lookup/last-position", "", r"expected new tokens, as .*, got IndexError: index out of range.*"),
        (
            "whisper/assisted",
            "inputs_unchanged",
            r"assistant\.generation_config\.force_unique.*: expected None, got True",
        ),
        ("early-exit/plain", "inputs_unchanged", r"target\.config\.num_hidden_layers: expected 2, got 1"),
        ("universal/in-order", "inputs_unchanged", r"assistant lm_head: expected Linear, got _PruneReindexingLMHead"),
    ],
)
def test_an_error_and_a_changed_object_are_shown_by_a_script(name, check, printed, tmp_path):
    subject = find_subject(f"hf:all/{name}")
    found = reproduced(name, check) if check else reproduction_of_error(subject, seconds=5)
    assert_is_read_in_one_go(found.script)
    assert re.search(r"^Cause: transformers/.*:\d+:", found.script, re.MULTILINE)
    shown, mended = run_alone(found.script, tmp_path), run_alone(without_speculation(found.script), tmp_path)
    assert re.search(printed, shown.stdout)
    assert (shown.returncode, mended.returncode) == (1, 0), shown.stderr + mended.stdout + mended.stderr


def without_speculation(script):
    """Return a script whose second call is the first one again, or whose only call is not made."""
    script = re.sub(r"(before = contents\(\)\n).*(after = contents\(\)\n)", r"\1\2", script, flags=re.DOTALL)
    return re.sub(r"def speculative\(\):.*?\n(?=\n?\S)", FAULTLESS, script, count=1, flags=re.DOTALL)


@pytest.mark.thorough
def test_a_script_that_cannot_be_run_here_ends_with_125(tmp_path):
    script = reproduction_of_error(find_subject("hf:all/assisted/dynamic-cache"), seconds=0).script
    for right, wrong in (("import torch\n", "import torch_of_nobody\n"), ("def plain():", "def of_nobody():")):
        assert right in script
        done = run_alone(script.replace(right, wrong), tmp_path)
        assert done.returncode == 125
        assert "cannot be tested: " in done.stdout


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "said"), [("assisted/plain", "nothing is raised"), ("assisted/two-prompts", "refuses it")]
)
def test_a_call_that_raises_nothing_has_no_script(name, said):
    printed = CliRunner().invoke(app, ["reproduce", f"hf:all/{name}"])
    assert printed.exit_code == 2
    assert said in printed.output


@pytest.mark.thorough
def test_the_script_of_a_boundary_draw_ends_with_0_when_the_comparison_is_mended(tmp_path):
    script = re.sub(r"first \+ \d+", "first + 200", reproduced("assisted/top-k", "support_at_boundary_draws").script)
    assert "torch.rand_like = lambda" in script
    wrong, mended = run_alone(script, tmp_path), run_alone(MENDED + script, tmp_path)
    assert (wrong.returncode, mended.returncode) == (1, 0), wrong.stderr + mended.stderr
    assert "expected new tokens" in wrong.stdout
    assert mended.stdout.startswith("expected and got none of them")


@pytest.mark.thorough
def test_a_setting_in_which_a_cache_is_passed_in_is_written_with_the_cache():
    found = reproduced("prompt-lookup/cache-passed-in", "law_is_target")
    assert "past_key_values=cache" in found.script
    assert found.fault.got > found.fault.expected
    assert found.smaller


def test_the_value_that_is_another_is_named_as_the_engine_names_it():
    assert reproduced("prompt-lookup/greedy", "scores_match").fault.returned == "attentions"


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "check", "said"),
    [
        ("assisted/top-k", "law_is_target", "nothing to reproduce"),
        ("assisted/plain", "draws_are_independent", "what raises are written as scripts, not draws_are_independent"),
    ],
)
def test_what_no_script_can_show_is_refused_in_a_sentence(name, check, said):
    identifier = pack_replay(Replay(f"hf:all/{name}", check, setting=name))
    printed = CliRunner().invoke(app, ["reproduce", identifier])
    assert printed.exit_code == 2
    assert said in printed.output


@pytest.mark.parametrize(("name", "said"), [("mtp/one-layer", "checkpoint"), ("table/assisted", "not the library's")])
def test_models_that_no_script_can_build_are_refused(name, said):
    program = find_subject(f"hf:all/{name}").programs[0]
    with pytest.raises(NoScript, match=said):
        reproducer_of("hf:all").script(program.source, Fault("anything"))


def test_reference_algorithms_are_refused():
    subject, check = find_subject("mutant:residual-from-target"), check_named("law_is_target")
    with pytest.raises(NoScript, match="not a call of transformers"):
        reproduction(next(check.cases(subject)), check)


def test_weights_without_a_recipe_are_stored_in_the_script():
    engine = assisted_engine(BASE._replace(name="stored", horizon=2))
    torch.nn.init.uniform_(engine.target.lm_head.weight)
    script = script_of(lambda: engine, Fault("stored"))
    head = script.partition("def plain")[0]
    namespace = {}
    with torch.set_grad_enabled(True):  # the script asks for no gradients: afterwards it is as it was
        exec(re.sub(r"^sys\.excepthook.*$", "", head, flags=re.MULTILINE), namespace)
    assert "load_state_dict" in head
    for name, model in zip(("target", "assistant"), engine.models, strict=True):
        rebuilt = namespace[name]
        assert rebuilt.config.to_dict() == model.config.to_dict()
        assert all(torch.equal(rebuilt.state_dict()[key], weights) for key, weights in model.state_dict().items())
    assert isinstance(namespace["target"], LlamaForCausalLM)
    assert isinstance(namespace["target"].config, LlamaConfig)
