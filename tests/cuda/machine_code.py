#!/usr/bin/env python3
"""Compares the machine code of the CUDA kernels with tests/cuda/machine_code.txt, without a GPU.

usage: machine_code.py MANIFEST OBJECT...           every kernel of the objects FAMILY.cu.o against the lines of FAMILY.cu
       machine_code.py --print PATTERN OBJECT...    the measures of the kernels whose names match

Kernels are compiled for sm_90 (the default of the build) and disassembled by cuobjdump, which needs nvdisasm. Both are looked for in
RT_CUDA_DISASSEMBLER (a folder of programs, or a Python environment with Triton's wheel), next to nvcc, and on PATH. The manifest says
what each measure is. Exit code 77: skipped, with the reason.
"""
import fnmatch
import os
import pathlib
import re
import shutil
import subprocess
import sys

ARCHITECTURE = "sm_90"
REGISTERS, SHARED_BYTES, THREADS, BLOCKS = 65536, 233472, 2048, 32  # of a multiprocessor
RESERVED_SHARED = 1024  # per block
WIDTHS = {"128": 16, "64": 8, "U16": 2, "S16": 2, "U8": 1, "S8": 1}
MATRIX = ("HMMA", "IMMA", "HGMMA", "IGMMA", "DMMA", "BMMA")


class Failure(Exception):
    pass


def skip(reason):
    print(f"SKIPPED: {reason}")
    sys.exit(77)


def disassembler():
    """The folder of cuobjdump and nvdisasm."""
    given = os.environ.get("RT_CUDA_DISASSEMBLER", "")
    folders = [pathlib.Path(given), pathlib.Path(given) / "bin"] if given else []
    folders += pathlib.Path(given).glob("lib/python3*/site-packages/triton/backends/nvidia/bin") if given else []
    if nvcc := shutil.which("nvcc"):
        folders.append(pathlib.Path(nvcc).resolve().parent)
    folders.append(pathlib.Path(os.environ.get("CUDA_HOME") or "/usr/local/cuda") / "bin")
    folders += [pathlib.Path(folder) for folder in os.environ.get("PATH", "").split(os.pathsep) if folder]
    for folder in folders:
        if all(os.access(folder / name, os.X_OK) for name in ("cuobjdump", "nvdisasm")):
            return folder
    where = f"RT_CUDA_DISASSEMBLER ({given}), the toolkit" if given else "the toolkit"
    if given and not pathlib.Path(given).is_dir():
        raise Failure(f"RT_CUDA_DISASSEMBLER: expected a folder, found '{given}'; name one with cuobjdump and nvdisasm")
    skip(f"cuobjdump and nvdisasm are neither in {where} nor on PATH; install NVIDIA's packages cuda-cuobjdump and cuda-nvdisasm, or "
         "set RT_CUDA_DISASSEMBLER to a Python environment with Triton")


def run(*command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False,
                          env={**os.environ, "PATH": f"{pathlib.Path(command[0]).parent}{os.pathsep}{os.environ.get('PATH', '')}"})
    if done.returncode != 0:
        raise Failure(f"{command[0]} {command[-1]}: exit code {done.returncode}: {done.stderr.strip()[:400]}")
    return done.stdout


def short_names(names):
    """channels_kernel<8,__half,FixedStatistics<float>>: without namespaces, parameters and spaces."""
    demangled = subprocess.run(["c++filt"], input="\n".join(names), capture_output=True, text=True, check=True).stdout.splitlines()
    short = {}
    for name, text in zip(names, demangled):
        text = re.sub(r"_GLOBAL__N__\w+::|\(anonymous namespace\)::|librt::cuda::", "", text)
        text = re.sub(r"\((?:librt::cuda::)?\w+(?:::\w+)*\)(?=-?\d)", "", text)  # (int)8
        text = re.sub(r"^void ", "", text)
        depth = 0
        for i, letter in enumerate(text):  # the parameters follow
            depth += {"<": 1, ">": -1}.get(letter, 0)
            if letter == "(" and depth == 0:
                text = text[:i]
                break
        short[name] = text.replace(" ", "")
    return short


class Instruction:
    PATTERN = re.compile(r"^\s+/\*([0-9a-f]{4,})\*/\s+(.*?)\s*;\s+/\* 0x")
    __slots__ = ("address", "name", "operands", "target", "parts")

    def __init__(self, address, text):
        self.address = int(address, 16)
        text = re.sub(r"^\{?\s*(@!?U?P[T0-9]+\s+)?", "", text)
        self.name, _, self.operands = text.partition(" ")
        self.parts = self.name.split(".")
        self.target = None
        if self.parts[0] == "BRA" and (found := re.search(r"0x([0-9a-f]+)", self.operands)):
            self.target = int(found.group(1), 16)

    @property
    def bytes(self):
        """That a load or store moves, per thread."""
        return next((WIDTHS[part] for part in self.parts if part in WIDTHS), 4)

    def registers(self):
        return {int(number) for number in re.findall(r"\bR(\d+)\b", self.operands)}


