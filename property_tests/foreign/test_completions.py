"""Servers in the shapes of their answers: read, sampled, asked again with what they take, and named when they fail."""

from __future__ import annotations

import json
import time
from math import log
from pathlib import Path

import pytest
from typer.testing import CliRunner

from specverify.cli import app
from specverify.foreign import completions
from test_support.samplers import fake_servers
from test_support.samplers.fake_servers import FAKES, TEXTS, Model, P, Refused, fake_server, serve

QUESTION = {"ask": "sample", "prompt": [2], "max_tokens": 2, "seed": 5, "n": 3, "temperature": 1.0}
TELLING = [name for name, fake in FAKES.items() if fake.tells]
WRONG = Model(reversed_share=1.0)


@pytest.fixture(autouse=True)
def _from_the_checkout(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    monkeypatch.delenv("SPECVERIFY_API_KEY", raising=False)


def sampled(tmp_path, subject, *options):
    """Return the exit status, the status of each check, and what is printed."""
    file = tmp_path / "run.json"
    file.unlink(missing_ok=True)
    result = CliRunner().invoke(app, ["sample", subject, "--tv", "0.3", *options, "--json", str(file)])
    verdicts = json.loads(file.read_text("utf-8"))["verdicts"] if file.exists() else []
    statuses = {verdict["check"]: verdict["status"] for verdict in verdicts}
    return result.exit_code, statuses, " ".join(result.output.split())


def prompt_of(name):
    return [2] if FAKES[name].takes_ids else "d"


@pytest.mark.parametrize("name", FAKES)
def test_tokens_are_read_from_every_shape(name):
    with fake_server(name) as url:
        answer = completions.sample(completions.server_at(url), {**QUESTION, "prompt": prompt_of(name)})
    rows = answer["tokens"]
    assert len(rows) == 3
    whole = name in {"texts", "llama.cpp /completion of 2024"}  # these tell no tokens, unless with log-probabilities
    assert {len(row) for row in rows} == {1 if whole else 2}
    letters = [token for row in rows for token in row]
    assert set("".join(letters) if whole else letters) <= set(range(4) if FAKES[name].ids else TEXTS)


@pytest.mark.parametrize("name", TELLING)
def test_log_probabilities_are_read_from_every_shape(name):
    prompt = prompt_of(name)
    question = {"ask": "logprobs", "prompt": prompt, "top": 20, "temperature": 1.0}
    with fake_server(name) as url:
        answer = completions.logprobs_after(completions.server_at(url), question)
    names = range(4) if FAKES[name].ids else TEXTS
    pmf = fake_servers.pmf_after(prompt if isinstance(prompt, list) else [])
    assert dict(answer["logprobs"]) == pytest.approx({names[i]: log(mass) for i, mass in enumerate(pmf)})
    assert answer["processed"] == (name in {"llama.cpp", "llama.cpp chat", "llama.cpp /completion"})


@pytest.mark.thorough(keep=11)
@pytest.mark.parametrize("name", TELLING)
def test_a_right_server_holds_and_a_wrong_one_is_refuted(name, tmp_path):
    options = ["--logprobs", "--prompt", "2" if FAKES[name].takes_ids else "d"]
    with fake_server(name) as right, fake_server(name, WRONG) as wrong:
        code, statuses, said = sampled(tmp_path, right, *options)
        assert (code, statuses["samples_fit_law"]) == (0, "holds"), said
        code, statuses, said = sampled(tmp_path, wrong, *options)
        assert (code, statuses["samples_fit_law"]) == (1, "refuted"), said


def test_texts_alone_are_compared_with_those_of_another_server(tmp_path):
    with fake_server("texts") as plain, fake_server("texts", WRONG) as wrong:
        assert sampled(tmp_path, plain, "--reference", plain)[0] == 0
        code, statuses, said = sampled(tmp_path, wrong, "--reference", plain)
    assert (code, statuses["samples_fit_reference"]) == (1, "refuted"), said


def test_accepted_drafts_are_counted_where_the_server_counts_them():
    with fake_server("llama.cpp /completion") as url:
        answer = completions.sample(completions.server_at(url), {**QUESTION, "n": 40})
    assert answer["accepted"] == [int(row[0] == 3) for row in answer["tokens"]]


def at_most(number, message, status=400):
    """Return what refuses more samples a request."""

    def check(body):
        if body.get("n", 1) > number:
            raise Refused(status, {"error": {"message": message.format(body["n"])}})

    return check


LIMITS = [
    (8, at_most(8, "Field 'n': Value must be between 1 <= value <= 8, but got {}")),
    (1, at_most(1, "Only one completion choice is allowed", 500)),
    (4, at_most(4, "number of parallel samples is too large: {}")),
    (1, at_most(1, "n must be 1 when using greedy sampling, got {}.", 422)),
]


@pytest.mark.thorough(keep=4)
@pytest.mark.parametrize(("number", "check"), LIMITS)
def test_fewer_samples_a_request_where_the_server_takes_fewer(number, check, tmp_path):
    with fake_server("vLLM", check=check) as right, fake_server("vLLM", WRONG, check) as wrong:
        code, statuses, said = sampled(tmp_path, right, "--logprobs")
        assert code == 0, said
        assert f"each request asks for {number} sample" in said
        assert ("rows_are_independent" in statuses) == (number > 1)  # a request of one sample has no rows
        assert sampled(tmp_path, wrong, "--logprobs")[0] == 1


def test_fewer_samples_than_asked_for_are_taken(tmp_path):
    with fake_server("TGI /generate") as url:
        assert (
            "each request asks for 1 sample: of 32 it answered 1"
            in sampled(tmp_path, url, "--logprobs", "--prompt", "d")[2]
        )


def test_samples_of_one_call_come_of_requests_with_seeds_of_their_own():
    seeds = []

    def check(body):
        at_most(2, "n is {}, expected 2 at most")(body)
        seeds.append(body["seed"])

    with fake_server("vLLM", check=check) as url:
        server = completions.server_at(url)
        answer = completions.sample(server, {**QUESTION, "n": 7})
        again = completions.sample(server, {**QUESTION, "n": 7})
    assert len(answer["tokens"]) == 7
    assert answer["at_once"] == 2
    assert len(set(seeds)) == 4
    assert answer["tokens"] == again["tokens"]
    assert "notes" in answer
    assert "notes" not in again


def test_fields_that_a_server_does_not_know_are_left_out():
    """Some refuse every field that they do not know, and more than five log-probabilities."""
    known = {"prompt", "max_tokens", "seed", "n", "temperature", "logprobs", "top_p", "presence_penalty"}

    def check(body):
        for name in sorted(body.keys() - known):
            raise Refused(400, {"error": {"message": f"Unrecognized request argument supplied: {name}"}})
        if body["logprobs"] > 3:
            raise Refused(422, {"detail": [{"loc": ["body", "logprobs"], "msg": "should be at most 3", "input": body}]})

    question = {"ask": "logprobs", "prompt": [2], "top": 20}
    with fake_server("SGLang", check=check) as url:
        server = completions.server_at(url, neutral=True)
        assert len(completions.logprobs_after(server, question)["logprobs"]) == 3
        assert len(completions.sample(server, QUESTION)["tokens"]) == 3
        with pytest.raises(completions.UnusableAnswer, match="Unrecognized request argument supplied: top_k"):
            completions.sample(server, {**QUESTION, "options": {"top_k": 2}})  # what is set is never left out


def tgi_refuses(body):
    """Refuse what TGI validates: truncations that truncate nothing, and more than five log-probabilities."""
    options = body["parameters"]
    for name in ("top_p", "typical_p"):
        if options.get(name) == 1.0:
            raise Refused(422, {"error": f"Input validation error: `{name}` must be > 0.0 and < 1.0"})
    if options.get("top_k", 1) < 1:
        raise Refused(422, {"error": "Input validation error: `top_k` must be strictly positive"})
    if options.get("top_n_tokens", 0) > 5:
        raise Refused(422, {"error": "Input validation error: `top_n_tokens` must be >= 0 and <= 5. Given: 20"})


def sglang_refuses(body):
    """Refuse sampling parameters that are not SGLang's."""
    for name in ("typical_p", "repeat_penalty", "dry_multiplier", "xtc_probability", "mirostat"):
        if name in body["sampling_params"]:
            raise Refused(400, {"error": {"message": f"SamplingParams: unexpected keyword argument '{name}'"}})


@pytest.mark.thorough(keep=2)
@pytest.mark.parametrize(("name", "check"), [("TGI /generate", tgi_refuses), ("SGLang /generate", sglang_refuses)])
def test_options_of_other_servers_are_left_out(name, check, tmp_path):
    prompt = "2" if FAKES[name].takes_ids else "d"
    with fake_server(name, check=check) as right, fake_server(name, WRONG, check) as wrong:
        code, _, said = sampled(tmp_path, right, "--logprobs", "--prompt", prompt, "--set", "top_k=2")
        assert code == 0, said
        assert sampled(tmp_path, wrong, "--logprobs", "--prompt", prompt)[0] == 1


@pytest.mark.thorough(keep=3)
@pytest.mark.parametrize(
    "options", [["--set", "top_k=2"], ["--temperature", "0.5"], ["--set", "top_k=2", "--temperature", "2"]]
)
def test_options_are_part_of_the_law_where_they_are_told(options, tmp_path):
    for name in ("vLLM", "llama.cpp /completion"):
        with fake_server(name) as right, fake_server(name, Model(obeys_options=False)) as wrong:
            code, _, said = sampled(tmp_path, right, "--logprobs", "--prompt", "2", *options)
            assert code == 0, said
            code, statuses, said = sampled(tmp_path, wrong, "--logprobs", "--prompt", "2", "--tv", "0.1", *options)
            assert (code, statuses["samples_fit_law"]) == (1, "refuted"), said


@pytest.mark.parametrize(
    ("options", "name"), [(["--set", "top_k=2"], "top_k"), (["--temperature", "0.3"], "temperature")]
)
def test_options_that_are_not_told_refute_nothing(options, name, tmp_path):
    """A right server that reports log-probabilities before the options."""
    with fake_server("vLLM", Model(tells_options=False)) as url:
        code, statuses, said = sampled(tmp_path, url, "--logprobs", "--prompt", "2", "--tv", "0.1", *options)
    assert (code, statuses["samples_fit_law"]) == (3, "unknown"), said
    assert f"its log-probabilities do not change with {name}, so they may not include it" in said
    assert "--law or --reference can decide" in said


def test_an_option_of_unknown_effect_refutes_nothing(tmp_path):
    with fake_server("vLLM", WRONG) as url:
        code, _, said = sampled(tmp_path, url, "--logprobs", "--set", "min_tokens=2")
        assert code == 3
        assert "log-probabilities after a forced text may not include min_tokens" in said
        assert "min_tokens changes none of the log-probabilities at 1 texts" in said
        assert sampled(tmp_path, url, "--logprobs", "--set", "cache_prompt=false")[0] == 1


def test_texts_of_tokens_that_do_not_sum_to_one_refute_nothing(tmp_path):
    """A token that is not told may have the text of one that is."""

    def two_of_four(body):
        body["logprobs"] = min(body.get("logprobs", 0), 2)

    with fake_server("SGLang", WRONG, two_of_four) as texts, fake_server("vLLM", WRONG, two_of_four) as ids:
        code, _, said = sampled(tmp_path, texts, "--logprobs")
        assert code == 3
        assert "it returns texts of tokens without ids" in said
        assert sampled(tmp_path, ids, "--logprobs")[0] == 1


def test_tokens_of_one_text_are_one_word(tmp_path):
    """Texts alone are told: the probability of a text is that of all its tokens."""
    one_text = fake_servers.chat(("a", "a", "4", "d"))
    with serve(lambda body, headers: one_text(Model(), body), "/v1/chat/completions") as right:
        code, statuses, said = sampled(tmp_path, right, "--logprobs", "--prompt", "d", "--tv", "0.1")
    assert (code, statuses["samples_fit_law"]) == (0, "holds"), said


def test_log_probabilities_that_change_from_call_to_call_refute_nothing(tmp_path):
    calls = []

    def answer(body, headers):
        calls.append(body)
        mass = 0.4 + 0.01 * (len(calls) % 7)
        told = {"token_id:0": log(mass), "token_id:1": log(1 - mass)}
        rows = [{"index": i, "token_ids": [0], "logprobs": {"top_logprobs": [told]}} for i in range(body["n"])]
        return {"choices": rows}

    with serve(answer) as url:
        code, _, said = sampled(tmp_path, url, "--logprobs")
    assert code == 3, said
    assert "its log-probabilities after the prompt differ from one call to the next" in said


def test_the_reference_has_the_options_of_the_subject_unless_it_has_its_own(tmp_path):
    bodies = []
    with fake_server("vLLM", check=bodies.append) as subject, fake_server("vLLM") as reference:
        options = ("--reference", reference, "--prompt", "2", "--tv", "0.2")
        assert sampled(tmp_path, subject, *options, "--set", "top_k=2")[0] == 0
        code, statuses, said = sampled(tmp_path, subject, *options, "--set", "top_k=2", "--set-reference", "top_k=-1")
        assert (code, statuses["samples_fit_reference"]) == (1, "refuted"), said
        sampled(
            tmp_path, subject, *options, "--set", "stop=END", "--set", 'logit_bias={"5": -1}', "--most-samples", "64"
        )
    assert (bodies[-1]["stop"], bodies[-1]["logit_bias"]) == ("END", {"5": -1})
    assert "top_p" not in bodies[-1]  # the defaults of a server are its own, where its samples are compared


def test_defaults_of_a_server_are_set_off_where_its_own_law_is_asked_for():
    bodies = []
    with fake_server("vLLM", check=bodies.append) as url:
        completions.sample(completions.server_at(url, neutral=True), {**QUESTION, "options": {"top_k": 2}})
    assert (bodies[-1]["top_k"], bodies[-1]["top_p"], bodies[-1]["repetition_penalty"]) == (2, 1.0, 1.0)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--set", "top_k"], "--set is 'top_k', expected KEY=VALUE, such as top_k=2"),
        (["--set", "seed=3"], "--set cannot set 'seed': each request has its own"),
        (["--set", "temperature=2"], "--set cannot set 'temperature': use --temperature"),
        (["--set", "top_k=1", "--set", "top_k=2"], "--set sets 'top_k' twice"),
        (["--set-reference", "top_k=1"], "--set-reference needs a reference"),
        (["--temperature", "0"], "temperature 0 draws none"),
    ],
)
def test_settings_that_cannot_be_are_refused(given, said, tmp_path):
    code, _, printed = sampled(tmp_path, "http://127.0.0.1:9", "--logprobs", *given)
    assert code == 2
    assert said in printed


