"""The page of the life of a uniform lists the files that one comparison of a uniform passes through."""

import re
import sys
from pathlib import Path

import torch

from specverify import intercept
from specverify.intercept.everywhere import answered_everywhere
from specverify.laws.paths import paths

FOLDER = Path(intercept.__file__).parent
PAGE = Path(__file__).parents[2] / "docs" / "life-of-a-uniform.md"
MOST_FILES = 10
MOMENTS = {"Uniform.__init__", "Deferred.__init__", "Unanswered.categorical"}
"""The number is made, the comparison is made, and the branch is drawn."""


def _compare():
    return bool(torch.rand(()) < 0.3)


def _files_above(frame):
    """Return the files of interception on the stack, up to the line of the program."""
    result = set()
    while frame is not None and frame.f_code is not _compare.__code__:
        path = Path(frame.f_code.co_filename)
        if path.is_relative_to(FOLDER):
            result.add(path.relative_to(FOLDER).as_posix())
        frame = frame.f_back
    return result if frame is not None else set()


def _followed(draws, passed, entered):
    def profile(frame, event, _):
        if event == "call" and Path(frame.f_code.co_filename).is_relative_to(FOLDER):
            above = _files_above(frame)
            entered.update(above)
            if frame.f_code.co_qualname in MOMENTS:
                passed.update(above)

    with answered_everywhere(draws):
        sys.setprofile(profile)
        try:
            return _compare()
        finally:
            sys.setprofile(None)


def _listed():
    """Return the files in the two columns of the page's table."""
    rows = [line.split("|") for line in PAGE.read_text("utf-8").splitlines() if re.match(r"\| \d \|", line)]
    return tuple(set(re.findall(r"`([\w/]+\.py)`", " ".join(row[column] for row in rows))) for column in (3, 4))


def test_a_comparison_passes_through_the_files_of_the_page_and_no_more_than_ten():
    passed, entered = set(), set()
    list(paths(lambda draws: _followed(draws, set(), set())))  # what is found out once a process is no step of a call
    law = {path.outcome: path.weight for path in paths(lambda draws: _followed(draws, passed, entered))}
    assert law == {True: 0.3, False: 0.7}
    assert len(passed) <= MOST_FILES
    assert (passed, entered - passed) == _listed()
