# SPDX-License-Identifier: Apache-2.0
"""Kills ssl_main with SIGKILL at random times, starts the same command again until it is done, and compares the final
state with that of an uninterrupted run, bit by bit. Looks at metrics.jsonl and at the event files after every kill.

  bazel run //tests/reliability:kill_torture                      200 kills, 60 of them inside a save
  bazel run //tests/reliability:kill_torture -- --seed=7 --kills=50 --in_save=10
"""
import signal
import time

from tests.reliability import cases, event_files, harness

# Of the kills, how many wait for the beginning of a save. Half of the others hit the start of the process.
SHARE_AIMED_AT_SAVES = 0.5
# Longer than a save of these states: what is left of it is hit anywhere.
SAVE_SECONDS = 0.02


class Totals:
    kills = in_save = lives = runs = records = torn_tails = 0


def kill_at_a_time(run, random, whole_seconds):
    """Starts a life and kills it at a random time. Returns the exit code."""
    life = run.start()
    if not life.ends_within(random.uniform(0, whole_seconds)):
        life.signal(signal.SIGKILL)
    return life.wait()


def kill_in_a_save(run, random):
    """Starts a life and kills it soon after one of its next saves has begun. Returns the exit code."""
    with harness.FolderWatch(run.checkpoints) as watch:
        life = run.start()
        for _ in range(random.randint(1, 5)):
            if life.wait_for_name(watch, r"step_\d+\.tmp.*") is None:
                return life.wait()
        time.sleep(random.uniform(0, SAVE_SECONDS))
        life.signal(signal.SIGKILL)
        return life.wait()


def check_files(run, whole, kills):
    """What has to hold after a kill at any time."""
    harness.check_metrics(run, whole, finished=False)
    events = event_files.EventSummary(run.directory / "tb_logs")
    assert events.torn_tails <= kills, f"{run.directory}: {events.torn_tails} torn tails after {kills} kills"
    return events


def torture(run, whole, random, kills, whole_seconds, totals):
    """Kills the run so many times, unless it is done before, then lets it finish."""
    run.checkpoints.mkdir(parents=True)
    for kill in range(kills):
        aimed = random.random() < SHARE_AIMED_AT_SAVES
        code = kill_in_a_save(run, random) if aimed else kill_at_a_time(run, random, whole_seconds)
        totals.lives += 1
        assert code in (0, -signal.SIGKILL), f"{run.directory}: ended with {harness.signal_name(code)}"
        if code == 0:
            break
        totals.kills += 1
        totals.in_save += run.unfinished_save()
        check_files(run, whole, kill + 1)
    totals.lives += 1
    run.finish()


def check_run(binary, case, folder, random, kills, totals):
    whole = harness.Run(binary, folder / "whole", case.arguments())
    seconds = whole.finish().seconds
    killed = harness.Run(binary, folder / "killed", case.arguments())
    torture(killed, whole, random, kills, seconds, totals)
    totals.runs += 1
    assert killed.steps()[-1] == cases.STEPS, f"{killed.directory}: last checkpoint is {killed.steps()}"
    assert killed.final_hash() == whole.final_hash(), f"{killed.directory} differs from {whole.directory}: {case}"
    harness.check_metrics(killed, whole, finished=True)
    events = check_files(killed, whole, kills)
    events.check_no_step_twice()
    events.check_all_steps("Training/Loss", cases.STEPS, case.hidden_steps())
    totals.records += len(events.payloads)
    totals.torn_tails += events.torn_tails


def main():
    arguments = harness.parse_arguments(__doc__, kills=200, in_save=60, kills_per_run=6)
    totals = Totals()
    for case in cases.shuffled_cases(arguments.random):
        if totals.kills >= arguments.kills and totals.in_save >= arguments.in_save:
            break
        with harness.Scratch() as folder:
            check_run(arguments.binary, case, folder, arguments.random, arguments.kills_per_run, totals)
        print(f"{case}: equal; {totals.kills} kills so far, {totals.in_save} inside a save", flush=True)
    print(f"F1: {totals.kills} SIGKILLs, {totals.in_save} of them inside a save, in {totals.runs} runs and {totals.lives} "
          f"lives: {totals.runs} of {totals.runs} final states bitwise equal to an uninterrupted run")
    print(f"F24: {totals.records} event records with valid CRCs, {totals.torn_tails} torn tails, no step twice, in "
          f"metrics.jsonl neither")


if __name__ == "__main__":
    main()