def html(body, headers):
    return b"<!doctype html><html><head><title>Sign in</title></head></html>"


def keyed(body, headers):
    if headers.get("Authorization") != "Bearer secret":
        raise Refused(401, {"error": {"message": "Invalid API Key"}})
    return fake_servers.vllm(Model(), body)


def lost(body, headers):
    raise Refused(404, {"detail": "Not Found"})


def slow(body, headers):
    time.sleep(3)


def dying():
    """Return what answers twice and then hangs up."""
    calls = []

    def answer(body, headers):
        calls.append(body)
        return fake_servers.vllm(Model(), body) if len(calls) < 3 else None

    return answer


def empty(body, headers):
    return {"choices": []}


def wordless(body, headers):
    return {"choices": [{"index": 0, "message": {"tool_calls": []}}]}


def mute(body, headers):
    return fake_servers.texts_alone(Model(), body)


@pytest.mark.thorough(keep=3)
@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (html, "it answered a page of HTML ('Sign in'), expected JSON"),
        (
            keyed,
            "status 401: Invalid API Key; put the key of the server into the environment variable SPECVERIFY_API_KEY",
        ),
        (lost, "status 404: Not Found; expected a path that ends in /v1/completions"),
        (slow, "did not answer within 1 s"),
        (dying(), "the request failed: Remote end closed connection without response"),
        (empty, 'it answered {"choices": []}, and neither tokens nor a text are in it'),
        (wordless, "and neither tokens nor a text are in it"),
        (mute, "and no log-probabilities of next tokens are in it"),
    ],
)
def test_a_server_that_misbehaves_is_named_in_one_sentence(answer, said, tmp_path):
    with serve(answer) as url:
        code, _, printed = sampled(tmp_path, url, "--logprobs", "--timeout", "1" if answer is slow else "60")
    assert code == 2
    assert said in printed
    assert "Traceback" not in printed
    assert printed.count(url) <= 2  # the subject, and the sentence


