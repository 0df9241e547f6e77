# SPDX-License-Identifier: Apache-2.0
"""How much of the all-reduces of a run's gradients lies beside backward, from the traces of its ranks.

  ssl_main --launch=local:2 config.PROFILING.RUNTIME_PROFILING.USE_PROFILER=True config.CHECKPOINT.DIR=RUN ...
  python3 tools/bench/trace_overlap.py RUN/profile

Reads every rank*.json there and prints, for each rank and for all steps together: the step, backward, the all-reduces of
the gradients and what of them backward did not hide; then each operation by its type and shape. A rank's operation
begins when it is ready and ends when all are, so it holds the waiting for the slowest rank; `exchange` is the shortest
among the ranks, of the one that came last. Operations that ranks wait for at once (Sinkhorn, the control of the loop)
are `others`. The recorder costs time itself: shares mean more than milliseconds. Standard library only.
"""
import argparse
import collections
import json
import pathlib
import re
import statistics
import sys

WAIT = "waiting for reduced gradients"
OPERATION = re.compile(r"(all-reduce|all-gather|broadcast|barrier|reduce-scatter)\b")
REDUCTION = re.compile(r"all-reduce \(mean\) of ")
STEP = re.compile(r"ProfilerStep#\d+$")


class Range:

    def __init__(self, event):
        self.name = event["name"]
        self.thread = event["tid"]
        self.begin = event["ts"] / 1e3  # ms
        self.end = self.begin + event["dur"] / 1e3

    @property
    def length(self):
        return self.end - self.begin

    def holds(self, other):
        return self.begin <= other.begin and other.end <= self.end


class Step:
    """One update of one rank."""

    def __init__(self, whole, ranges):
        inside = [each for each in ranges if whole.holds(each)]
        self.whole = whole
        self.wait = only(WAIT, inside)
        # The hook's part ends where the optimizer begins: what the reducer waits for is in it.
        self.backward = self.wait.begin - only("backward", inside).begin
        operations = [each for each in inside if OPERATION.match(each.name)]
        self.reductions = [each for each in operations if each.thread != whole.thread and REDUCTION.match(each.name)]
        self.others = [each for each in operations if each.thread == whole.thread]

    def hidden(self, reduction):
        """The part of it that lies within backward."""
        return max(0.0, min(reduction.end, self.wait.begin) - reduction.begin)


def only(name, ranges):
    found = [each for each in ranges if each.name == name]
    if len(found) != 1:
        sys.exit(f"a step has {len(found)} ranges '{name}', expected one: was the run of several ranks?")
    return found[0]


def read_steps(path):
    events = json.loads(path.read_text())["traceEvents"]
    ranges = [Range(event) for event in events if event.get("ph") == "X" and event.get("cat") == "user_annotation"]
    steps = sorted((each for each in ranges if STEP.match(each.name)), key=lambda each: each.begin)
    return [Step(whole, ranges) for whole in steps]


def mean(values):
    return statistics.fmean(values) if values else 0.0


def row(label, steps):
    """Means over `steps`, in ms; shares of the step, and of the all-reduces."""
    step = mean([each.whole.length for each in steps])
    reduction = mean([sum(one.length for one in each.reductions) for each in steps])
    hidden = mean([sum(each.hidden(one) for one in each.reductions) for each in steps])
    wait = mean([each.wait.length for each in steps])
    others = mean([sum(one.length for one in each.others) for each in steps])
    overlap = hidden / reduction if reduction else 0.0
    return (f"{label:8}{step:9.1f}{mean([each.backward for each in steps]):10.1f}{reduction:12.1f}{reduction / step:8.1%}"
            f"{overlap:11.1%}{wait:9.1f}{wait / step:8.1%}{others:9.1f}{others / step:8.1%}")


def by_name(ranks, kind):
    """{name: (operations in a step, their mean length, mean of the shortest among the ranks)} of `kind` in steps."""
    lengths = collections.defaultdict(list)
    for steps in zip(*ranks):  # the same step of each rank
        for same in zip(*(getattr(step, kind) for step in steps)):
            lengths[same[0].name].append([each.length for each in same])
    count = min(map(len, ranks))
    return {name: (len(rows) / count, mean([mean(each) for each in rows]), mean([min(each) for each in rows]))
            for name, rows in lengths.items()}


def report(ranks):
    """ranks: of each rank, its steps."""
    lines = [f"{'ms':8}{'step':>9}{'backward':>10}{'all-reduce':>12}{'share':>8}{'in backw.':>11}{'exposed':>9}"
             f"{'share':>8}{'others':>9}{'share':>8}"]
    lines += [row(f"rank {rank}", steps) for rank, steps in enumerate(ranks)]
    lines.append(row("all", [step for steps in ranks for step in steps]))
    for kind in ("reductions", "others"):
        for name, (count, length, exchange) in by_name(ranks, kind).items():
            lines.append(f"{kind}: {name}: {count:.1f} in a step, {length:.2f} ms, exchange {exchange:.2f} ms")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path, help="the run's folder profile/")
    paths = sorted(parser.parse_args().folder.glob("rank*.json"))
    if not paths:
        sys.exit("no rank*.json there: config.PROFILING.RUNTIME_PROFILING.USE_PROFILER=True records")
    print(report([read_steps(path) for path in paths]))


if __name__ == "__main__":
    main()
