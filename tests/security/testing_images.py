# SPDX-License-Identifier: Apache-2.0
"""Images made from a seed with the standard library alone, and damaged ones of each kind."""
import random
import struct
import zlib

# Kinds of damage, and how the data set calls them.
DAMAGES = {
    "truncated": "truncated",
    "zero_bytes": "empty",
    "bad_marker": "damaged",
    "wrong_extension": "unsupported",
    "huge_header": "too large",
}


def png(width, height, generator):
    return png_of(width, height, b"".join(b"\0" + generator.randbytes(3 * width) for _ in range(height)))


def png_of(width, height, rows):
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = _chunk(b"IHDR", header) + _chunk(b"IDAT", zlib.compress(rows)) + _chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + chunks


def damaged(kind, image, generator):
    if kind == "truncated":
        return image[:generator.randrange(len(image) // 3, 2 * len(image) // 3)]
    if kind == "zero_bytes":
        return b""
    if kind == "bad_marker":  # the header's chunk has another name, under a wrong checksum
        return image[:12] + b"IHDX" + image[16:]
    if kind == "wrong_extension":
        return b"GIF89a" + generator.randbytes(50)
    assert kind == "huge_header"
    return png_of(65535, 65535, b"\0" * 1000)


def write_folder(folder, count, damaged_of_each_kind, seed):
    """Two classes of small PNG files; the damaged ones are spread over them. Returns their number by kind's name."""
    generator = random.Random(seed)
    kinds = [kind for kind in DAMAGES for _ in range(damaged_of_each_kind)]
    kinds += [None] * (count - len(kinds))
    generator.shuffle(kinds)
    kinds[0], kinds[kinds.index("truncated")] = "truncated", kinds[0]  # the first one is read once more than the others
    for position, kind in enumerate(kinds):
        image = png(24, 20, generator)
        path = folder / ("a" if position < count // 2 else "b") / f"{position:04}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(image if kind is None else damaged(kind, image, generator))
    counts = {}
    for kind, name in DAMAGES.items():
        counts[name] = counts.get(name, 0) + damaged_of_each_kind
    return counts


def _chunk(name, content):
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))
