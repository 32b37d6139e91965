"""TIFF files in and out, compared with tifffile pixel by pixel.

The program tool_tiff_dump shows what engine/plate/tiff.h makes of a file.
Images are arrays [Y, X]; a file's pages are compared by their CRC-32.
"""

import json
import os
import struct
import subprocess
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile

ROOT = Path(__file__).resolve().parents[2]
TOOL = ROOT / os.environ.get("PF_BUILD", "build") / "tool_tiff_dump"
INTEGERS = [
    "uint8",
    "int8",
    "uint16",
    "int16",
    "uint32",
    "int32",
    "uint64",
    "int64",
]
FLOATS = ["float16", "float32", "float64"]
COMPRESSIONS = ["none", "lzw", "deflate", "zstd", "packbits"]
REFUSED = {"NikonTIF.tif": "RGB", "he1_axes_cyx.tiff": "RGB"}


def call(*args: object) -> list[dict[str, Any]]:
    """Run the tool; nothing may reach its stderr, not even from libtiff."""
    if not TOOL.is_file():
        pytest.fail(f"{TOOL} is not built; PF_BUILD names the build folder")
    done = subprocess.run(
        [str(TOOL), *(str(arg) for arg in args)],
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == b""
    return [json.loads(line) for line in done.stdout.splitlines()]


def image(dtype: str, shape: tuple[int, ...] = (75, 53)) -> np.ndarray:
    """Smooth values with some noise, over much of the type's range."""
    rng = np.random.default_rng(len(dtype))
    values = np.add.outer(np.arange(shape[-2]), np.arange(shape[-1])) * 1.5
    values = values + rng.integers(0, 9, shape)
    if dtype == "bool":
        return values.astype(np.int64) % 3 == 0
    if np.dtype(dtype).kind == "i":
        values = values - 90
    return values.astype(np.int64).astype(dtype)


def crc(pixels: np.ndarray) -> int:
    native = pixels.astype(pixels.dtype.newbyteorder("="))
    return zlib.crc32(np.ascontiguousarray(native).tobytes())


def check_page(page: dict[str, Any], pixels: np.ndarray) -> None:
    assert page["dtype"] == pixels.dtype.newbyteorder("=").name
    assert page["shape"] == list(pixels.shape)
    assert page["crc"] == crc(pixels)


def tiff_cases() -> list[tuple[str, dict[str, Any]]]:
    """All combinations of type, byte order, layout and compression."""
    cases = []
    for dtype in [*INTEGERS, *FLOATS, "bool"]:
        for order in "<>":
            for layout in (
                {},
                {"rowsperstrip": 7},
                {"tile": (16, 32)},
                {"bigtiff": True, "rowsperstrip": 1},
            ):
                for compression in COMPRESSIONS:
                    # tifffile packs bits of whole strips only.
                    if dtype == "bool" and compression == "packbits":
                        continue
                    options = {"byteorder": order, **layout}
                    if compression != "none":
                        options["compression"] = compression
                    cases.append((dtype, options))
                    if (
                        compression in ("lzw", "deflate", "zstd")
                        and dtype != "bool"
                    ):
                        cases.append((dtype, {**options, "predictor": 2}))
                        if dtype in FLOATS:
                            cases.append((dtype, {**options, "predictor": 3}))
    return cases


def test_reads_what_tifffile_writes(tmp_path: Path) -> None:
    written = []
    for i, (dtype, options) in enumerate(tiff_cases()):
        pixels = image(dtype)
        path = tmp_path / f"{i}.tif"
        try:
            tifffile.imwrite(path, pixels, photometric="minisblack", **options)
        except (NotImplementedError, ValueError):
            continue  # tifffile cannot write this combination
        written.append((path, pixels, options))
    assert len(written) > 600
    dumps = call("pages", *(path for path, _, _ in written))
    for (path, pixels, options), dump in zip(written, dumps, strict=True):
        assert "error" not in dump, (dump, pixels.dtype, options)
        assert dump["n_pages"] == 1
        check_page(dump["pages"][0], pixels)
        assert crc(tifffile.imread(path)) == crc(pixels)


def test_pages_and_imagej(tmp_path: Path) -> None:
    stack = image("uint16", (2, 3, 4, 40, 30))
    path = tmp_path / "hyperstack.tif"
    tifffile.imwrite(path, stack, imagej=True, metadata={"axes": "TZCYX"})
    (dump,) = call("pages", path)
    assert dump["n_pages"] == 24
    assert dump["imagej"] == [4, 3, 2]
    for page, pixels in zip(
        dump["pages"], stack.reshape(-1, 40, 30), strict=True
    ):
        check_page(page, pixels)


def test_white_is_zero_and_fill_order(tmp_path: Path) -> None:
    """Values as they are in the file, as tifffile gives them."""
    for name, options, dtype in [
        ("white8", {"photometric": "miniswhite"}, "uint8"),
        ("white1", {"photometric": "miniswhite"}, "bool"),
    ]:
        path = tmp_path / f"{name}.tif"
        tifffile.imwrite(path, image(dtype), **options)
        (dump,) = call("pages", path)
        check_page(dump["pages"][0], tifffile.imread(path))
    # FillOrder 2: the bits of each byte, lowest first.
    for dtype in ("bool", "uint8", "uint16"):
        path = tmp_path / f"fill_{dtype}.tif"
        tifffile.imwrite(
            path,
            image(dtype),
            photometric="minisblack",
            extratags=[(266, 3, 1, 2, True)],
        )
        (dump,) = call("pages", path)
        check_page(dump["pages"][0], tifffile.imread(path))


def test_gray_palette(tmp_path: Path) -> None:
    pixels = image("uint8")
    ramp = np.arange(256, dtype=np.uint16) * 257
    other = ramp.copy()
    other[7] = 3
    for name, colormap, text in [
        ("gray", [ramp, ramp, ramp], None),
        ("half", [ramp // 2, ramp // 2, ramp // 2], None),
        ("falling", [ramp[::-1], ramp[::-1], ramp[::-1]], "palette"),
        ("coloured", [ramp, ramp // 2, ramp], "palette"),
        ("bent", [other, other, other], "palette"),
    ]:
        path = tmp_path / f"{name}.tif"
        tifffile.imwrite(
            path, pixels, photometric="palette", colormap=np.array(colormap)
        )
        (dump,) = call("pages", path)
        if text is None:
            check_page(dump["pages"][0], pixels)
        else:
            assert text in dump["error"]


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_tifffile_reads_what_we_write(
    tmp_path: Path, compression: str
) -> None:
    for dtype in [*INTEGERS, *FLOATS, "bool"]:
        for predictor in "01":
            for shape in [(75, 53), (1, 1), (700, 301)]:
                pixels = image(dtype, shape)
                source, out = tmp_path / "in.tif", tmp_path / "out.tif"
                tifffile.imwrite(
                    source,
                    pixels,
                    photometric="minisblack",
                    resolution=(15503.875, 7000.25),
                    resolutionunit=3,
                    description="an image",
                    metadata=None,
                )
                (done,) = call("copy", source, 0, out, compression, predictor)
                assert "error" not in done, (done, dtype, predictor)
                assert done["n_bytes"] == out.stat().st_size
                check_written(out, pixels, compression, predictor)
                assert sorted(p.name for p in tmp_path.iterdir()) == [
                    "in.tif",
                    "out.tif",
                ]


def check_written(
    path: Path, pixels: np.ndarray, compression: str, predictor: str
) -> None:
    expected = pixels.astype(np.uint8) if pixels.dtype == bool else pixels
    with tifffile.TiffFile(path) as file:
        (page,) = file.pages
        read = page.asarray()
        assert read.dtype == expected.dtype
        np.testing.assert_array_equal(read, expected)
        assert page.tags["XResolution"].value[0] / page.tags[
            "XResolution"
        ].value[1] == pytest.approx(15503.875, rel=1e-6)
        assert page.tags["YResolution"].value[0] / page.tags[
            "YResolution"
        ].value[1] == pytest.approx(7000.25, rel=1e-6)
        assert page.tags["ResolutionUnit"].value == 3
        assert page.description == "an image"
        names = {"none": "NONE", "deflate": "ADOBE_DEFLATE"}
        assert page.compression.name == names.get(
            compression, compression.upper()
        )
        wanted = 1
        if predictor == "1" and compression in ("lzw", "deflate", "zstd"):
            wanted = 3 if pixels.dtype.kind == "f" else 2
        assert page.predictor == wanted


META = (
    '<MetaData>\n<prop id="Description" type="string" value="x"/>\n</MetaData>'
)
DESCRIPTIONS = [
    (META, META),
    ("ImageJ=1.53c\nimages=1\nmin=1.0\n", "ImageJ=1.53c\nimages=1\nmin=1.0\n"),
    (
        "ImageJ=1.53c\nimages=6\nchannels=3\nslices=2\nhyperstack=true\nunit=um\nmin=1.0\n",
        "ImageJ=1.53c\nunit=um\nmin=1.0\n",
    ),
    (
        "SCIFIO=0.43\naxes=X,Y,Z\nimages=32\nunit=um\n",
        "SCIFIO=0.43\nunit=um\n",
    ),
    ('{"shape": [3, 75, 53]}', ""),
    ("shape=(3, 75, 53)", ""),
    ('<?xml version="1.0"?><!-- x --><OME xmlns="u"><Image/></OME>', ""),
    ("\n<ome:OME/>", ""),
    ("<OMEGA/>", "<OMEGA/>"),
]


@pytest.mark.parametrize(("before", "after"), DESCRIPTIONS)
def test_descriptions(tmp_path: Path, before: str, after: str) -> None:
    source, out = tmp_path / "in.tif", tmp_path / "out.tif"
    pixels = image("uint16")
    tifffile.imwrite(source, pixels, description=before, metadata=None)
    call("copy", source, 0, out, "none", 0)
    with tifffile.TiffFile(out) as file:
        assert file.pages[0].description == after.strip()
        np.testing.assert_array_equal(file.asarray(), pixels)


def test_refused_colours_and_compressions(tmp_path: Path) -> None:
    rgb = np.zeros((16, 16, 3), np.uint8)
    cases: list[tuple[str, np.ndarray, dict[str, Any], str]] = [
        ("rgb", rgb, {"photometric": "rgb"}, "RGB (3 samples each)"),
        (
            "planar",
            np.zeros((3, 16, 16), np.uint8),
            {"photometric": "rgb", "planarconfig": "separate"},
            "RGB",
        ),
        (
            "two",
            np.zeros((2, 16, 16), np.uint8),
            {"photometric": "minisblack", "planarconfig": "separate"},
            "2 samples",
        ),
        (
            "complex",
            np.zeros((16, 16), np.complex64),
            {},
            "complex floats of 64 bits",
        ),
        (
            "jpeg",
            np.zeros((16, 16), np.uint8),
            {"compression": "jpeg", "photometric": "minisblack"},
            "compression 7 (JPEG) is not read",
        ),
        (
            "lzma",
            image("uint16"),
            {"compression": "lzma"},
            "compression 34925 (LZMA) is not read",
        ),
    ]
    for name, pixels, options, text in cases:
        path = tmp_path / f"{name}.tif"
        tifffile.imwrite(path, pixels, **options)
        (dump,) = call("pages", path)
        assert text in dump["error"], dump
        assert dump["error"].startswith(f"cannot read page 1 of {path}: ")
        assert dump["file"] == str(path)


def ifd_bytes(
    entries: list[tuple[int, int, int, int]], following: int = 0
) -> bytes:
    """A classic little-endian directory."""
    packed = b"".join(
        struct.pack("<HHII", *entry) for entry in sorted(entries)
    )
    return (
        struct.pack("<H", len(entries)) + packed + struct.pack("<I", following)
    )


def small_file(
    changes: dict[int, tuple[int, int, int] | None], following: int = 0
) -> bytes:
    """8 x 6 uint8 in one strip, with entries replaced, added or left out."""
    fields: dict[int, tuple[int, int, int] | None] = {
        256: (4, 1, 8),
        257: (4, 1, 6),
        258: (3, 1, 8),
        259: (3, 1, 1),
        262: (3, 1, 1),
        273: (4, 1, 8),
        277: (3, 1, 1),
        278: (4, 1, 6),
        279: (4, 1, 48),
        **changes,
    }
    entries = [(tag, *value) for tag, value in fields.items() if value]
    head = b"II*\0" + struct.pack("<I", 56) + bytes(range(1, 49))
    return head + ifd_bytes(entries, following)


TILE: dict[int, tuple[int, int, int] | None] = {
    273: None,
    278: None,
    279: None,
    324: (4, 1, 8),
    325: (4, 1, 48),
}
HOSTILE = [
    ("width 2^31", small_file({256: (4, 1, 2**31)}), "2147483648 x 6"),
    ("width 2^32-1", small_file({256: (4, 1, 2**32 - 1)}), "4294967295 x 6"),
    ("width 0", small_file({256: (4, 1, 0)}), "cannot read page 1"),
    (
        "40000 x 40000",
        small_file(
            {256: (4, 1, 40000), 257: (4, 1, 40000), 278: (4, 1, 40000)}
        ),
        "strip 1 of 1 is too short (48 bytes for 1600000000 bytes of pixels)",
    ),
    (
        "deflate 40000 x 40000",
        small_file(
            {
                256: (4, 1, 40000),
                257: (4, 1, 40000),
                278: (4, 1, 40000),
                259: (3, 1, 8),
            }
        ),
        "too short",
    ),
    (
        "60000 x 60000",
        small_file({256: (4, 1, 60000), 257: (4, 1, 60000)}),
        "more than 2147483648 a plane",
    ),
    (
        "short strip",
        small_file({279: (4, 1, 47)}),
        "strip 1 of 1 is too short",
    ),
    ("no strip", small_file({279: (4, 1, 0)}), "strip 1 of 1 is missing"),
    ("no place", small_file({273: (4, 1, 0)}), "strip 1 of 1 is missing"),
    (
        "cut strip",
        small_file({273: (4, 1, 150)}),
        "strip 1 of 1 is truncated (file has 170 of 198 bytes)",
    ),
    (
        "far strip",
        small_file({273: (4, 1, 2**32 - 1)}),
        "truncated (file has 170 of 4294967343 bytes)",
    ),
    ("rows a strip", small_file({278: (4, 1, 2)}), "needs 3 strips"),
    ("no counts", small_file({279: None}), "lists 1 places and 0 lengths"),
    ("no places", small_file({273: None}), "cannot read page 1"),
    ("two places", small_file({273: (4, 2, 8)}), "lists 2 places"),
    ("counts of type 11", small_file({279: (11, 1, 48)}), "tag 279"),
    ("12 bits", small_file({258: (3, 1, 12)}), "unsigned integers of 12 bits"),
    ("4 bits", small_file({258: (3, 1, 4)}), "unsigned integers of 4 bits"),
    ("float of 8 bits", small_file({339: (3, 1, 3)}), "floats of 8 bits"),
    ("RGB", small_file({262: (3, 1, 2)}), "RGB"),
    ("YCbCr", small_file({262: (3, 1, 6), 277: (3, 1, 3)}), "cannot read"),
    ("mosaic", small_file({262: (3, 1, 32803)}), "a colour filter mosaic"),
    ("photometric 99", small_file({262: (3, 1, 99)}), "interpretation 99"),
    ("samples", small_file({277: (3, 1, 9)}), "9 samples each"),
    ("palette without map", small_file({262: (3, 1, 3)}), "no gray ramp"),
    ("compression 4711", small_file({259: (3, 1, 4711)}), "4711 (unknown)"),
    ("no deflate", small_file({259: (3, 1, 8)}), "cannot be decoded"),
    ("no zstd", small_file({259: (3, 1, 50000)}), "cannot be decoded"),
    ("no lzw", small_file({259: (3, 1, 5)}), "cannot be decoded"),
    ("volume", small_file({32997: (4, 1, 2)}), "volume"),
    (
        "tile 0",
        small_file({**TILE, 322: (4, 1, 0), 323: (4, 1, 16)}),
        "cannot read page 1",
    ),
    (
        "tile 2^30",
        small_file({**TILE, 322: (4, 1, 2**30), 323: (4, 1, 2**30)}),
        "tiles of 1073741824 x 1073741824",
    ),
    (
        "tile short",
        small_file({**TILE, 322: (4, 1, 16), 323: (4, 1, 16)}),
        "tile 1 of 1 is too short (48 bytes for 256 bytes of pixels)",
    ),
    ("loop", small_file({}, following=56), "loop through page 1"),
    ("second page gone", small_file({}, following=2**31), "page 2"),
    ("cut directory", small_file({})[:-2], "truncated"),
    ("empty", b"", "the file is empty"),
    ("png", b"\x89PNG\r\n\x1a\n", "not a TIFF file (starts with 89 50 4e 47)"),
    ("one byte", b"I", "not a TIFF file (starts with 49)"),
    ("header", b"II*\0\x08", "header is truncated"),
    ("first page gone", b"II*\0\xff\0\0\0", "page 1"),
    ("no page", b"II*\0\0\0\0\0", "there is no such page"),
    ("no entries", b"II*\0\x08\0\0\0\0\0\0\0\0\0", "0 entries"),
    ("zeros", bytes(300), "not a TIFF file"),
]


@pytest.mark.parametrize(("name", "content", "text"), HOSTILE)
def test_hostile(tmp_path: Path, name: str, content: bytes, text: str) -> None:
    path = tmp_path / f"{name.replace(' ', '_')}.tif"
    path.write_bytes(content)
    (dump,) = call("pages", path)
    assert text in dump["error"], dump
    assert dump["error"].startswith("cannot read ")
    assert str(path) in dump["error"]
    assert dump["file"] == str(path)


@pytest.mark.parametrize("compression", COMPRESSIONS[1:])
@pytest.mark.parametrize("layout", [{"rowsperstrip": 30}, {"tile": (32, 16)}])
def test_data_that_end_early(
    tmp_path: Path, compression: str, layout: dict[str, Any]
) -> None:
    """A strip or tile that is cut in the file's own words is an error."""
    pixels = image("uint16", (60, 16)) | 1
    path = tmp_path / "whole.tif"
    tifffile.imwrite(path, pixels, compression=compression, **layout)
    with tifffile.TiffFile(path) as file:
        tag = file.pages[0].tags[325 if "tile" in layout else 279]
        counts, place, size = tag.value, tag.valueoffset, tag.count
    content, paths = path.read_bytes(), []
    form = "<I" if tag.dtype == 4 else "<H"
    assert size == 2
    for cut in range(1, counts[1]):
        paths.append(tmp_path / f"{cut}.tif")
        changed = bytearray(content)
        at = place + struct.calcsize(form)
        struct.pack_into(form, changed, at, counts[1] - cut)
        paths[-1].write_bytes(changed)
    dumps = call("pages", *paths)
    for dump in dumps:
        if "error" in dump:
            assert " 2 of 2 " in dump["error"]
        else:  # what was cut were bytes that say nothing of pixels
            check_page(dump["pages"][0], pixels)
    # The decoder may do without an end mark and a checksum, no more.
    assert sum("error" not in dump for dump in dumps) <= 8


def test_the_small_file_is_right(tmp_path: Path) -> None:
    """The hostile table fails for what it changes, not for what it is."""
    path = tmp_path / "good.tif"
    path.write_bytes(small_file({}))
    (dump,) = call("pages", path)
    check_page(
        dump["pages"][0], np.arange(1, 49, dtype=np.uint8).reshape(6, 8)
    )


def test_no_regular_files(tmp_path: Path) -> None:
    (tmp_path / "folder.tif").mkdir()
    os.mkfifo(tmp_path / "pipe.tif")
    (tmp_path / "loop.tif").symlink_to("loop.tif")
    for name, text in [
        ("folder.tif", "it is a folder"),
        ("pipe.tif", "it is a pipe"),
        ("loop.tif", "Too many levels of symbolic links"),
        ("none.tif", "No such file"),
        ("a\nb%s%n.tif", "a\\x0ab%s%n.tif: No such file"),
    ]:
        (dump,) = call("pages", tmp_path / name)
        assert text in dump["error"]


def test_hidden_imagej_planes(tmp_path: Path) -> None:
    """Planes that only the description knows are not lost silently."""
    path = tmp_path / "big.tif"
    text = b"ImageJ=1\nimages=3\nslices=3\0"
    at = len(small_file({270: (2, 1, 0)}))
    path.write_bytes(small_file({270: (2, len(text), at)}) + text + bytes(200))
    (dump,) = call("pages", path)
    assert "3 ImageJ planes in one page" in dump["error"]


def test_real_sets(data: Path) -> None:
    """Every TIFF of the real sets reads as tifffile reads it."""
    paths = sorted(
        path
        for path in data.rglob("*")
        if path.suffix.lower() in (".tif", ".tiff", ".c01")
    )
    assert len(paths) > 80
    for path, dump in zip(paths, call("pages", *paths), strict=True):
        if path.name in REFUSED:
            assert REFUSED[path.name] in dump["error"]
            continue
        if path.suffix.lower() == ".c01":
            assert "not a TIFF file" in dump["error"]
            continue
        assert "error" not in dump, dump
        with tifffile.TiffFile(path) as file:
            assert len(file.pages) == dump["n_pages"]
            for ours, theirs in zip(dump["pages"], file.pages, strict=True):
                check_page(ours, theirs.asarray())
                assert ours["description"].strip() == theirs.description
