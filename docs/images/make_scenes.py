# SPDX-License-Identifier: Apache-2.0
"""Draws small scenes in three classes, by seed, with the standard library alone, for sheets such as docs/images/*.png:

  python3 docs/images/make_scenes.py photos
  ssl_main --config=folder config.DATA.TRAIN.DATA_PATHS=[photos] engine_name=preview config.PREVIEW.NUM_IMAGES=3
  ssl_main --config=folder config.DATA.TRAIN.DATA_PATHS=[photos] config.OPTIMIZER.num_epochs=6 \\
      config.NEIGHBORS.NUM_QUERIES=3 config.NEIGHBORS.TOPK=4
  cp runs/folder/preview.png runs/folder/neighbors.png docs/images
"""
import pathlib
import random
import struct
import sys
import zlib

WIDTH, HEIGHT = 200, 150
IMAGES = 30  # of each class


class Scene:
    """An image to draw on, white at first."""

    def __init__(self):
        self.rows = [bytearray(b"\xff" * 3 * WIDTH) for _ in range(HEIGHT)]

    def span(self, y, left, right, color):
        left, right = max(0, int(left)), min(WIDTH, int(right))
        if 0 <= y < HEIGHT and left < right:
            self.rows[y][3 * left:3 * right] = bytes(color) * (right - left)

    def sky(self, top, bottom, height):
        for y in range(height):
            self.span(y, 0, WIDTH, [round(a + (b - a) * y / height) for a, b in zip(top, bottom)])

    def box(self, left, top, right, bottom, color):
        for y in range(int(top), int(bottom)):
            self.span(y, left, right, color)

    def disc(self, x, y, radius, color):
        for row in range(y - radius, y + radius + 1):
            half = (radius ** 2 - (row - y) ** 2) ** 0.5
            self.span(row, x - half, x + half, color)

    def triangle(self, x, top, bottom, half_width, color):
        for y in range(int(top), int(bottom)):
            half = half_width * (y - top) / (bottom - top)
            self.span(y, x - half, x + half, color)

    def png(self):
        def chunk(kind, data):
            return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

        header = struct.pack(">IIBBBBB", WIDTH, HEIGHT, 8, 2, 0, 0, 0)
        pixels = zlib.compress(b"".join(b"\0" + bytes(row) for row in self.rows), 9)
        return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


def beach(draw):
    scene = Scene()
    scene.sky((110, 170, 235), (190, 220, 245), 75)
    scene.box(0, 75, WIDTH, 95, (40, 110, 150))
    scene.box(0, 95, WIDTH, HEIGHT, (228, 204, 150))
    scene.disc(draw.randrange(20, 180), draw.randrange(14, 45), 12, (255, 244, 150))
    for _ in range(draw.randrange(1, 4)):
        x = draw.randrange(20, 180)
        scene.triangle(x, 52, 80, 9, (250, 250, 250))
        scene.box(x - 11, 80, x + 11, 86, (170, 50, 40))
    return scene


def forest(draw):
    scene = Scene()
    scene.sky((160, 200, 225), (200, 225, 225), 80)
    scene.box(0, 80, WIDTH, HEIGHT, (90, 130, 60))
    for foot in sorted(draw.randrange(85, 130) for _ in range(draw.randrange(6, 12))):
        x, green = draw.randrange(5, 195), draw.randrange(70, 120)
        scene.box(x - 3, foot - 8, x + 3, foot, (100, 70, 40))
        for part in range(3):
            scene.triangle(x, foot - 55 + 14 * part, foot - 27 + 11 * part, 10 + 4 * part, (20, green, 40))
    return scene


def night(draw):
    scene = Scene()
    scene.sky((12, 12, 45), (40, 35, 85), HEIGHT)
    for _ in range(40):
        x, y = draw.randrange(WIDTH), draw.randrange(90)
        scene.span(y, x, x + 1, (220, 220, 200))
    scene.disc(draw.randrange(20, 180), draw.randrange(16, 45), 11, (240, 236, 210))
    x = 0
    while x < WIDTH:
        width, top = draw.randrange(16, 34), draw.randrange(70, 115)
        scene.box(x, top, x + width, HEIGHT, (25, 25, 38))
        for y in range(top + 6, HEIGHT - 5, 11):
            for left in range(x + 4, x + width - 5, 8):
                if draw.random() < 0.6:
                    scene.box(left, y, left + 4, y + 5, (245, 200, 100))
        x += width
    return scene


def main():
    for painter in (beach, forest, night):
        folder = pathlib.Path(sys.argv[1], painter.__name__)
        folder.mkdir(parents=True, exist_ok=True)
        for i in range(IMAGES):
            draw = random.Random(f"{painter.__name__} {i}")
            (folder / f"{i:03}.png").write_bytes(painter(draw).png())


if __name__ == "__main__":
    main()
