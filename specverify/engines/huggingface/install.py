"""The packages to install for this engine, in an order that does not pull in another build of torch."""

from __future__ import annotations

from typing import Final

INSTALL: Final = 'pip install -c constraints.txt torch, then pip install "specverify-suite[hf]"'
