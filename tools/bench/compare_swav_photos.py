# SPDX-License-Identifier: Apache-2.0
"""Compares SwAV on photographs, from files to updated weights, with a Python peer, on the same files and machine.

  ./bazelw build //ssl/tools:ssl_main
  python3 tools/bench/compare_swav_photos.py --python VENV/bin/python --data PHOTOS

ResNet-18, 2 crops of 96 and 4 of 48 pixels, batches of 64; the two programs run in turn, `--runs` times each, and
medians are compared. PHOTOS has a folder of JPEGs for each class (make_photos.py makes one). The share of data wait is
that of the time in which a step waited for its batch. Standard library only; the peer, peer_swav_photos.py beside this
file, says what VENV needs.
"""
import argparse
import pathlib
import tempfile

from compare_swav import (OURS_PRECISION, PEER_PRECISION, fill, measure, measure_by_clock, median, read_ours, read_peer,
                          take_turns)

BATCH_SIZE = 64  # of both
OURS = ["bazel-bin/ssl/tools/ssl_main", "--config=bench/swav_photos_peer", "config.DATA.TRAIN.DATA_PATHS=[{data}]",
        "config.OPTIMIZER.num_epochs={epochs}", "config.CHECKPOINT.DIR={run}"]
PEER = ["{data}", "--batch", str(BATCH_SIZE), "--steps", "{steps}"]


def epochs_of(steps, images):
    """How many epochs make at least so many steps."""
    steps_of_epoch = images // BATCH_SIZE
    return -(-steps // steps_of_epoch)


def report(ours, peer):
    """The comparison as text; ratios above 1 are in our favour."""
    lines = [f"{'median of ' + str(len(ours)):16}{'ours':>10}{'peer':>10}{'ratio':>8}"]
    rate, peer_rate = median(ours, "rate"), median(peer, "rate")
    memory, peer_memory = median(ours, "pss"), median(peer, "pss")
    lines.append(f"{'samples/s':16}{rate:10.1f}{peer_rate:10.1f}{rate / peer_rate:8.2f}")
    shares = [100 * median([{"share": run["wait"] / run["ms"]} for run in runs], "share") for runs in (ours, peer)]
    lines.append(f"{'data wait':16}{shares[0]:9.1f}%{shares[1]:9.1f}%")
    lines.append(f"{'peak PSS MB':16}{memory:10.0f}{peer_memory:10.0f}{peer_memory / memory:8.2f}")
    spread = ", ".join(f"{name} {min(r['rate'] for r in runs):.1f}-{max(r['rate'] for r in runs):.1f}"
                       for name, runs in (("ours", ours), ("peer", peer)))
    return "\n".join(lines + [f"range of samples/s: {spread}"])


def measure_ours(values, precision, more):
    with tempfile.TemporaryDirectory() as run:
        command = fill(OURS + OURS_PRECISION[precision], **values, run=run) + more
        return measure_by_clock(command, lambda lines: read_ours(run, lines, BATCH_SIZE))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--peer", default=pathlib.Path(__file__).with_name("peer_swav_photos.py"), help="the peer's script")
    parser.add_argument("--peer-option", action="append", default=[], help="another argument of the peer: --workers=1")
    parser.add_argument("--python", required=True, help="Python that has the peer's packages")
    parser.add_argument("--data", required=True, type=pathlib.Path, help="folder of JPEGs")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--steps", type=int, default=48)
    parser.add_argument("--precision", choices=sorted(PEER_PRECISION), default="fp32")
    parser.add_argument("ours", nargs="*", help="more arguments for our command")
    args = parser.parse_args()
    images = sum(1 for _ in args.data.rglob("*.jpg"))
    if images < BATCH_SIZE:
        parser.error(f"--data has {images} JPEGs, expected at least {BATCH_SIZE}")
    values = {"data": args.data.resolve(), "steps": args.steps, "epochs": epochs_of(args.steps, images)}
    peer_command = [args.python, str(args.peer)] + fill(PEER + PEER_PRECISION[args.precision], **values) + args.peer_option
    print(report(*take_turns(args.runs, lambda: measure_ours(values, args.precision, args.ours),
                             lambda: measure(peer_command, read_peer), "rate", "samples/s")))


if __name__ == "__main__":
    main()
