"""speculative-decoding 0.2.0 (lucidrains): a ``Decoder`` that exits early cannot be made.

    python lucidrains_early_exit.py

Status 0 fixed, 1 present, 125 cannot be tested. So ``speculative_decoding_with_same_model`` cannot be called at all:
the constructor names ``RMSNorm``, which the module does not import (``nn.RMSNorm`` is meant).
"""

from __future__ import annotations

import sys

try:
    from speculative_decoding import Decoder
except Exception as error:
    print(f"cannot be tested: {type(error).__name__}: {error}")
    sys.exit(125)


def present() -> bool:
    try:
        Decoder(num_tokens=5, dim=16, depth=2, heads=2, dim_head=8, early_exit_layer=1)
    except NameError as error:
        print(f"expected a Decoder, got NameError: {error}")
        return True
    print("expected a Decoder, got one")
    return False


try:
    status = int(present())
except Exception as error:
    print(f"cannot be tested: {type(error).__name__}: {error}")
    status = 125
sys.exit(status)
