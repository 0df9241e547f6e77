# SPDX-License-Identifier: Apache-2.0
"""Compares a SwAV step of this trainer with that of a Python peer, on the same data and machine.

  ./bazelw build //ssl/tools:ssl_main
  python3 tools/bench/compare_swav.py --peer PEER.py --python VENV/bin/python --data DIR

The two programs run in turn, `--runs` times each, and medians are compared, so that a slow
spell of the machine hits both. Memory is the peak of the summed PSS of a program's whole
process tree, polled twice a second: a page shared by workers counts once.
DIR holds the four Fashion-MNIST IDX .gz files. Standard library only.
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
import threading

POLL_S = 0.5

# Our command; {data} and {steps} are filled in. The line that it prints at its end.
OURS = ["bazel-bin/ssl/tools/ssl_main", "--config=bench/swav_fmnist_peer",
        "config.DATA.TRAIN.DATA_PATHS=[{data}]", "config.BENCHMARK.num_steps={steps}"]
OURS_PRECISION = {"fp32": [], "bf16": ["config.MODEL.AMP_PARAMS.USE_AMP=True", "config.MODEL.AMP_PARAMS.AMP_TYPE=bf16"]}
OURS_RESULT = re.compile(r"steps \d+ +ms/step (?P<ms>[\d.]+) +samples/s (?P<rate>[\d.]+) +data_wait_ms (?P<wait>[\d.]+)")

# The peer's arguments and its last line.
PEER = ["{data}", "--width", "32", "--steps", "{steps}"]
PEER_PRECISION = {"fp32": [], "bf16": ["--bf16", "--channels-last"]}
PEER_RESULT = re.compile(r"peer: (?P<ms>[\d.]+) ms/step +(?P<rate>[\d.]+) samples/s +data-wait (?P<wait>[\d.]+) ms")


def parents(proc="/proc"):
    """{pid: parent pid} of all processes."""
    result = {}
    for entry in os.scandir(proc):
        if entry.name.isdigit():
            try:
                # The command name, in parentheses, may hold blanks; the parent is the second word after it.
                result[int(entry.name)] = int(pathlib.Path(entry.path, "stat").read_text().rsplit(")", 1)[1].split()[1])
            except OSError:
                continue  # ended meanwhile
    return result


def tree(root, parent_of):
    """`root` and its descendants."""
    found, frontier = {root}, [root]
    while frontier:
        above = frontier.pop()
        below = [pid for pid, parent in parent_of.items() if parent == above and pid not in found]
        found.update(below)
        frontier += below
    return found


def tree_pss_mb(root, proc="/proc"):
    total_kb = 0
    for pid in tree(root, parents(proc)):
        try:
            text = pathlib.Path(proc, str(pid), "smaps_rollup").read_text()
        except OSError:
            continue  # ended meanwhile
        match = re.search(r"^Pss: +(\d+) kB", text, re.MULTILINE)
        total_kb += int(match.group(1)) if match else 0
    return total_kb / 1024


class PeakMemory(threading.Thread):
    """Polls the process tree below `pid` until stop(), which returns the peak in MB."""

    def __init__(self, pid):
        super().__init__(daemon=True)
        self.pid = pid
        self.peak_mb = 0.0
        self.stopped = threading.Event()

    def run(self):
        while not self.stopped.wait(POLL_S):
            self.peak_mb = max(self.peak_mb, tree_pss_mb(self.pid))

    def stop(self):
        self.stopped.set()
        self.join()
        return self.peak_mb


def measure(command, pattern):
    """Runs `command`; returns what its result line and the memory poll say."""
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, text=True)
        memory = PeakMemory(process.pid)
        memory.start()
        status = process.wait()
        peak_mb = memory.stop()
        log.seek(0)
        output = log.read()
    matches = list(pattern.finditer(output))
    if status or not matches:
        sys.exit(f"{' '.join(command)}: exit code {status}, {len(matches)} result lines, expected 0 and 1; it said:\n"
                 + "\n".join(output.splitlines()[-20:]))
    return {**{key: float(value) for key, value in matches[-1].groupdict().items()}, "pss": peak_mb}


def fill(words, **values):
    """Replaces {name} in words; other braces stay."""
    for name, value in values.items():
        words = [word.replace("{" + name + "}", str(value)) for word in words]
    return words


def median(results, key):
    return statistics.median(result[key] for result in results)


def report(ours, peer):
    """The comparison as text; ratios above 1 are in our favour."""
    lines = [f"{'median of ' + str(len(ours)):16}{'ours':>10}{'peer':>10}{'peer/ours':>11}"]
    for key, label in (("ms", "ms/step"), ("wait", "data wait ms"), ("pss", "peak PSS MB")):
        a, b = median(ours, key), median(peer, key)
        lines.append(f"{label:16}{a:10.1f}{b:10.1f}" + (f"{b / a:11.2f}" if a else ""))
    spread = ", ".join(f"{name} {min(r['ms'] for r in runs):.1f}-{max(r['ms'] for r in runs):.1f}"
                       for name, runs in (("ours", ours), ("peer", peer)))
    return "\n".join(lines + [f"range of ms/step: {spread}"])


def machine():
    cpuinfo = pathlib.Path("/proc/cpuinfo").read_text()
    model = re.search(r"model name\s*: (.*)", cpuinfo)
    memory_gb = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return (f"machine: {model.group(1) if model else platform.machine()}, {len(os.sched_getaffinity(0))} CPUs, "
            f"{memory_gb:.0f} GB, load at start {os.getloadavg()[0]:.1f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--peer", required=True, help="the peer's script")
    parser.add_argument("--python", required=True, help="Python that has the peer's packages")
    parser.add_argument("--data", required=True, type=pathlib.Path, help="folder of the Fashion-MNIST files")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--precision", choices=("fp32", "bf16"), default="fp32")
    parser.add_argument("ours", nargs="*", help="more arguments for our command")
    args = parser.parse_args()
    values = {"data": args.data.resolve(), "steps": args.steps}
    ours_command = fill(OURS + OURS_PRECISION[args.precision], **values) + args.ours
    peer_command = [args.python, args.peer] + fill(PEER + PEER_PRECISION[args.precision], **values)
    print(machine(), flush=True)
    ours, peer = [], []
    for run in range(args.runs):
        ours.append(measure(ours_command, OURS_RESULT))
        peer.append(measure(peer_command, PEER_RESULT))
        print(f"run {run + 1}: ours {ours[-1]['ms']:.1f}, peer {peer[-1]['ms']:.1f} ms/step", flush=True)
    print(report(ours, peer))


if __name__ == "__main__":
    main()
