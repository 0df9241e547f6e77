# SPDX-License-Identifier: Apache-2.0
"""Kills a rank of a run of several at a random step: the others end at once, all are gone, and failure.json names rank,
process, signal, step and checkpoint; with --restarts the run ends with the state of an uninterrupted one, bit by bit.

  bazel run //tests/reliability:rank_torture                      50 kills, then 10 runs that are started again
  bazel run //tests/reliability:rank_torture -- --seed=7 --kills=3 --ranks=2
"""
import os
import pathlib
import signal
import time

from tests.reliability import harness

STEPS = 12
# What a rank needs to hear of a closed connection, to look around, and to end, is about a second; the rest is for a
# machine that does other work.
LIMIT_SECONDS = 10.0


class Totals:
    kills = restarted = 0
    seconds = []


def arguments_of(ranks, steps):
    """Each step has 8 samples of every rank."""
    return ["--config=test/swav_tiny", "engine_name=train", f"--launch=local:{ranks}", "config.OPTIMIZER.num_epochs=1",
            "config.CHECKPOINT.SAVE_IN_BACKGROUND=False", f"config.DATA.TRAIN.DATA_LIMIT={8 * ranks * steps}"]


def ranks_of(life):
    """The processes of the ranks, by number."""
    found = {}
    for child in pathlib.Path(f"/proc/{life.pid}/task/{life.pid}/children").read_text().split():
        for entry in pathlib.Path(f"/proc/{child}/environ").read_bytes().split(b"\0"):
            if entry.startswith(b"RANK="):
                found[int(entry[5:])] = int(child)
    return found


def kill_one(life, step, random):
    """Kills a rank once the progress line of `step` is there; (rank, its process, all processes)."""
    assert life.wait_for(rf"step {step}/"), f"step {step} was not reached:\n{life.output}"
    processes = ranks_of(life)
    rank = random.choice(sorted(processes))
    os.kill(processes[rank], signal.SIGKILL)
    return rank, processes[rank], list(processes.values())


def check_named(run, life, rank, process, step):
    assert f"rank {rank} (pid {process}) was ended by SIGKILL" in life.output, life.output
    assert "frame #" not in life.output, f"a stack trace of LibTorch's:\n{life.output}"
    report = run.failure()
    expected = {"rank": rank, "pid": process, "signal": 9, "exit_code": 137}
    assert expected.items() <= report.items(), f"{run.directory}: failure.json is {report}, expected {expected}"
    assert report["step"] >= step - 1, f"{run.directory}: failure.json says step {report['step']}, killed after {step}"
    # One that was complete just before the kill may be on disk without a rank to tell of it.
    named = [report["last_checkpoint"]["step"]] if "last_checkpoint" in report else []
    assert set(named) <= set(run.steps()), f"{run.directory}: failure.json names checkpoint {named}, there are {run.steps()}"


def kill_once(run, random, totals):
    step = random.randint(1, STEPS)
    life = run.start()
    rank, process, processes = kill_one(life, step, random)
    since = time.monotonic()
    code = life.wait()
    seconds = time.monotonic() - since
    assert code == 128 + signal.SIGKILL, f"{run.directory}: {harness.signal_name(code)} after SIGKILL:\n{life.output}"
    left = [pid for pid in processes if pathlib.Path(f"/proc/{pid}").exists()]
    assert not left, f"{run.directory}: {left} have outlived their launcher"
    assert seconds < LIMIT_SECONDS, f"{run.directory}: {seconds:.1f} s until all were gone:\n{life.output}"
    check_named(run, life, rank, process, step)
    totals.kills += 1
    totals.seconds.append(seconds)


def restart_once(run, whole, random, totals):
    life = run.start("--restarts=3")
    kill_one(life, random.randint(1, STEPS // 2), random)
    code = life.wait()
    assert code == 0, f"{run.directory}: {harness.signal_name(code)} with restarts:\n{life.output}"
    assert "restart 1 of at most 3" in life.output, life.output
    assert run.final_hash() == whole.final_hash(), f"{run.directory} differs from {whole.directory}"
    assert run.failure() is None, f"{run.directory}: the run ended well, but failure.json says {run.failure()}"
    totals.restarted += 1


def main():
    arguments = harness.parse_arguments(__doc__, kills=50, restarts=10, ranks=4)
    totals = Totals()
    for trial in range(arguments.kills):
        with harness.Scratch() as folder:
            # So many steps that none is the last one when the signal arrives.
            run = harness.Run(arguments.binary, folder / "run", arguments_of(arguments.ranks, 100 * STEPS))
            kill_once(run, arguments.random, totals)
        print(f"kill {trial + 1}: named, all gone after {totals.seconds[-1]:.2f} s", flush=True)
    with harness.Scratch() as folder:
        whole = harness.Run(arguments.binary, folder / "whole", arguments_of(arguments.ranks, 2 * STEPS))
        if arguments.restarts:
            whole.finish()
        for trial in range(arguments.restarts):
            run = harness.Run(arguments.binary, folder / f"run{trial}", arguments_of(arguments.ranks, 2 * STEPS))
            restart_once(run, whole, arguments.random, totals)
            print(f"restart {trial + 1}: equal", flush=True)
    print(f"F10: {totals.kills} of {totals.kills} killed ranks of {arguments.ranks} were named with process, signal and "
          f"step, no process was left, the slowest end after {max(totals.seconds, default=0):.2f} s; F12: "
          f"{totals.restarted} of {totals.restarted} runs that were started again bitwise equal")


if __name__ == "__main__":
    main()
