# SPDX-License-Identifier: Apache-2.0
"""Prints the slowest source files of a build, and fails when one takes longer than the limit.

Usage, with a profile in which everything was compiled anew:
  ./bazelw build //... --disk_cache= --copt=-DCOMPILE_ANEW --profile=/tmp/profile.gz
  python3 tools/bench/compile_times.py /tmp/profile.gz [--count 15] [--limit 20]

The time is that of the compiler process. It is wall time: compare runs of an idle machine.
"""
import argparse
import bisect
import gzip
import json
import sys

PREFIX = "Compiling "
PROCESS = "Remote execution process wall time"  # Bazel's name for the process of a local action too


def compile_seconds(events):
    """Profile events -> {source file: seconds of its compiler}; files from a cache are left out."""
    processes = {}
    for event in events:
        if event.get("cat") == PROCESS:
            processes.setdefault(event["tid"], []).append((event["ts"], event["dur"]))
    for spans in processes.values():
        spans.sort()
    seconds = {}
    for event in events:
        if event.get("cat") == "action processing" and event["name"].startswith(PREFIX):
            spans = processes.get(event["tid"], [])
            start = bisect.bisect_left(spans, (event["ts"], 0))
            end = bisect.bisect_right(spans, (event["ts"] + event["dur"], 0))
            if start < end:
                seconds[event["name"][len(PREFIX):]] = sum(dur for _, dur in spans[start:end]) / 1e6
    return seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("profile", help="file that bazel build --profile wrote")
    parser.add_argument("--count", type=int, default=15, help="files to print")
    parser.add_argument("--limit", type=float, default=20.0, help="seconds that no file may exceed")
    args = parser.parse_args()
    with gzip.open(args.profile, "rt") as file:
        profile = json.load(file)
    seconds = compile_seconds(profile["traceEvents"])
    if not seconds:
        sys.exit(f"{args.profile}: no compiler ran in this build; see --help for how to compile anew")
    ranked = sorted(seconds.items(), key=lambda item: -item[1])
    print(f"{len(ranked)} files, {sum(seconds.values()):.0f} s of compiling")
    for name, duration in ranked[:args.count]:
        print(f"{duration:7.1f} s  {name}")
    slow = [name for name, duration in ranked if duration > args.limit]
    if slow:
        sys.exit(f"{len(slow)} over the limit of {args.limit:g} s: {', '.join(slow)}")


if __name__ == "__main__":
    main()
