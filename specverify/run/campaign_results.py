"""The results file of a campaign: its plan and the results of its blocks. SQLite, one row per block.

A block is written in one transaction, so it is stored whole or not at all, even if the writing process is killed.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

TABLES = {
    "blocks": "subject TEXT, setting TEXT, block INTEGER, found TEXT, PRIMARY KEY (subject, setting, block)",
    "asked": "place INTEGER PRIMARY KEY, subject TEXT, setting TEXT, asked TEXT",
}


class Key(NamedTuple):
    """The database key of a subject: together with the number of a block of samples, it identifies the block."""

    subject: str
    setting: str
    """Everything that determines the result of a block, as text."""


class NotStored(Exception):  # noqa: N818 - reads as the sentence it is
    """Raised if a result could not be written; earlier results remain."""


@contextmanager
def stored_in(results: Path) -> Iterator[sqlite3.Connection]:
    """In the ``with`` block, open the results file for writing; yield its connection.

    Missing tables are created. Raises ``ValueError`` with one sentence if the file is no results file.
    """
    with _opened(results, str(results)) as file:
        file.execute("PRAGMA journal_mode=WAL")
        for table, columns in TABLES.items():
            file.execute(f"CREATE TABLE IF NOT EXISTS {table} ({columns})")
        yield file


@contextmanager
def read_from(results: Path) -> Iterator[sqlite3.Connection]:
    """In the ``with`` block, open the results file read-only; yield its connection.

    Raises ``ValueError`` with one sentence if the file is no results file.
    """
    with _opened(results, f"{results.absolute().as_uri()}?mode=ro") as file:
        yield file


@contextmanager
def _opened(results: Path, name: str) -> Iterator[sqlite3.Connection]:
    try:
        file = sqlite3.connect(name, isolation_level=None, uri=name.startswith("file:"))
    except sqlite3.Error as error:
        raise ValueError(f"the results {str(results)!r} cannot be opened: {error}") from None
    try:
        yield file
    except sqlite3.DatabaseError as error:
        raise ValueError(f"the results {str(results)!r} cannot be used: {error}") from None
    finally:
        file.close()


def keep_block(file: sqlite3.Connection, key: Key, block: int, found: Mapping[str, Any]) -> None:
    """Store the result ``found`` of the block with number ``block`` of the subject with the key ``key``.

    A block that is already stored stays unchanged. ``file`` is the open results file. Raises ``NotStored`` with one
    sentence on failure, for example on a full disk.
    """
    try:
        file.execute(
            "INSERT OR IGNORE INTO blocks VALUES (?, ?, ?, ?)", (*key, block, json.dumps(found, sort_keys=True))
        )
    except sqlite3.OperationalError as error:
        raise NotStored(f"block {block + 1} could not be stored: {error}") from None


def block_of(file: sqlite3.Connection, key: Key, block: int) -> Any:
    """Return the stored result of the block with number ``block`` of a subject; None if it is not stored.

    ``key`` is the database key of the subject. ``file`` is the open results file.
    """
    row = file.execute(
        "SELECT found FROM blocks WHERE subject = ? AND setting = ? AND block = ?", (*key, block)
    ).fetchone()
    return None if row is None else json.loads(row[0])


def blocks_stored(file: sqlite3.Connection, key: Key) -> int:
    """Return the number of stored blocks of the subject with this key.

    ``file`` is the open results file.
    """
    result = file.execute("SELECT COUNT(*) FROM blocks WHERE subject = ? AND setting = ?", key).fetchone()
    return int(result[0])


def keep_asked(file: sqlite3.Connection, asked: Mapping[Key, Mapping[str, Any]]) -> None:
    """Store the plan of a campaign in its results ``file``, in place of any earlier plan.

    ``asked`` maps the key of each subject to the settings with which it is sampled; the settings are stored as JSON.
    """
    file.execute("BEGIN")
    file.execute("DELETE FROM asked")
    rows = [(place, *key, json.dumps(item)) for place, (key, item) in enumerate(asked.items())]
    file.executemany("INSERT INTO asked VALUES (?, ?, ?, ?)", rows)
    file.execute("COMMIT")


def asked_in(file: sqlite3.Connection) -> Mapping[Key, Mapping[str, Any]]:
    """Return the plan of the campaign in the order of its subjects.

    ``file`` is the open results file.
    """
    rows = file.execute("SELECT subject, setting, asked FROM asked ORDER BY place").fetchall()
    return {Key(subject, setting): json.loads(asked) for subject, setting, asked in rows}
