"""What node-llama-cpp is judged by: laws to which every option counts, and a process that is started again."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

import specverify.engines
from specverify.subjects.decoding import EngineRow, row_subject
from specverify.subjects.subject import UnusableSubject
from specverify.testing import SpeculationRefuted, check_subject
from test_support.samplers.black_boxes import sampler_of

FOLDER = Path(specverify.engines.__file__).parent / "node_llamacpp"
LIBRARY = """
const model = {createContext: async () => ({getSequence: () => new Sequence()}), isEogToken: () => false};
class Sequence {
    tokenPredictions = {used: 0, validated: 0, refuted: 0};
    async clearHistory() {}
    async *evaluateWithMetadata(prompt) {
        if (prompt[0] === 1) await new Promise(() => undefined);
        yield await new Promise((done) => setTimeout(done, 50, {token: 7, confidence: 1}));
    }
}
export const getLlama = async () => ({loadModel: async () => model});
export const [LlamaLogLevel, LlamaGrammar, LlamaGrammarEvaluationState] = [{}, class {}, class {}];
export const [DraftSequenceTokenPredictor, InputLookupTokenPredictor, TokenBias] = [class {}, class {}, class {}];
"""
"""Instead of node-llama-cpp: a text comes after 50 ms, and after a prompt that begins with 1 it never does."""
FAKE = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if asked["seed"] == 7919:
        answer = {"error": "out of texts"}
    else:
        rows = [[asked["n"], asked["max_tokens"]]] * asked["n"]
        answer = {"tokens": rows, **{name: [1] * len(rows) for name in ("drafted", "accepted", "confidences")}}
    print(json.dumps(answer), flush=True)
    if asked["seed"] == 2 * 7919:
        break
"""


@pytest.fixture(scope="module")
def rows():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NODE_LLAMA_CPP", "nowhere")
        patch.setattr("shutil.which", lambda name: name)
        from specverify.engines.node_llamacpp import rows

        yield rows


def test_the_driver_is_a_short_program():
    assert len((FOLDER / "driver.mjs").read_text("utf-8").splitlines()) <= 150


def test_every_row_with_a_law_has_one(rows):
    lawful = {name: row for name, row in rows.rows().items() if row.law}
    for name in ("plain", "lookup"):
        for option in rows.OPTIONS:
            law = lawful[f"{name}/{option}"].law()
            assert sum(law.values()) == pytest.approx(1)
            assert all(rows.END not in text[:-1] for text in law)


def test_every_option_changes_the_law(rows):
    """The control of all rows: a law that forgot an option would accuse an engine that heeds it."""
    for name, option in rows.OPTIONS.items():
        for changed, _ in option.asked.options:
            less = option.asked._replace(options=tuple(item for item in option.asked.options if item[0] != changed))
            one, other = (rows.law(request._replace(horizon=2)) for request in (option.asked, less))
            if option.asked.temperature:
                assert sum(abs(one.get(text, 0) - other.get(text, 0)) for text in {*one, *other}) > 1e-3, name


@pytest.mark.thorough
def test_an_engine_that_forgets_the_new_tokens_in_a_penalty_is_refuted_and_a_right_one_holds(rows):
    request = rows.asked(3, topK=2, **rows.penalty(frequencyPenalty=0.7))
    right = partial(rows.law, request)
    forgotten = rows.law(rows.asked(3, topK=2))
    check_subject(row_subject("right", "draws the law", EngineRow(sampler_of(right()), right)), sampled=True)
    with pytest.raises(SpeculationRefuted):
        check_subject(row_subject("wrong", "forgets", EngineRow(sampler_of(forgotten), right)), sampled=True)


def test_a_truncation_that_rounding_could_decide_is_refused(rows):
    edge = float(rows.next_pmf(rows.asked())(()).max())
    with pytest.raises(UnusableSubject, match="top-p is decided by"):
        rows.next_pmf(rows.asked(topP=edge))(())


def test_texts_come_from_a_process_that_is_started_again_after_it_ended(rows, monkeypatch):
    adapter = sys.modules["specverify.engines.node_llamacpp.adapter"]
    monkeypatch.setattr(adapter, "command", lambda words: [sys.executable, "-c", FAKE])
    monkeypatch.setattr(adapter, "_IDLE", {})
    request = rows.asked(3)
    assert adapter.texts(adapter.ProcessSetup(), request)(0, 300) == [(256, 3)] * 256 + [(44, 3)] * 44
    with pytest.raises(RuntimeError, match="out of texts"):
        adapter.texts(adapter.ProcessSetup(), request)(1, 2)
    assert adapter.texts(adapter.ProcessSetup(), request)(2, 2) == [(2, 3)] * 2
    with pytest.raises((RuntimeError, BrokenPipeError)):
        adapter.texts(adapter.ProcessSetup(), request)(3, 2)
    assert adapter.texts(adapter.ProcessSetup(), request)(3, 2) == [(2, 3)] * 2
    for process in adapter._IDLE.values():
        adapter.end(process)


@pytest.mark.skipif(not shutil.which("node"), reason="the driver needs Node.js")
def test_a_text_that_cannot_come_ends_the_question_and_a_late_one_does_not(tmp_path):
    library = tmp_path / "node_modules" / "node-llama-cpp"
    (library / "dist").mkdir(parents=True)
    (library / "dist" / "index.js").write_text(LIBRARY, "utf-8")
    (library / "package.json").write_text('{"type": "module"}', "utf-8")
    questions = [{"ask": "sample", "prompt": [first], "max_tokens": 2, "n": 1, "seed": 0} for first in (0, 1)]
    done = subprocess.run(
        ["node", str(FOLDER / "driver.mjs"), "model"],
        input="".join(json.dumps(question) + "\n" for question in questions),
        env={**os.environ, "NODE_LLAMA_CPP": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    late, never = map(json.loads, done.stdout.splitlines())
    assert late["tokens"] == [[7]]
    assert "never comes" in never["error"]


@pytest.mark.parametrize(("accepted", "kept"), [(3, True), (6, True), (2, False)])
def test_three_of_four_tokens_are_accepted_drafts_of_the_greedy_model_itself(rows, monkeypatch, accepted, kept):
    adapter = sys.modules["specverify.engines.node_llamacpp.adapter"]
    done = adapter.SampledTexts([(1, 2, 3, 3, 3)[: accepted + 2]], [4], [accepted], [[]])
    monkeypatch.setattr(adapter, "answers", lambda *_: done)
    assert adapter.all_accepted(adapter.ProcessSetup(), rows.asked(), 0, 1) == [kept]
