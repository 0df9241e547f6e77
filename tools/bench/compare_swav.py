# SPDX-License-Identifier: Apache-2.0
"""Compares a SwAV step of this trainer with that of a Python peer, on the same data and machine.

  ./bazelw build //ssl/tools:ssl_main
  python3 tools/bench/compare_swav.py --python VENV/bin/python --data DIR

The two programs run in turn, `--runs` times each, and medians are compared, so that a slow
spell of the machine hits both. Memory is the peak of the summed PSS of a program's whole
process tree, polled twice a second: a page shared by workers counts once. Our time is that between two
progress lines by this process's clock, as they come, and not what they say of it.
DIR holds the four Fashion-MNIST IDX .gz files. Standard library only; the peer, peer_swav.py beside this file, says what
VENV needs.
"""
import argparse
import json
import math
import os
import pathlib
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time

POLL_S = 0.5

BATCH_SIZE = 256  # of both
WARM_UP_STEPS = 2  # ours reports steps 1 and 2 by themselves; the peer leaves out its first three

# In our progress lines. What they say of the speed is what is to be checked, and is not read.
OURS_STEP = re.compile(r"\| step ([\d,]+)/[\d,]+ \|")
WAIT_SHARE = "Speed/data_wait_share"

# Our command; {data}, {images} and {run} are filled in.
OURS = ["bazel-bin/ssl/tools/ssl_main", "--config=bench/swav_fmnist_peer", "config.DATA.TRAIN.DATA_PATHS=[{data}]",
        "config.DATA.TRAIN.DATA_LIMIT={images}", "config.CHECKPOINT.DIR={run}"]
OURS_PRECISION = {"fp32": [], "bf16": ["config.MODEL.AMP_PARAMS.USE_AMP=True"]}

# The peer's arguments and its last line.
PEER = ["{data}", "--width", "32", "--steps", "{steps}"]
PEER_PRECISION = {"fp32": ["--channels-last"], "bf16": ["--bf16", "--channels-last"]}
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


def read_peer(output):
    """The peer's result line, or nothing."""
    matches = list(PEER_RESULT.finditer(output))
    return {key: float(value) for key, value in matches[-1].groupdict().items()} if matches else {}


def read_ours(run_directory, lines, batch=BATCH_SIZE, warm_up=WARM_UP_STEPS):
    """Mean step time after `warm_up` steps, by the times at which progress lines came; nothing when there are none.

    lines: [(seconds, line)]. How much of that time was waiting for data, metrics.jsonl says; steps without a report
    there are taken to be like the others, and nan stands where it has none."""
    path = pathlib.Path(run_directory, "metrics.jsonl")
    reports = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    shares = {report["iteration"]: report[WAIT_SHARE] for report in reports if WAIT_SHARE in report}
    moments = step_moments(lines)
    seconds = waited = told = steps = 0
    for (first, before), (last, after) in zip(moments, moments[1:]):
        if first < warm_up:
            continue
        steps += last - first
        seconds += after - before
        if last in shares:
            told += after - before
            waited += (after - before) * shares[last]
    if not steps:
        return {}
    ms = 1e3 * seconds / steps
    return {"ms": ms, "rate": batch * steps / seconds, "wait": ms * waited / told if told else math.nan}


def step_moments(lines):
    """[(step, seconds)] of our progress lines among `lines`."""
    found = [(OURS_STEP.search(line), seconds) for seconds, line in lines]
    return [(int(match[1].replace(",", "")), seconds) for match, seconds in found if match]


def measure_by_clock(command, read):
    """Runs `command`; returns what `read` finds in its lines, [(seconds, line)], each with the time by this process's
    clock at which it came, and the memory poll's peak."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    memory = PeakMemory(process.pid)
    memory.start()
    lines = [(time.monotonic(), line) for line in process.stdout]
    status = process.wait()
    peak_mb = memory.stop()
    process.stdout.close()
    result = {} if status else read(lines)
    if not result:
        sys.exit(f"{' '.join(command)}: exit code {status} and no result; it said:\n"
                 + "".join(line for _, line in lines[-20:]))
    return {**result, "pss": peak_mb}


def measure(command, read):
    """The same, of what `read` finds in the output as a whole."""
    return measure_by_clock(command, lambda lines: read("".join(line for _, line in lines)))


def measure_ours(values, precision, more):
    with tempfile.TemporaryDirectory() as run:
        command = fill(OURS + OURS_PRECISION[precision], **values, run=run) + more
        return measure_by_clock(command, lambda lines: read_ours(run, lines))


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


def take_turns(runs, run_ours, run_peer, key, unit, digits=1):
    """Runs ours and the peer in turn, so that a slow spell of the machine hits both; both lists of results."""
    print(machine(), flush=True)
    ours, peer = [], []
    for run in range(runs):
        ours.append(run_ours())
        peer.append(run_peer())
        print(f"run {run + 1}: ours {ours[-1][key]:.{digits}f}, peer {peer[-1][key]:.{digits}f} {unit}", flush=True)
    return ours, peer


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--peer", default=pathlib.Path(__file__).with_name("peer_swav.py"), help="the peer's script")
    parser.add_argument("--python", required=True, help="Python that has the peer's packages")
    parser.add_argument("--data", required=True, type=pathlib.Path, help="folder of the Fashion-MNIST files")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--precision", choices=("fp32", "bf16"), default="fp32")
    parser.add_argument("ours", nargs="*", help="more arguments for our command")
    args = parser.parse_args()
    values = {"data": args.data.resolve(), "steps": args.steps, "images": args.steps * BATCH_SIZE}
    peer_command = [args.python, str(args.peer)] + fill(PEER + PEER_PRECISION[args.precision], **values)
    print(report(*take_turns(args.runs, lambda: measure_ours(values, args.precision, args.ours),
                             lambda: measure(peer_command, read_peer), "ms", "ms/step")))


if __name__ == "__main__":
    main()