class Kernel:
    """The measures of one kernel: those that are the same in every line of the manifest."""

    def __init__(self, name, instructions, registers, shared):
        self.name, self.code = name, instructions
        code, count = instructions, self.count
        self.measures = {
            "loads128": count(lambda i: i.parts[0] == "LDG" and i.bytes == 16),
            "stores128": count(lambda i: i.parts[0] == "STG" and i.bytes == 16),
            "narrow_stores": count(lambda i: i.parts[0] == "STG" and i.bytes < 4),
            "async128": count(lambda i: i.parts[0] == "LDGSTS" and i.bytes == 16),
            "hmma": count(lambda i: i.parts[0] in ("HMMA", "HGMMA") and i.operands[:3] != "-RZ"),
            "imma": count(lambda i: i.parts[0] in ("IMMA", "IGMMA")),
            "hfma2": count(lambda i: i.parts[0] == "HFMA2" and "-RZ, RZ," not in i.operands),
            "local": count(lambda i: i.parts[0] in ("LDL", "STL")),
            "double": count(lambda i: i.parts[0] in ("DADD", "DMUL", "DFMA", "DSETP", "DMNMX", "DMMA") or "F64" in i.parts),
            "registers": registers, "shared": shared, "instructions": len(code),
        }
        ranges = [(i.target, i.address) for i in code if i.target is not None and i.target < i.address]
        inner = [a for a in ranges if not any(b != a and a[0] <= b[0] and b[1] <= a[1] for b in ranges)]
        self.of_matrix_loop(ranges)
        self.of_load_loop(self.loops(inner))

    def count(self, wanted, code=None):
        return sum(1 for i in (self.code if code is None else code) if wanted(i))

    def loops(self, ranges):
        return [[i for i in self.code if first <= i.address <= last and i.name != "NOP"] for first, last in ranges]

    def of_matrix_loop(self, ranges):
        """Of the loop that has the fewest instructions per matrix instruction."""
        matrix = lambda code: self.count(lambda i: i.parts[0] in MATRIX, code)
        ratios = [len(code) / matrix(code) for code in [*self.loops(ranges), self.code] if matrix(code) > 0]
        if ratios:
            self.measures["per_matrix"] = round(min(ratios), 1)

    def of_load_loop(self, loops):
        """Of the part that loads the most bytes: an innermost loop, or everything outside of these."""
        load_bytes = lambda code: sum(i.bytes for i in code if i.parts[0] in ("LDG", "LDGSTS"))
        inside = {i.address for loop in loops for i in loop}
        loop = max([*loops, [i for i in self.code if i.address not in inside]], key=load_bytes)
        if load_bytes(loop) == 0:
            return
        self.measures["in_flight"], self.measures["bytes_in_flight"] = in_flight(loop)
        self.measures["loop"] = len(loop)
        self.measures["per_16_bytes"] = round(len(loop) * 16 / load_bytes(loop), 1)

    def blocks(self, threads, dynamic_shared):
        """Resident on a multiprocessor."""
        warps = (threads + 31) // 32
        of_registers = REGISTERS // (warps * ((self.measures["registers"] * 32 + 255) // 256 * 256))
        shared = self.measures["shared"] + dynamic_shared + RESERVED_SHARED
        return min(of_registers, SHARED_BYTES // shared, THREADS // (warps * 32), BLOCKS)


def in_flight(code):
    """The most loads, and bytes, that a thread has issued before it needs one of them. Loads return in order, so the use of one
    waits for those before it. Twice through the code, because a loop may use in one iteration what it loaded in the last."""
    pending, loads, most_bytes = [], 0, 0
    for instruction in code + code:
        name = instruction.parts[0]
        registers = instruction.registers()
        if name == "LDG":
            first = re.match(r"(?:P\d+, )?R(\d+)", instruction.operands)
            target = set(range(int(first.group(1)), int(first.group(1)) + (instruction.bytes + 3) // 4)) if first else set()
            address = {int(n) for n in re.findall(r"\[R(\d+)", instruction.operands)}
            used = address | target
        else:
            target, used = None, registers
        last = max((k for k, (held, _) in enumerate(pending) if held & used), default=-1)
        pending = pending[last + 1:]
        if target is not None:
            pending.append((target, instruction.bytes))
            loads, most_bytes = max(loads, len(pending)), max(most_bytes, sum(size for _, size in pending))
    return loads, most_bytes


def kernels_of(folder, object_file):
    resources, code, current = {}, {}, None
    for line in run(folder / "cuobjdump", "-res-usage", object_file).splitlines():
        if found := re.match(r"\s*Function (\S+):", line):
            current = found.group(1)
        elif found := re.search(r"REG:(\d+).*SHARED:(\d+)", line):
            resources[current] = int(found.group(1)), int(found.group(2))
    for line in run(folder / "cuobjdump", "-sass", "-arch", ARCHITECTURE, object_file).splitlines():
        if found := Instruction.PATTERN.match(line):
            code[current].append(Instruction(*found.groups()))
        elif found := re.match(r"\s*Function : (\S+)", line):
            current = found.group(1)
            code[current] = []
    names = short_names(list(code))
    return [Kernel(names[name], instructions, *resources.get(name, (0, 0))) for name, instructions in code.items()]


class Line:
    REQUIREMENT = re.compile(r"^(\w+)(<=|>=|=)([\d.]+)$")

    def __init__(self, place, text):
        self.place = place
        self.source, self.pattern, *words = text.split()
        self.threads, self.dynamic_shared, self.requirements, self.used = 0, 0, [], False
        for word in words:
            found = self.REQUIREMENT.match(word)
            if not found:
                raise Failure(f"{place}: expected MEASURE>=NUMBER or MEASURE<=NUMBER, found '{word}'")
            name, relation, number = found.groups()
            if relation == "=":
                if name not in ("threads", "dynamic_shared"):
                    raise Failure(f"{place}: expected threads= or dynamic_shared=, found '{word}'")
                setattr(self, name, int(number))
            else:
                self.requirements.append((name, relation, float(number)))

    def problems(self, kernel):
        measures = dict(kernel.measures)
        if self.threads:
            measures["blocks"] = kernel.blocks(self.threads, self.dynamic_shared)
        limits = list(self.requirements)
        named = {name for name, _, _ in limits}
        if "local" not in named:
            limits.append(("local", "<=", 0))
        if "double" not in named and "double" not in kernel.name:
            limits.append(("double", "<=", 0))
        for name, relation, number in limits:
            found = measures.get(name)
            if found is None:
                yield f"{self.place}: {kernel.name}: '{name}' is not a measure of this kernel; it has {', '.join(sorted(measures))}"
            elif found < number if relation == ">=" else found > number:
                yield f"{self.place}: {kernel.name}: expected {name} {relation} {number:g}, found {found:g}"


def read_manifest(path):
    lines = []
    for number, text in enumerate(pathlib.Path(path).read_text(encoding="utf-8").splitlines(), 1):
        if text.strip() and not text.startswith("#"):
            lines.append(Line(f"{pathlib.Path(path).name}:{number}", text))
    return lines


def check(manifest, objects):
    lines, folder, problems, count = read_manifest(manifest), disassembler(), [], 0
    for object_file in objects:
        source = pathlib.Path(object_file).name.removesuffix(".o")
        of_source = [line for line in lines if line.source == source]
        for kernel in kernels_of(folder, object_file):
            count += 1
            matching = [line for line in of_source if fnmatch.fnmatchcase(kernel.name, line.pattern)]
            if not matching:
                problems.append(f"{manifest}: no line for {source} {kernel.name}; add one")
            for line in matching:
                line.used = True
                problems += line.problems(kernel)
    if count == 0:
        raise Failure(f"expected kernels for {ARCHITECTURE}, found none; build with CMAKE_CUDA_ARCHITECTURES=90")
    sources = {pathlib.Path(object_file).name.removesuffix(".o") for object_file in objects}
    problems += [f"{line.place}: no kernel of {line.source} is '{line.pattern}'; remove the line" for line in lines
                 if not line.used and (line.source in sources or len(objects) > 1)]
    print("\n".join(problems) if problems else f"{count} kernels are as {manifest} says")
    return 1 if problems else 0


def show(pattern, objects):
    folder = disassembler()
    for object_file in objects:
        for kernel in kernels_of(folder, object_file):
            if fnmatch.fnmatchcase(kernel.name, pattern):
                print(kernel.name, *(f"{name}={value:g}" for name, value in kernel.measures.items() if value))
    return 0


def main(arguments):
    if len(arguments) < 2:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    if arguments[0] == "--print":
        return show(arguments[1], arguments[2:])
    return check(arguments[0], arguments[1:])


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except Failure as failure:
        print(failure)
        sys.exit(1)
