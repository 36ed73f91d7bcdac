"""The messages between edge and cloud over HTTP: a request is posted as JSON; the body of the answer is the reply.

An invalid request gets status 400 and one sentence. With a journal every reply is written to a file before it is sent.
So a server that is killed and restarted with the same file gives the same reply to a repeated request.
"""

from __future__ import annotations

import http.client
from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock

from ..types import Draws, LanguageModel
from .link import Service, rebuilt

Address = tuple[str, int]


class Journal:
    """Requests and replies in a file, two lines each. An incomplete pair at the end is dropped on reading."""

    def __init__(self, path: Path) -> None:
        """Read the journal at ``path`` and remove an incomplete pair from its end."""
        self._path = path
        lines = path.read_text("utf-8").split("\n")[:-1] if path.exists() else []
        whole = lines[: len(lines) // 2 * 2]
        self.pairs = list(zip(whole[::2], whole[1::2], strict=True))
        path.write_text("".join(f"{line}\n" for line in whole), "utf-8")

    def record(self, request: str, reply: str) -> None:
        """Append a request and its reply; on return the data have been passed to the operating system."""
        with self._path.open("a", encoding="utf-8") as file:
            file.write(f"{request}\n{reply}\n")


def server(
    target: LanguageModel, draws: Draws, journal: Path | None = None, address: Address = ("127.0.0.1", 0)
) -> ThreadingHTTPServer:
    """Return a server of ``target`` bound to ``address``. Port 0 selects a free port, which is in ``server_address``.

    ``serve_forever`` runs the server. It answers one request at a time, so ``draws`` need not be thread-safe.
    ``journal`` is the file of the ``Journal``, or None.
    """
    book = None if journal is None else Journal(journal)
    service = Service(target, draws) if book is None else Service(target, draws, rebuilt(book.pairs), book.record)
    one_at_a_time = Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # one packet an answer
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            text = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode("utf-8", "replace")
            try:
                with one_at_a_time:
                    status, body = 200, service.respond(text).encode()
            except ValueError as error:
                status, body = 400, str(error).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json" if status == 200 else "text/plain; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002, ARG002 - as in the base class
            return

    return ThreadingHTTPServer(address, Handler)


class HttpLink:
    """A link to a server. It returns no reply if the server is absent or does not answer within ``timeout`` seconds."""

    def __init__(self, address: Callable[[], Address], timeout: float = 2.0) -> None:
        """Store ``address``, a function that is called for every connection, and ``timeout`` in seconds.

        The address is a function because a restarted server may have a new one.
        """
        self._address, self._timeout = address, timeout
        self._connection: http.client.HTTPConnection | None = None

    def __call__(self, text: str) -> Sequence[str]:
        """Send the request ``text`` and return a sequence with its reply; an empty one if none came.

        Raises ``ValueError`` with the server's sentence if the status is not 200.
        """
        try:
            if self._connection is None:
                self._connection = http.client.HTTPConnection(*self._address(), timeout=self._timeout)
            self._connection.request("POST", "/", text.encode(), {"Content-Type": "application/json"})
            response = self._connection.getresponse()
            body = response.read().decode("utf-8")
        except (OSError, http.client.HTTPException):
            self.close()
            return ()
        if response.status != http.client.OK:
            raise ValueError(f"the server answered {response.status}: {body}")
        return (body,)

    def close(self) -> None:
        """Close the connection; the next request opens another."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
