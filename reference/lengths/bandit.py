"""A bandit that selects the next draft length by the rewards of past lengths (BanditSpec, 2505.15141).

The rule is that of the released code, sail-sg/BanditSpec at 4e6dd86, ``generate_utils.py``,
``ucb_length_spec_generate``. The arms are the lengths 1 to ``arms``. In the first ``arms tries - 1`` rounds they are
used in turn. So each is tried ``tries`` times, except the last arm, which is tried once less: with one try it is never
tried, and its mean stays 0. After that the arm with the best mean reward is chosen.

The release adds ``sqrt(6 log t / calls)`` to each mean, where ``calls`` counts all arms together. So it adds the same
number to every arm, which explores nothing. The reward of a round is its tokens over its time; time is ``1 + cost
gamma`` here. Only past rounds decide, so the rule is exact.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, NamedTuple

from ..types import LengthRule, Plan, Tokens, never
from .constant import check_gamma


class Arms(NamedTuple):
    """The state of a bandit that chooses the length of rounds: arm j stands for j + 1 drafts.

    ``calls`` has the number of rounds of each length so far, ``earned`` their total reward, and ``chosen`` is the arm
    of the current round.
    """

    calls: tuple[int, ...]
    earned: tuple[Fraction, ...]
    chosen: int = 0


def bandit(arms: int, tries: int, cost: Fraction) -> LengthRule:
    """Return the rule that drafts 1 to ``arms`` tokens; the length is chosen by the bandit of the module's docstring.

    At the beginning each arm is used ``tries`` times, the last one once less. ``cost`` is the time of a draft relative
    to a target call. Raises ``ValueError`` unless arms and tries are at least 1 and the cost is >= 0.
    """
    check_gamma(arms, "arms")
    if arms < 1 or tries < 1 or cost < 0:
        raise ValueError(f"arms is {arms}, tries {tries} and cost {cost}, expected at least 1, 1 and 0")

    def plan(state: Arms, prefix: Tokens) -> Plan:
        rounds = sum(state.calls)
        means = [total / max(calls, 1) for total, calls in zip(state.earned, state.calls, strict=True)]
        chosen = rounds % arms if rounds + 1 < arms * tries else means.index(max(means))
        return Plan(chosen + 1, state._replace(chosen=chosen))

    def update(state: Arms, drafted: int, accepted: int) -> Arms:
        earned = Fraction(accepted + 1) / (1 + cost * (state.chosen + 1))
        return Arms(_added(state.calls, state.chosen, 1), _added(state.earned, state.chosen, earned))

    start = Arms((0,) * arms, (Fraction(0),) * arms)
    return LengthRule(init=start, plan=plan, stop_after=never, update=update)


def _added(row: tuple[Any, ...], place: int, amount: Any) -> tuple[Any, ...]:
    return tuple(value + amount if index == place else value for index, value in enumerate(row))
