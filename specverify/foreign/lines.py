"""A program in a separate process that answers each line of JSON with a line of JSON.

If the program ends, is killed, does not answer, or answers with anything but JSON, the caller gets an error of one
sentence. Each answer has a time limit. The memory limit is enforced by the operating system.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from time import monotonic
from typing import IO, Any, NamedTuple

from specverify.base.arguments import shown
from specverify.subjects.subject import UnusableSubject

LONGEST_ANSWER = 2**28
"""Largest length of one answer in bytes: a quarter of a GiB."""
ENDING = 2.0
"""Seconds in which a program must end after its last question; then it is killed."""
Ask = Callable[[Mapping[str, Any]], Mapping[str, Any]]
"""A function ``ask(question)`` that sends a question to a program and returns its answer; both are JSON objects."""


class Limits(NamedTuple):
    """The time for one answer, and the memory, that a program may use."""

    seconds: float = 60.0
    """Seconds for one answer; the time to load the program counts for the first answer."""
    memory: int | None = None
    """Bytes of address space, if the system can limit it; None means no limit."""


class _Program(NamedTuple):
    name: str
    process: subprocess.Popen[bytes]
    said: IO[bytes]
    """The file to which the program's standard error is written."""
    held: bytearray
    """Bytes of output that were read after the end of the last line."""
    limits: Limits


@contextmanager
def answering(command: Sequence[str], name: str, limits: Limits) -> Iterator[Ask]:
    """Start the program ``command``; yield a function that sends it a question and returns its answer (JSON objects).

    The end of the ``with`` block ends the program and its children. ``limits`` bounds its time and memory. Raises
    ``UnusableSubject``, with a sentence that begins with ``name``, if the program cannot be started. The yielded
    function raises it if the program ends, exceeds a limit, or answers with an error or with no JSON object.
    """
    with tempfile.TemporaryFile() as said:
        try:
            process = subprocess.Popen(  # noqa: S603 - to run what the user names is the point
                list(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said, start_new_session=True
            )
        except OSError as error:
            raise UnusableSubject(f"{name} cannot be started: {(error.strerror or str(error)).lower()}") from None
        program = _Program(name, process, said, bytearray(), limits)
        try:
            _limit_memory(process.pid, limits.memory)
            yield lambda question: _answer(program, question)
        finally:
            _end(process)


def _answer(program: _Program, question: Mapping[str, Any]) -> Mapping[str, Any]:
    line = json.dumps(question).encode() + b"\n"
    try:
        assert program.process.stdin is not None
        program.process.stdin.write(line)
        program.process.stdin.flush()
    except OSError:
        raise UnusableSubject(_death(program)) from None
    text = _line(program)
    try:
        answer = json.loads(text)
    except (ValueError, RecursionError):
        answer = None
    if not isinstance(answer, dict):
        result = shown(text.decode("utf-8", "replace"))
        raise UnusableSubject(f"{program.name} answered {result}, expected a JSON object in one line")
    if "error" in answer:
        raise UnusableSubject(f"{program.name}: {answer['error']}")
    return answer


def _line(program: _Program) -> bytes:
    """Return the next line of the program's output. Raises ``UnusableSubject`` after the time limit."""
    out, held, deadline = program.process.stdout, program.held, monotonic() + program.limits.seconds
    assert out is not None
    with selectors.DefaultSelector() as selector:
        selector.register(out, selectors.EVENT_READ)
        while b"\n" not in held:
            left = deadline - monotonic()
            if left <= 0 or not selector.select(left):
                raise UnusableSubject(f"{program.name} did not answer within {program.limits.seconds:g} s")
            more = os.read(out.fileno(), 2**20)
            if not more:
                raise UnusableSubject(_death(program))
            held += more
            if len(held) > LONGEST_ANSWER:
                raise UnusableSubject(f"{program.name} answered more than {LONGEST_ANSWER} bytes without a line's end")
    line, _, rest = bytes(held).partition(b"\n")
    held[:] = rest
    return line


def _death(program: _Program) -> str:
    """Return a sentence about how the program ended, with the last line of its standard error."""
    try:
        status = program.process.wait(ENDING)
        how = f"ended with exit status {status}"
        if status < 0:
            with suppress(ValueError):
                how = f"was killed by {signal.Signals(-status).name}"
    except subprocess.TimeoutExpired:
        how = "closed its standard output"
    program.said.seek(0, os.SEEK_END)
    program.said.seek(max(0, program.said.tell() - 4096))
    lines = program.said.read().decode("utf-8", "replace").split("\n")
    last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    return f"{program.name} {how} before it answered" + (f"; its last output: {last[:300]}" if last else "")


def _limit_memory(process: int, memory: int | None) -> None:
    if memory is None:
        return
    try:
        import resource  # noqa: PLC0415 - not on every system

        resource.prlimit(process, resource.RLIMIT_AS, (memory, memory))
    except (ImportError, AttributeError, OSError):
        raise UnusableSubject("the memory of a program cannot be limited on this system: leave the limit out") from None


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the process and its children; they are killed if they do not end by themselves."""
    for stream in (process.stdin, process.stdout):
        with suppress(OSError):
            if stream is not None:
                stream.close()
    with suppress(subprocess.TimeoutExpired):
        process.wait(ENDING / 10)
    with suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
