"""Tests are dealt to processes by files and by groups, each test once."""

from __future__ import annotations

from types import SimpleNamespace

from test_support.scheduling import FileScheduling

TESTS = (
    "few/test_one.py::test_a",
    "many/test_two.py::test_b[1]",
    "many/test_two.py::test_b[2::3]",
    "many/test_two.py::test_b[4]",
    "many/test_two.py::test_c@shared",
    "few/test_three.py::test_d[@]",
    "few/test_one.py::test_e@shared",
)


class Node:
    """A process that notes its tests."""

    shutting_down, gateway = False, SimpleNamespace(id="a process")

    def __init__(self):
        """Start without tests."""
        self.waiting, self.done = [], []

    def send_runtest_some(self, numbers):
        """Take the numbers of further tests."""
        self.waiting += numbers

    def shutdown(self):
        """Take no more."""
        self.shutting_down = True


def test_the_tests_of_a_file_and_of_a_group_stay_in_one_process():
    option = SimpleNamespace(loadscopereorder=True, tx=["popen", "popen"], maxprocesses=None, numprocesses=2)
    config = SimpleNamespace(option=option, getvalue=lambda name: getattr(option, name))
    nodes = Node(), Node()
    scheduling = FileScheduling(config, None)
    for node in nodes:
        scheduling.add_node(node)
        scheduling.add_node_collection(node, TESTS)
    scheduling.schedule()
    while any(node.waiting for node in nodes):
        for node in nodes:
            if node.waiting:
                node.done.append(TESTS[node.waiting[0]])
                scheduling.mark_test_complete(node, node.waiting.pop(0))
    assert scheduling.tests_finished
    assert not scheduling.has_pending
    assert sorted(nodes[0].done + nodes[1].done) == sorted(TESTS)
    assert all(node.done for node in nodes)
    for together in ("many/test_two.py::test_b", "few/test_three.py", "@shared"):
        assert sum(any(together in test for test in node.done) for node in nodes) == 1
    assert nodes[0].done[0].startswith("many/test_two.py::test_b")
