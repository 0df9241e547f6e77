# SPDX-License-Identifier: Apache-2.0
"""Sends SIGTERM, SIGINT, SIGUSR2 or SIGHUP to ssl_main at random times: it saves after the step in progress and exits with 75;
the same command goes on to the state of an uninterrupted run, bit by bit. A second signal ends the process at once.

A signal that comes while the loader still maps LibTorch, before the first line of the program, ends the process as it
ends every program; there is nothing to save yet. These are counted apart.

  bazel run //tests/reliability:stop_torture                      50 stops, then 10 second signals
  bazel run //tests/reliability:stop_torture -- --seed=7 --stops=20
"""
import re
import signal
import time

from tests.reliability import cases, harness

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR2, signal.SIGHUP)
NOTHING_TO_SAVE = "stopped before the first step"
# A step of these runs takes milliseconds; the rest is for a machine that does other work.
LIMIT_SECONDS = 10.0


class Totals:
    stops = before_the_first_step = too_early = finished = second_signals = runs = 0
    slowest_stop = slowest_second = 0.0


def end_after(life, since):
    """(exit code, seconds from `since` to the end)."""
    code = life.wait()
    return code, time.monotonic() - since


def check_stopped(run, life):
    """A stopped run has committed the step that it names, and left no report of a failure."""
    stopped = re.search(r"stopped at iteration (\d+)", life.output)
    assert stopped, f"{run.directory}: exit code 75 without saying where it stopped:\n{life.output}"
    step = int(stopped.group(1))
    assert step == 0 or step in run.steps(), f"{run.directory}: stopped at {step}, checkpoints are {run.steps()}"
    assert run.failure() is None, f"{run.directory}: a stop is no failure, but failure.json says {run.failure()}"


def stop_once(run, random, whole_seconds, totals):
    """One life with a signal at a random time. Returns whether the run may go on."""
    number = random.choice(SIGNALS)
    life = run.start()
    life.ends_within(random.uniform(0, whole_seconds))
    silent = not life.lines
    since = time.monotonic()
    life.signal(number)
    code, seconds = end_after(life, since)
    if code == -number:
        assert silent or not life.lines, f"{run.directory}: {number.name} killed a run that had begun:\n{life.output}"
        totals.too_early += 1
        return True
    totals.slowest_stop = max(totals.slowest_stop, seconds)
    assert seconds < LIMIT_SECONDS, f"{run.directory}: {number.name} took {seconds:.1f} s"
    assert code in (0, harness.STOPPED), f"{run.directory}: {harness.signal_name(code)} after {number.name}:\n{life.output}"
    if code == 0:
        totals.finished += 1
        return False
    if NOTHING_TO_SAVE in life.output:
        totals.before_the_first_step += 1
        return True
    check_stopped(run, life)
    totals.stops += 1
    return True


def stop_twice(run, random, totals):
    """A second signal, of another number so that both arrive, ends a training process at once."""
    life = run.start()
    life.wait_for(rf"step {random.randint(1, cases.STEPS // 2)}/")
    first, second = random.sample(SIGNALS, 2)
    since = time.monotonic()
    life.signal(first)
    life.signal(second)
    code, seconds = end_after(life, since)
    # The first stop may have been complete before the second signal came.
    assert code in (0, harness.STOPPED, -first, -second), f"{run.directory}: {harness.signal_name(code)}"
    totals.slowest_second = max(totals.slowest_second, seconds)
    assert seconds < LIMIT_SECONDS, f"{run.directory}: the second signal took {seconds:.1f} s"
    totals.second_signals += 1
    return code != 0


def check_run(binary, case, folder, stops, twice, arguments, totals):
    whole = harness.Run(binary, folder / "whole", case.arguments())
    seconds = whole.finish().seconds
    stopped = harness.Run(binary, folder / "stopped", case.arguments())
    goes_on = True
    while goes_on and stops > 0:
        goes_on = stop_once(stopped, arguments.random, seconds, totals)
        stops -= 1
    while goes_on and twice > 0:
        goes_on = stop_twice(stopped, arguments.random, totals)
        twice -= 1
    stopped.finish()
    totals.runs += 1
    assert stopped.final_hash() == whole.final_hash(), f"{stopped.directory} differs from {whole.directory}: {case}"
    harness.check_metrics(stopped, whole, finished=True)


def main():
    arguments = harness.parse_arguments(__doc__, stops=50, second_signals=10)
    totals = Totals()
    for case in cases.shuffled_cases(arguments.random):
        if totals.stops >= arguments.stops and totals.second_signals >= arguments.second_signals:
            break
        stops = min(arguments.stops - totals.stops, 5)
        twice = min(arguments.second_signals - totals.second_signals, 1)
        with harness.Scratch() as folder:
            check_run(arguments.binary, case, folder, stops, twice, arguments, totals)
        print(f"{case}: equal; {totals.stops} stops so far", flush=True)
    print(f"F13: {totals.stops} of {totals.stops} stops committed a checkpoint and exited with 75, the slowest after "
          f"{totals.slowest_stop:.2f} s; {totals.too_early} signals came before the program's first line, "
          f"{totals.before_the_first_step} before its first step (75 at once), {totals.finished} after its last; "
          f"{totals.second_signals} second signals, the slowest end after {totals.slowest_second:.2f} s; {totals.runs} of {totals.runs} final states bitwise equal")


if __name__ == "__main__":
    main()
