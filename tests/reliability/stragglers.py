# SPDX-License-Identifier: Apache-2.0
"""F26: one rank of a run becomes slow, and the run's own report (HOOKS.STRAGGLER) names it and says by how much; a run
whose ranks are equal is not warned of. The rank knows nothing of it: its process is stopped (SIGSTOP) and continued
again and again, for shorter than a step takes, so that it does its work at 1/SLOWDOWN of its speed.

  slow     two ranks as two processes, each of them in turn the slow one; rank 0 is the one that all wait for when buffers
           are broadcast
  healthy  two ranks as two processes; two virtual ranks of one process, which take turns

  bazel run //tests/reliability:stragglers                   the numbers of docs/reliability.md, on a quiet machine
  bazel run //tests/reliability:stragglers -- --timed=0      beside other work, which is a straggler of its own: the slow
                                                             rank has to be named some time; false alarms are counted
"""
import json
import os
import re
import signal
import threading
import time

from tests.reliability import harness

RANKS = 2
FREQUENCY = 20  # updates between two reports, where a rank is slow
HEALTHY_FREQUENCY = 100  # the default
PERIOD_SECONDS = 0.01  # of stopping and continuing: well below a step of STEP_SAMPLES
STEP_SAMPLES = 32  # of a rank, where one is to be slow
MOST_STEPS = 100000  # so many that none is the last one while something is waited for
# How far the report may be from what was done to the rank: the signals themselves cost time.
LEAST_OF_SLOWDOWN, MOST_OF_SLOWDOWN = 0.75, 1.33
WARNING = re.compile(r"straggler: iteration (\d+): rank (\d+) works [0-9.]+ ms on a step, ([0-9.]+) times the median")


def arguments_of(samples, steps, frequency, *more):
    return ["--config=test/swav_tiny", "engine_name=train", "config.OPTIMIZER.num_epochs=1",
            "config.CHECKPOINT.CHECKPOINT_ITER_FREQUENCY=-1", "config.HOOKS.STRAGGLER.REPORT_STRAGGLERS=True",
            f"config.HOOKS.STRAGGLER.FREQUENCY={frequency}", f"config.DATA.TRAIN.BATCHSIZE_PER_REPLICA={samples}",
            f"config.DATA.TRAIN.DATA_LIMIT={RANKS * samples * steps}", *more]


class Slowed:
    """A process that runs for one part of its time in `slowdown`, while the block lasts."""

    def __init__(self, pid, slowdown):
        self._file = os.pidfd_open(pid)
        self._runs_seconds = PERIOD_SECONDS / slowdown
        self._stopped = self._whole = 0.0
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._stop_and_continue, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._end.set()
        self._thread.join()
        os.close(self._file)

    def _stop_and_continue(self):
        begin = time.monotonic()
        while not self._end.wait(self._runs_seconds):
            stopped = time.monotonic()
            signal.pidfd_send_signal(self._file, signal.SIGSTOP)
            self._end.wait(PERIOD_SECONDS - self._runs_seconds)
            signal.pidfd_send_signal(self._file, signal.SIGCONT)
            now = time.monotonic()
            self._stopped += now - stopped
            self._whole = now - begin

    @property
    def slowdown(self):
        """What it has been so far: this harness is not alone on its machine."""
        return self._whole / (self._whole - self._stopped)


def next_warning(life):
    """(iteration, rank, factor)"""
    line = life.wait_for_next(WARNING.pattern)
    assert line is not None, f"the run ended before a rank was named:\n{life.output}"
    iteration, rank, factor = WARNING.search(line).groups()
    return int(iteration), int(rank), float(factor)


def slow_once(arguments, folder, rank):
    """(reports until it was named, factor of the report over that of the signals)"""
    run = harness.Run(arguments.binary, folder / "run", arguments_of(STEP_SAMPLES, MOST_STEPS, FREQUENCY, f"--launch=local:{RANKS}"))
    life = run.start()
    first = arguments.random.randint(FREQUENCY, 2 * FREQUENCY)
    assert life.wait_for(rf"step {first}/"), life.output
    with Slowed(harness.ranks_of(life)[rank], arguments.slowdown) as slowed:
        iteration, named, factor = next_warning(life)
        while not arguments.timed and (named != rank or iteration <= first):
            iteration, named, factor = next_warning(life)
        reports = iteration // FREQUENCY - first // FREQUENCY
        # A report of steps of which only some were slow says less than was done.
        while arguments.timed and named == rank and iteration < first + FREQUENCY:
            iteration, named, factor = next_warning(life)
        done = slowed.slowdown
    life.signal(signal.SIGTERM)
    code = life.wait()
    assert code == harness.STOPPED, f"{run.directory}: {harness.signal_name(code)}:\n{life.output}"
    if arguments.timed:
        assert named == rank, f"rank {named} was named, rank {rank} was slow:\n{life.output}"
        assert 0 < reports <= arguments.reports, f"rank {rank} was named after {reports} reports:\n{life.output}"
        assert LEAST_OF_SLOWDOWN <= factor / done <= MOST_OF_SLOWDOWN, f"{factor} was reported, {done:.2f} was done"
    print(f"rank {rank} slowed from step {first} on by {done:.2f}: named by report {reports} with {factor:.2f}", flush=True)
    return reports, factor / done


def healthy_run(arguments, folder, name, *more):
    """The false alarms."""
    steps = arguments.healthy_steps
    run = harness.Run(arguments.binary, folder / "run",
                      arguments_of(8, steps, HEALTHY_FREQUENCY, f"config.LOG_FREQUENCY={HEALTHY_FREQUENCY}", *more))
    life = run.finish()
    lines = [json.loads(line) for line in (run.directory / "metrics.jsonl").read_text().splitlines()]
    ratios = [line["Speed/straggler_ratio"] for line in lines if "Speed/straggler_ratio" in line]
    # The first two updates have a line as well; they are no reports.
    expected = steps // HEALTHY_FREQUENCY
    assert len(ratios) == expected, f"{len(ratios)} reports in {steps} steps, expected {expected}"
    alarms = WARNING.findall(life.output)
    print(f"{steps} healthy steps of {name}: {len(alarms)} false alarms in {len(ratios)} reports; the slowest rank took "
          f"{max(ratios):.2f} of the median at most", flush=True)
    return alarms


def main():
    arguments = harness.parse_arguments(__doc__, trials=10, healthy_steps=2000, slowdown=2, reports=2, timed=1)
    found = []
    for number in range(arguments.trials):
        with harness.Scratch() as folder:
            found.append(slow_once(arguments, folder, number % RANKS))
    alarms = []
    for name, *more in (("two processes", f"--launch=local:{RANKS}"),
                        ("two virtual ranks of one process", f"config.DISTRIBUTED.VIRTUAL_RANKS={RANKS}")):
        with harness.Scratch() as folder:
            alarms += healthy_run(arguments, folder, name, *more)
    assert not arguments.timed or not alarms, f"false alarms: {alarms}"
    if found:
        print(f"F26: {len(found)} of {len(found)} slow ranks named, after {max(reports for reports, _ in found)} reports at most, "
              f"with {min(part for _, part in found):.2f} to {max(part for _, part in found):.2f} of their slowdown; "
              f"{len(alarms)} false alarms in 2 x {arguments.healthy_steps} steps")


if __name__ == "__main__":
    main()
