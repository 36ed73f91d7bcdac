"""Other people's code runs on the CPU here."""

from __future__ import annotations

import pytest
import torch


@pytest.fixture
def device() -> torch.device:
    """The device that models are moved to."""
    return torch.device("cpu")
