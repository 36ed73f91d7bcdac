"""Imported first by every file of tests: where JAX is not installed the file is skipped, and says so."""

from __future__ import annotations

import pytest

jax = pytest.importorskip("jax", reason='jax is not installed: pip install -c constraints.txt ".[jax,dev]"')
