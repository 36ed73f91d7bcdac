"""Is the speculative decoding of this project exact? One test for each subject and check."""

import decoding

from specverify.testing import parametrize_with_checks

CHECKS = ("law_is_target", "tokens_are_supported")


@parametrize_with_checks([decoding.verify, decoding.verify_fast, decoding.verify_new], checks=CHECKS, quick=True)
def test_speculation(check) -> None:
    """Run one check on one of them."""
    check()
