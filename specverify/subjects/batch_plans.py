"""Batches in which a plan for each row fixes where drafts are rejected and where the text of the row ends.

A batched engine may fail only if certain events of its rows come together: for example after the middle row has ended,
or if the only row left ends with a bonus token. So the batches of this module cover the combinations of such events at
1 to 5 drafts per round: which row ends, by which kind of token, what a second row does in this round and in the next,
and in which order rows end. ``specverify.trust.batch_designs`` computes the batches and defines the combinations. The
most effective batches come first.

A batch is written as its plans, one for each row: see ``certain_tables.PLANNED``. Almost all rows are one-hot, so a
batch has one path, or a few.
"""

from __future__ import annotations

from typing import Final

from specverify.laws.certain_tables import END, planned
from specverify.laws.scenarios import Scenario
from specverify.reference import Tokens

HORIZON: Final = 12
"""The number of new tokens of each row that does not end before."""
VOCABULARY: Final = 5
_PROMPT: Final = (2, 1, 3)
"""The tokens of a prompt after its first one."""

AT_THE_HORIZON: Final = (
    "daddadaddddd ...d ..a .aaadaddaddd",
    "aaaaaadd .daadd ...ddddddaaaadd .a",
    "...a ..add .aaaaaaadad .ddddddaaaad",
    "ddddddaaadad .aaadd ddddaaaaaaad .ddaaadaaad",
    "..daadaaaad daadaaaadaad",
    "...dd .aaaaad .aadddddadaad aaaaaaaaaad",
    "...dddddaaaaad ...aaaaaaaaaad aaaaaaad aaaaaadaad",
    ".d ...dddaaaaaaddd aaadaaadaaad",
    "...aaaaaadadd .aaaddadaaaad ...d ..ddddaaaaaad",
    "...aaad ..dd daaaaaaaaaad .aad",
    ".daaaad ..ddaaaaaadd ..aaaddaaad ...aaaadddaaadd",
    "dddaddadaddd adaaaaaddadd .aaaadaaaad a",
    ".d aaad aad",
    ".daaaad ..daaaaaad .dddddddaaaad ..adadddaaddd",
    "aadaaaadaad ..daadaadaad ..aaaad ...daaaad",
    "...aaaaaaadaaad .daaaaaaaaaad addd",
    "aaaaadddaaad ...a ..aadaadd aaddd",
    ".aaaaaaad ...dd ddaaaaaaaadd ...aad",
    ".aaaadadadddd ...aaaaaad daaadddd .a",
    "...daaaaaad ...aaaadddddadd daaadaaadddd ...aaaddadaaadd",
)
"""Batches whose rows all end at the horizon, in different rounds."""
OPEN_AFTER_THE_HORIZON: Final = (
    "daaaaaaddodd ...aaaaaadaad ...o aadaaaad",
    "...daaaddaaado ..a ..daadaaadaaod a",
    ".a aaaaadaado .a .ddaaaaao",
    "..daadddaadddd ..dddadddddaod dddadaaadod ...aaadaaad",
    "aaaddddadao ..ddadaaad ...daoad",
    ".a daaaaaaaddo .adadaaadddod .ad",
    ".aaaddd daaaodaaaddd .ddddddodadd ...aaaaaaaddddd",
    "d a .aaaaaao .aaaaaaadddo",
    "..aaaaaaoddd ..daddddaadoad .ddd",
    "..aaddadaaad ...aaaaaoddd .aaadddddodd",
    "..aaaaaaaaaad .aaddddadao ..aaaaaadddaad daaddddoadd",
    "...aaadddo aaaaaaddaao aaaad .a",
    "a dddaaadodadd daaaaaaaao .a",
    ".aaaaaadd aadao ...aaaaddddaadd .daaddaadod",
    "..a .daaaaado ...ddaaaaaddod",
    ".oaddaadaaddd .a .ddaadddddo .aaaadddddaad",
    ".aaaaaaad ddddaaaaaao .daaaao ..dadaaaaaadad",
    ".aadaaddaaaad ddddaaddaad ..ddaao .ddddddddoadd",
    "a ..ao aaaaaadad ...aaaaaadddao",
    "..ddaaaaaaaao .ddaaaadddo",
    "..daaaadaado ...aaaaaaaao",
)
"""The same with rows that are open after another row has ended. So an engine that takes q, or the random numbers, of
another row has another law."""
AT_AN_END: Final = (
    "...daaaaaaae ...ddaaddddaadd ...daadaaaaaaae aaaaaae",
    ".aaaaar .aaaaaaaaaade aadaaaar ...ddadddd",
    ".ddddadaaaddd addaaaaar aaaar ..aaaadae",
    "..de ..adadaaaae ..dddaaaar ...daaaaae",
    "...daaaaaaaaaad aaaaaar ..a daaaaaaaaaae",
    "aaaadaae aaaae ..ddde ...aaae",
    "daadaaaaar .addaadaaaddd aaaae .aaad",
    "..daaaaaar ..aaae ...aaaaaae .daaar",
    "..a aaddaaae ...daaar .ddade",
    ".aadddaaaaae aaddaaaaaar ...aaaaaad ...aaaaaadaar",
    "..aaaae aae ..aaaaaaar aaaaaadr",
    "..aaaae aaaaaaad aaaaar ...aade",
    "...daad ...adaaae ae ..aaaaadaaaae",
    "aaae aaaaaaaaaaar ...aaaaaaaaaade ..aaddaaaaaar",
    "...aaaaaddae aaaaaaaaae .aaaaaaaaaae .aaaaaaaaaaad",
    "daaaaaar .daaaae daaaadaaar r",
    "ddaaaae ddaaaaaaaae daadaaade ..a",
    "aaaaaaaaaaar ..d .ddaaaaae ...dddaaaaaadd",
    ".aar aadr ..ddddaadaad ...ddaae",
    "...aaaaadr aaaaadaaae ...add daaaaar",
    "aaaadaad ..aaaaae .aaaddaaaae aaaaaaaaaae",
    ".aae ...aaaaae ...aaaae .adaaaaar",
    "daar ...ddadaae .ddr daae",
    "..aaaadaaaaaae .dddaaaae aaaaaar aaaae",
    "...aaaaddaaar ...a daaae",
    "..aaar .ddaaae .daaaae .aaaar",
    ".daaaaaad a .d .dddddaaaadd",
    ".de .aar daaaaar aaaadaaae",
    "...ad ad",
    "daae ..aaaaadaaaae aaae aaaaaaad",
    "...aaaaadaaaar .daaae ...aaaaaaaaae daaar",
    ".dddaaae .aaar .aae .aaaaadaaae",
    "..dar aae ...daaaae",
    "..aae ..aaaaaadaar ...dde ...daaaaae",
    "...d .dadaadadadd ..aaaaaaaaaaar aaaadddaaddd",
    "..ddaaaar ..aaaaaaaaad .aaaaaaaaaae ..dddaaae",
    "...aaaad ..daddaae .aaaadaaaar",
    ".aaaae ..daaaae ..daaaar",
    ".aaaaae .de",
    ".aaaaar aaaaar",
    ".aaaae ..dddadddddd ...d a",
    "..dddaaae .aaaar daaaaar .daaaaad",
    ".aaae ..aaae",
    "...aaaaaaaaaadd daadaae ..aaae .daaaae",
    ".dddaaaaar ..a .aaaaae .dr",
    "ar daaaaae .aaaae",
    "...a ..ddaaaaaaae aaaaaaaaaaae ..daar",
    "...aaaaaae .aae r .aaaadaaae",
    "..aaaaae daaae ..ddaaaae",
    ".aaaaaaaae ..aaaaddaaae .aaaad .aaar",
    "..aaaaad d .daaaaaaaade aaaaaddaaadd",
    "..aaaaadaaaar ...aaaaadaaaar",
    "..aaaaadaaaae aaaaaaaaaae",
    "..aaaaaaar aaaae ...dd .a",
    ".aaaar daaaaae ...a ...daaaaadaae",
    "...aaaaaaaaaae ...aae",
    "...aaaaaae ..adr ...aaaaaaaar .aaaaar",
    "ddddaad daddaaaaad daaddaaaaadd .a",
    "a .aadddaaaaae ...daaaaaaaaaae .e",
    "...e .aaaadaaaar ..aaar .aaaaaaaaaar",
    "..aadaae .dddaaddddddd daae .daaaaaae",
    "...aaaaaaad ...dddaaaar .aaaaaaad ...aaae",
    "daaaaar ...dddaaaar aaaaae .aaaaae",
    ".aaae ..aaae ddaaae ddadaddaaaad",
    "dr .e ..daaaadaaaar a",
    "..aaaaae ddaaaaaae ...a",
)
"""Batches in which rows end with an end-of-sequence token."""
OPEN_AFTER_AN_END: Final = (
    "doaae ..aae .aadao .aae",
    "...r .daoaaaar ..r ..adaaoaaar",
    "oae ..de ...aaae ...dadoaaaar",
    "aaado dor aae",
    "dor ...adadaar ...dddoddaaad",
    ".daae ..aor .aaddo ..dar",
    "...ddo e ..aaaaae oar",
    "aae ...ddaoaddddd daaar ...or",
    "...ddadod ...ddoaar .daaae aaaaaaae",
    "...aae .dae aaadoar .daaadoddd",
    "daaaaor ...or .aaaae",
    "dddaaodd .aaadoaaar ..daaadaae ...dr",
    "...aaar ..daoaar ..doaae",
    "...aadaao ..aaar ...aaar .dodd",
    "..daar ..ddo ...dr r",
    ".aae ...ddo de",
    "..drao ..ae .ddo",
    "aeaao .dor",
    "ado ...ar",
    ".daaaaaaar .aaaao ...dddor ...aaaaae",
    ".ar aar ...dddor ..dde",
    "...ddodddddddd .aaar .aar .dr",
    "...de .e ..r .ddo",
    ".aaaaoe ..aaddo .aar",
    "eaao ...daar ...aaddo ..aae",
    "..daae .aaadoe aaar daaaaoaddadd",
    "...r dddoae .r .addaae",
    "...a .aaaaae .aaaaaaadd ...dddadoaaddd",
    ".daad ..ddddoadddaad e ..aaaaaaae",
    "...ddoaae .doae ...aaae",
    "dde e .dddoaaaddd ..oar",
    "adado ...daaar .ddaaao",
    "..dae aaadoe .aae ..daaoddaaadd",
    "dor .daaaaoe ...aaaaar",
    "..raaao .adar ...aae aaadoae",
    ".aaaadoaadaad .aadae .ddae .r",
    "..dddaaodaaaad ...r ...aaaao",
    "..daae ..aaaado ...r .aae",
    "...dadaoaae ...aaaar ddaao",
)
"""The same with rows that are open after another row has ended."""


def planned_batch(batch: str, eos: Tokens = (END,)) -> tuple[Scenario, tuple[Tokens, ...]]:
    """Return the scenario of the first row of ``batch``, and the prompts of the others.

    ``batch`` has the plans of its rows, separated by spaces, such as "ad .ae". A plan has a letter for each position of
    the text: "." is a token of the prompt, "a" an accepted draft, "d" a rejected one, "e" the end (see
    ``certain_tables.PLANNED``). ``eos`` are the end tokens.
    """
    plans = batch.split(" ")
    first, *others = ((row, *_PROMPT[: len(plan) - len(plan.lstrip("."))]) for row, plan in enumerate(plans, start=1))
    return Scenario(planned(plans), VOCABULARY, first, HORIZON, eos), tuple(others)
