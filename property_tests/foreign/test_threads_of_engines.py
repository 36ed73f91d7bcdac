"""Engines that start a thread when they are made, which takes its work from a queue."""

from __future__ import annotations

import queue
import random
import threading
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from specverify.base.process import MOST_WORKERS, changes_since, process_state, threads_of_an_engine
from specverify.testing import Made, check_engine


def token_by_token(scenario, prompt):
    text = tuple(prompt)
    for _ in range(scenario.horizon):
        row = scenario.target(text)
        text += (random.choices(range(len(row)), row.tolist())[0],)
    return text[len(prompt) :]


def by_a_queue(scenario):
    inbox = queue.Queue()

    def work():
        for prompt, answer in iter(inbox.get, None):
            answer.set_result(token_by_token(scenario, prompt))

    threading.Thread(target=work, daemon=True, name="the worker of an engine").start()

    def decode(prompt):
        answer = Future()
        inbox.put((prompt, answer))
        return answer.result(timeout=60)

    return Made(decode)


def by_a_pool(scenario):
    pool = ThreadPoolExecutor(1)
    return Made(lambda prompt: pool.submit(token_by_token, scenario, prompt).result(timeout=60))


def test_a_thread_that_is_older_than_the_call_is_named():
    """The engine is not unusable for its threads, of which there is one for each scenario that is examined."""
    (found,) = check_engine(by_a_queue, checks=["program_is_its_draws"], quick=True, on_fail=None)
    assert found.status == "unknown"
    assert (
        "a thread that the engine started when it was made (the worker of an engine) are not followed"
        in found.statement
    )


def told_apart(scenario):
    """Return an engine without threads that behaves differently with symbolic numbers."""

    def decode(prompt):
        plain = type(random.random()) is float
        return [int(plain)] * scenario.horizon

    return Made(decode)


def test_a_thread_of_another_engine_is_not_named():
    with threads_of_an_engine():
        by_a_queue(None)
    (found,) = check_engine(told_apart, checks=["program_is_its_draws"], quick=True, on_fail=None)
    assert found.status == "unknown"
    assert "run as it is and examined" in found.statement
    assert "started when it was made" not in found.statement


def test_a_pool_is_followed():
    (found,) = check_engine(by_a_pool, checks=["program_is_its_draws"], quick=True, on_fail=None)
    assert found.status == "holds"


@pytest.mark.parametrize("of_engines", [True, False])
def test_threads_of_engines_are_no_leak_of_a_call(of_engines):
    end, before = threading.Event(), process_state()
    started = [threading.Thread(target=end.wait, daemon=True) for _ in range(MOST_WORKERS + 1)]
    for thread in started:
        if of_engines:
            with threads_of_an_engine():
                thread.start()
        else:
            thread.start()
    changes = changes_since(before)
    end.set()
    assert bool(changes.faults) is not of_engines
    assert bool(changes.notes) is of_engines
