"""Files that are replaced once they are complete."""

from __future__ import annotations

import os
import secrets
import shutil
import stat


def _write(file, source: str | bytes) -> None:
    if isinstance(source, bytes):
        file.write(source)
    else:
        with open(source, "rb") as other:
            shutil.copyfileobj(other, file)


def save(path: str, source: str | bytes) -> None:
    """Writes bytes, or a copy of the file `source`, to `path`. A link stays, and its file is replaced; what is no
    regular file, such as a pipe or a device, is written to as it is."""
    path = os.path.realpath(os.fsdecode(path))
    try:
        is_regular = stat.S_ISREG(os.stat(path).st_mode)
    except FileNotFoundError:
        is_regular = True
    if not is_regular:
        with open(path, "wb") as file:
            _write(file, source)
        return
    partial = f"{path}.partial-{secrets.token_hex(4)}"
    number = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    try:
        with os.fdopen(number, "wb") as file:
            _write(file, source)
            file.flush()
            os.fsync(number)
        os.replace(partial, path)
    except BaseException:
        os.unlink(partial)
        raise
