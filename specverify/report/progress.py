"""Progress of a long command: a bar on a terminal, otherwise an occasional line."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic  # by name: foreign code may replace the functions of ``time``

from rich.console import Console
from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar
from rich.table import Column

SECONDS_BETWEEN_LINES = 20.0
SECONDS_OF_EXPECTATION = 10.0
"""Running time in seconds that has the same weight in the estimate as the initially expected duration."""


class Progress:
    """The progress of a command: its current step, the amount done (in any unit), and the elapsed time."""

    def __init__(self, what: str, total: float | None, expected: float | None = None) -> None:
        """Start the progress of the command called ``what``.

        ``total`` is the amount to do; None if unknown. ``expected`` is the estimated duration in seconds.
        """
        self.what, self.total, self._expected = what, total, expected
        self.amount, self.doing = 0.0, ""
        self._begun_by: dict[str, float] = {}
        """Subject -> the share of its current step that is done."""
        self.changed: Callable[[], None] = lambda: None
        self._begun = monotonic()

    def now(self, doing: str) -> None:
        """Set the current step to ``doing``, its description."""
        self.doing = doing
        self.changed()

    def within(self, who: str, doing: str, examined: int, cases: int) -> None:
        """Record how many cases of the current step of a subject have been examined.

        ``who`` is the name of the subject, and ``doing`` the description of the step. ``examined`` of its ``cases``
        cases are done; ``cases`` is 0 if their number is not known.
        """
        self._begun_by[who] = examined / cases if cases else 0.0
        of = f" of {cases}" if cases else ""
        self.now(f"{who} {doing}" + (f", {examined}{of} cases" if examined else ""))

    def done(self, amount: float = 1.0, doing: str = "", who: str = "") -> None:
        """Add ``amount`` to the amount done, and set the current step to ``doing``.

        ``who`` is the subject whose step is finished. ``within`` may have recorded a fraction of this step; the
        fraction is removed, because ``amount`` counts the whole step.
        """
        self._begun_by.pop(who, None)
        self.amount += amount
        self.now(doing)

    @property
    def reached(self) -> float:
        """Return the amount done, including fractions of unfinished steps."""
        return self.amount + sum(list(self._begun_by.values()))

    @property
    def elapsed(self) -> float:
        """Return the seconds since the beginning."""
        return monotonic() - self._begun

    @property
    def remaining(self) -> float | None:
        """Return the estimated seconds left at the current rate; None if there is no estimate yet."""
        known = SECONDS_OF_EXPECTATION if self._expected else 0.0
        if not self.total or not self.reached + known:
            return None
        amount = self.reached + (known * self.total / self._expected if self._expected else 0.0)
        return (self.elapsed + known) * max(self.total - self.reached, 0.0) / amount

    @property
    def left(self) -> str:
        """Return the estimated time left in words; "" if there is no estimate."""
        return "" if self.remaining is None else f"about {self.remaining:.0f} s left"

    @property
    def line(self) -> str:
        """Return one line with the step, the amount, the elapsed time and the estimate."""
        share = f"{self.reached / self.total:.0%} done" if self.total else ""
        parts = (share, f"{self.elapsed:.0f} s", self.left, self.doing)
        return f"{self.what}: " + ", ".join(part for part in parts if part)


@contextmanager
def progress_shown(
    what: str, total: float | None = None, console: Console | None = None, expected: float | None = None
) -> Iterator[Progress]:
    """Context manager that shows the progress of a command on ``console``, by default standard error.

    It yields the ``Progress`` object that the command updates. ``what`` is the name of the command, ``total`` the
    amount to do (None if unknown), and ``expected`` the estimated duration in seconds.
    """
    console, state = console or Console(stderr=True), Progress(what, total, expected)
    with _bar(state, console) if console.is_terminal else _lines(state, console):
        yield state


@contextmanager
def _bar(state: Progress, console: Console) -> Iterator[None]:
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False, table_column=Column(ratio=1, no_wrap=True, overflow="ellipsis")),
        BarColumn(bar_width=min(40, console.width // 6)),
        TimeElapsedColumn(table_column=Column(no_wrap=True, min_width=7)),
        TextColumn("{task.fields[left]}", markup=False, table_column=Column(no_wrap=True, min_width=16)),
    )
    bar = Bar(*columns, console=console, transient=True, redirect_stdout=sys.stdout.isatty())
    task = bar.add_task(state.what, total=state.total, left="")
    state.changed = lambda: bar.update(
        task, completed=state.reached, description=f"{state.what}: {state.doing}", left=state.left
    )
    with bar:
        yield


@contextmanager
def _lines(state: Progress, console: Console) -> Iterator[None]:
    ended = threading.Event()

    def tell() -> None:
        while not ended.wait(SECONDS_BETWEEN_LINES):
            console.print(state.line, markup=False, highlight=False, soft_wrap=True)

    thread = threading.Thread(target=tell, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
