# SPDX-License-Identifier: Apache-2.0
"""Writes a part of Fashion-MNIST as image folders and file lists, for programs that read nothing else.

  VENV/bin/python tools/bench/make_pngs.py DIR OUT [--images 2000]

DIR holds the four IDX .gz files. OUT gets train/<class>/<index>.png, train_images.npy (paths) and train_labels.npy, and
the same for a quarter as many test images. Needs numpy, pillow.
"""
import argparse
import gzip
import pathlib

import numpy
from PIL import Image


def read(path, shape, offset):
    return numpy.frombuffer(gzip.decompress(path.read_bytes()), numpy.uint8, offset=offset).reshape(shape)


def write_split(data, out, split, prefix, count):
    images = read(data / f"{prefix}-images-idx3-ubyte.gz", (-1, 28, 28), 16)[:count]
    labels = read(data / f"{prefix}-labels-idx1-ubyte.gz", (-1,), 8)[:count].astype(numpy.int64)
    paths = []
    for index, (image, label) in enumerate(zip(images, labels)):
        path = out / split / str(label) / f"{index:05}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(path)
        paths.append(str(path))
    numpy.save(out / f"{split}_images.npy", numpy.array(paths))
    numpy.save(out / f"{split}_labels.npy", labels)
    print(f"{split}: {len(paths)} images of {len(set(labels.tolist()))} classes")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--images", type=int, default=2000)
    args = parser.parse_args()
    out = args.out.resolve()
    write_split(args.data, out, "train", "train", args.images)
    write_split(args.data, out, "test", "t10k", args.images // 4)


if __name__ == "__main__":
    main()