def test_a_server_that_is_not_there_is_named_in_one_sentence(tmp_path):
    code, _, said = sampled(tmp_path, "http://127.0.0.1:9", "--logprobs")
    assert code == 2
    assert "the request failed: Connection refused" in said


def test_the_key_of_a_server_is_sent(tmp_path, monkeypatch):
    monkeypatch.setenv("SPECVERIFY_API_KEY", "secret")
    with serve(keyed) as url:
        assert sampled(tmp_path, url, "--logprobs")[0] == 0


def test_a_chat_takes_a_text(tmp_path):
    with fake_server("vLLM chat") as url:
        code, _, said = sampled(tmp_path, url, "--logprobs", "--prompt", "3 1")
    assert code == 2
    assert "a chat takes a text, and the prompt is token ids" in said


def test_thoughts_of_a_chat_are_part_of_its_text():
    def answer(body, headers):
        return {"choices": [{"message": {"reasoning_content": "so ", "content": "x"}}]}

    with serve(answer, "/v1/chat/completions") as url:
        answer = completions.sample(completions.server_at(url), {**QUESTION, "prompt": "d", "n": 1})
    assert answer["tokens"] == [["so x"]]


def test_greedy_rows_are_those_before_truncation_and_after_penalties():
    """The law of a default top-p has one token, which would be a tie with every other."""
    bodies = []
    with fake_server("llama.cpp", check=bodies.append) as url:
        completions.logprobs_after(completions.server_at(url), {"ask": "logprobs", "prompt": [2], "top": 20})
    assert (bodies[-1]["temperature"], bodies[-1]["top_k"], bodies[-1]["top_p"]) == (1.0, -1, 1.0)
    assert "repeat_penalty" not in bodies[-1]


