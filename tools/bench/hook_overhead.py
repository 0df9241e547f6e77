# SPDX-License-Identifier: Apache-2.0
"""What all hooks and sinks of a configuration cost a training step, as a part of it, with an interval.

  ./bazelw build -c opt //ssl/tools:bench_hook_overhead
  python3 tools/bench/hook_overhead.py                       # the quickstart
  python3 tools/bench/hook_overhead.py --runs 3 quickstart +config/hooks=libai_default

bench_hook_overhead trains with and without them in turn, one step each, and which comes first changes with every pair:
what else the machine does meets both. Two ratios are told, each the median over all runs with the interval that holds
the true median with 95 % (of its order, so that no distribution is assumed):

  step     with / without of each pair: a usual step. Few steps have a report, so that the median leaves reports out
  period   with / without of the sums of PERIOD pairs, each with one report: all that hooks do. A period that the
           machine held up is one value of many, where a mean would be moved by it

Standard library only.
"""
import argparse
import math
import re
import statistics
import subprocess

PERIOD = 50  # LOG_FREQUENCY of the quickstart
PAIR = re.compile(r"^pair (\d+): ([\d.]+) ms without hooks, ([\d.]+) ms with$", re.MULTILINE)
QUANTILE = 1.96  # of 95 %


def interval(values):
    """(low, median, high); the whole range where there are too few values for 95 %."""
    ordered = sorted(values)
    count = len(ordered)
    # The number of values below the median is binomial, count and one half.
    rank = math.floor(count / 2 - QUANTILE * math.sqrt(count) / 2)
    low = max(rank, 1) - 1
    return ordered[low], statistics.median(ordered), ordered[count - 1 - low]


def ratios(pairs, period):
    """Of each whole `period` of the pairs (without, with)."""
    sums = [[sum(times) for times in zip(*pairs[begin:begin + period])]
            for begin in range(0, len(pairs) - period + 1, period)]
    return [with_hooks / without for without, with_hooks in sums]


def read_pairs(output):
    return [(float(without), float(with_hooks)) for _, without, with_hooks in PAIR.findall(output)]


def line_of(name, values):
    low, middle, high = (100 * (value - 1) for value in interval(values))
    return f"{name:8}{middle:7.2f} %  ({low:.2f} to {high:.2f} %, {len(values)} ratios)"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench", default="bazel-bin/ssl/tools/bench_hook_overhead")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("config", nargs="*", default=["quickstart"], help="its name, and keys; default: quickstart")
    arguments = parser.parse_args()
    steps, periods = [], []
    for number in range(1, arguments.runs + 1):
        output = subprocess.run([arguments.bench, *arguments.config], check=True, stdout=subprocess.PIPE, text=True).stdout
        pairs = read_pairs(output)
        if len(pairs) < PERIOD:
            raise SystemExit(f"{arguments.bench} told of {len(pairs)} pairs of steps, expected at least {PERIOD}")
        steps += ratios(pairs, 1)
        periods += ratios(pairs, PERIOD)
        print(f"run {number}: a step takes {statistics.median(without for without, _ in pairs):.1f} ms", flush=True)
    print("all hooks and sinks together cost")
    print(line_of("step", steps))
    print(line_of("period", periods))


if __name__ == "__main__":
    main()
