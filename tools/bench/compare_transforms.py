# SPDX-License-Identifier: Apache-2.0
"""Compares the processor time of each transform with a Python peer's, on an image of the same size and machine.

  ./bazelw build //ssl/data/transforms:bench_transforms
  python3 tools/bench/compare_transforms.py --python VENV/bin/python

The two programs run in turn, `--runs` times each; a row has the medians of an operation. Both print lines of
"12.3 us  NAME", and a name that one of them lacks has no ratio. Standard library only; the peer says what VENV needs.
"""
import argparse
import pathlib
import re
import statistics
import subprocess

import compare_swav

OURS = "bazel-bin/ssl/data/transforms/bench_transforms"
RESULT = re.compile(r"^ *(?P<microseconds>[\d.]+) us  (?P<name>.+)$", re.MULTILINE)


def read_times(output):
    """Microseconds by name, in the order of the lines."""
    return {match["name"]: float(match["microseconds"]) for match in RESULT.finditer(output)}


def medians(runs):
    return {name: statistics.median(run[name] for run in runs) for name in runs[0]}


def report(ours, peer):
    """A row for each of our operations; ratios above 1 are in our favour."""
    ours, peer = medians(ours), medians(peer)
    width = max(map(len, ours)) + 2
    lines = [f"{'microseconds of one thread':{width}}{'ours':>10}{'peer':>10}{'peer/ours':>11}"]
    for name, own in ours.items():
        lines.append(f"{name:{width}}{own:10.1f}" + (f"{peer[name]:10.1f}{peer[name] / own:11.1f}" if name in peer else ""))
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--peer", default=pathlib.Path(__file__).with_name("peer_transforms.py"), help="the peer's script")
    parser.add_argument("--python", required=True, help="Python that has the peer's packages")
    parser.add_argument("--runs", type=int, default=5)
    args = parser.parse_args()
    print(compare_swav.machine(), flush=True)
    commands = ([OURS], [args.python, str(args.peer)])
    runs = [[read_times(subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE).stdout)
             for command in commands] for _ in range(args.runs)]
    print(report(*zip(*runs)))


if __name__ == "__main__":
    main()
