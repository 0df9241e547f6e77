# SPDX-License-Identifier: Apache-2.0
"""Runs configurations as VISSL's users do and prints how fast they start, step and how much memory they take.

  ./bazelw build //ssl/tools:ssl_main
  python3 tools/bench/vissl_configs.py --data DIR CONFIG.yaml [CONFIG.yaml ...]

A configuration may name its data folder @PEERDATA@; DIR takes that place. Each one runs `--runs` times, in turn, and the
medians are printed: seconds from the start of the process to the end of its first iteration, mean milliseconds of the
later iterations, and the largest resident set. With `--reference NAME=FIRST_S,STEP_MS,MB`, NAME being a file's stem, the
ratios to those numbers are printed as well. Standard library only.
"""
import argparse
import os
import pathlib
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import time

BINARY = "bazel-bin/ssl/tools/ssl_main"
STEP = re.compile(r"step (\d+)/(\d+)")


def measure(command):
    """Seconds to the end of the first step, mean milliseconds of the others, megabytes."""
    begin = time.monotonic()
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    times = []
    tail = ""
    for line in process.stderr:
        tail = line
        if STEP.search(line):
            times.append(time.monotonic())
    process.stderr.close()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0 or len(times) < 2:
        sys.exit(f"{' '.join(map(str, command))}\nno result, exit code {process.returncode}: {tail}")
    return times[0] - begin, 1e3 * (times[-1] - times[0]) / (len(times) - 1), usage.ru_maxrss / 1e3


def run(config, data, binary, extra):
    text = pathlib.Path(config).read_text().replace("@PEERDATA@", data)
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "config.yaml")
        path.write_text(text)
        return measure([binary, f"--config={path}", f"config.CHECKPOINT.DIR={folder}/run", "config.LOG_FREQUENCY=1", *extra])


def parse_reference(texts):
    references = {}
    for text in texts:
        name, values = text.split("=", 1)
        references[name] = tuple(float(value) for value in values.split(","))
    return references


def report(name, rows, reference):
    first, step, memory = (statistics.median(column) for column in zip(*rows))
    line = f"{name:24} first iteration {first:5.2f} s   step {step:6.1f} ms   memory {memory:6.0f} MB"
    if reference:
        line += (f"   reference {reference[0]:.1f} s, {reference[1]:.0f} ms, {reference[2]:.0f} MB:"
                 f" step rate {reference[1] / step:.2f}x, memory {memory / reference[2]:.2f}x")
    return line


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("configs", nargs="+")
    parser.add_argument("--data", required=True)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--binary", default=BINARY)
    parser.add_argument("--reference", action="append", default=[])
    parser.add_argument("--set", action="append", default=[], help="a value on top of each configuration: config.A.B=v")
    arguments = parser.parse_args()
    references = parse_reference(arguments.reference)
    rows = {config: [] for config in arguments.configs}
    for _ in range(arguments.runs):
        for config in arguments.configs:
            rows[config].append(run(config, arguments.data, arguments.binary, arguments.set))
    print(f"{platform.machine()}, {os.cpu_count()} cores, medians of {arguments.runs} runs")
    for config in arguments.configs:
        name = pathlib.Path(config).stem
        print(report(name, rows[config], references.get(name)))


if __name__ == "__main__":
    main()
