"""Outcomes that were looked at inside ``torch.inference_mode()``: views of them, writing to them."""

from __future__ import annotations

from functools import partial

import torch

from test_support.intercept.torch_laws import close, law_of

P = torch.tensor([0.2, 0.3, 0.5], dtype=torch.float64)


def test_what_inference_mode_writes_or_turns_round_may_have_been_looked_at():
    @torch.inference_mode()
    def program():
        drawn, row = torch.multinomial(P[None], 1), torch.zeros(1, 2, dtype=torch.long)
        drawn.item()
        row[:, 0] = drawn
        row[:, 1:] = drawn.squeeze(0).unsqueeze(0)
        return tuple(row[0].tolist())

    assert close(law_of(program), {(token, token): float(mass) for token, mass in enumerate(P)})


def test_what_inference_mode_takes_out_of_a_tensor_may_have_been_looked_at():
    @torch.inference_mode()
    def program():
        drawn = torch.cat([torch.multinomial(P, 1), torch.multinomial(P, 1)])
        first = int(drawn[0])
        assert drawn[drawn.argmax()].unsqueeze(0).tolist() == [int(drawn.max())]
        rows = drawn[:1].unsqueeze(0), drawn[0].unsqueeze(0), torch.cat([drawn[1:], drawn[:1]])[1].view(1)
        return first, *(row.item() for row in rows)

    assert close(law_of(program), {(token,) * 4: float(mass) for token, mass in enumerate(P)})


def test_what_inference_mode_converts_is_not_looked_at():
    """An outcome that is converted and never read does not branch, in inference mode as outside of it."""

    def program(inference):
        with torch.inference_mode(inference):
            drawn = torch.multinomial(P[None], 1).view(-1).long().to(torch.int32).unsqueeze(-1)
            return int(drawn[0]) if torch.rand(1) < 0.5 else 3

    laws = [law_of(partial(program, inference)) for inference in (True, False)]
    assert [law.runs for law in laws] == [4, 4]
    assert all(close(law, dict(enumerate([*map(float, P / 2), 0.5]))) for law in laws)
