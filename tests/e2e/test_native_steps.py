"""C steps against NumPy, SciPy and scikit-image.

Steps are called through tests/tools/step_run.c, on the real images and on
small ones with a trap in them; the last tests go through the program.
"""

import csv
import json
import os
import subprocess
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
from scipy import ndimage
from skimage import filters, measure

pytestmark = pytest.mark.native

ROOT = Path(__file__).resolve().parents[2]
TOOL = ROOT / os.environ.get("PF_BUILD", "build") / "tool_step_run"
Call = Callable[..., tuple[np.ndarray | None, dict[str, Any]]]

DTYPES = [
    "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64",
    "float16", "float32", "float64",
]  # fmt: skip


@pytest.fixture
def call(tmp_path: Path) -> Call:
    """call(NAME, stack, intensity=..., **parameters) -> result, report."""
    if not TOOL.is_file():
        pytest.fail(f"{TOOL} is not built")

    def call(
        name: str,
        stack: np.ndarray,
        intensity: np.ndarray | None = None,
        env: dict[str, str] | None = None,
        error: str | None = None,
        **parameters: Any,
    ) -> tuple[np.ndarray | None, dict[str, Any]]:
        (tmp_path / "params.json").write_text(json.dumps(parameters))
        (tmp_path / "in.raw").write_bytes(np.ascontiguousarray(stack).data)
        shape = [0] * (3 - stack.ndim) + list(stack.shape)
        args = [TOOL, f"native:{name}", "params.json", "in.raw"]
        args += [stack.dtype, *shape, "out.raw"]
        if intensity is not None:
            (tmp_path / "with.raw").write_bytes(
                np.ascontiguousarray(intensity).data
            )
            args += ["with.raw", intensity.dtype, len(intensity)]
        done = subprocess.run(
            [str(arg) for arg in args],
            cwd=tmp_path,
            env={**os.environ, **(env or {})},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        if error is not None:
            assert done.returncode != 0
            assert error in done.stderr
            return None, {}
        assert done.returncode == 0, done.stderr
        report = json.loads(done.stdout)
        if not report["dtype"]:
            return None, report
        raw = (tmp_path / "out.raw").read_bytes()
        result = np.frombuffer(raw, report["dtype"])
        return result.reshape(report["shape"]), report

    return call


def real_images(data: Path) -> list[np.ndarray]:
    """Planes of different sets: 8 and 16 bit, a worm, cells, a blank."""
    names = [
        "cellomics_sites/*O01f00d2.TIF",
        "imagexpress_timelapse/**/*_C07_s1_w1*.tif",
        "metaxpress_worms/*_w2_*.tif",
        "sbs_translocation/Channel2-01-A-01.tif",
        "bbbc022_multichannel/IXMtest_A02_s9.tif",
        "yokogawa_names_blank/*T0001F001L01A01Z01C01.tif",
    ]
    planes = []
    for name in names:
        image = tifffile.imread(sorted(data.glob(name))[0])
        plane = image.reshape(-1, *image.shape[-2:])[0]
        planes.append(plane.astype(plane.dtype.newbyteorder("=")))
    return planes


@pytest.fixture
def real_stack(data: Path) -> np.ndarray:
    """The ovule, uint16 or uint8 [Z,Y,X]; a corner of its first 12 planes."""
    image = tifffile.imread(data / "zstack_multipage" / "sample_ovule.tiff")
    stack = image.reshape(-1, *image.shape[-2:])[:12, :300, :301]
    return np.ascontiguousarray(stack)


def random_stack(dtype: str, shape: tuple[int, ...], seed: int = 1):
    """Values over the type's whole range; floats around zero."""
    rng = np.random.default_rng(seed)
    if np.dtype(dtype).kind == "f":
        return (rng.normal(size=shape) * 100).astype(dtype)
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max, shape, dtype, endpoint=True)


def half_even(values: np.ndarray, dtype: Any) -> np.ndarray:
    """`values` in an integer type as the engine casts them."""
    info = np.iinfo(dtype)
    return np.clip(np.rint(values), info.min, info.max).astype(dtype)


