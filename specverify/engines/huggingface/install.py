"""What to install for this engine, in the order in which no other build of torch is pulled in."""

from __future__ import annotations

from typing import Final

INSTALL: Final = 'pip install -c constraints.txt torch, then pip install "specverify-suite[hf]"'
