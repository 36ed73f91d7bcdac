"""Steps of many random numbers at once: what ``MonotoneStep`` is for one, with arrays for its number.

The rules are those of ``steps``, and hold for all elements together: where they would not, ``RuleDeclined`` is raised.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from specverify.intercept.refusals import RuleDeclined
from specverify.intercept.unknowns.monotone import RULES
from specverify.laws.rounding import FLOAT64

_LARGEST_LOGARITHM = 700.0
"""As in ``steps``."""
_UNSEEN = 2.0**-60
"""A uniform number is a multiple of 2**-53 or of a larger one: this, added to it, is lost unless it is 0."""


class Steps(NamedTuple):
    """A strictly monotone function for each element; see ``steps.MonotoneStep``."""

    name: str
    number: Any = 0.0
    """A float, or an array of one for each element."""


LOGS, EXPS = Steps("log"), Steps("exp")


NEUTRAL = {"times": 1.0, "power": 1.0}
"""The number with which a step that has another neutral number than 0 changes nothing."""


def of(step: Steps, values: Any) -> Any:
    """Return the images of numbers, or of ends of what the step is defined for; see ``MonotoneStep.of``."""
    values = np.asarray(values, dtype=np.float64)
    if step.name == "plus":
        return values + step.number
    if step.name == "times":
        return np.where(values == 0, 0.0, values * step.number)
    if step.name == "log":
        return np.where(values > 0, np.log(np.maximum(values, 0.0)), -np.inf)
    if step.name == "exp":
        return np.exp(values)
    if step.name in RULES:
        return RULES[step.name].of(values)
    raised = np.power(np.maximum(values, 0.0), step.number)
    return np.where((values < 0) & (np.asarray(step.number) > 0), -np.inf, raised)


def back(step: Steps, bounds: Any) -> Any:
    """Return the numbers whose images are ``bounds``; see ``MonotoneStep.back``."""
    if step.name == "plus":
        return bounds - step.number
    if step.name == "times":
        return bounds / step.number
    if step.name == "log":
        return of(EXPS, bounds)
    if step.name in RULES:
        return RULES[step.name].inverse(bounds)
    return of(LOGS, bounds) if step.name == "exp" else of(step._replace(number=1.0 / np.asarray(step.number)), bounds)


def grows(step: Steps) -> bool:
    """Return whether a step keeps the order of numbers, of all in one way. Raises ``RuleDeclined`` if not."""
    if step.name not in NEUTRAL:
        return True
    positive = np.asarray(step.number) > 0
    if positive.any() != positive.all():
        raise RuleDeclined("the numbers of a noise vector keep and turn their order at once")
    return bool(positive.all())


def chained(steps: tuple[Steps, ...], step: Steps) -> tuple[Steps, ...]:
    """Return the chain of ``steps`` and one more, in the form of ``steps``. Raises ``RuleDeclined`` for mixed signs."""
    if not steps and step.name == "plus" and np.all(np.abs(step.number) <= _UNSEEN):
        return steps
    if step.name in {"plus", *NEUTRAL}:
        grows(step)
        if np.all(np.abs(np.asarray(step.number) - NEUTRAL.get(step.name, 0.0)) <= (step.name in NEUTRAL) * FLOAT64):
            return steps
    rest, last = steps[:-1], steps[-1] if steps else step
    rule = _RULES.get((last.name, step.name))
    if not steps or rule is None or _stays(rest, last, step):
        return (*steps, step)
    for each in rule(np.asarray(last.number), step):
        rest = chained(rest, each)
    return rest


def _stays(rest: tuple[Steps, ...], last: Steps, step: Steps) -> bool:
    if step.name == "exp" and last.name in {"times", "plus"}:
        return rest[-1:] != (LOGS,) if last.name == "times" else bool(np.any(np.abs(last.number) > _LARGEST_LOGARITHM))
    return last.name == "times" and step.name in {"log", "power"} and bool(np.all(np.asarray(last.number) == -1))


_RULES: dict[tuple[str, str], Callable[[Any, Steps], tuple[Steps, ...]]] = {
    ("log", "exp"): lambda number, step: (),
    ("exp", "log"): lambda number, step: (),
    ("plus", "plus"): lambda number, step: (Steps("plus", number + step.number),),
    ("times", "times"): lambda number, step: (Steps("times", number * step.number),),
    ("power", "power"): lambda number, step: (Steps("power", number * step.number),),
    ("plus", "times"): lambda number, step: (step, Steps("plus", number * step.number)),
    ("plus", "exp"): lambda number, step: (step, Steps("times", np.exp(number))),
    ("times", "exp"): lambda number, step: (step, Steps("power", number)),
    ("exp", "power"): lambda number, step: (Steps("times", step.number), EXPS),
    ("power", "log"): lambda number, step: (step, Steps("times", number)),
    ("times", "log"): lambda number, step: (
        Steps("times", np.sign(number)),
        step,
        Steps("plus", np.log(np.abs(number))),
    ),
    ("times", "power"): lambda number, step: (
        Steps("times", np.sign(number)),
        step,
        Steps("times", np.power(np.abs(number), step.number)),
    ),
}
"""What stands for two steps, the first of them given by its numbers: the rules of ``steps``, but for ``floor``."""
