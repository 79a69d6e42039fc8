#!/usr/bin/env python3
"""Adds up what the fuzz targets covered, by room, and compares it with the floors.

    tests/fuzz/coverage.py [--table] FLOORS LOG ...

LOG is the output of a target that ran with -print_coverage=1. FLOORS has a line for each room: a directory or a file, and the least
percentage of its functions. A function belongs to the longest room that its path begins with; those of the tests, of generated code
and of other projects do not count, nor does code that no target links. Edges are printed besides: branches of the compiled code,
those of the sanitizers' checks included; of a function that several targets have, from the one that reached most.

--table only prints: for runs of a few targets. Exit codes: 0 every room is at its floor or above, 1 not, 2 the files are wrong.
"""
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SOURCES = ("runtime", "backends", "kernels", "tools")
FUNCTION = re.compile(r"^(?:UN)?COVERED_FUNC: hits: \d+ edges: (\d+)/(\d+) (.*) (\S+):(\d+)$")


def read_floors(path):
    """{room: percent}"""
    floors = {}
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            words = line.split("#")[0].split()
            if not words:
                continue
            if len(words) != 2 or not words[1].isdigit() or int(words[1]) > 100:
                raise ValueError(f"{path}:{number}: expected a room and a percentage, found '{line.strip()}'")
            if words[0] in floors or not os.path.exists(os.path.join(ROOT, words[0])):
                raise ValueError(f"{path}:{number}: expected a directory or file, once, found '{words[0]}'")
            floors[words[0]] = int(words[1])
    return floors


def wrong(message):
    print(f"fuzz coverage: {message}", file=sys.stderr)
    return 2


class Paths:
    """Names files from the root, however the compiler was told to call them (the cache of a compiler shares its results
    between folders)."""

    def __init__(self):
        self.known = {}

    def within(self, path):
        if path not in self.known:
            parts = path.split("/")
            ends = ("/".join(parts[i:]) for i, part in enumerate(parts) if part in SOURCES)
            self.known[path] = next((end for end in ends if os.path.isfile(os.path.join(ROOT, end))), None)
        return self.known[path]


def read_log(log, functions, paths):
    """Adds to {(file, line, name): [covered edges, edges]}; the number of functions found."""
    found = 0
    with open(log, encoding="utf-8", errors="replace") as file:
        for line in file:
            match = FUNCTION.match(line)
            if match is None:
                continue
            found += 1
            covered, edges, name, path, place = match.groups()
            where = paths.within(path)
            if where is not None:
                best = functions.setdefault((where, place, name), [0, 0])
                best[:] = max(best[0], int(covered)), max(best[1], int(edges))
    return found


def room_of(path, floors):
    return max((room for room in floors if path == room or path.startswith(room + "/")), key=len, default=None)


def main(arguments):
    only_table = arguments[:1] == ["--table"]
    arguments = arguments[only_table:]
    if len(arguments) < 2:
        return wrong("expected a file of floors and one log at least; see the text at the top")
    floors, functions, paths = read_floors(arguments[0]), {}, Paths()
    for log in arguments[1:]:
        if read_log(log, functions, paths) == 0:
            return wrong(f"{log}: expected functions, found none; -print_coverage=1 needs llvm-symbolizer, which tools/setup installs")
    rooms, homeless = {room: [0, 0, 0, 0] for room in floors}, {}
    for (path, _, _), (covered, edges) in functions.items():
        room = room_of(path, floors)
        if room is None:
            homeless[os.path.dirname(path)] = homeless.get(os.path.dirname(path), 0) + 1
            continue
        for i, number in enumerate((covered > 0, 1, covered, edges)):
            rooms[room][i] += number
    failures = [f"{folder}: {count} functions, and no room; add a line to {os.path.relpath(arguments[0])}"
                for folder, count in sorted(homeless.items())]
    width = max(map(len, rooms))
    print(f"{'covered':{width}}  {'functions':>14}          floor  {'edges':>16}")
    for room, (run, every, covered, edges) in rooms.items():
        if every == 0 and floors[room] == 0:
            continue  # whether a linker takes it does not matter
        if every == 0:
            failures.append(f"{room}: expected functions, found none; no target links it: remove its line, or add a target")
            continue
        percent = 100 * run / every
        print(f"{room:{width}}  {run:5} of {every:5}  {percent:4.0f} %  {floors[room]:4} %  {covered:6} of {edges:6}")
        if percent < floors[room]:
            failures.append(f"{room}: expected at least {floors[room]} % of its functions, found {percent:.1f} %; add seeds or a "
                            "mutation that reach its new code, or lower the floor and say why")
    if only_table:
        return 0
    for failure in failures:
        print(f"fuzz coverage: {failure}", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except (OSError, ValueError) as error:
        sys.exit(wrong(str(error)))
