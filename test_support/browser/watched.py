"""A page that is listened to."""

from __future__ import annotations

from contextlib import contextmanager


@contextmanager
def watched(browser, file, look, height):
    """Open a file in a look (scheme, width); yield the page and what it asks for. Nothing may have complained."""
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
