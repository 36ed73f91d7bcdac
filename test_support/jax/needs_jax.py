"""Every test file for JAX imports this module first: it skips the file, with a message, if JAX is not installed."""

from __future__ import annotations

import pytest

jax = pytest.importorskip("jax", reason='jax is not installed: pip install -c constraints.txt ".[jax,dev]"')
