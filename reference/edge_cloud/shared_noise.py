"""Noise that edge and cloud share: one race for each position of the text (Daliri, Musco, Suresh 2408.07978).

The token drawn from a pmf at position t is the winner of a race, ``argmin_v E_v(t) / pmf_v``, with E_v(t) ~ Exp(1)
equal on both sides. So each side draws from its own pmf, nothing of q is sent, and both often draw the same token.
Sample-and-match with draws from such races is drafter-invariant decoding: the text is that of the target alone with
this noise, for every drafter and every gamma. A position is counted in the whole text, prompt included. (If it were
counted within a round, the next round would use the same noise again, and its tokens would not be independent.)

``SeededNoise`` is the real noise. ``DrawnNoise`` has the same law with finite draws, so that laws can be enumerated.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

import numpy as np

from ..pmf import as_pmf, check_pmf
from ..types import Draws, Pmf, Site
from ..verifiers.gumbel_coupling import draft_given_target
from .messages import LARGEST_SEED, is_seed


class SharedNoise(Protocol):
    """The noise of one race at each position of the text."""

    def winner(self, pmf: Pmf, position: int) -> int:
        """Return the token that wins the race of ``pmf`` ``[V]`` at ``position``.

        Repeated calls return the same token.
        """
        ...


NoiseOf: TypeAlias = Callable[[int], SharedNoise]
"""Maps the session's seed to its noise; edge and cloud must use the same function."""


class SeededNoise:
    """Noise as a function of (seed, position), without state: neither the order of calls nor a crash changes it.

    Random bits come from Philox with the seed as key and the position as counter. An exponential E lies in [1.1e-16,
    36.8].
    """

    def __init__(self, seed: int) -> None:
        """Store ``seed``.

        Raises ``ValueError`` unless it is an integer in 0..2**53 - 1, which every JSON library can represent.
        """
        if not is_seed(seed):
            raise ValueError(f"the seed is {seed!r}, expected an integer in 0..{LARGEST_SEED}")
        self._seed = seed

    def exponentials(self, position: int, vocabulary: int) -> Any:
        """Return the exponentials E of ``position``, float64 ``[vocabulary]``.

        Different positions use different parts of the generator's stream.
        """
        words = np.random.Philox(key=self._seed, counter=position << 192).random_raw(vocabulary)
        return -np.log(((words >> np.uint64(12)) + 0.5) * 2.0**-52)

    def winner(self, pmf: Pmf, position: int) -> int:
        """Return ``argmin E / pmf`` over the tokens of positive probability, with the exponentials E of ``position``.

        ``pmf`` may be exact or rounded. Raises ``ValueError`` if it is no pmf.
        """
        masses = check_pmf(pmf, f"the pmf at position {position}").tolist()
        times = self.exponentials(position, len(masses))
        finish = {token: times[token] / float(mass) for token, mass in enumerate(masses) if float(mass) > 0}
        return min(finish, key=finish.__getitem__)


class DrawnNoise:
    """The noise of one round, in which only the winners of the races are drawn, not the noise itself.

    At each position the first winner is drawn from its pmf, and the winner of the second pmf from its law given the
    first winner. Texts and accepted drafts have the same law as with real noise. Exception: a length rule that depends
    on drafts after the first disagreement in a round.
    """

    def __init__(self, draws: Draws) -> None:
        """Draw by ``draws``, at the sites ``("noise", position)`` and ``("noise", position, "other")``."""
        self._draws = draws
        self._held: dict[int, list[tuple[list[Any], int]]] = {}

    def winner(self, pmf: Pmf, position: int) -> int:
        """Return the token that wins the race of ``pmf`` ``[V]`` at ``position``: the token with the least ``E / pmf``.

        The exponentials E are not drawn. The first call at a position draws the token from ``pmf``. A call with another
        pmf draws from the law of its winner given the first winner. Repeated calls return the same token.

        Raises ``ValueError`` if ``pmf`` is no pmf, and for a third pmf at one position: a round has only p and q.
        """
        masses = check_pmf(pmf, f"the pmf at position {position}").tolist()
        held = self._held.setdefault(position, [])
        for other, token in held:
            if other == masses:
                return token
        if len(held) > 1:
            raise ValueError(f"a third pmf races at position {position}, expected those of p and q alone in a round")
        if held:
            law = draft_given_target(as_pmf(held[0][0]), as_pmf(masses), held[0][1])
            token = self._draws.categorical(law, ("noise", position, "other"))
        else:
            token = self._draws.categorical(pmf, ("noise", position))
        held.append((masses, token))
        return token


class Races:
    """Draws whose outcomes are the winners of races over shared noise.

    A site that ends in i names decision i of a block; its race is that of the position ``start + i``.
    """

    def __init__(self, noise: SharedNoise, start: int) -> None:
        """Store ``noise`` and ``start``, the number of tokens before the block."""
        self._noise, self._start = noise, start

    def categorical(self, pmf: Pmf, site: Site) -> int:
        """Return the winner of ``pmf`` at the position of ``site``.

        The position is the number at the end of ``site``, counted from the beginning of the block.
        """
        place: Any = site[-1]
        return self._noise.winner(pmf, self._start + place)


def decisions(draws: Draws, noise: NoiseOf, seed: int | None, start: int) -> Draws:
    """Return the draws for the block after ``start`` tokens: races if the session has a ``seed``, else ``draws``.

    The races are over the noise that ``noise(seed)`` returns.
    """
    return draws if seed is None else Races(noise(seed), start)
