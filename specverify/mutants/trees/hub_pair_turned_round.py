"""SpecHub forgets which of a pair was drawn first: every pair is taken for (a, i)."""

from __future__ import annotations

from specverify.mutants.mutant import planted
from specverify.mutants.tree_mutants import by_siblings
from specverify.reference import Decoder, Draws, Pmf, Task, Tokens, argmax
from specverify.reference.algorithms.spechub import hub_drafter, through_the_hub
from specverify.reference.models import draft_model
from specverify.reference.tree_rounds import Step, tree_decoder


def hub_first(draws: Draws, p: Pmf, tokens: Tokens, pmfs: tuple[Pmf, ...], depth: int) -> Step:
    """Put the hub in front."""
    hub = argmax(pmfs[0])
    return through_the_hub(draws, p, tuple(sorted(tokens, key=lambda token: token != hub)), pmfs, depth)


def build(task: Task, depth: int = 4) -> Decoder:
    """SpecHub with its pairs turned round."""
    return tree_decoder(task, hub_drafter(draft_model(task), depth), by_siblings(hub_first))


MUTANT = planted(
    "spechub",
    "hub-pair-turned-round",
    "takes every pair for one that was drawn hub first",
    build,
    category="J",
    citation="plausible",
    killed_by="law_is_target",
)
