"""Open a page in a browser and record its requests, errors and console messages."""

from __future__ import annotations

from contextlib import contextmanager


@contextmanager
def watched(browser, file, look, height):
    """Context manager that opens a file in a colour scheme and width; it yields the page and its recorded requests.

    ``look`` is (scheme, width). The test fails if the page reported an error.
    """
    scheme, width = look
    context = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": height})
    page, heard, asked = context.new_page(), [], []
    page.on("console", lambda message: heard.append(message.text))
    page.on("pageerror", lambda error: heard.append(str(error)))
    page.on("dialog", lambda dialog: (heard.append(dialog.message), dialog.dismiss()))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(file.as_uri())
    yield page, asked
    assert heard == []
    context.close()
