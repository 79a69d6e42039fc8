"""Files that are replaced once they are complete."""

from __future__ import annotations

import os
import shutil
import tempfile


def save(path: str, source: str | bytes) -> None:
    """Writes bytes, or a copy of the file `source`, to `path`."""
    path = os.fsdecode(path)
    folder = os.path.dirname(os.path.abspath(path))
    number, partial = tempfile.mkstemp(prefix=os.path.basename(path) + ".partial-", dir=folder)
    try:
        with os.fdopen(number, "wb") as file:
            if isinstance(source, bytes):
                file.write(source)
            else:
                with open(source, "rb") as other:
                    shutil.copyfileobj(other, file)
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(partial, 0o666 & ~mask)
        os.replace(partial, path)
    except BaseException:
        os.unlink(partial)
        raise
