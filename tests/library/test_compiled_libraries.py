"""`torch.ops.load_library`: a compiled library's operations where Python stands for them, and a refusal of any other file.

The numbers are what torchvision 0.28.0 computes on torch 2.13.0.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import retrograd as rg

X = rg.arange(2 * 2 * 5 * 6, dtype=rg.float32).sin().reshape(2, 2, 5, 6)
REGIONS = rg.tensor([[0.0, 0.5, 1.0, 4.2, 3.7], [1.0, -1.5, 0.0, 7.0, 2.5], [1.0, 2.0, 2.0, 2.5, 2.5]])
GRADIENT = rg.arange(24.0).cos().reshape(3, 2, 2, 2)
BOXES = rg.tensor(
    [[0.0, 0, 10, 10], [1.0, 1, 11, 11], [20.0, 20, 30, 30], [21.0, 21, 29, 29], [0.0, 0, 4, 4], [5.0, 5, 5, 5]]
)
SCORES = rg.tensor([0.5, 0.9, 0.3, 0.3, 0.2, 0.8])


@pytest.fixture(scope="module")
def vision(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("compiled") / "_C.so"
    path.write_bytes(b"\x7fELF torchvision::nms(Tensor dets, ")
    rg.ops.load_library(path)
    assert str(path) in rg.ops.loaded_libraries
    return rg.ops.torchvision


def test_a_library_that_nothing_stands_for_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.so"
    path.write_bytes(b"\x7fELF other::op(Tensor x) -> Tensor")
    with pytest.raises(OSError, match=r"Could not load this library: .*other.so\nHint: it was compiled for torch's C"):
        rg.ops.load_library(path)
    with pytest.raises(OSError, match=r"Could not load this library: .*absent.so"):
        rg.ops.load_library(tmp_path / "absent.so")
    assert str(path) not in rg.ops.loaded_libraries


def test_boxes_that_overlap_a_better_one_are_left_out(vision: Any) -> None:
    assert vision.nms(BOXES, SCORES, 0.5).tolist() == [1, 5, 2, 4]
    assert vision.nms(BOXES, SCORES, 0.05).tolist() == [1, 5, 2]
    assert vision.nms(BOXES[:0], SCORES[:0], 0.5).dtype == rg.int64


@pytest.mark.parametrize(
    ("boxes", "scores", "message"),
    [
        (BOXES[0], SCORES, "boxes should be a 2d tensor, got 1D"),
        (BOXES[:, :3], SCORES, "boxes should have 4 elements in dimension 1, got 3"),
        (BOXES, SCORES[None], "scores should be a 1d tensor, got 2D"),
        (BOXES, SCORES[:2], "same number of elements in dimension 0, got 6 and 2"),
        (BOXES.double(), SCORES, "dets should have the same type as scores"),
    ],
)
def test_wrong_boxes_are_refused(vision: Any, boxes: Any, scores: Any, message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        vision.nms(boxes, scores, 0.5)


def test_regions_are_averaged_between_places(vision: Any) -> None:
    made = vision.roi_align(X, REGIONS, 1.0, 2, 2, 2, False)
    expected = [0.6978, 0.2637, 0.4602, 0.5292, -0.3836, 0.8006, -0.6389, 0.6871, -0.4938, 0.788, -0.3324, 0.6989]
    expected += [0.2946, 0.0116, 0.4643, -0.2642, -0.8526, -0.5831, -0.8861, -0.6749, -0.4252, -0.7711, -0.308, -0.6967]
    assert made.shape == (3, 2, 2, 2)
    assert made.flatten().tolist() == pytest.approx(expected, abs=1e-4)
    # As many points in a bin as it has places, and half a place to the left.
    made = vision.roi_align(X, REGIONS, 0.75, 1, 2, -1, True)
    expected = [0.1859, 0.8253, -0.8046, 0.1497, -0.3817, 0.0934, 0.4225, -0.5548, -0.8307, -0.848, 0.336, 0.1577]
    assert made.flatten().tolist() == pytest.approx(expected, abs=1e-4)
    assert vision.roi_align(X.half(), REGIONS.half(), 1.0, 2, 2, 2, False).dtype == rg.float16
    grad = vision._roi_align_backward(GRADIENT, REGIONS, 1.0, 2, 2, 2, 2, 5, 6, 2, False).flatten()
    expected = [0.0062, 0.178, 0.1638, 0.0962, 0.066, 0.0, 0.0112, 0.3211]
    assert grad[6:14].tolist() == pytest.approx(expected, abs=1e-4)
    with pytest.raises(
        RuntimeError, match=r"'input' to have the same type as tensor for argument #2 'rois'; but type torch.F"
    ):
        vision.roi_align(X, REGIONS.double(), 1.0, 2, 2, 2, False)


def test_regions_are_pooled(vision: Any) -> None:
    most, places = vision.roi_pool(X, REGIONS, 1.0, 2, 2)
    expected = [0.9906, 0.6503, 0.9129, 0.9564, 0.2964, 0.9638, -0.2624, 0.9929]
    assert most.flatten()[:8].tolist() == pytest.approx(expected, abs=1e-4)
    assert places.dtype == rg.int32
    expected = [14, 15, 20, 27, 8, 9, 20, 28, 6, 11, 18, 17, 6, 5, 12, 17, 14, 15, 20, 21, 14, 15, 20, 21]
    assert places.flatten().tolist() == expected
    grad = vision._roi_pool_backward(GRADIENT, REGIONS, places, 1.0, 2, 2, 2, 2, 5, 6).flatten()
    expected = [0.1367, 0.0, 0.4081, -0.5477, 0.0, -0.7597, 0.0, 0.0, -1.0, -0.5328]
    assert grad[-18:-8].tolist() == pytest.approx(expected, abs=1e-4)


def test_convolutions_read_at_moved_places(vision: Any) -> None:
    weight = rg.arange(8.0).cos().reshape(2, 1, 2, 2)
    offset = rg.arange(320.0).sin().mul(2).reshape(2, 8, 4, 5)
    mask = rg.arange(160.0).cos().abs().reshape(2, 4, 4, 5)
    given = (X, weight, offset, mask, rg.tensor([0.1, 0.2]), 1, 1, 0, 0, 1, 1, 2, 1, True)
    made = vision.deform_conv2d(*given)
    expected = [0.337, 0.0018, -0.0233, 0.0867, -0.0713, 0.0162, 1.0739, -0.1865]
    assert made.flatten()[:8].tolist() == pytest.approx(expected, abs=1e-4)
    assert made.abs().sum().item() == pytest.approx(30.96, abs=1e-3)
    found = [(one.sum().item(), one.abs().sum().item()) for one in vision._deform_conv2d_backward(made, *given)]
    sums = [(8.668, 28.631), (12.397, 22.859), (0.381, 33.141), (20.715, 31.915), (17.318, 17.318)]
    assert found == [pytest.approx(one, abs=2e-3) for one in sums]


def test_what_is_left_out_says_so(vision: Any) -> None:
    with pytest.raises(NotImplementedError, match="torchvision::box_iou_rotated is compiled for torch's C"):
        vision.box_iou_rotated(BOXES, BOXES)
    assert vision._cuda_version() == -1
