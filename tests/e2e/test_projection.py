"""Projections of every real image set are NumPy's, and oddities are refused.

The slices are what `inspect --json` lists; they are read with tifffile.
"""

import csv
import json
import shutil
from collections import defaultdict
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
from conftest import ROOT, Run

pytestmark = pytest.mark.native

SETS = [
    # folder below the image sets, slices, stacks, components to stack
    ("bbbc022_multichannel", 3, 3, None),
    ("bbbc022_multichannel", 3, 1, ["channel"]),
    ("cellomics_human", 3, 3, None),
    ("cellomics_human", 3, 1, ["channel"]),
    ("cellomics_sites", 6, 6, None),
    ("cellomics_sites", 6, 2, ["site"]),
    ("imagexpress_exported", 24, 12, None),
    ("imagexpress_exported", 24, 4, ["channel", "z"]),
    ("imagexpress_exported", 24, 6, ["well", "z"]),
    ("imagexpress_timelapse", 12, 12, None),
    ("imagexpress_timelapse", 12, 6, ["timepoint"]),
    ("metaxpress_worms", 2, 2, None),
    ("ome_tiff", 3, 3, None),
    ("ome_tiff/ovule_lzw_tiled.ome.tiff", 32, 1, None),  # alone in a folder
    ("opera_phenix", 2, 2, None),
    ("opera_phenix", 2, 1, ["site"]),
    ("sbs_translocation", 8, 8, None),
    ("sbs_translocation", 8, 2, ["well"]),
    ("yokogawa_names_blank", 16, 4, None),
    ("zstack_multipage", 32, 1, None),
]
COMPONENTS = ("plate", "well", "site", "timepoint", "channel", "z")
METHODS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "max": lambda stack: stack.max(0),
    "sum": lambda stack: stack.sum(
        0,
        dtype={"u": {1: "u4", 2: "u4", 4: "u8"}, "f": {4: "f8", 8: "f8"}}[
            stack.dtype.kind
        ][stack.dtype.itemsize],
    ),
}

Group = tuple[str | None, ...]


@cache
def pages(path: Path) -> list[np.ndarray]:
    with tifffile.TiffFile(path) as file:
        return [page.asarray() for page in file.pages]


def stacks(
    plate: Path, listed: list[dict[str, Any]], stack: list[str]
) -> dict[Group, np.ndarray]:
    """The listed slices, stacked as NumPy does; by what is not stacked."""
    groups: dict[Group, list[np.ndarray]] = defaultdict(list)
    for item in listed:
        key = tuple(None if c in stack else item[c] for c in COMPONENTS)
        groups[key].append(pages(plate / item["path"])[item["page"]])
    return {key: np.stack(planes) for key, planes in groups.items()}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("name", "n_slices", "n_stacks", "stack"),
    SETS,
    ids=[f"{row[0]}-{'-'.join(row[3] or ['z'])}" for row in SETS],
)
def test_projection_is_numpys(
    run: Run,
    data: Path,
    tmp_path: Path,
    method,
    name,
    n_slices,
    n_stacks,
    stack,
):
    plate = data / name
    if plate.is_file():
        plate = tmp_path / "plate"
        plate.mkdir()
        shutil.copy(data / name, plate)
    listed = json.loads(run("inspect", plate, "--json").stdout)["slices"]
    expected = stacks(plate, listed, stack or ["z"])
    assert (len(listed), len(expected)) == (n_slices, n_stacks)
    pipeline = ROOT / "pipelines" / f"project_{method}.json"
    if stack:
        whole = json.loads(pipeline.read_text())
        whole["steps"][0]["stack"] = stack
        pipeline = tmp_path / "pipeline.json"
        pipeline.write_text(json.dumps(whole))
    before = sorted(plate.rglob("*"))
    run("run", pipeline, plate, "-o", tmp_path / "out")
    assert sorted(plate.rglob("*")) == before
    images = tmp_path / "out/images"
    with (images / "index.csv").open(newline="") as file:
        index = list(csv.DictReader(file))
    assert len(index) == n_stacks == len({row["file"] for row in index})
    for row in index:
        key = tuple(row[c] or None for c in COMPONENTS)
        got = tifffile.imread(images / row["file"])
        due = METHODS[method](expected.pop(key))
        assert got.dtype == due.dtype
        np.testing.assert_array_equal(got, due, err_msg=row["file"])
    assert not expected


@pytest.mark.parametrize("command", ["inspect", "plan", "check", "run"])
def test_oddities_are_refused(
    run: Run, data: Path, tmp_path: Path, command: str
):
    """Each by name, with the reason and what to do."""
    plate, out = data / "oddities", tmp_path / "out"
    pipeline = ROOT / "pipelines/project_max.json"
    done = run(
        command,
        *([] if command == "inspect" else [pipeline]),
        plate,
        *(["-o", out] if command == "run" else []),
        status=2,
    )
    text = done.stdout + done.stderr
    for name, reason in [
        ("NikonTIF.tif", "RGB"),
        ("he1_axes_cyx.tiff", "RGB"),
        ("iamac01file.c01", "not a TIFF"),
    ]:
        line = next(row for row in text.splitlines() if name in row)
        assert reason in line
    assert not out.exists()
