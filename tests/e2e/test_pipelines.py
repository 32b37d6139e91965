"""Whole pipelines on the real images, against SciPy and scikit-image."""

import csv
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
from conftest import ROOT, Run
from plates import Out, native
from scipy import ndimage
from skimage import filters, measure

pytestmark = pytest.mark.numpy

STEPS = '''
def same(stack):
    """Give the stack back."""
    return stack

def far(stack, info):
    """Brightest pixel of each plane, as a table."""
    return stack, [{"plane": i, "peak": int(p.max())}
                   for i, p in enumerate(stack)]
'''
SETS = ["imagexpress_exported", "bbbc022_multichannel", "sbs_translocation"]
COMPONENTS = ("plate", "well", "site", "timepoint", "channel", "z")


def python(name: str, **keys: Any) -> dict[str, Any]:
    return {
        "name": name,
        "function": f"./steps.py:{name}",
        "memory_type": "numpy",
        "slice_by_slice": False,
        **keys,
    }


def run_steps(run: Run, folder: Path, plate: Path, *steps: Any) -> Out:
    (folder / "steps.py").write_text(STEPS)
    (folder / "p.json").write_text(
        json.dumps({"plateflow": 1, "steps": steps})
    )
    out = folder / "out"
    return Out(out, run("run", folder / "p.json", plate, "-o", out))


def images(out: Out) -> dict[tuple[str, ...], np.ndarray]:
    """What images/index.csv lists, by its components."""
    with (out.folder / "images/index.csv").open(newline="") as file:
        return {
            tuple(row[c] for c in COMPONENTS): out.image(row["file"])
            for row in csv.DictReader(file)
        }


def slices(run: Run, plate: Path) -> dict[tuple[str, ...], np.ndarray]:
    """What `inspect` lists, by its components, in its order."""
    found = json.loads(run("inspect", plate, "--json").stdout)["slices"]
    return {
        tuple(item[c] or "" for c in COMPONENTS): tifffile.imread(
            plate / item["path"], key=item["page"]
        )
        for item in found
    }


@pytest.mark.parametrize("sigma", [1.0, 3.5])
@pytest.mark.parametrize("name", SETS)
def test_c_gaussian_then_python(
    run: Run, data: Path, tmp_path: Path, name: str, sigma: float
):
    """float64 gaussian_filter, rounded half to even: within 1 count, 99.9 %
    exactly, plane by plane."""
    smooth = native("smooth", "gaussian", parameters={"sigma": sigma})
    out = run_steps(run, tmp_path, data / name, smooth, python("same"))
    got = images(out)
    sources = slices(run, data / name)
    assert got.keys() == sources.keys()
    n_same = n_pixels = 0
    for key, source in sources.items():
        due = ndimage.gaussian_filter(
            source.astype(np.float64), sigma, mode="reflect", truncate=4
        )
        due = np.rint(due).astype(np.int64)
        assert got[key].dtype == source.dtype
        assert np.abs(got[key] - due).max() <= 1
        n_same += int((got[key] == due).sum())
        n_pixels += due.size
    assert n_same >= 0.999 * n_pixels


@pytest.mark.parametrize("name", [*SETS, "cellomics_sites"])
def test_nuclei_as_scikit_image(
    run: Run, data: Path, tmp_path: Path, name: str
):
    """pipelines/nuclei.json: every label image, count and measurement."""
    plate, folder = data / name, tmp_path / "out"
    pipeline = ROOT / "pipelines/nuclei.json"
    out = Out(folder, run("run", pipeline, plate, "-o", folder))
    stacks = defaultdict(list)
    for key, source in slices(run, plate).items():
        stacks[key[:-1]].append(source)
    counts = defaultdict(int)
    labels = {key[:-1]: image for key, image in images(out).items()}
    rows = defaultdict(list)
    for row in out.table("nuclei"):
        rows[tuple(row.get(c, "") for c in COMPONENTS[:-1])].append(row)
    for key, planes in stacks.items():
        image = np.stack(planes).max(0)
        smooth = ndimage.gaussian_filter(image.astype(np.float64), 1)
        smooth = np.rint(smooth).astype(image.dtype)
        due = measure.label(smooth > filters.threshold_otsu(smooth))
        np.testing.assert_array_equal(labels[key], due)
        assert labels[key].dtype == np.uint32
        counts[key[:4]] += due.max()
        table = measure.regionprops_table(
            due, image, properties=("label", "area", "intensity_mean")
        )
        mine = rows.pop(key, [])
        assert [int(row["label"]) for row in mine] == list(table["label"])
        assert [int(row["area"]) for row in mine] == list(table["area"])
        # One column per channel; the other channels' are empty.
        mean = next(
            c for c in mine[0] if c.startswith("intensity_mean") and mine[0][c]
        )
        np.testing.assert_allclose(
            [float(row[mean]) for row in mine],
            table["intensity_mean"],
            rtol=1e-12,
        )
    assert not rows
    for row in out.table("images"):
        key = tuple(row.get(c, "") for c in COMPONENTS[:4])
        assert row["status"] == "done"
        assert int(row["count_nuclei"]) == counts.pop(key)
    assert not counts


def test_tables_beside_images(run: Run, data: Path, tmp_path: Path):
    """A C projection, then a function that returns a stack and a table."""
    plate = data / "imagexpress_exported"
    out = run_steps(
        run,
        tmp_path,
        plate,
        native("project", "project", parameters={"method": "max"}),
        python("far", tables=["peaks"]),
    )
    peaks = {
        tuple(row.get(c, "") for c in COMPONENTS): int(row["peak"])
        for row in out.table("peaks")
    }
    got = {key: int(image.max()) for key, image in images(out).items()}
    assert len(got) == 12
    assert peaks == got
