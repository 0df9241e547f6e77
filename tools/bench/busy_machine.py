# SPDX-License-Identifier: Apache-2.0
"""How long training takes beside other programs, with one compute thread and with all of them, in turn.

  ./bazelw build //ssl/tools:ssl_main
  python3 tools/bench/busy_machine.py                                  # 30 steps of the quickstart, loads 0, 2, 4 and 8
  python3 tools/bench/busy_machine.py --other OLDER/ssl_main --loads 0 # against another build as well

A load of N is N endless loops beside the training. The clock is this script's: from the line of the first step to the
line of the last one, so that the start of the program is left out. For each load it prints the seconds of each run, and
the medians' ratio to the best median. All variants must end with the same weights as others of the same number of
threads; the script ends with 1 where they do not.

Standard library only. The machine must do nothing else meanwhile.
"""
import argparse
import glob
import hashlib
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

BATCH = 128
STEP = re.compile(r"\| step (\d+)/(\d+) \|")


def run(program, threads, steps):
    """Seconds from the first step's line to the last one's, and a checksum of the weights."""
    with tempfile.TemporaryDirectory() as directory:
        command = [program, "--config=quickstart", "engine_name=train", f"config.CHECKPOINT.DIR={directory}/run",
                   f"config.DATA.TRAIN.DATA_LIMIT={BATCH * steps}", "config.OPTIMIZER.num_epochs=1",
                   "config.LOG_FREQUENCY=1"]
        environment = dict(os.environ)
        environment.pop("OMP_NUM_THREADS", None)
        if threads:
            environment["OMP_NUM_THREADS"] = str(threads)
        times = {}
        with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True) as process:
            for line in process.stdout:
                step = STEP.search(line)
                if step:
                    times[int(step.group(1))] = time.monotonic()
        if process.returncode or len(times) < 2:
            sys.exit(f"{' '.join(command)}: exit code {process.returncode}")
        weights, = glob.glob(f"{directory}/run/checkpoints/step_*/model.safetensors")
        with open(weights, "rb") as file:
            return times[max(times)] - times[min(times)], hashlib.sha256(file.read()).hexdigest()


def beside(load, measure):
    loops = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(load)]
    try:
        return measure()
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="bazel-bin/ssl/tools/ssl_main")
    parser.add_argument("--other", help="another build, with all threads, in turn with the program")
    parser.add_argument("--loads", type=int, nargs="+", default=[0, 2, 4, 8])
    parser.add_argument("--runs", type=int, default=3, help="of each variant at each load")
    parser.add_argument("--steps", type=int, default=31)
    arguments = parser.parse_args()
    variants = [("1 thread", arguments.program, 1), ("all threads", arguments.program, 0)]
    if arguments.other:
        variants.append(("other, all threads", arguments.other, 0))
    checksums = {}
    for load in arguments.loads:
        seconds = {name: [] for name, _, _ in variants}
        for _ in range(arguments.runs):
            for name, program, threads in variants:
                duration, checksum = beside(load, lambda: run(program, threads, arguments.steps))
                seconds[name].append(duration)
                checksums.setdefault(threads, set()).add(checksum)
        best = min(statistics.median(values) for values in seconds.values())
        for name, values in seconds.items():
            print(f"load {load}  {name:20} {' '.join(f'{value:7.2f}' for value in values)}"
                  f"   {statistics.median(values) / best:.2f} of the best", flush=True)
    if any(len(different) > 1 for different in checksums.values()):
        sys.exit("the weights differ between runs with the same number of threads")


if __name__ == "__main__":
    main()
