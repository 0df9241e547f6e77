# SPDX-License-Identifier: Apache-2.0
"""Compares what a run says of its speed with a stopwatch beside it, window by window.

  python3 tools/bench/clock_check.py --samples 128 RUN bazel-bin/ssl/tools/ssl_main --config=bench/swav_gpu_peer ...

Adds config.CHECKPOINT.DIR=RUN, which must not exist, to the command. The stopwatch is this process's clock at each
progress line. A window with the end of an epoch is left out: a save, a test phase or an evaluation may lie there, which
no speed counts. `--samples`: of all ranks in an update. Standard library only.
"""
import argparse
import json
import pathlib
import statistics
import sys

from compare_swav import measure_by_clock, step_moments

SPEED = "Speed/samples_per_sec"
LIMIT = 0.02


def ratios(run, lines, samples):
    """[(step, ours / stopwatch)] of the windows within an epoch, of lines [(seconds, line)]."""
    reports = [json.loads(line) for line in pathlib.Path(run, "metrics.jsonl").read_text().splitlines()]
    said = {report["iteration"]: (report["epoch"], report[SPEED]) for report in reports if SPEED in report}
    moments = step_moments(lines)
    return [(last, said[last][1] * (after - before) / (samples * (last - first)))
            for (first, before), (last, after) in zip(moments, moments[1:]) if said[first][0] == said[last][0]]


def report(found):
    """The comparison as text, and whether it holds."""
    off = [abs(ratio - 1) for _, ratio in found]
    is_met = statistics.median(off) < LIMIT
    worst = max(found, key=lambda each: abs(each[1] - 1))
    middle = statistics.median(ratio for _, ratio in found)
    return (f"{len(found)} windows: said / stopwatch {middle:.4f} (median), {worst[1]:.4f} at step {worst[0]} (worst); "
            f"within {100 * LIMIT:.0f} % in the median: {'met' if is_met else 'missed'}"), is_met


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, required=True)
    parser.add_argument("run")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    args = parser.parse_args()
    if pathlib.Path(args.run).exists():
        parser.error(f"{args.run} exists: its reports would be those of an earlier run")
    result = measure_by_clock(args.command + [f"config.CHECKPOINT.DIR={args.run}"],
                              lambda lines: {"found": ratios(args.run, lines, args.samples)})
    if not result["found"]:
        sys.exit("the run told of no two steps of one epoch")
    text, is_met = report(result["found"])
    print(text)
    sys.exit(0 if is_met else 1)


if __name__ == "__main__":
    main()
