"""Deal tests to the processes of pytest-xdist by files and by groups."""

from __future__ import annotations

from typing import Any

from xdist.scheduler import LoadGroupScheduling


class FileScheduling(LoadGroupScheduling):  # type: ignore[misc]  # mypy does not follow imports of xdist
    """``loadgroup``, but one process runs all tests of a file that are in no group.

    What the tests of a file share, such as fixtures and caches, is computed in one process. The files with the most
    tests are dealt first, so that the processes end at about the same time.
    """

    def _split_scope(self, nodeid: str) -> str:
        """Return the group of a test; its file if it has none."""
        scope: str = super()._split_scope(nodeid)
        return scope if scope != nodeid else nodeid.partition("::")[0]

    def mark_test_complete(self, node: Any, item_index: int, duration: float = 0) -> None:
        """Note that ``node`` has run a test, and drop a file that is complete.

        The base class counts the tests of all files anew after each test.
        """
        super().mark_test_complete(node, item_index, duration)
        scope = self._split_scope(self.registered_collections[node][item_index])
        if all(self.assigned_work[node][scope].values()):
            del self.assigned_work[node][scope]
