"""Sessions of edge and cloud in memory: links that lose and repeat messages, and a cloud that draws again."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st

from reference import Task, constant
from reference.edge_cloud.decoder import edge_cloud_decoder
from reference.edge_cloud.edge import Edge, EdgeState
from reference.edge_cloud.link import Service, in_memory, play_round
from reference.edge_cloud.messages import VerifiedReply
from reference.edge_cloud.modes import MODES
from reference.edge_cloud.shared_noise import DrawnNoise
from reference.edge_cloud.wire import decode
from reference.verifiers.gumbel_coupling import draft_given_target
from test_support.laws.rational import P, Q, always, as_law, law_of, project

DRAWING = ("sparse-q", "two-phase", "match")
EXACT = (*DRAWING, "gumbel")
"""Those of the first kind draw; the last reads noise that both sides hold."""
SEED = 5
every_mode = pytest.mark.parametrize("mode", MODES)
exact_modes = pytest.mark.parametrize("mode", EXACT)


class NoiseOfRounds:
    """Shared noise that is drawn anew in every round, whatever the seed; its law is that of noise by position."""

    def __init__(self, draws):
        """Draw the winners of races from ``draws``."""
        self.draws = draws
        self.next_round()

    def next_round(self):
        """Forget the noise of the last round."""
        self.noise = DrawnNoise(self.draws)

    def __call__(self, seed):
        """Return the noise of this round, which edge and cloud share."""
        assert seed == SEED
        return self.noise


def seed_for(mode):
    return SEED if MODES[mode].shared_noise else None


def edge_of(task, mode, gamma=2, **options):
    return Edge(task.draft, constant(gamma), mode, task.eos, seed=seed_for(mode), **options)


def play(edge, draws, state, send, after_round=lambda state: None, **options):
    """Run rounds to the end of the text; return the final state of the edge."""
    while state.remaining:
        state, done, _ = play_round(edge, draws, state, send, **options)
        assert done.tokens
        after_round(state)
    return state


def session(draws, task, prompt, mode, network=in_memory, make=Service, gamma=2, noise=None):
    """Return the new tokens of a session without loss of memory.

    The contexts of both sides must agree after each round.

    ``noise(seed)`` returns the noise that both sides share in the modes that use any; None draws it anew in every
    round.
    """
    rounds = NoiseOfRounds(draws)
    noise = noise or rounds
    service = make(task.target, draws, noise=noise)

    def aligned(state):
        held = service.sessions["0"]
        assert held.tokens == state.tokens
        assert held.cache == state.tokens[:-1]
        assert state.cache == state.tokens[: len(state.cache)] != state.tokens
        rounds.next_round()

    state = EdgeState(prompt, task.horizon)
    edge = edge_of(task, mode, gamma, noise=noise)
    return play(edge, draws, state, network(service), aligned).tokens[len(prompt) :]


class Unreliable:
    """A link with a script: which of the requests sent so far arrive, and which of the replies made so far come back.

    Both are counted back from the newest. After the end of the script, the newest request arrives and is answered.
    """

    def __init__(self, script, service):
        """Store the script: pairs (requests that arrive, replies that come back) of indices into the history."""
        self.script, self.respond = iter(script), service.respond
        self.requests, self.replies = [], []

    def __call__(self, text):
        """Send ``text`` as the script states; return the replies that come back."""
        self.requests.append(text)
        arriving, returning = next(self.script, ((0,), (0,)))
        self.replies += [self.respond(self.requests[-1 - back % len(self.requests)]) for back in arriving]
        return [self.replies[-1 - back % len(self.replies)] for back in returning if self.replies]


places = st.lists(st.integers(0, 5), max_size=3).map(tuple)
scripts = st.lists(st.tuples(places, places), max_size=7)
LOST, UNANSWERED, TWICE = ((), ()), ((0,), ()), ((0, 0), (0, 1))
BACKWARDS = ((1, 0, 1), (2, 1, 0, 2))


def loses_zeros(service):
    """Return a link that loses the first copy of every reply that emits token 0."""
    seen = set()

    def send(text):
        said = service.respond(text)
        reply = decode(said)
        lost = isinstance(reply, VerifiedReply) and reply.token == 0 and reply.known not in seen
        seen.update({reply.known} if lost else ())
        return () if lost else (said,)

    return send


def forgetful(service):
    """Return a link to a cloud that loses its memory, and its reply, at the third request."""
    sent = iter(range(100))

    def send(text):
        if next(sent) == 2:
            service.respond(text)
            service.sessions.clear()
            return ()
        return (service.respond(text),)

    return send


class DrawsAgain(Service):
    """Planted bug: a cloud that answers a repeated request by verifying again from the state before it."""

    def respond(self, text):
        """Forget the first answer, then answer again."""
        self.before = getattr(self, "before", {})
        if text in self.before:
            self.sessions["0"] = self.before[text]
        elif "0" in self.sessions:
            self.before[text] = self.sessions["0"]
        return super().respond(text)


GOLDEN = Task(always(P), always(Q), horizon=2)


def first_of_round(mode, task=GOLDEN):
    law = law_of(lambda draws: session(draws, task, (0,), mode, gamma=1)[:1])
    return project(law, lambda new: new[0])


# Shared noise


class Unasked:
    """Draws that fail if any is used: all randomness must come from the noise."""

    def categorical(self, row, site):  # noqa: ARG002
        """Fail: no draw may be used."""
        raise AssertionError(f"a draw at {site}, expected none")


def alone(task, prompt, noise):
    """Return the new tokens of the target alone, each the winner of its race over the noise."""
    new = ()
    while len(new) < task.horizon and not (new and new[-1] in task.eos):
        new = (*new, noise.winner(task.target(prompt + new), len(prompt + new)))
    return new


def joint_law(p, q):
    """Return the probability of each pair (y, d), computed from the law of d given y."""
    rows = {y: draft_given_target(p, q, y) for y in as_law(p)}
    return {(y, d): p[y] * mass for y, row in rows.items() for d, mass in as_law(row).items()}


def accepted_law(p, q, gamma=1, **options):
    """Return the law of the drafts accepted in a first round over shared noise."""
    decoder = edge_cloud_decoder(Task(always(p), always(q), horizon=3), "gumbel", constant(gamma), **options)
    return law_of(lambda draws: decoder.step(draws, decoder.init((0,)))[1].accepted)
