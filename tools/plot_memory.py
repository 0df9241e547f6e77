# SPDX-License-Identifier: Apache-2.0
"""Draws curves of memory over time as an SVG file.

  bazel run //ssl/hooks:bench_memory_planner -- 1 2 /tmp/curves.csv
  python3 tools/plot_memory.py /tmp/curves.csv docs/memory.svg

The CSV file has a line of names, then (setting, milliseconds, mebibytes) in each line.
"""
import collections
import csv
import pathlib
import sys

WIDTH, HEIGHT = 760, 360
LEFT, RIGHT, TOP, BOTTOM = 60, 20, 20, 50
COLORS = ["#4c6a92", "#c8553d", "#588157", "#8d6a9f"]


def read_curves(path):
    curves = collections.defaultdict(list)
    with open(path, newline="") as file:
        for row in csv.DictReader(file):
            curves[row["setting"]].append((float(row["milliseconds"]), float(row["mebibytes"])))
    return curves


def step_of(largest):
    """A round distance between about five ticks."""
    unit = 10 ** (len(str(int(largest))) - 1)
    return next(unit * factor for factor in (0.2, 0.5, 1, 2) if largest / (unit * factor) <= 7)


def text(x, y, content, anchor="middle"):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{content}</text>'


def draw(curves):
    last = max(time for points in curves.values() for time, _ in points)
    most = 1.05 * max(memory for points in curves.values() for _, memory in points)

    def x_of(time):
        return LEFT + time / last * (WIDTH - LEFT - RIGHT)

    def y_of(memory):
        return HEIGHT - BOTTOM - memory / most * (HEIGHT - TOP - BOTTOM)

    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" '
             f'font-size="12">', f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>']
    for tick in range(int(most / step_of(most)) + 1):
        y = y_of(tick * step_of(most))
        parts.append(f'<line x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}" stroke="#ddd"/>')
        parts.append(text(LEFT - 8, y + 4, f"{tick * step_of(most):g}", "end"))
    for tick in range(int(last / step_of(last)) + 1):
        parts.append(text(x_of(tick * step_of(last)), HEIGHT - BOTTOM + 18, f"{tick * step_of(last):g}"))
    parts.append(text(WIDTH / 2, HEIGHT - 10, "milliseconds of a step"))
    parts.append(text(LEFT - 40, TOP - 6, "MiB", "start"))
    for index, (name, points) in enumerate(curves.items()):
        color = COLORS[index % len(COLORS)]
        line = " ".join(f"{x_of(time):.1f},{y_of(memory):.1f}" for time, memory in points)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{color}" stroke-width="1.8"/>')
        y = TOP + 16 * (index + 1)
        parts.append(f'<line x1="{WIDTH - 220}" y1="{y - 4}" x2="{WIDTH - 196}" y2="{y - 4}" stroke="{color}" '
                     f'stroke-width="3"/>')
        parts.append(text(WIDTH - 190, y, name, "start"))
    return "\n".join([*parts, "</svg>", ""])


def main():
    source, target = sys.argv[1:]
    pathlib.Path(target).write_text(draw(read_curves(source)))


if __name__ == "__main__":
    main()
