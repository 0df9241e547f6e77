# SPDX-License-Identifier: Apache-2.0
"""Writes the golden files of this folder: what Pillow and OpenCV make of small images.

    python3 -m pip install pillow==13.0.0 opencv-python-headless numpy
    python3 make_augment.py .        # writes index.json, augment.json, augment.safetensors

The files here were made by Pillow 13.0.0, OpenCV 5.0.0 and NumPy on x86-64. The tests read the files alone.
"""
import json
import pathlib
import struct
import sys

import cv2
import numpy as np
from PIL import Image, ImageOps

CATEGORY = "augment"
SAMPLINGS = {"nearest": Image.Resampling.NEAREST, "bilinear": Image.Resampling.BILINEAR, "bicubic": Image.Resampling.BICUBIC}


def waves(height, width, channels, phase):
    """An image of smooth and of sudden changes, the same on every machine."""
    y, x, c = np.meshgrid(np.arange(height), np.arange(width), np.arange(channels), indexing="ij")
    levels = (7 * x * y + 13 * x + 29 * y + 71 * c + 11 * phase) % 97 + 80 * ((x // 5 + y // 4 + c) % 2) + 17 * c
    return levels.astype(np.uint8)


def dull(height, width, channels):
    """Few levels, most of them dark: what equalisation is for."""
    return (waves(height, width, channels, 3) // 32 * 9 + 20).astype(np.uint8)


def to_pil(image):
    return Image.fromarray(image[:, :, 0] if image.shape[2] == 1 else image)


def to_array(image):
    array = np.asarray(image)
    return array[:, :, None] if array.ndim == 2 else array


class Set:
    """The cases, and the tensors that they name."""

    def __init__(self):
        self.cases = []
        self.tensors = {}

    def add(self, op, params, name, image, result):
        self.tensors[name] = image
        case = f"{op}_{len(self.cases):03d}"
        self.tensors[case] = result
        self.cases.append({"name": case, "op": op, "params": params, "inputs": {},
                           "steps": [{"inputs": {"image": name}, "outputs": {"image": {"tensor": case}}}]})

    def write(self, folder):
        header, blobs, offset = {}, [], 0
        for name, array in self.tensors.items():
            blob = np.ascontiguousarray(array).tobytes()
            header[name] = {"dtype": "U8", "shape": list(array.shape), "data_offsets": [offset, offset + len(blob)]}
            blobs.append(blob)
            offset += len(blob)
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 8)
        (folder / f"{CATEGORY}.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + b"".join(blobs))
        document = {"category": CATEGORY, "doc": "made by make_augment.py", "cases": self.cases}
        (folder / f"{CATEGORY}.json").write_text(json.dumps(document, indent=1) + "\n")
        index = {"categories": [{"category": CATEGORY, "file": f"{CATEGORY}.json",
                                 "tensors": f"{CATEGORY}.safetensors", "cases": len(self.cases)}]}
        (folder / "index.json").write_text(json.dumps(index) + "\n")


def add_geometry(golden, images):
    shears = [(1, 0.3, 0, 0, 1, 0), (1, -0.21, 0, 0, 1, 0), (1, 0, 0, 0.27, 1, 0), (1, 0, 0, 0, 1, -7.65),
              (1, 0, 4.35, 0, 1, 0), (0.8, 0.1, -2.5, -0.2, 1.1, 3.25)]
    for name in ("colour", "grey"):
        for sampling, number in SAMPLINGS.items():
            for matrix in shears:
                image = to_pil(images[name])
                fill = 128 if image.mode == "L" else (128, 128, 128)
                changed = image.transform(image.size, Image.Transform.AFFINE, matrix, resample=number, fillcolor=fill)
                golden.add("affine", {"matrix": list(map(float, matrix)), "sampling": sampling, "fill": 128}, name,
                           images[name], to_array(changed))
    for name in ("colour", "square"):
        for sampling, number in SAMPLINGS.items():
            for degrees in (0.0, 90.0, 180.0, 270.0, 45.0, 72.0, -30.0, 17.5):
                fill = 0 if sampling == "nearest" else 128
                changed = to_pil(images[name]).rotate(degrees, resample=number, fillcolor=(fill,) * 3)
                golden.add("rotate", {"degrees": degrees, "sampling": sampling, "fill": fill}, name, images[name],
                           to_array(changed))


def add_levels(golden, images):
    for name, image in images.items():
        golden.add("equalize", {}, name, image, to_array(ImageOps.equalize(to_pil(image))))
        golden.add("invert", {}, name, image, to_array(ImageOps.invert(to_pil(image))))
    for added in (0, 33, 110):
        table = [min(255, level + added) if level < 128 else level for level in range(256)]
        golden.add("solarize_add", {"added": added}, "colour", images["colour"],
                   to_array(to_pil(images["colour"]).point(table * 3)))


def add_lab(golden):
    levels = np.array([0, 1, 7, 9, 10, 11, 31, 64, 100, 127, 128, 180, 200, 254, 255], dtype=np.uint8)
    colours = np.stack(np.meshgrid(levels, levels, levels, indexing="ij"), axis=-1).reshape(len(levels), -1, 3)
    golden.add("lab", {}, "colours", colours, cv2.cvtColor(colours[:, :, ::-1].copy(), cv2.COLOR_BGR2LAB))


def add_larger_side(golden, images):
    for name in ("colour", "grey", "square"):
        for side in (16, 40):
            height, width = images[name].shape[:2]
            ratio = side / max(height, width)
            size = np.round(np.array((height, width)) * ratio).astype(int)
            changed = to_pil(images[name]).resize((int(size[1]), int(size[0])), Image.Resampling.BILINEAR)
            golden.add("resize_larger_side", {"side": side}, name, images[name], to_array(changed))


def main(folder):
    images = {"colour": waves(21, 30, 3, 0), "grey": waves(19, 14, 1, 1), "square": waves(17, 17, 3, 2),
              "dull": dull(24, 23, 3), "flat": np.full((5, 4, 1), 77, dtype=np.uint8)}
    golden = Set()
    add_geometry(golden, images)
    add_levels(golden, images)
    add_lab(golden)
    add_larger_side(golden, images)
    golden.write(pathlib.Path(folder))


if __name__ == "__main__":
    main(sys.argv[1])
