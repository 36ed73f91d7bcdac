"""Scenarios with an end-of-sequence token: texts that end anywhere in a block, and prompts that contain the token.

Three faults give other tokens here: a text that continues after its end, a text that ends because a rejected draft or
the prompt has the token, and a bonus token after an accepted end.
"""

from __future__ import annotations

from typing import Final

from specverify.laws.certain_tables import CERTAIN, END, periodic_after, planned
from specverify.laws.scenarios import Scenario

_ENDS: Final = ((80, 1), (80, 3), (80, 2), (81, 2), (80, 0), (84, 2), (87, 0), (93, 0), (102, 3))
"""Pairs (seed, end-of-sequence token) of one-hot texts. They end at the first token, the second, and so on; the last
text does not end."""
_ALL_ACCEPTED: Final = ((99, 1), (102, 2), (188, 2), (261, 2), (370, 2))
"""The same for texts of 4, 6, 7, 8 and 9 tokens in which p and q agree at every token; in those of seed 80, which have
1, 2, 3 and 5 tokens, they agree too. So for each number of drafts up to 8 a text ends at each draft of a round that is
accepted whole, and at its bonus token, although more tokens are wanted."""

_LATE_ENDS: Final = (
    Scenario(planned(("a" * 72 + "eaaa",)), 4, (1,), 77, (END,), seed=4),
    Scenario(planned(("." * 66 + "eaaa",)), 4, (1,) * 67, 6, (END,), seed=4),
)
"""Ends after 72 new tokens, and at once after a prompt of 67 tokens. With up to 8 drafts a round, the end is a draft,
accepted before the last token of a block, so more tokens follow if an engine overlooks it."""
_UNSURE: Final = (
    Scenario("generic", 2, (0,), 3, (1,), seed=1841),
    Scenario("generic", 2, (0,), 2, (1,), seed=22),
)
"""Texts with a uniform q behind an end: a drafter that stops where it is unsure drafts the end alone, or nothing. In
the first text q is uniform everywhere; in the second the first token may be the end, and q is sure of it."""
_AFTER_ACCEPTANCE: Final = Scenario(planned(("aaaaaxxx",)), 4, (1,), 12, (END,), seed=55)
"""A text that may end at any of three places after five accepted drafts, where an engine may draft more than at first.
"""
_LOOKED_UP: Final = tuple(
    Scenario(periodic_after(99), 8, (0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2), 8, (eos,), seed=37) for eos in (3, 4, 5, 6, 7)
)
"""Periodic texts whose prompt has the end token and what follows it. If drafts are looked up in the text, the end is
each draft of the first round in turn, and p would accept the drafts behind it."""
QUICK_ENDINGS: Final = (
    *_LATE_ENDS,
    *_UNSURE,
    Scenario(CERTAIN, 4, (0,), 12, (2,), seed=84),
    Scenario(planned(("ddddx",)), 4, (1,), 8, (END,), seed=55),
    Scenario(planned(("daax",)), 4, (1,), 8, (END,), seed=63),
    _AFTER_ACCEPTANCE,
    _LOOKED_UP[1],
)
"""Texts of each quick run of an engine. The end of the fifth replaces a rejected draft after accepted ones; the sixth
may end after four rejected drafts, so an engine that counts rejected drafts as new tokens is wrong there. The seventh
may end in a round that does not begin at a multiple of gamma + 1, at the first place that a minimum length leaves free.
The eighth may end at a late draft of a round. The end of the last is a draft that is looked up in the prompt."""
ENDING_SCENARIOS: Final = (
    Scenario("generic", 2, (0,), 5, (1,), seed=56),
    Scenario("generic", 3, (0, 1), 3, (2,), seed=51),
    Scenario("peaked", 3, (2, 0), 3, (2,), seed=52),
    Scenario("generic", 3, (1,), 3, (1,), seed=53),
    Scenario("generic", 3, (1, 0), 3, (0,), seed=54, greedy=True),
    *(Scenario(CERTAIN, 4, (0,), 12, (eos,), seed=seed) for seed, eos in (*_ENDS, *_ALL_ACCEPTED)),
    *(
        Scenario(planned((before * place + "x",)), 4, (1,), 8, (END,), seed=55)
        for before in "ad"
        for place in range(1, 5)
    ),
    *(Scenario(planned((f"d{'a' * place}x",)), 4, (1,), 8, (END,), seed=63) for place in range(1, 5)),
    *(Scenario(planned(("a" * place + "x",)), 4, (1,), place + 4, (END,), seed=55) for place in range(5, 11)),
    _AFTER_ACCEPTANCE,
    *_LOOKED_UP,
    *_LATE_ENDS,
    *_UNSURE,
)
"""Scenarios of whole decodes with end-of-sequence tokens. In the last ones one row decides whether the text ends; all
drafts before this row are accepted, or all are rejected, or only the first is rejected. In these last four scenarios
the rejected draft is no end, because a minimum length would forbid this draft."""
