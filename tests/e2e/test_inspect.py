"""`plateflow inspect --json` on every real image set."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import tifffile


class Expected(NamedTuple):
    """What a set holds: counts of values, of slices, of what is left out."""

    layout: str
    components: dict[str, list[str]]
    slices: int
    formats: list[tuple[int, int, str]]
    left_out: int
    first: str


def numbers(n: int, start: int = 1) -> list[str]:
    return [str(i) for i in range(start, start + n)]


SETS = {
    "imagexpress_exported": Expected(
        "imagexpress",
        {
            "plate": ["9987"],
            "well": ["B02", "B03"],
            "site": numbers(2),
            "timepoint": ["1"],
            "channel": numbers(3),
            "z": numbers(2),
        },
        24,
        [(256, 256, "uint16")],
        12 + 5,
        "9987_Plate_3434/TimePoint_1/ZStep_1/9987_B02_s1_w1.TIF",
    ),
    "imagexpress_timelapse": Expected(
        "imagexpress",
        {
            "plate": ["1697"],
            "well": ["C07"],
            "site": numbers(2),
            "timepoint": numbers(2),
            "channel": numbers(3),
        },
        12,
        [(256, 256, "uint16")],
        0,
        "1well-3C-2S-Zmix-T/2024-04-22/1697/TimePoint_1/1well-3C-2S-Zmix-T"
        "_C07_s1_w1D5F8F51A-3E85-4358-AE51-A465AF87386F.tif",
    ),
    "opera_phenix": Expected(
        "opera_phenix",
        {
            "plate": ["Test_Sample_BALL"],
            "well": ["C03"],
            "site": numbers(2),
            "timepoint": ["1"],
            "channel": ["1"],
            "z": ["1"],
        },
        2,
        [(1080, 1080, "uint16")],
        1,
        "Test_Sample_BALL/Images/r03c03f01p01-ch1sk1fk1fl1.tiff",
    ),
    "sbs_translocation": Expected(
        "sbs",
        {
            "plate": ["sbs_translocation"],
            "well": ["A01", "A02", "A12", "B01"],
            "channel": numbers(2),
        },
        8,
        [(640, 640, "uint8")],
        1,
        "Channel1-01-A-01.tif",
    ),
    "cellomics_human": Expected(
        "cellomics",
        {
            "plate": ["AS_09125_050116030001"],
            "well": ["D03"],
            "site": ["0"],
            "channel": numbers(3, 0),
        },
        3,
        [(512, 512, "uint8")],
        0,
        "AS_09125_050116030001_D03f00d0.tif",
    ),
    "cellomics_sites": Expected(
        "cellomics",
        {
            "plate": ["AS_09047_050428030001"],
            "well": ["O01", "O02"],
            "site": numbers(3, 0),
            "channel": ["2"],
        },
        6,
        [(512, 512, "uint8")],
        0,
        "AS_09047_050428030001_O01f00d2.TIF",
    ),
    "metaxpress_worms": Expected(
        "imagexpress",
        {
            "plate": ["1649_1109_0003_Amp5-1_B_20070424"],
            "well": ["C01"],
            "site": ["1"],
            "channel": numbers(2),
        },
        2,
        [(696, 520, "uint16")],
        0,
        "1649_1109_0003_Amp5-1_B_20070424_C01_w1_"
        "10E01AFB-34C4-416E-A9D3-51B90AB53728.tif",
    ),
    "bbbc022_multichannel": Expected(
        "imagexpress",
        {
            "plate": ["IXMtest"],
            "well": ["A02"],
            "site": ["9"],
            "channel": numbers(3),
        },
        3,
        [(695, 395, "uint16")],
        1,
        "IXMtest_A02_s9.tif",
    ),
    "zstack_multipage": Expected(
        "plain",
        {
            "plate": ["zstack_multipage"],
            "site": ["sample_ovule"],
            "z": numbers(32),
        },
        32,
        [(128, 128, "uint8")],
        0,
        "sample_ovule.tiff",
    ),
    "ome_tiff": Expected(
        "imagexpress",
        {
            "plate": ["IXMtest"],
            "well": ["A02"],
            "site": ["9"],
            "channel": numbers(3, 0),
        },
        3,
        [(695, 395, "uint16")],
        1,
        "IXMtest_A02_s9_C0.ome.tif",
    ),
    "yokogawa_names_blank": Expected(
        "cv8000",
        {
            "plate": ["CV8000-Minimal-DataSet-2C-3W-4S-FP2-stack"],
            "well": ["D08"],
            "site": numbers(2),
            "timepoint": ["1"],
            "channel": numbers(2),
            "z": numbers(4),
        },
        16,
        [(2000, 2000, "uint16")],
        5,
        "CV8000-Minimal-DataSet-2C-3W-4S-FP2-stack_D08_"
        "T0001F001L01A01Z01C01.tif",
    ),
}

Inspect = Callable[..., dict[str, Any]]


@pytest.fixture
def inspect(run: Callable[..., Any]) -> Inspect:
    """The report on a folder, parsed."""

    def call(folder: Path, *options: str) -> dict[str, Any]:
        done = run("inspect", folder, "--json", *options)
        report: dict[str, Any] = json.loads(done.stdout)
        return report

    return call


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("options", [(), ("--deep",)], ids=["names", "deep"])
def test_set(
    inspect: Inspect, data: Path, name: str, options: tuple[str, ...]
) -> None:
    expected = SETS[name]
    report = inspect(data / name, *options)
    values = {k: v["values"] for k, v in report["components"].items()}
    counts = {k: v["count"] for k, v in report["components"].items()}
    formats = [
        (f["width"], f["height"], f["dtype"]) for f in report["formats"]
    ]
    assert report["layout"] == expected.layout
    assert values == expected.components
    assert counts == {k: len(v) for k, v in values.items()}
    assert formats == expected.formats
    assert len(report["slices"]) == expected.slices
    assert len(report["left_out"]) == expected.left_out
    assert report["slices"][0]["path"] == expected.first
    assert report["incomplete"]["count"] == 0
    assert all(entry["reason"] for entry in report["left_out"])


@pytest.mark.parametrize("name", SETS)
def test_slices_are_there(inspect: Inspect, data: Path, name: str) -> None:
    """Each slice is a page of that size and type; no page is named twice."""
    seen = set()
    for entry in inspect(data / name)["slices"]:
        with tifffile.TiffFile(data / name / entry["path"]) as file:
            page = file.pages[entry["page"]]
            assert page.shape == (entry["height"], entry["width"])
            assert str(page.dtype) == entry["dtype"]
        seen.add((entry["path"], entry["page"]))
    assert len(seen) == SETS[name].slices


def test_left_out_has_every_other_file(inspect: Inspect, data: Path) -> None:
    for name in SETS:
        report = inspect(data / name)
        listed = {entry["path"] for entry in report["slices"]}
        listed |= {entry["path"] for entry in report["left_out"]}
        there = {
            str(path.relative_to(data / name))
            for path in (data / name).rglob("*")
            if path.is_file()
        }
        assert listed == there, name


def test_projections(inspect: Inspect, data: Path) -> None:
    left_out = inspect(data / "imagexpress_exported")["left_out"]
    folders = {
        Path(entry["path"]).parent.name
        for entry in left_out
        if "a projection" in entry["reason"]
    }
    assert folders == {"ZStep_0"}


def test_many_plates_in_one_tree(
    inspect: Inspect, data: Path, tmp_path: Path
) -> None:
    """Copies of a plate beside each other are two plates."""
    source = data / "imagexpress_exported" / "9987_Plate_3434"
    for name in ("first", "second"):
        (tmp_path / "tree" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "tree" / name).symlink_to(source)
    # The second link leads to the same folder, which is read once.
    report = inspect(tmp_path / "tree")
    assert report["components"]["plate"]["values"] == ["9987"]
    assert any("second link" in e["reason"] for e in report["left_out"])
    (tmp_path / "tree" / "second").unlink()
    for path in source.rglob("*.TIF"):
        copy = tmp_path / "tree" / "second" / path.relative_to(source)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(path.read_bytes())
    report = inspect(tmp_path / "tree")
    assert report["components"]["plate"]["values"] == ["first", "second"]
    assert len(report["slices"]) == 48


def test_oddities_are_named(run: Callable[..., Any], data: Path) -> None:
    done = run("inspect", data / "oddities", status=2)
    for name in ("NikonTIF.tif", "he1_axes_cyx.tiff", "iamac01file.c01"):
        assert name in done.stderr


def test_two_files_for_one_slice(
    run: Callable[..., Any], data: Path, tmp_path: Path
) -> None:
    image = data / "cellomics_human" / "AS_09125_050116030001_D03f00d0.tif"
    for name in ("p_A01_s1_w1.tif", "p_A1_s1_w1.tif"):
        (tmp_path / name).write_bytes(image.read_bytes())
    done = run("inspect", tmp_path, status=2)
    assert "p_A01_s1_w1.tif and p_A1_s1_w1.tif" in done.stderr


def test_text(run: Callable[..., Any], data: Path) -> None:
    text = run("inspect", data / "imagexpress_exported").stdout
    for part in ("36 of 36 TIFF names fit", "256 x 256 uint16", "B02, B03"):
        assert part in text
