"""Hostile folders: each bad file is named, costs its own group, and leaves no
half output."""

import json
import os
import resource
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tifffile
from conftest import Run
from plates import MAX, PATTERN, Out, Work, hidden, native, ramp

pytestmark = pytest.mark.native

GOOD = ["A01", "A02", "B01"]
TAGS = [
    # tag, type (3 short, 4 long), value; one strip of 8 x 6 uint16
    (256, 4, 8),
    (257, 4, 6),
    (258, 3, 16),
    (259, 3, 1),
    (262, 3, 1),
    (273, 4, 200),
    (277, 3, 1),
    (278, 4, 6),
    (279, 4, 96),
]


def tiff(changes: dict[int, int | None] | None = None, after: int = 0):
    """A little-endian TIFF of one directory, some of its tags changed; the
    next directory is said to be at `after`."""
    rows = [
        (tag, kind, (changes or {}).get(tag, value))
        for tag, kind, value in TAGS
    ]
    rows = [row for row in rows if row[2] is not None]
    ifd = struct.pack("<H", len(rows))
    for tag, kind, value in rows:
        ifd += struct.pack("<HHII", tag, kind, 1, value)
    head = struct.pack("<2sHI", b"II", 42, 8) + ifd + struct.pack("<I", after)
    return head.ljust(200, b"\0") + bytes(96)


# What is written as the file of well A03, and what is said of it.
FILES = {
    "truncated": (tiff()[:-40], "truncated"),
    "truncated header": (tiff()[:30], "A03"),
    "magic alone": (b"II*\0", "A03"),
    "zero bytes": (b"", "empty"),
    "not a TIFF": (b"\x89PNG\r\n\x1a\n" + bytes(300), "not a TIFF"),
    "text": (b"hello\n", "not a TIFF"),
    "2^31 wide": (tiff({256: 1 << 31}), "2147483648"),
    "2^31 high": (tiff({257: 1 << 31}), "damaged"),
    "2^31 both": (tiff({256: 1 << 31, 257: 1 << 31}), "damaged"),
    "0 wide": (tiff({256: 0}), "A03"),
    "wide but short": (tiff({256: 100_000, 257: 100_000}), "A03"),
    "one row a strip, one strip": (tiff({278: 1}), "strip"),
    "no strips": (tiff({273: None, 279: None}), "A03"),
    "strip beyond the end": (tiff({273: 1 << 30}), "truncated"),
    "strip count of 2^32": (tiff({279: 0xFFFFFFFF}), "truncated"),
    "loop of directories": (tiff(after=8), "loop"),
    "directory beyond the end": (tiff(after=1 << 20), "behind the end"),
    "two pages": (None, "more pages"),
    "3 samples": (tiff({277: 3}), "A03"),
    "unknown compression": (tiff({259: 4242}), "compression"),
    "other size": (None, "A03"),
    "other type": (None, "A03"),
}
# Those that no first file of a channel can have: it says what is due.
BROKEN = [name for name, (content, _) in FILES.items() if content is not None]


def write(path: Path, name: str) -> None:
    content, _ = FILES[name]
    if content is not None:
        path.write_bytes(content)
    elif name == "two pages":
        tifffile.imwrite(path, np.zeros((2, 6, 8), "u2"))
    elif name == "other size":
        tifffile.imwrite(path, np.zeros((9, 9), "u2"))
    else:
        tifffile.imwrite(path, np.zeros((6, 8), "u1"))


@pytest.fixture
def work(tmp_path: Path, run: Run) -> Work:
    """Three good wells of one plane; a place for a bad A03."""
    work = Work(tmp_path, run)
    work.plate(GOOD, z=[1])
    work.pipeline(native("same", "gaussian"))
    return work


def check_good(out: Out, names: list[str]) -> None:
    """The good wells are done, and nothing else is there."""
    assert out.names == [f"{well}_s1_w1_z1.tif" for well in GOOD] + names
    for name in out.names:
        with tifffile.TiffFile(out.folder / "images" / name) as file:
            assert file.pages[0].asarray().shape == (6, 8)
    assert not hidden(out.folder)


def limited() -> None:
    """No hostile file makes the program ask for memory."""
    limit = 2 << 30
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


