"""Files and folders that a user names, validated before any work begins."""

from __future__ import annotations

import os
from pathlib import Path
from stat import S_ISDIR, S_ISREG


def check_writable(file: Path, name: str) -> None:
    """Raise ``ValueError`` unless ``file`` can be written. ``name`` describes the file in the message.

    The file is left unchanged, and is not created.
    """
    said = f"{name} {str(file)!r} cannot be written"
    try:
        mode = file.stat().st_mode
    except FileNotFoundError:
        mode = None
    except (OSError, ValueError) as error:
        raise ValueError(f"{said}: {reason_of(error)}") from None
    if mode is not None and S_ISDIR(mode):
        raise ValueError(f"{said}: it is a directory, expected a file")
    if mode is not None and not S_ISREG(mode):
        return  # a pipe or a device would notice
    try:
        with file.open("ab"):
            pass
        if mode is None:
            file.unlink()
    except (OSError, ValueError) as error:
        raise ValueError(f"{said}: {reason_of(error)}") from None


def check_folder(folder: Path, name: str) -> None:
    """Raise ``ValueError`` unless ``folder`` is writable or can be created.

    The folder is left unchanged, and is not created. ``name`` describes the folder in the message.
    """
    there = next((place for place in (folder, *folder.absolute().parents) if place.exists()), folder)
    if not there.is_dir():
        raise ValueError(f"{name} {str(folder)!r} cannot be a folder: {str(there)!r} is a file")
    if not os.access(there, os.W_OK | os.X_OK):
        raise ValueError(f"{name} {str(folder)!r} cannot be written: {str(there)!r} is not writable")


def reason_of(error: Exception) -> str:
    """Return in words why a file could not be read or written, such as "permission denied"."""
    return (getattr(error, "strerror", None) or str(error)).lower()
