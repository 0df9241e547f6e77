# SPDX-License-Identifier: Apache-2.0
"""Compares SwAV on two ranks of one thread with one rank of two threads, and with a Python peer's two ranks.

  ./bazelw build //ssl/tools:ssl_main
  python3 tools/bench/compare_ranks.py --data DIR                            # one rank of two threads
  python3 tools/bench/compare_ranks.py --data DIR --python VENV/bin/python   # and DistributedDataParallel

All programs do the same step: the global batch is 256. They run in turn, `--runs` times each, and medians are compared,
so that a slow spell of the machine hits all. More ranks (`--ranks 4`) have one thread each as well. DIR holds the four
Fashion-MNIST IDX .gz files. Standard library only; the peer, peer_swav_ddp.py beside this file, says what VENV needs.
"""
import argparse
import os
import pathlib

from compare_swav import BATCH_SIZE, PEER, fill, machine, measure, measure_ours, median, read_peer

BATCH_OF_RANK = "config.DATA.TRAIN.BATCHSIZE_PER_REPLICA={}"
PEER_PRECISION = {"fp32": ["--channels-last"], "bf16": ["--bf16", "--channels-last"]}  # the best of each
RANKS, ALONE, PEER_RANKS = "ranks", "one rank", "peer"


def ranks_arguments(ranks):
    return [BATCH_OF_RANK.format(BATCH_SIZE // ranks), f"--launch=local:{ranks}"]


def programs(args, values):
    """{name: a function that runs it once and returns its result}."""
    peer = [args.python, str(args.peer), "--ranks", str(args.ranks)] + fill(PEER + PEER_PRECISION[args.precision], **values)
    runs = {RANKS: lambda: measure_ours(values, args.precision, ranks_arguments(args.ranks) + args.ours),
            ALONE: lambda: measure_ours(values, args.precision, args.ours)}
    if args.python:
        runs[PEER_RANKS] = lambda: measure(peer + args.peer_option, read_peer)
    return runs


def report(results):
    """results: {name: list of results}. Ratios above 1 are in the ranks' favour."""
    lines = [f"{'median of ' + str(len(results[RANKS])):14}{'ms/step':>10}{'range':>18}{'samples/s':>12}"
             f"{'peak PSS MB':>13}{'time / ranks':>14}"]
    for name, runs in results.items():
        times = [each["ms"] for each in runs]
        ratio = median(runs, "ms") / median(results[RANKS], "ms")
        lines.append(f"{name:14}{median(runs, 'ms'):10.1f}{f'{min(times):.1f}-{max(times):.1f}':>18}"
                     f"{median(runs, 'rate'):12.1f}{median(runs, 'pss'):13.1f}{ratio:14.2f}")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, type=pathlib.Path, help="folder of the Fashion-MNIST files")
    parser.add_argument("--python", help="Python that has the peer's packages; without it the peer does not run")
    parser.add_argument("--peer", default=pathlib.Path(__file__).with_name("peer_swav_ddp.py"), help="the peer's script")
    parser.add_argument("--peer-option", action="append", default=[], help="one more argument for it, --peer-option=--x")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--steps", type=int, default=24)
    parser.add_argument("--precision", choices=sorted(PEER_PRECISION), default="fp32")
    parser.add_argument("ours", nargs="*", help="more arguments for our command")
    args = parser.parse_args()
    if args.ranks < 1 or BATCH_SIZE % args.ranks:
        parser.error(f"--ranks is {args.ranks}, expected a divisor of {BATCH_SIZE}")
    os.environ.pop("OMP_NUM_THREADS", None)  # the launcher gives each rank its share of the cores, one rank takes all
    values = {"data": args.data.resolve(), "steps": args.steps, "images": args.steps * BATCH_SIZE}
    print(machine(), flush=True)
    runs = programs(args, values)
    results = {name: [] for name in runs}
    for number in range(1, args.runs + 1):
        for name, run in runs.items():
            results[name].append(run())
        print(f"run {number}: " + ", ".join(f"{name} {results[name][-1]['ms']:.1f}" for name in runs) + " ms/step", flush=True)
    print(report(results))


if __name__ == "__main__":
    main()
