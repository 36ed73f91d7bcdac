"""llama.cpp's real server, with and without a draft model: its law, the two compared, options, and planted faults."""

from __future__ import annotations

import json
import urllib.request

import numpy as np
import pytest
from typer.testing import CliRunner

from specverify.cli import app
from specverify.laws.llama import next_logits
from test_support.servers import faults, llama_server

TEXT = ("--prompt", "3 4 5", "--max-tokens", "4", "--eos", str(llama_server.END), "--tv", "0.1")
"""Four new tokens: the server drafts none for the last token of a text."""
OWN = (*TEXT, "--logprobs", "--rounding", "1e-4")
DRAFTS = ["none", "greedy", "probabilistic"]


@pytest.fixture(scope="session")
def servers():
    with (
        llama_server.start_server() as plain,
        llama_server.start_server("greedy") as greedy,
        llama_server.start_server("probabilistic") as probabilistic,
    ):
        yield dict(zip(DRAFTS, (plain, greedy, probabilistic), strict=True))


def sampled(tmp_path, subject, *options):
    """Return the exit status, the verdicts by check, and what is printed."""
    file = tmp_path / "run.json"
    result = CliRunner().invoke(app, ["sample", subject, *options, "--json", str(file)])
    verdicts = json.loads(file.read_text("utf-8"))["verdicts"] if file.exists() else []
    return result.exit_code, {verdict["check"]: verdict for verdict in verdicts}, " ".join(result.output.split())


def asked(address, **body):
    data = json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(f"{address}/completion", data)) as answer:
        return json.load(answer)


def test_the_server_computes_the_law_of_the_model_that_was_written(servers):
    """The log-probabilities are those of the definition in float64; otherwise a law of them would say nothing."""
    prompt = (3, 4, 5)
    logits = next_logits(llama_server.letters_model(llama_server.TARGET_SEED))(prompt)
    expected = logits - np.logaddexp.reduce(logits)
    body = {"prompt": prompt, "n_predict": 1, "n_probs": 8, "temperature": 1.0}
    for address in servers.values():
        told = asked(address, **body)["completion_probabilities"][0]["top_logprobs"]
        assert {item["id"]: item["logprob"] for item in told} == pytest.approx(dict(enumerate(expected)), abs=1e-4)


@pytest.mark.parametrize("path", ["completion", "v1/completions"])
@pytest.mark.parametrize("draft", DRAFTS)
def test_its_samples_fit_its_log_probabilities(servers, tmp_path, draft, path):
    code, verdicts, said = sampled(tmp_path, f"{servers[draft]}/{path}", *OWN)
    assert code == 0, said
    assert {verdict["status"] for verdict in verdicts.values()} == {"holds"}
    assert "each request asks for 8 samples: 32 are refused (Field 'n'" in said
    if path == "completion":  # the other path does not count the drafts of each sample
        assert ("drafts of a sequence were accepted on average" in said) == (draft != "none")


@pytest.mark.parametrize("draft", DRAFTS[1:])
def test_the_server_with_a_draft_model_against_the_one_without(servers, tmp_path, draft):
    reference = f"{servers['none']}/completion"
    options = ("--reference", reference, "--temperature", "1", "--set", "top_k=2", *TEXT, "--most-samples", "20000")
    code, verdicts, said = sampled(tmp_path, f"{servers[draft]}/completion", *options)
    assert code == 0, said
    assert verdicts["samples_fit_reference"]["status"] == "holds"


def test_options_are_part_of_the_law_that_it_tells(servers, tmp_path):
    subject = f"{servers['probabilistic']}/completion"
    options = ("--set", "top_k=3", "--set", "repeat_penalty=1.3", "--temperature", "0.8")
    code, _, said = sampled(tmp_path, subject, *OWN, *options)
    assert code == 0, said
    assert "changes none of the log-probabilities" not in said


def test_a_chat_is_judged_by_its_first_token(servers, tmp_path):
    chat = ("--prompt", "abc", "--eos", str(llama_server.END), "--logprobs", "--rounding", "1e-4", "--tv", "0.1")
    code, verdicts, said = sampled(tmp_path, f"{servers['greedy']}/v1/chat/completions", *chat)
    assert code == 0, said
    assert verdicts["samples_fit_law"]["status"] == "holds"


def test_greedy_texts_with_a_draft_model_are_those_without(servers, tmp_path):
    options = ("--reference", f"{servers['none']}/completion", "--temperature", "0", *TEXT)
    code, _, said = sampled(tmp_path, f"{servers['greedy']}/completion", *options)
    assert code == 0, said


def test_wrong_tokens_in_a_tenth_of_the_samples_are_refuted(servers, tmp_path):
    plain = f"{servers['none']}/completion"
    with faults.proxy(servers["probabilistic"], share=0.1) as wrong:
        code, verdicts, said = sampled(tmp_path, f"{wrong}/completion", *OWN)
        assert code == 1, said
        assert verdicts["samples_fit_law"]["status"] == "refuted"
        options = ("--reference", plain, "--temperature", "1", "--set", "top_k=3", *TEXT)
        code, verdicts, said = sampled(tmp_path, f"{wrong}/completion", *options)
        assert code == 1, said
        assert verdicts["samples_fit_reference"]["status"] == "refuted"


@pytest.mark.parametrize(("name", "value"), [("top_k", "2"), ("repeat_penalty", "1.8")])
def test_an_option_that_is_dropped_from_some_requests_is_refuted(servers, tmp_path, name, value):
    with faults.proxy(servers["greedy"], faults.without_option(name, 0.3)) as wrong:
        code, verdicts, said = sampled(tmp_path, f"{wrong}/completion", *OWN, "--set", f"{name}={value}")
    assert code == 1, said
    assert verdicts["samples_fit_law"]["status"] == "refuted"


def test_the_proxy_without_a_fault_refutes_nothing(servers, tmp_path):
    with faults.proxy(servers["probabilistic"]) as right:
        code, _, said = sampled(tmp_path, f"{right}/completion", *OWN, "--set", "top_k=3")
    assert code == 0, said


def test_a_key_is_asked_for_and_used(tmp_path, monkeypatch):
    with llama_server.start_server(key="a-secret") as address:
        code, _, said = sampled(tmp_path, f"{address}/completion", *OWN, "--set", "top_k=3")
        assert code == 2
        assert "with status 401: Invalid API Key; put the key of the server into" in said
        monkeypatch.setenv("SPECVERIFY_API_KEY", "a-secret")
        assert sampled(tmp_path, f"{address}/completion", *OWN, "--set", "top_k=3")[0] == 0
