"""The programs of librt that the package brings along: rtconvert, rtrun, rtbench and rttrain."""

from __future__ import annotations

import os
import sys
from typing import NoReturn

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin")


def path_of(program: str) -> str:
    """The program's file; an error where the package was installed without it."""
    path = os.path.join(FOLDER, program)
    if not os.access(path, os.X_OK):
        from .errors import NotFound

        raise NotFound(f"{path}: the package was installed without this program")
    return path


def environment() -> dict[str, str]:
    """For the programs: their libraries' folder, where /proc is missing, without which the linker does not find it."""
    variables = dict(os.environ)
    if not os.path.exists("/proc/self/exe"):
        libraries = os.path.join(os.path.dirname(FOLDER), "lib", "librt")
        variables["LD_LIBRARY_PATH"] = ":".join(filter(None, (libraries, variables.get("LD_LIBRARY_PATH"))))
    return variables


def run(program: str, arguments: list[str]) -> NoReturn:
    """Becomes the program."""
    path = path_of(program)
    sys.stdout.flush()
    sys.stderr.flush()
    os.execve(path, [program, *arguments], environment())


def rtconvert() -> NoReturn:
    run("rtconvert", sys.argv[1:])


def rtrun() -> NoReturn:
    run("rtrun", sys.argv[1:])


def rtbench() -> NoReturn:
    run("rtbench", sys.argv[1:])


def rttrain() -> NoReturn:
    run("rttrain", sys.argv[1:])
