"""Names of subjects are text in HTML and nothing else."""

from __future__ import annotations

import re

import pytest

from specverify.report.page.document import page
from specverify.report.page.markup import element, readable
from test_support.report import runs
from test_support.report.page_elements import Page

KINDS = tuple(runs.TEXTS)


@pytest.fixture(scope="module", params=KINDS)
def whole(request):
    return Page(page(runs.run_of(request.param)))


def test_what_a_subject_is_called_does_nothing():
    whole = Page(page(runs.run_of("verdicts")))
    assert any("<script>alert('me')</script>" in text for text in whole.texts)
    assert not re.search("[\x00-\x08\x1b\u202e]", "".join(whole.texts))
    assert element("p", "<b>", class_='"<').text == '<p class="&quot;&lt;">&lt;b&gt;</p>'
    assert readable("a\x00\u202eb\n") == "a\ufffd\ufffdb\n"