@pytest.mark.parametrize("name", FILES)
def test_bad_file_costs_its_group(work: Work, name: str):
    """Found when it is read: the first file of the channel is good."""
    bad = work.slice("A03", "1", "1", 1)
    write(bad, name)
    out = work.run("--workers", 2, status=4, timeout=20)
    _, said = FILES[name]
    assert bad.name in out.text
    assert said in out.text
    check_good(out, [])
    rows = {row["well"]: row for row in out.table("images")}
    assert rows["A03"]["status"] == "failed"
    assert bad.name in rows["A03"]["reason"]
    assert [rows[well]["status"] for well in GOOD] == ["done"] * 3
    (failure,) = out.json["failures"]
    assert failure["group"] == "well A03 site 1 channel 1"


@pytest.mark.parametrize("name", BROKEN)
def test_bad_file_first_of_its_channel(work: Work, name: str):
    """Left out with the reason, or failed; never more than its group."""
    first = work.slice("A00", "1", "1", 1)
    bad = work.slice("A01", "1", "1", 1)
    bad.rename(work.slice("C01", "1", "1", 1))
    write(bad, name)
    told = work.program("inspect", work.plate_folder, "--json", status=None)
    out = work.run("--workers", 2, status=None, timeout=20)
    assert out.done.returncode in (0, 4)
    assert bad.name in out.text + told.stdout
    assert out.names == [
        f"{well}_s1_w1_z1.tif" for well in ("A02", "B01", "C01")
    ]
    assert not hidden(out.folder)
    assert not first.exists()


@pytest.mark.parametrize("name", FILES)
def test_deep_finds_it(work: Work, name: str):
    """`inspect --deep` leaves it out, with the reason."""
    bad = work.slice("A03", "1", "1", 1)
    write(bad, name)
    pipeline = json.loads((work.folder / "pipeline.json").read_text())
    assert pipeline["plate"]["pattern"] == PATTERN
    status = 2 if name == "two pages" else 0  # z twice: the user must say
    done = work.program(
        "inspect", "--deep", work.plate_folder, "--json", status=status
    )
    if status:
        assert bad.name in done.stderr
        return
    told = json.loads(done.stdout)
    sizes = {(f["width"], f["height"], f["dtype"]) for f in told["formats"]}
    if FILES[name][0] is None:
        assert len(sizes) == 2
    else:
        (item,) = told["left_out"]
        assert item["path"] == bad.name
        assert item["reason"]
        assert sizes == {(8, 6, "uint16")}


def test_all_in_one_folder(work: Work):
    """Every bad file at once, a stack each, workers at work."""
    for i, name in enumerate(FILES):
        write(work.slice(f"D{i + 1:02}", "1", "1", 1), name)
    out = work.run("--workers", 4, status=4, timeout=60)
    check_good(out, [])
    rows = {row["well"]: row for row in out.table("images")}
    for i, name in enumerate(FILES):
        row = rows[f"D{i + 1:02}"]
        assert row["status"] == "failed", name
        assert f"D{i + 1:02}_s1" in row["reason"]
    assert out.json["groups"]["failed"] == len(FILES)


def test_bad_plane_of_a_stack(work: Work):
    """The whole stack fails; it is never made of what is left."""
    work.plate(["A03"], z=[1, 2, 3])
    work.plate(GOOD, z=[2, 3])
    write(work.slice("A03", "1", "1", 2), "truncated")
    work.pipeline(MAX)
    out = work.run(status=4)
    assert out.names == [f"{well}_s1_w1.tif" for well in GOOD]
    assert "A03_s1_w1_z2.tif" in out.text


NAMES = [
    # a name that the pattern takes, how people are shown it
    ("A03\n%s%n_s1_w1_z1.tif", "A03\\x0a%s%n_s1_w1_z1.tif"),
    ("A03\x1b[31m_s1_w1_z1.tif", "A03\\x1b[31m_s1_w1_z1.tif"),
]


@pytest.mark.parametrize(("name", "shown"), NAMES)
@pytest.mark.parametrize("bad", [False, True])
def test_names(work: Work, name: str, shown: str, bad: bool):
    """Newline, escape and %s reach nobody's terminal or format string."""
    path = work.plate_folder / name
    if bad:
        path.write_bytes(tiff()[:-40])
    else:
        tifffile.imwrite(path, ramp("A03", "1", "1", 1))
    out = work.run(status=None)
    told = work.program("inspect", "-v", work.plate_folder, status=None)
    text = out.text + told.stdout + told.stderr
    assert "\x1b" not in text
    assert shown in text or not bad
    assert len(out.names) in (3, 4)
    assert set(out.names) >= {f"{well}_s1_w1_z1.tif" for well in GOOD}
    assert out.done.returncode in (0, 4)
    assert not hidden(out.folder)


