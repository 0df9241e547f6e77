# SPDX-License-Identifier: Apache-2.0
"""Cuts photographs into JPEGs of 500x375 pixels, a folder for each photograph, for measurements of loaders.

  VENV/bin/python tools/bench/make_photos.py OUT PHOTO.jpg [PHOTO.jpg ...] [--tiles 40]

Positions and scales are drawn by seed: the same photographs give the same files. Wallpaper packages of a Linux
distribution are a source of large photographs with free licences. Needs pillow.
"""
import argparse
import pathlib
import random

from PIL import Image

WIDTH, HEIGHT = 500, 375
QUALITY = 90


def cut(photo, folder, tiles, seed):
    """Returns how many tiles were written: none of a photograph that is smaller than a tile."""
    image = Image.open(photo).convert("RGB")
    largest = min(image.width / WIDTH, image.height / HEIGHT, 3.0)
    if largest < 1.0:
        return 0
    draw = random.Random(seed)
    folder.mkdir(parents=True, exist_ok=True)
    for tile in range(tiles):
        scale = draw.uniform(1.0, largest)
        width, height = int(WIDTH * scale), int(HEIGHT * scale)
        left, top = draw.randint(0, image.width - width), draw.randint(0, image.height - height)
        crop = image.crop((left, top, left + width, top + height)).resize((WIDTH, HEIGHT), Image.LANCZOS)
        crop.save(folder / f"{tile:03}.jpg", quality=QUALITY)
    return tiles


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("photos", nargs="+", type=pathlib.Path)
    parser.add_argument("--tiles", type=int, default=40)
    args = parser.parse_args()
    total = sum(cut(photo, args.out / photo.stem, args.tiles, seed) for seed, photo in enumerate(sorted(args.photos)))
    print(f"{total} JPEGs of {WIDTH}x{HEIGHT} in {args.out}")


if __name__ == "__main__":
    main()
