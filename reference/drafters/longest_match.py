"""Copy the tokens after the longest earlier occurrence of the last tokens (SAM Decoding, Hu et al. 2411.10666).

The rule is that of the released suffix automaton (hyx1999/SAM-Decoding at 18c41f0, ``samd/sam/dyn_sam.py``). It finds
the longest suffix of the text that also occurs earlier, of any length, and its first occurrence. If fewer than
``predict`` tokens follow there, ``to_anc`` continues with shorter suffixes, whose first occurrence may be earlier. Here
there is no automaton: suffixes are tried from the longest down. The last token of the text is never copied, because the
release looks up before that token is in the automaton.
"""

from __future__ import annotations

from collections.abc import Callable

from ..types import Draft, Drafter, Draws, Pmf, Tokens, chain
from .model import stateless


def first_end(tokens: Tokens, length: int) -> int | None:
    """Return the index after the first earlier occurrence of the last ``length`` tokens; None if there is none."""
    suffix = tokens[len(tokens) - length :]
    ends = range(length, len(tokens))
    return next((end for end in ends if tokens[end - length : end] == suffix), None)


def longest_match(tokens: Tokens, least: int, predict: int) -> Tokens:
    """Return up to ``predict`` - 1 tokens to copy from ``tokens``: those after the first occurrence of a match.

    A match is a suffix of ``tokens`` that also occurs earlier. Every match is considered, the longest first:

    * If there is no match, or the longest match has fewer than ``least`` tokens, the result is ().
    * The first match is used that has room: at least ``predict`` tokens follow its first occurrence, not counting the
      last token of ``tokens``, which is never copied.
    * If no match has room, the match of one token is used, whatever follows it.

    ``least`` limits only the longest match. The match that is used may be shorter.
    """
    ends = {length: first_end(tokens, length) for length in range(1, len(tokens))}
    result = [length for length in ends if ends[length] is not None]
    if not result or max(result) < least:
        return ()
    for length in sorted(result, reverse=True):
        end = ends[length]
        assert end is not None
        if length == 1 or len(tokens) - 1 - end >= predict:
            return tokens[end : min(end + predict, len(tokens)) - 1]
    return ()


def longest_match_drafter(least: int, predict: int) -> Drafter:
    """Return a drafter of the tokens after the longest match, at most gamma.

    Raises ``ValueError`` unless ``least`` and ``predict`` are at least 1.
    """
    if least < 1 or predict < 1:
        raise ValueError(f"least is {least} and predict {predict}, expected at least 1 and 1")

    def propose(draws: Draws, _: object, prefix: Tokens, gamma: int, stop_after: Callable[[Pmf, int], bool]) -> Draft:
        copied = longest_match(prefix, least, predict)[: max(gamma, 0)]
        return chain(copied, (None,) * len(copied))

    return Drafter(init=stateless, propose=propose, observe=stateless)