def test_not_utf8(work: Work):
    """Bytes that are no text are shown, and reports stay valid JSON."""
    path = os.fsencode(work.plate_folder) + b"/A03\xff_s1_w1_z1.tif"
    with open(path, "wb") as file:
        file.write(tiff()[:-40])
    out = work.run(status=None)
    assert out.done.returncode in (0, 4)
    json.loads((out.folder / "run.json").read_bytes())
    (out.folder / "tables/images.csv").read_bytes().decode()
    done = work.program("inspect", work.plate_folder, "--json", status=None)
    json.loads(done.stdout)


def odd_entry(work: Work, kind: str) -> str:
    """Something that is called like an image and is none; its name."""
    path = work.slice("A03", "1", "1", 1)
    if kind == "directory":
        path.mkdir()
        (path / "inside.txt").write_text("x")
    elif kind == "symlink loop":
        path.symlink_to(path.name)
    elif kind == "dangling symlink":
        path.symlink_to("nowhere.tif")
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder loop":
        (work.plate_folder / "sub").mkdir()
        (work.plate_folder / "sub/up").symlink_to("..")
        return "sub"
    elif kind == "device":
        path.symlink_to("/dev/zero")
    return path.name


@pytest.mark.parametrize(
    "kind",
    [
        "directory",
        "symlink loop",
        "dangling symlink",
        "fifo",
        "folder loop",
        "device",
    ],
)
def test_odd_entries(work: Work, kind: str):
    """Named with the reason; the program neither hangs nor recurses."""
    name = odd_entry(work, kind)
    told = work.program("inspect", "-v", work.plate_folder, timeout=20)
    out = work.run(status=None, timeout=20)
    assert out.done.returncode in (0, 4)
    check_good(out, [])
    assert name in told.stdout + told.stderr + out.text


@pytest.mark.parametrize("what", ["file", "folder"])
def test_unreadable(work: Work, what: str, program: Path):
    """No permission: a message with its name; run as a plain user."""
    nobody = 65534
    if os.getuid() == 0:
        drop = {"user": nobody, "group": nobody, "extra_groups": []}
        for path in [work.folder, *work.folder.parents]:
            if str(path).startswith("/tmp/") and path.stat().st_uid == 0:
                os.chmod(path, path.stat().st_mode | 0o055)
    else:
        drop = {}
    try_it = [str(program), "--version"]
    try:
        subprocess.run(try_it, check=True, capture_output=True, **drop)
    except (OSError, subprocess.SubprocessError):
        pytest.skip("the program cannot be run as a plain user here")
    bad = work.slice("A03", "1", "1", 1)
    if what == "file":
        tifffile.imwrite(bad, ramp("A03", "1", "1", 1))
        bad.chmod(0)
    else:
        bad = work.plate_folder / "locked"
        bad.mkdir()
        tifffile.imwrite(bad / "A04_s1_w1_z1.tif", ramp("A04", "1", "1", 1))
        bad.chmod(0)
    out = work.folder / "out"
    out.mkdir()
    out.chmod(0o777)
    done = subprocess.run(
        [
            program,
            "run",
            work.folder / "pipeline.json",
            work.plate_folder,
            "-o",
            out,
        ],
        capture_output=True,
        text=True,
        check=False,
        **drop,
    )
    told = subprocess.run(
        [program, "inspect", "-v", work.plate_folder],
        capture_output=True,
        text=True,
        check=False,
        **drop,
    )
    bad.chmod(0o755)
    text = done.stdout + done.stderr + told.stdout + told.stderr
    assert bad.name in text
    assert "ermission denied" in text
    assert done.returncode == (4 if what == "file" else 0)
    check_good(Out(out, done), [])


@pytest.mark.skipif(sys.platform != "linux", reason="needs RLIMIT_AS")
@pytest.mark.no_sanitizer
@pytest.mark.parametrize(
    "name", ["2^31 wide", "2^31 both", "wide but short", "strip count of 2^32"]
)
def test_no_memory_is_taken_on_trust(work: Work, program: Path, name: str):
    """A size in a header is believed only as far as the file goes."""
    write(work.slice("A03", "1", "1", 1), name)
    out = work.folder / "out"
    done = subprocess.run(
        [
            program,
            "run",
            work.folder / "pipeline.json",
            work.plate_folder,
            "-o",
            out,
            "--workers",
            "1",
        ],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=limited,
    )
    assert done.returncode == 4
    check_good(Out(out, done), [])