@pytest.mark.parametrize(("tells_options", "said"), [(True, "no tie, their logits are"), (False, "")])
def test_a_tie_is_not_told_from_rows_without_the_options_in_force(tells_options, said, tmp_path):
    """A bias of one token: rows that do not change with it tell nothing of where greedy texts part."""

    def answers(row):
        def answer(body, headers):
            if "top_k" in body:  # a question about the row
                biased = tells_options and "logit_bias" in body
                pmf = [0.1, 0.1, 0.5, 0.3] if biased else [0.1, 0.1, 0.3, 0.5]
                told = {f"token_id:{i}": log(mass) for i, mass in enumerate(pmf)}
                return {"choices": [{"token_ids": row, "logprobs": {"top_logprobs": [told]}}]}
            return {"choices": [{"index": i, "token_ids": row} for i in range(body["n"])]}

        return answer

    options = ("--temperature", "0", "--prompt", "2", "--set", 'logit_bias={"2": 1}')
    with serve(answers([3])) as subject, serve(answers([2])) as reference:
        code, _, printed = sampled(tmp_path, subject, "--reference", reference, *options)
    assert code == 1
    assert ("their logits are" in printed) == tells_options
    assert said in printed


def test_the_fakes_have_the_law_that_the_tests_suppose():
    rows = Model().rows({"prompt": [], "seed": 1, "n": 4000, "max_tokens": 1})
    shares = [rows.count([token]) / 4000 for token in range(4)]
    assert shares == pytest.approx(P, abs=0.03)