def assert_close_counts(got: np.ndarray, want: np.ndarray) -> None:
    """Within one count, and 99.9 % of the pixels exactly."""
    off = np.abs(got.astype(np.int64) - want.astype(np.int64))
    assert off.max() <= 1
    assert np.mean(off == 0) >= 0.999


# -- gaussian ---------------------------------------------------------------


@pytest.mark.parametrize("sigma", [0.6, 1.5, 7])
def test_gaussian_on_real_images(call: Call, data: Path, sigma: float):
    for image in real_images(data):
        got, report = call("gaussian", image[None], sigma=sigma)
        want = ndimage.gaussian_filter(image.astype(np.float64), sigma)
        assert got.dtype == image.dtype
        assert report["mode"] == "preserve"
        assert_close_counts(got[0], half_even(want, image.dtype))


@pytest.mark.parametrize(
    "mode", ["reflect", "nearest", "constant", "mirror", "wrap"]
)
@pytest.mark.parametrize(
    "shape", [(1, 1), (1, 9), (9, 1), (3, 4), (37, 41), (64, 64)]
)
@pytest.mark.parametrize("sigma", [0, 0.2, 1, 3.3, 20])
def test_gaussian_borders(call: Call, mode: str, shape: Any, sigma: float):
    stack = random_stack("float64", (2, *shape))
    got, _ = call("gaussian", stack, sigma=sigma, mode=mode)
    for plane, image in zip(got, stack, strict=True):
        want = ndimage.gaussian_filter(image, sigma, mode=mode)
        np.testing.assert_allclose(plane, want, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("in_place", [False, True])
def test_gaussian_types(call: Call, dtype: str, in_place: bool):
    stack = random_stack(dtype, (2, 33, 70))
    env = {"STEP_MAY_WRITE": "1"} if in_place else {}
    got, report = call("gaussian", stack, env=env, sigma=2, truncate=3.0)
    want = np.stack(
        [
            ndimage.gaussian_filter(p.astype(np.float64), 2, truncate=3.0)
            for p in stack
        ]
    )
    if np.dtype(dtype).kind == "f":
        assert got.dtype == ("float32" if dtype == "float16" else dtype)
        rtol = 1e-12 if dtype == "float64" else 1e-6
        np.testing.assert_allclose(got, want, rtol=rtol, atol=1e-4 * rtol)
    elif np.dtype(dtype).itemsize == 8:
        np.testing.assert_allclose(got.astype(float), want, atol=1e4)
    else:
        assert got.dtype == dtype
        assert_close_counts(got, half_even(want, dtype))
    assert report["in_place"] == (in_place and dtype != "float16")


def test_gaussian_in_place_with_wrap(call: Call):
    stack = random_stack("uint16", (2, 50, 40))
    env = {"STEP_MAY_WRITE": "1"}
    got, _ = call("gaussian", stack, env=env, sigma=2, mode="wrap")
    want = [
        ndimage.gaussian_filter(p.astype(float), 2, mode="wrap") for p in stack
    ]
    assert_close_counts(got, half_even(np.array(want), "uint16"))


def test_gaussian_keeps_a_constant_and_spreads_nan(call: Call):
    flat = np.full((1, 40, 40), 65535, "uint16")
    got, _ = call("gaussian", flat, sigma=4)
    assert (got == flat).all()
    stack = np.zeros((1, 21, 21), "float32")
    stack[0, 10, 10] = np.nan
    got, _ = call("gaussian", stack, sigma=1)
    want = ndimage.gaussian_filter(stack[0].astype(float), 1)
    assert (np.isnan(got[0]) == np.isnan(want)).all()


# -- project ----------------------------------------------------------------

PROJECTIONS = {
    "max": np.max,
    "min": np.min,
    "mean": np.mean,
    "std": np.std,
    "median": np.median,
}
SUMS = {"u1": "u4", "i1": "i4", "u2": "u4", "i2": "i4", "u4": "u8", "i4": "i8"}


@pytest.mark.parametrize("method", PROJECTIONS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("depth", [1, 2, 5, 60])
def test_project_types(call: Call, method: str, dtype: str, depth: int):
    stack = random_stack(dtype, (depth, 19, 130))
    got, report = call("project", stack, method=method)
    assert got.shape == (1, 19, 130)
    assert report["mode"] == "preserve"
    wide = stack.astype("float32") if dtype == "float16" else stack
    if method in ("max", "min"):
        assert got.dtype == (wide.dtype if depth > 1 else got.dtype)
        np.testing.assert_array_equal(got[0], PROJECTIONS[method](wide, 0))
        return
    assert got.dtype == ("float32" if wide.dtype == "float32" else "float64")
    want = PROJECTIONS[method](wide.astype(np.float64), 0)
    rtol = 3e-7 if got.dtype == "float32" else 1e-12
    # of the largest 64-bit integers the spread is that of the rounding
    atol = np.abs(wide.astype(np.float64)).max() * 1e-15
    np.testing.assert_allclose(got[0], want, rtol=rtol, atol=atol)


@pytest.mark.parametrize("dtype", DTYPES)
def test_project_sum(call: Call, dtype: str):
    kind = np.dtype(dtype)
    stack = random_stack(dtype, (7, 19, 130))
    if kind.itemsize == 8 and kind.kind != "f":
        stack //= 8
    got, report = call("project", stack, method="sum")
    want = SUMS.get(kind.kind + str(kind.itemsize))
    want = want or ("f8" if kind.kind == "f" else dtype)
    assert got.dtype == want
    assert report["mode"] == "native"
    np.testing.assert_array_equal(got[0], stack.sum(0, dtype=want))


def test_project_sum_that_overflows(call: Call):
    stack = np.full((2, 3, 3), 2**63, "uint64")
    call("project", stack, method="sum", error="overflows uint64")
    deep = np.zeros((65536, 1, 1), "uint16")
    call("project", deep, method="sum", error="may not fit uint32")


@pytest.mark.parametrize("method", ["sum", *PROJECTIONS])
def test_project_real_stack(call: Call, real_stack: np.ndarray, method: str):
    got, _ = call("project", real_stack, method=method)
    want = (np.sum if method == "sum" else PROJECTIONS[method])(real_stack, 0)
    np.testing.assert_allclose(got[0], want, rtol=1e-13)


@pytest.mark.parametrize("method", ["sum", *PROJECTIONS])
def test_project_nan(call: Call, method: str):
    stack = random_stack("float32", (4, 8, 9))
    stack[0, 1, 1] = stack[2, 2, 2] = stack[3, 3, 3] = np.nan
    got, _ = call("project", stack, method=method)
    assert np.isnan(got[0]).sum() == 3


def test_project_2d(call: Call):
    image = random_stack("uint16", (8, 9))
    for method in ("max", "mean"):
        got, _ = call("project", image, method=method)
        assert got.shape == (8, 9)
        assert (got == image).all()


# -- rescale_intensity ------------------------------------------------------


def rescaled(stack: np.ndarray, low: float, high: float) -> np.ndarray:
    """In float64, to the type's range (floats: 0..1)."""
    values = stack.astype(np.float64)
    finite = values[np.isfinite(values)]
    a, b = np.percentile(finite, [low, high])
    lo, hi = 0.0, 1.0
    if stack.dtype.kind != "f":
        lo, hi = np.iinfo(stack.dtype).min, np.iinfo(stack.dtype).max
    if a == b:
        return np.full(stack.shape, lo)
    return (np.clip(values, a, b) - a) / (b - a) * (float(hi) - lo) + lo


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("low", "high"), [(0, 100), (1.5, 99.7), (0, 0.1), (33.333, 33.334)]
)
def test_rescale_types(call: Call, dtype: str, low: float, high: float):
    stack = random_stack(dtype, (2, 43, 51))
    got, _ = call("rescale_intensity", stack, low=low, high=high)
    want = rescaled(stack, low, high)
    if np.dtype(dtype).kind == "f":
        np.testing.assert_allclose(got, want, atol=1e-6)
    elif np.dtype(dtype).itemsize == 8:
        assert np.abs(got.astype(float) - want).max() <= 2.0**64 * 1e-12
    else:
        assert_close_counts(got, half_even(want, dtype))


def test_rescale_real_images(call: Call, data: Path):
    for image in real_images(data):
        got, _ = call("rescale_intensity", image[None], low=0.5, high=99.5)
        want = half_even(rescaled(image, 0.5, 99.5), image.dtype)
        assert_close_counts(got[0], want)


def test_rescale_oddities(call: Call):
    flat = np.full((1, 5, 6), 300, "uint16")
    assert (call("rescale_intensity", flat)[0] == 0).all()
    one = np.full((1, 1, 1), 3, "float32")
    assert call("rescale_intensity", one)[0] == 0
    ramp = np.array([[[np.nan, 1, 2, 3, np.inf, -np.inf]]], "float32")
    got, _ = call("rescale_intensity", ramp)
    np.testing.assert_array_equal(got[0, 0], [np.nan, 0, 0.5, 1, 1, 0])
    none = np.full((1, 2, 2), np.nan, "float32")
    assert np.isnan(call("rescale_intensity", none)[0]).all()
    equal = random_stack("float64", (1, 100, 100))
    equal[0, :90] = 7
    got, _ = call("rescale_intensity", equal, low=2, high=99)
    np.testing.assert_allclose(got, rescaled(equal, 2, 99))


# -- flatfield --------------------------------------------------------------


def field(shape: tuple[int, int]) -> np.ndarray:
    """A vignette, float64."""
    y, x = np.mgrid[-1 : 1 : shape[0] * 1j, -1 : 1 : shape[1] * 1j]
    return 1000 * np.exp(-(x**2 + y**2) / 3)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("with_dark", [False, True])
def test_flatfield(call: Call, tmp_path: Path, dtype: str, with_dark: bool):
    stack = random_stack(dtype, (3, 45, 50))
    flat = field((45, 50))
    dark = np.full((45, 50), 17.0)
    (tmp_path / "flat.raw").write_bytes(flat.data)
    (tmp_path / "dark.raw").write_bytes(dark.data)
    files = {"image": "flat.raw"} | ({"dark": "dark.raw"} if with_dark else {})
    got, report = call("flatfield", stack, **files)
    want = stack.astype(np.float64)
    want = (want - (dark if with_dark else 0)) / (flat / flat.mean())
    small = np.dtype(dtype).itemsize <= 2 or dtype == "float32"
    assert got.dtype == ("float32" if small else "float64")
    assert report["mode"] == "preserve"
    rtol = 1e-7 if small else 1e-12
    np.testing.assert_allclose(got, want, rtol=rtol, atol=1e-9)


def test_flatfield_refusals(call: Call, tmp_path: Path):
    stack = random_stack("uint16", (1, 4, 5))
    flat = field((4, 5))
    (tmp_path / "good.raw").write_bytes(flat.data)
    flat[2, 2] = 0
    (tmp_path / "zero.raw").write_bytes(flat.data)
    call("flatfield", stack, error='needs the parameter "image"')
    call("flatfield", stack, image="no.raw", error="there is no file")
    call("flatfield", stack, image="zero.raw", error="zero, negative or not")


# -- threshold --------------------------------------------------------------


def otsu(stack: np.ndarray) -> np.ndarray:
    """scikit-image's mask as 0 and 255."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "looks like that of an RGB image"
        threshold = filters.threshold_otsu(stack)
    return np.where(stack > threshold, 255, 0).astype("uint8")


def test_otsu_on_real_images(call: Call, data: Path, real_stack: np.ndarray):
    for image in [*real_images(data), *real_stack[:2]]:
        for dtype in (image.dtype, "float32", "float64", "int32", "uint32"):
            stack = image[None].astype(dtype)
            got, report = call("threshold", stack)
            assert got.dtype == "uint8"
            assert report["mode"] == "native"
            np.testing.assert_array_equal(got, otsu(stack))


@pytest.mark.parametrize("dtype", [d for d in DTYPES if d != "float16"])
@pytest.mark.parametrize("seed", range(6))
def test_otsu_types(call: Call, dtype: str, seed: int):
    even = random_stack("int8", (2, 24, 30), seed) // 3 + 60
    bell = random_stack("float32", (1, 30, 31), seed).clip(-128, 127)
    if np.dtype(dtype).kind == "u":
        bell = np.abs(bell)
    for stack in (even, bell):
        stack = stack.astype(dtype)
        got, _ = call("threshold", stack)
        np.testing.assert_array_equal(got, otsu(stack))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_otsu_bins_of_floats(call: Call, dtype: str):
    # values on the edges of bins, and ranges that no step divides
    edges = np.linspace(0.1, 0.7, 257).astype(dtype)
    for stack in (edges, edges[::3] * 7 - 3, edges**2, -edges):
        got, _ = call("threshold", stack[None, None])
        np.testing.assert_array_equal(got, otsu(stack[None, None]))


def test_otsu_far_apart_integers(call: Call):
    # too many values for a bin each; scikit-image sees the same in few bins
    near = random_stack("uint8", (1, 30, 30)).astype("uint32")
    got, _ = call("threshold", near * 10_000_000)
    np.testing.assert_array_equal(got, otsu(near))


def test_threshold_constant_and_nan(call: Call):
    for value in (0, 9):
        flat = np.full((2, 3, 4), value, "uint16")
        assert (call("threshold", flat)[0] == 0).all()
    stack = np.array([[[np.nan, 0, 1, 10, 11, np.inf]]], "float32")
    got, _ = call("threshold", stack)
    assert got.tolist() == [[[0, 0, 0, 255, 255, 255]]]
    none = np.full((1, 2, 2), np.nan, "float64")
    assert (call("threshold", none)[0] == 0).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("in_place", [False, True])
def test_threshold_fixed(call: Call, dtype: str, in_place: bool):
    stack = random_stack(dtype, (2, 31, 67))
    env = {"STEP_MAY_WRITE": "1"} if in_place else {}
    got, report = call("threshold", stack, env=env, method="fixed", value=12.5)
    np.testing.assert_array_equal(got, np.where(stack > 12.5, 255, 0))
    assert report["in_place"] == (in_place and dtype == "uint8")


# -- label ------------------------------------------------------------------


def labels_of(stack: np.ndarray, connectivity: int) -> np.ndarray:
    """SciPy's labels; connectivity counts the axes that may change."""
    image = (stack[0] if len(stack) == 1 else stack) != 0
    rank = min(connectivity, image.ndim)
    structure = ndimage.generate_binary_structure(image.ndim, rank)
    return ndimage.label(image, structure)[0].reshape(stack.shape)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("depth", [1, 6])
@pytest.mark.parametrize(
    ("word", "axes"), [(4, 1), (6, 1), (8, 3), (18, 2), (26, 3), (None, 3)]
)
def test_label(call: Call, dtype: str, depth: int, word: Any, axes: int):
    rng = np.random.default_rng(3)
    chosen = {} if word is None else {"connectivity": word}
    if depth == 1:
        axes = min(axes, 2)
    for share in (0.3, 0.5, 0.7):
        stack = (rng.random((depth, 40, 67)) < share).astype(dtype)
        got, report = call("label", stack, **chosen)
        assert got.dtype == "uint32"
        assert report["mode"] == "native"
        np.testing.assert_array_equal(got, labels_of(stack, axes))


@pytest.mark.parametrize(
    "shape", [(1, 1, 1), (1, 1, 50), (1, 50, 1), (5, 1, 9), (9, 7, 1)]
)
@pytest.mark.parametrize("connectivity", [4, 8])
def test_label_thin(call: Call, shape: Any, connectivity: int):
    stack = np.random.default_rng(5).integers(0, 2, shape, "uint8")
    for image in (stack, np.zeros_like(stack), np.ones_like(stack)):
        got, _ = call("label", image, connectivity=connectivity)
        want = labels_of(image, 1 if connectivity == 4 else 3)
        np.testing.assert_array_equal(got, want)


def test_label_shapes_that_join_late(call: Call):
    # a comb and spirals: pieces that turn out to be one object far below
    comb = np.zeros((1, 60, 61), "uint8")
    comb[0, :, ::2] = 1
    comb[0, -1] = 1
    spiral = np.zeros((60, 60), "uint8")
    for i in range(0, 30, 2):
        spiral[i, i : 60 - i] = spiral[59 - i, i : 60 - i] = 1
        spiral[i : 60 - i, i] = spiral[i : 60 - i, 59 - i] = 1
        spiral[i + 1, i] = 0
    for stack in (comb, comb[:, ::-1], spiral[None], spiral.T[None]):
        for word, axes in ((4, 1), (8, 2)):
            got, _ = call("label", stack, connectivity=word)
            np.testing.assert_array_equal(got, labels_of(stack, axes))


def test_label_many_objects(call: Call):
    stack = np.zeros((1, 600, 600), "uint8")
    stack[0, ::2, ::2] = 1
    got, _ = call("label", stack)
    assert got.max() == 90_000
    np.testing.assert_array_equal(got, labels_of(stack, 2))


def test_label_real_images(call: Call, data: Path, real_stack: np.ndarray):
    for image in real_images(data):
        mask = otsu(image[None])
        got, _ = call("label", mask)
        np.testing.assert_array_equal(got, labels_of(mask, 2))
        np.testing.assert_array_equal(got[0], measure.label(mask[0] > 0))
    mask = otsu(real_stack)
    got, _ = call("label", mask)
    np.testing.assert_array_equal(got, measure.label(mask > 0))


def test_label_min_area(call: Call):
    rng = np.random.default_rng(8)
    stack = (rng.random((1, 80, 80)) < 0.35).astype("uint16")
    labels = labels_of(stack, 2)
    areas = np.bincount(labels.ravel())
    kept = [i for i in range(1, len(areas)) if areas[i] >= 6]
    want = np.zeros_like(labels)
    for number, old in enumerate(kept, 1):
        want[labels == old] = number
    env = {"STEP_MAY_WRITE": "1"}
    got, _ = call("label", stack, env=env, min_area=6)
    np.testing.assert_array_equal(got, want)


def test_label_nan_is_background(call: Call):
    stack = np.array([[[np.nan, 1, np.nan, -2, 0, np.inf]]], "float32")
    got, _ = call("label", stack)
    assert got.tolist() == [[[0, 1, 0, 2, 0, 3]]]


# -- measure ----------------------------------------------------------------

PLACES = ("label", "area", "centroid")
INTENSITIES = ("mean", "max", "min", "std")


def check_table(
    table: dict[str, Any],
    labels: np.ndarray,
    channels: dict[str, np.ndarray],
) -> None:
    """The table is regionprops_table's, columns FEATURE_CHANNEL."""
    image = labels[0] if len(labels) == 1 else labels
    want = measure.regionprops_table(image, properties=PLACES)
    for suffix, pixels in channels.items():
        pixels = pixels[0] if len(pixels) == 1 else pixels
        names = [f"intensity_{name}" for name in INTENSITIES]
        more = measure.regionprops_table(
            image, pixels.astype(np.float64), properties=names
        )
        want |= {f"{key}{suffix}": value for key, value in more.items()}
    assert table["columns"] == list(want)
    assert len(table["rows"]) == len(want["label"])
    if not table["rows"]:
        return
    for name, got in zip(want, zip(*table["rows"], strict=True), strict=True):
        np.testing.assert_allclose(got, want[name], rtol=1e-10, err_msg=name)


@pytest.mark.parametrize("dtype", DTYPES[:8])
@pytest.mark.parametrize("depth", [1, 4])
def test_measure_labels_of_any_integer(call: Call, dtype: str, depth: int):
    rng = np.random.default_rng(4)
    labels = rng.integers(0, 120, (depth, 30, 31)).astype(dtype)
    pixels = random_stack("uint16", labels.shape)
    result, report = call("measure", labels, pixels)
    assert result is None
    check_table(report["tables"][0], labels, {"": pixels})


@pytest.mark.parametrize("dtype", [d for d in DTYPES if d != "float16"])
def test_measure_intensities_of_any_type(call: Call, dtype: str):
    labels = np.random.default_rng(4).integers(0, 9, (1, 30, 31)) * 1000
    pixels = random_stack(dtype, labels.shape)
    _, report = call("measure", labels.astype("uint32"), pixels)
    check_table(report["tables"][0], labels, {"": pixels})


def test_measure_without_intensity_and_2d(call: Call):
    labels = np.random.default_rng(4).integers(0, 9, (1, 30, 31), "uint8")
    for stack in (labels, labels[0]):
        _, report = call("measure", stack)
        check_table(report["tables"][0], labels, {})


def test_measure_channels(call: Call):
    labels = np.random.default_rng(4).integers(0, 9, (1, 30, 31), "uint8")
    pixels = random_stack("uint16", (3, 30, 31))
    env = {"STEP_CHANNELS": "DNA,ER,Golgi"}
    _, report = call("measure", labels, pixels, env=env)
    names = {"_DNA": pixels[:1], "_ER": pixels[1:2], "_Golgi": pixels[2:]}
    check_table(report["tables"][0], labels, names)
    _, report = call("measure", labels, pixels)
    names = {f"_{i}": pixels[i : i + 1] for i in range(3)}
    check_table(report["tables"][0], labels, names)
    env = {"STEP_CHANNELS": "DNA,DNA,ER"}
    call("measure", labels, pixels, env=env, error="are channel DNA")


def test_measure_no_objects(call: Call):
    labels = np.zeros((1, 5, 5), "uint32")
    pixels = random_stack("uint16", (1, 5, 5))
    _, report = call("measure", labels, pixels, env={"STEP_CHANNELS": "DNA"})
    check_table(report["tables"][0], labels, {"_DNA": pixels})


def test_measure_labels_far_apart(call: Call):
    values = np.array([0, 1, 5, 3_999_999_999, 4_000_000_000], "uint32")
    labels = values[np.random.default_rng(4).integers(0, 5, (1, 40, 40))]
    pixels = random_stack("float32", labels.shape)
    _, report = call("measure", labels, pixels)
    # scikit-image would ask memory up to the largest label
    small = np.searchsorted(values, labels)
    table = report["tables"][0]
    assert [row[0] for row in table["rows"]] == values[1:].tolist()
    for row, number in zip(table["rows"], range(1, 5), strict=True):
        row[0] = number
    check_table(table, small, {"": pixels})


def test_measure_nan(call: Call):
    labels = np.array([[[1, 1, 2, 2]]], "uint8")
    pixels = np.array([[[1, np.nan, 3, 5]]], "float32")
    _, report = call("measure", labels, pixels)
    rows = report["tables"][0]["rows"]
    assert np.isnan(rows[0][4:]).all()
    assert rows[1][4:] == [4, 5, 3, 1]


def test_measure_real_images(call: Call, data: Path, real_stack: np.ndarray):
    for image in real_images(data):
        labels, _ = call("label", otsu(image[None]))
        _, report = call("measure", labels, image[None])
        check_table(report["tables"][0], labels, {"": image[None]})
    labels, _ = call("label", otsu(real_stack))
    _, report = call("measure", labels, real_stack)
    check_table(report["tables"][0], labels, {"": real_stack})


def test_measure_refusals(call: Call):
    labels = np.ones((2, 5, 5), "uint8")
    small = random_stack("uint16", (1, 5, 5))
    call("measure", labels, small, error="[2, 5, 5]")
    call("measure", labels.astype("float32"), error="integer labels")
    call("measure", -labels.astype("int16"), error="negative")


# -- what all share ---------------------------------------------------------


@pytest.mark.parametrize("name", ["gaussian", "project", "label", "threshold"])
def test_bool_is_uint8(call: Call, name: str):
    stack = random_stack("uint8", (3, 20, 21)) > 128
    got, _ = call(name, stack)
    want, _ = call(name, stack.astype("uint8"))
    np.testing.assert_array_equal(got, want)


def test_identity(call: Call):
    stack = random_stack("float16", (3, 4, 5))
    got, report = call("identity", stack)
    np.testing.assert_array_equal(got, stack)
    assert report["in_place"]


# -- through the program ----------------------------------------------------


@pytest.fixture
def out_of(run: Callable[..., Any], tmp_path: Path) -> Callable[..., Path]:
    """out_of(PLATE, STEP, ...) -> the run's OUT, for steps as in a pipeline.

    Steps are called a, b, c ...
    """

    def out_of(plate: Path, *steps: dict[str, Any], out: str = "out") -> Path:
        named = [
            {"name": name, **step}
            for name, step in zip("abcdefgh", steps, strict=False)
        ]
        pipeline = {"plateflow": 1, "name": "test", "steps": named}
        (tmp_path / "p.json").write_text(json.dumps(pipeline))
        run("run", "p.json", plate, "-o", out, "--progress", "none")
        return tmp_path / out

    return out_of


def step(name: str, **parameters: Any) -> dict[str, Any]:
    return {"function": f"native:{name}", "parameters": parameters}


def test_program_gaussian_and_flatfield(
    out_of: Callable[..., Path], data: Path, tmp_path: Path
):
    plate = data / "sbs_translocation"
    sources = sorted(plate.glob("*.tif"))
    shape = tifffile.imread(sources[0]).shape
    flat = field(shape).astype("float32")
    tifffile.imwrite(tmp_path / "flat.tif", flat)
    out = out_of(plate, step("gaussian", sigma=1.5))
    flattened = out_of(plate, step("flatfield", image="flat.tif"), out="flat")
    for path in sources:
        image = tifffile.imread(path)
        want = ndimage.gaussian_filter(image.astype(np.float64), 1.5)
        got = tifffile.imread(out / "images" / path.name)
        assert_close_counts(got, half_even(want, image.dtype))
        want = image / (flat.astype(np.float64) / flat.mean(dtype="f8"))
        got = tifffile.imread(flattened / "images" / path.name)
        assert_close_counts(got, half_even(want, image.dtype))


@pytest.mark.parametrize("method", ["sum", *PROJECTIONS])
def test_program_project(out_of: Callable[..., Path], data: Path, method: str):
    plate = data / "zstack_multipage"
    stack = tifffile.imread(plate / "sample_ovule.tiff")
    out = out_of(plate, step("project", method=method))
    (path,) = (out / "images").glob("*.tif")
    got = tifffile.imread(path)
    if method == "sum":
        assert got.dtype == "uint32"
        np.testing.assert_array_equal(got, stack.sum(0))
    else:
        want = half_even(PROJECTIONS[method](stack, 0), stack.dtype)
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("plate", ["sbs_translocation", "cellomics_sites"])
def test_program_nuclei(out_of: Callable[..., Path], data: Path, plate: str):
    labels = step("label", min_area=20) | {"result": "labels"}
    table = step("measure") | {
        "result": "none",
        "with": {"intensity": "a"},
        "tables": ["nuclei"],
    }
    out = out_of(
        data / plate,
        step("project"),
        step("gaussian", sigma=2),
        step("threshold"),
        labels,
        table,
    )
    with (out / "tables" / "nuclei.csv").open() as file:
        rows = list(csv.DictReader(file))
    n_objects = 0
    for path in sorted((data / plate).glob("*.[tT][iI][fF]")):
        image = tifffile.imread(path)
        blurred = ndimage.gaussian_filter(image.astype(np.float64), 2)
        mask = otsu(half_even(blurred, image.dtype)) > 0
        want = measure.label(mask)
        areas = np.bincount(want.ravel())
        want[areas[want] < 20] = 0
        want = measure.label(want > 0)
        (got,) = (out / "images").rglob(path.stem + ".*")
        np.testing.assert_array_equal(tifffile.imread(got), want)
        n_objects += want.max()
        features = measure.regionprops_table(
            want, image, properties=("area", "intensity_mean")
        )
        found = {
            (r["area"], round(float(value), 6))
            for r in rows
            for name, value in r.items()
            if name.startswith("intensity_mean") and value
        }
        for area, mean in zip(*features.values(), strict=True):
            assert (str(int(area)), round(float(mean), 6)) in found
    assert len(rows) == n_objects > 0
