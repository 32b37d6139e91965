#!/usr/bin/env python3
"""What the engine itself costs, measured in turn in one run.

usage: engine.py [--program build/plateflow] [--python PATH] [--groups 20000]
                 [--rounds 3] [--names 1000000] [--what tasks,loop,start,names]

tasks  CPU of 11 identity steps minus CPU of 1, over 10 and the number of
       groups: one group is one 64x64 slice; in C and with Python/numpy.
loop   CPU of the one-step run against a bare libtiff loop over the same files
       (tmpfs, one worker).
start  program start to first task on 100 files, in C and with numpy.
names  planning a folder of a million names: seconds and peak memory.

Prints one line per figure and the bound that docs/benchmarks.md states. The
folders are made under /dev/shm, which must have room for them (about 500 MB).
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import tifffile

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent

PYTHON_STEP = "def same(stack):\n    return stack\n"


def children_cpu() -> float:
    """CPU seconds of all children that ended so far."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def run(argv: list[str]) -> float:
    """Run a command; CPU seconds of it and its children."""
    before = children_cpu()
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)
    return children_cpu() - before


def make_plate(folder: Path, n: int) -> None:
    """n files of 64x64 uint16, one group each."""
    folder.mkdir(parents=True)
    image = np.arange(64 * 64, dtype=np.uint16).reshape(64, 64)
    first = folder / "A01_s0_w1.tif"
    tifffile.imwrite(first, image)
    data = first.read_bytes()
    first.unlink()
    for i in range(n):
        row, column = divmod(i % 384, 24)
        name = f"{chr(65 + row)}{column + 1:02}_s{i // 384 + 1}_w1.tif"
        (folder / name).write_bytes(data)


def pipeline(folder: Path, n_steps: int, python: bool) -> Path:
    """n identity steps that alternate between two absent components."""
    function = "./same.py:same" if python else "native:identity"
    memory = "numpy" if python else "native"
    steps = [
        {
            "name": f"s{i}",
            "function": function,
            "memory_type": memory,
            "stack": ["z"] if i % 2 == 0 else ["timepoint"],
            "slice_by_slice": False,
        }
        for i in range(n_steps)
    ]
    path = folder / f"{'py' if python else 'c'}{n_steps}.json"
    path.write_text(
        json.dumps({"plateflow": 1, "name": "same", "steps": steps})
    )
    (folder / "same.py").write_text(PYTHON_STEP)
    return path


class Bench:
    """One temporary folder and the program that is measured."""

    def __init__(self, args: argparse.Namespace, work: Path) -> None:
        self.args = args
        self.work = work

    def command(self, pipe: Path, plate: Path) -> list[str]:
        out = self.work / "out"
        shutil.rmtree(out, ignore_errors=True)
        argv = [
            self.args.program,
            "run",
            str(pipe),
            str(plate),
            "-o",
            str(out),
        ]
        argv += ["--workers", "1", "--progress", "none"]
        if self.args.python:
            argv += ["--python", self.args.python]
        return argv

    def tasks(self) -> None:
        n = self.args.groups
        plate = self.work / "plate"
        if not plate.exists():
            make_plate(plate, n)
        for python, bound in ((False, 15), (True, 40)):
            figures = []
            for _ in range(self.args.rounds):
                one = run(self.command(pipeline(self.work, 1, python), plate))
                eleven = run(
                    self.command(pipeline(self.work, 11, python), plate)
                )
                figures.append((eleven - one) / 10 / n * 1e6)
            name = "Python/numpy" if python else "C"
            print(
                f"task, {name}: {statistics.median(figures):.2f} us CPU "
                f"({', '.join(f'{f:.2f}' for f in figures)}); bound {bound}",
                flush=True,
            )

    def loop(self) -> None:
        n = self.args.groups
        plate = self.work / "plate"
        if not plate.exists():
            make_plate(plate, n)
        program = self.work / "tiff_loop"
        source = HERE / "tiff_loop.c"
        subprocess.run(
            ["cc", "-O2", "-o", str(program), str(source), "-ltiff"],
            check=True,
        )
        ratios = []
        for _ in range(self.args.rounds):
            bare_out = self.work / "bare"
            shutil.rmtree(bare_out, ignore_errors=True)
            bare_out.mkdir()
            bare = run([str(program), str(plate), str(bare_out)])
            ours = run(self.command(pipeline(self.work, 1, False), plate))
            ratios.append(ours / bare)
            print(
                f"  bare {bare / n * 1e6:.1f} us a file, "
                f"plateflow {ours / n * 1e6:.1f} us",
                flush=True,
            )
        print(
            "one step against a bare libtiff loop: "
            f"{statistics.median(ratios):.2f}x CPU; bound 1.5x",
            flush=True,
        )

    def start(self) -> None:
        plate = self.work / "plate100"
        make_plate(plate, 100)
        for python, bound in ((False, 0.030), (True, 0.4)):
            figures = []
            for _ in range(max(5, self.args.rounds)):
                run(self.command(pipeline(self.work, 1, python), plate))
                summary = json.loads(
                    (self.work / "out" / "run.json").read_text()
                )
                figures.append(summary["seconds"]["to_first_task"])
            name = "numpy" if python else "C"
            print(
                f"start to first task, {name}: "
                f"{statistics.median(figures):.4f} s; bound {bound}",
                flush=True,
            )

    def names(self) -> None:
        n = self.args.names
        plate = self.work / "million" / "Images"
        plate.mkdir(parents=True)
        image = np.zeros((64, 64), np.uint16)
        made = 0
        for row in range(1, 17):
            for column in range(1, 25):
                for field in range(1, 10_000):
                    if made >= n or field > n // (384 * 4 * 3) + 1:
                        break
                    for plane in range(1, 4):
                        for channel in range(1, 5):
                            name = (
                                f"r{row:02}c{column:02}f{field:02}p{plane:02}"
                                f"-ch{channel}sk1fk1fl1.tiff"
                            )
                            path = plate / name
                            if row == column == field == plane == 1:
                                tifffile.imwrite(path, image)
                            else:
                                os.close(
                                    os.open(path, os.O_CREAT | os.O_WRONLY)
                                )
                            made += 1
        pipe = pipeline(self.work, 1, False)
        argv = [self.args.program, "plan", str(pipe), str(plate.parent)]
        script = (
            "import resource, subprocess, sys, time; t = time.monotonic(); "
            "r = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL); "
            "print(r.returncode, time.monotonic() - t, "
            "resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
        )
        answer = subprocess.run(
            [sys.executable, "-c", script, *argv],
            capture_output=True,
            text=True,
        ).stdout.split()
        print(
            f"plan of {made} names: {float(answer[1]):.2f} s, "
            f"{int(answer[2]) / 1024:.0f} MiB (status {answer[0]}); "
            f"bound 10 s, 250 MiB",
            flush=True,
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default=str(ROOT / "build" / "plateflow"))
    parser.add_argument("--python")
    parser.add_argument("--groups", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--names", type=int, default=1_000_000)
    parser.add_argument("--what", default="tasks,loop,start,names")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(dir="/dev/shm") as work:
        bench = Bench(args, Path(work))
        for what in args.what.split(","):
            getattr(bench, what)()
    return 0


if __name__ == "__main__":
    sys.exit(main())
