"""Correct rounds that change or end the process in which they run, one function for each effect."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from contextlib import suppress
from itertools import repeat

from reference import accept_probability, flip, residual

_pool = []


def right(draws, target, draft, tokens):
    """One round with one draft, without any other effect."""
    q = draft(tokens)
    token = draws.categorical(q, ("draft", 0))
    p = target(tokens)
    if flip(draws, accept_probability(p, q, token), ("accept", 0)):
        return token, draws.categorical(target((*tokens, token)), ("bonus",))
    return (draws.categorical(residual(p, q), ("residual", 0)),)


def after(action):
    """Return a correct round that first calls ``action()``."""

    def one_round(draws, target, draft, tokens):
        action()
        return right(draws, target, draft, tokens)

    return one_round


def raising(error):
    """Return a function that raises ``error``."""

    def action():
        raise error

    return action


def swallowing():
    """Catches every exception and continues."""
    while True:
        with suppress(BaseException):
            time.sleep(0.01)


def looping():
    """Never returns."""
    while True:
        pass


def starting_a_pool():
    """Starts a pool of three workers in the first call."""
    while len(_pool) < 3:
        _pool.append(threading.Thread(target=time.sleep, args=(600,), daemon=True, name=f"worker-{len(_pool)}"))
        _pool[-1].start()


def starting_a_thread():
    """Starts another thread in every call."""
    threading.Thread(target=threading.Event().wait, args=(5,), daemon=True).start()


def starting_a_process():
    """Starts a process in the first call."""
    if not _pool:
        _pool.append(subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]))


def redirecting():
    """Replaces the standard input."""
    other = os.open("/dev/zero", os.O_RDONLY)
    os.dup2(other, 0)
    os.close(other)


def interrupted_from_outside():
    """Is interrupted by a signal from another process."""
    with subprocess.Popen(["/bin/sh", "-c", f"sleep 0.2; kill -INT {os.getpid()}"]):  # waited for, come what may
        time.sleep(5)


exits = after(lambda: sys.exit(0))
exits_at_once = after(lambda: os._exit(0))
aborts = after(lambda: os.abort())  # noqa: PLW0108 - looked up when it is called
raises_system_exit = after(raising(SystemExit()))
raises_interrupt = after(raising(KeyboardInterrupt()))
raises_generator_exit = after(raising(GeneratorExit()))
kills_itself = after(lambda: os.kill(os.getpid(), signal.SIGKILL))
signals_itself = after(lambda: signal.raise_signal(signal.SIGTERM))
becomes_another = after(lambda: os.execv("/bin/true", ["true"]))
runs_out_of_memory = after(lambda: bytearray(1 << 60))
forks = after(lambda: os.fork())  # noqa: PLW0108 - looked up when it is called
crashes = after(lambda: ctypes.string_at(0))
exits_in_c = after(lambda: ctypes.CDLL(None)._exit(0))
loops_in_c = after(lambda: deque(repeat(None), maxlen=0))

changes_directory = after(lambda: os.chdir("/"))
changes_a_handler = after(lambda: signal.signal(signal.SIGTERM, signal.SIG_IGN))
leaves_a_timer = after(lambda: signal.alarm(600))
closes_output = after(lambda: sys.stdout.close())  # noqa: PLW0108 - as above
closes_errors = after(lambda: sys.stderr.close())  # noqa: PLW0108 - as above
replaces_output = after(lambda: setattr(sys, "stdout", sys.__stderr__))
redirects_input = after(redirecting)

starts_a_pool = after(starting_a_pool)
starts_threads = after(starting_a_thread)
starts_a_process = after(starting_a_process)

loops = after(looping)
sleeps = after(lambda: time.sleep(600))
swallows = after(swallowing)
interrupted = after(interrupted_from_outside)


def draws_for_ever(draws, target, draft, tokens):
    """Draws without end."""
    while True:
        draws.categorical(target(tokens), ("again",))
        time.sleep(1e-3)


def dies_of_four_tokens(draws, target, draft, tokens):
    """Ends the process if the vocabulary has four tokens."""
    if len(target(tokens)) == 4:
        ctypes.CDLL(None)._exit(3)
    return right(draws, target, draft, tokens)


def writes_into_p(draws, target, draft, tokens):
    """Changes the row of the target that it receives."""
    p = target(tokens)
    p[0] = p[0] / 2
    return right(draws, target, draft, tokens)
