"""Small plates, pipelines over them, and what their runs left."""

import csv
import itertools
import json
import subprocess
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tifffile

Json = Any
Pixels = Callable[[str, str, str, int], np.ndarray]
PATTERN = "{well}_s{site}_w{channel}_z{z}.tif"
SHAPE = (6, 8)


def ramp(well: str, site: str, channel: str, z: int) -> np.ndarray:
    """Pixels that tell which slice they are of: uint16 [Y, X]."""
    first = int(well[1:]) * 1000 + int(site) * 200 + int(channel) * 50 + z
    return (np.arange(SHAPE[0] * SHAPE[1]) + first).reshape(SHAPE).astype("u2")


def native(name: str, function: str, **keys: Json) -> Json:
    """One C step of a pipeline."""
    return {"name": name, "function": f"native:{function}", **keys}


def python(name: str, **keys: Json) -> Json:
    """One step of ./steps.py, undecorated; its function is called `name`."""
    return {
        "name": name,
        "function": f"./steps.py:{name}",
        "memory_type": "numpy",
        "slice_by_slice": False,
        **keys,
    }


MAX = native("project", "project", parameters={"method": "max"})


class Out:
    """What a run left in its folder."""

    def __init__(self, folder: Path, done: subprocess.CompletedProcess[str]):
        self.folder = folder
        self.done = done
        self.text = done.stdout + done.stderr

    def image(self, name: str, folder: str = "images") -> np.ndarray:
        return tifffile.imread(self.folder / folder / name)

    def table(self, name: str) -> list[dict[str, str]]:
        with (self.folder / "tables" / f"{name}.csv").open(newline="") as file:
            return list(csv.DictReader(file))

    @property
    def names(self) -> list[str]:
        """The images below images/."""
        return below(self.folder / "images", ".tif")

    @property
    def json(self) -> Json:
        return json.loads((self.folder / "run.json").read_text())

    @property
    def status(self) -> list[str]:
        """Of each field, in order."""
        return [row["status"] for row in self.table("images")]


def below(folder: Path, suffix: str = "") -> list[str]:
    """The files below a folder, sorted, hidden ones too."""
    return sorted(
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.is_file() and path.name.endswith(suffix)
    )


def hidden(folder: Path) -> list[str]:
    """What a run forgot: dot-files below the folder."""
    return [name for name in below(folder) if Path(name).name[0] == "."]


class Work:
    """A folder with a plate, steps.py and a pipeline, to be run."""

    def __init__(self, folder: Path, run: Callable[..., Any]):
        self.folder = folder
        self.plate_folder = folder / "plate"
        self.program = run
        self.n_runs = 0

    def plate(
        self,
        wells: Iterable[str] = ("A01", "A02"),
        sites: Iterable[str] = ("1",),
        channels: Iterable[str] = ("1",),
        z: Sequence[int] = (1, 2, 3),
        pixels: Pixels = ramp,
    ) -> Path:
        """Write a plate whose names fit PATTERN."""
        self.plate_folder.mkdir(exist_ok=True)
        for well, site, channel, k in itertools.product(
            wells, sites, channels, z
        ):
            tifffile.imwrite(
                self.slice(well, site, channel, k),
                pixels(well, site, channel, k),
            )
        return self.plate_folder

    def slice(self, well: str, site: str, channel: str, z: int) -> Path:
        name = PATTERN.format(well=well, site=site, channel=channel, z=z)
        return self.plate_folder / name

    def stack(
        self, well: str, site: str = "1", channel: str = "1", z=(1, 2, 3)
    ) -> np.ndarray:
        """What `ramp` wrote, as one stack."""
        return np.stack([ramp(well, site, channel, k) for k in z])

    def pipeline(self, *steps: Json, plate: Json = None, **keys: Json) -> Path:
        path = self.folder / "pipeline.json"
        whole = {
            "plateflow": 1,
            "plate": {
                "layout": "pattern",
                "pattern": PATTERN,
                **(plate or {}),
            },
            "steps": list(steps),
            **keys,
        }
        path.write_text(json.dumps(whole, indent=1))
        return path

    def code(self, text: str) -> None:
        """Write steps.py."""
        (self.folder / "steps.py").write_text(
            "import numpy as np\n" + text.lstrip("\n")
        )

    def run(
        self,
        *options: object,
        status: int | None = 0,
        out: Path | None = None,
        **keys: Any,
    ) -> Out:
        """Run the pipeline into a folder of its own."""
        self.n_runs += 1
        out = out or self.folder / f"out{self.n_runs}"
        done = self.program(
            "run",
            self.folder / "pipeline.json",
            self.plate_folder,
            "-o",
            out,
            *options,
            status=status,
            **keys,
        )
        return Out(out, done)
