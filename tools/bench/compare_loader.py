# SPDX-License-Identifier: Apache-2.0
"""Compares how many images a second this trainer's loader prepares with a Python peer, on the same files and machine.

  ./bazelw build //ssl/data/loader:bench_image_loader
  python3 tools/bench/compare_loader.py --python VENV/bin/python --data DIR --recipe swav

The two programs run in turn, `--runs` times each, and medians are compared, so that a slow spell of the machine hits
both. DIR has a folder of JPEGs for each class (make_photos.py makes one). A peer is a script that takes `DIR --recipe
swav|moco --workers N --images N` and prints "... images/s": peer_loader.py (torchvision, Pillow) or
peer_loader_albumentations.py (OpenCV). Memory is the peak of the summed PSS of a program's whole process tree. Standard
library only; the peers say what VENV needs.
"""
import argparse
import pathlib
import re

import compare_swav

OURS = "bazel-bin/ssl/data/loader/bench_image_loader"
RESULT = re.compile(r"(?P<rate>[\d.]+) images/s")
STATE = re.compile(r"(?P<growth>[-+][\d.]+) MB per 1,000 batches; (?P<allocations>[\d.]+) allocations per image")


def read_rate(output):
    """The last result line, or nothing."""
    rates = RESULT.findall(output)
    if not rates:
        return {}
    state = STATE.search(output)
    return {"rate": float(rates[-1]), **({key: float(value) for key, value in state.groupdict().items()} if state else {})}


def report(ours, peer):
    """The comparison as text; ratios above 1 are in our favour."""
    rate, peer_rate = compare_swav.median(ours, "rate"), compare_swav.median(peer, "rate")
    memory, peer_memory = compare_swav.median(ours, "pss"), compare_swav.median(peer, "pss")
    spread = ", ".join(f"{name} {min(r['rate'] for r in runs):.0f}-{max(r['rate'] for r in runs):.0f}"
                       for name, runs in (("ours", ours), ("peer", peer)))
    state = (f"; ours grew by {compare_swav.median(ours, 'growth'):.3f} MB per 1,000 batches and took "
             f"{compare_swav.median(ours, 'allocations'):.2f} allocations per image") if "growth" in ours[0] else ""
    return "\n".join([f"{'median of ' + str(len(ours)):16}{'ours':>10}{'peer':>10}{'ours/peer':>11}",
                      f"{'images/s':16}{rate:10.0f}{peer_rate:10.0f}{rate / peer_rate:11.2f}",
                      f"{'peak PSS MB':16}{memory:10.0f}{peer_memory:10.0f}{memory / peer_memory:11.2f}",
                      f"range of images/s: {spread}{state}"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--peer", default=pathlib.Path(__file__).with_name("peer_loader.py"), help="the peer's script")
    parser.add_argument("--python", required=True, help="Python that has the peer's packages")
    parser.add_argument("--data", required=True, help="folder of JPEGs")
    parser.add_argument("--recipe", choices=("swav", "moco"), default="swav")
    parser.add_argument("--workers", type=int, default=2, help="threads of ours, processes of the peer")
    parser.add_argument("--images", type=int, default=600, help="of the peer; ours prepares four times as many")
    parser.add_argument("--decode", choices=("exact", "fast"), default="exact", help="of ours: DATA.TRAIN.DECODE")
    parser.add_argument("--cache", choices=("none", "raw", "decoded"), default="none", help="of ours: DATA.TRAIN.CACHE")
    parser.add_argument("--runs", type=int, default=5)
    args = parser.parse_args()
    ours_command = [OURS, args.data, args.recipe, str(args.workers), str(4 * args.images), args.decode, args.cache]
    peer_command = [args.python, str(args.peer), args.data, "--recipe", args.recipe, "--workers", str(args.workers),
                    "--images", str(args.images)]
    print(report(*compare_swav.take_turns(args.runs, lambda: compare_swav.measure(ours_command, read_rate),
                                          lambda: compare_swav.measure(peer_command, read_rate), "rate", "images/s",
                                          digits=0)))


if __name__ == "__main__":
    main()
