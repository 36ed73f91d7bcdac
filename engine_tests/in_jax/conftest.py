"""JAX computes on the CPU here. Without it every file of tests is skipped, and says so."""

from __future__ import annotations

import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")
