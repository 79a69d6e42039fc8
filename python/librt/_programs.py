"""The programs of librt: rtconvert, rtrun, rtbench and rttrain. A wheel brings them along; where it was installed without
them, as by a distribution's package, they are those on the PATH."""

from __future__ import annotations

import os
import shutil
import sys
from typing import NoReturn

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin")


def path_of(program: str) -> str:
    """The program's file; an error where there is none."""
    path = os.path.join(FOLDER, program)
    if os.access(path, os.X_OK):
        return path
    found = shutil.which(program)
    if found is None:
        from .errors import NotFound

        raise NotFound(f"{path}: the package was installed without this program, and it is not on the PATH (librt-tools)")
    return found


def environment(path: str) -> dict[str, str]:
    """For the program `path`, if it is the package's: its libraries' folder, where /proc is missing, without which the linker does not find it."""
    variables = dict(os.environ)
    if os.path.dirname(path) == FOLDER and not os.path.exists("/proc/self/exe"):
        libraries = os.path.join(os.path.dirname(FOLDER), "lib", "librt")
        variables["LD_LIBRARY_PATH"] = ":".join(filter(None, (libraries, variables.get("LD_LIBRARY_PATH"))))
    return variables


def run(program: str, arguments: list[str]) -> NoReturn:
    """Becomes the program."""
    path = path_of(program)
    sys.stdout.flush()
    sys.stderr.flush()
    os.execve(path, [program, *arguments], environment(path))


def rtconvert() -> NoReturn:
    run("rtconvert", sys.argv[1:])


def rtrun() -> NoReturn:
    run("rtrun", sys.argv[1:])


def rtbench() -> NoReturn:
    run("rtbench", sys.argv[1:])


def rttrain() -> NoReturn:
    run("rttrain", sys.argv[1:])
