# SPDX-License-Identifier: Apache-2.0
"""What becomes of a run of several ranks when one of them, or the launcher, fails at a random moment. No process is left
after any of these:

  F10  a rank is killed: the others end at once, failure.json names rank, process, signal, step and checkpoint
  F11  a rank is stopped (SIGSTOP): the others wait for TIMEOUT_SECONDS, all are gone soon after, and it is named;
       a rank calls another operation than the others, or one of another shape: all end within 15 s and name both
  F12  --restarts: after a kill the run ends with the state of an uninterrupted one, bit by bit; a run that is killed
       each time is started again so often and no more, and 3 times where nothing new is saved
  the launcher itself is killed: no rank outlives it

  bazel run //tests/reliability:rank_torture                      the numbers of docs/reliability.md
  bazel run //tests/reliability:rank_torture -- --seed=7 --kills=3 --hangs=0 --mismatches=0 --restarts=0 --orphans=0
"""
import os
import pathlib
import select
import signal
import socket
import time

from tests.reliability import harness

STEPS = 12
SAVED_AFTER_LINES = 4  # progress lines until the first of the steps is saved for certain
# What a rank needs to hear of a closed connection, to look around, and to end, is about a second; the rest is for a
# machine that does other work.
LIMIT_SECONDS = 10.0
TIMEOUT_SECONDS = 10  # of operations, where a rank is stopped
HANG_LIMIT_SECONDS = TIMEOUT_SECONDS + LIMIT_SECONDS
MISMATCH_LIMIT_SECONDS = 15.0


class Totals:

    def __init__(self):
        self.kills, self.hangs, self.mismatches, self.orphans = [], [], [], []  # seconds of each
        self.restarted = self.policies = 0


def arguments_of(ranks, steps):
    """Each step has 8 samples of every rank."""
    return ["--config=test/swav_tiny", "engine_name=train", f"--launch=local:{ranks}", "config.OPTIMIZER.num_epochs=1",
            "config.CHECKPOINT.SAVE_IN_BACKGROUND=False", f"config.DATA.TRAIN.DATA_LIMIT={8 * ranks * steps}"]


def endless(arguments, folder, *more):
    """So many steps that none is the last one when something happens."""
    return harness.Run(arguments.binary, folder / "run", [*arguments_of(arguments.ranks, 100 * STEPS), *more])


def signal_one(life, step, random, number):
    """Sends a rank a signal once the progress line of `step` is there; (rank, its process, all processes)."""
    assert life.wait_for(rf"step {step}/"), f"step {step} was not reached:\n{life.output}"
    processes = harness.ranks_of(life)
    rank = random.choice(sorted(processes))
    os.kill(processes[rank], number)
    return rank, processes[rank], list(processes.values())


def end_of(run, life, processes, limit):
    """The exit code, and how many seconds it took until all were gone."""
    since = time.monotonic()
    code = life.wait()
    seconds = time.monotonic() - since
    left = [pid for pid in processes if pathlib.Path(f"/proc/{pid}").exists()]
    assert not left, f"{run.directory}: {left} have outlived their launcher"
    assert seconds < limit, f"{run.directory}: {seconds:.1f} s until all were gone:\n{life.output}"
    assert "frame #" not in life.output, f"a stack trace of LibTorch's:\n{life.output}"
    return code, seconds


def check_report(run, step, expected):
    report = run.failure()
    assert expected.items() <= report.items(), f"{run.directory}: failure.json is {report}, expected {expected}"
    assert report["step"] >= step - 1, f"{run.directory}: failure.json says step {report['step']}, failed after {step}"
    # One that was complete just before the kill may be on disk without a rank to tell of it.
    named = [report["last_checkpoint"]["step"]] if "last_checkpoint" in report else []
    assert set(named) <= set(run.steps()), f"{run.directory}: failure.json names checkpoint {named}, there are {run.steps()}"
    return report


def kill_once(arguments, folder, totals):
    step = arguments.random.randint(1, STEPS)
    run = endless(arguments, folder)
    life = run.start()
    rank, process, processes = signal_one(life, step, arguments.random, signal.SIGKILL)
    code, seconds = end_of(run, life, processes, LIMIT_SECONDS)
    assert code == 128 + signal.SIGKILL, f"{run.directory}: {harness.signal_name(code)} after SIGKILL:\n{life.output}"
    assert f"rank {rank} (pid {process}) was ended by SIGKILL" in life.output, life.output
    check_report(run, step, {"rank": rank, "pid": process, "signal": 9, "exit_code": 137})
    totals.kills.append(seconds)
    return f"named, all gone after {seconds:.2f} s"


def hang_once(arguments, folder, totals):
    step = arguments.random.randint(1, STEPS)
    run = endless(arguments, folder, f"config.DISTRIBUTED.TIMEOUT_SECONDS={TIMEOUT_SECONDS}")
    life = run.start()
    rank, process, processes = signal_one(life, step, arguments.random, signal.SIGSTOP)
    code, seconds = end_of(run, life, processes, HANG_LIMIT_SECONDS)
    assert code == 7, f"{run.directory}: {harness.signal_name(code)} after SIGSTOP:\n{life.output}"
    assert f"rank {rank} (pid {process}) did not answer the others, and was killed" in life.output, life.output
    report = check_report(run, step, {"rank": rank, "pid": process, "code": "DEADLINE_EXCEEDED", "exit_code": 7})
    assert f"rank {rank} (process {process} on " in report["message"], report
    totals.hangs.append(seconds)
    return f"named, all gone after {seconds:.2f} s"


def free_port():
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return bound.getsockname()[1]


def mismatch_once(arguments, folder, totals):
    """Ranks by hand of a program that does nothing but reduce."""
    odd, call = arguments.random.randrange(arguments.ranks), arguments.random.randint(0, 20)
    other = arguments.random.choice(["kind", "shape"])
    place = {"WORLD_SIZE": str(arguments.ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    lives = [harness.Life([arguments.odd_rank, other if rank == odd else "same", call], {**place, "RANK": str(rank)})
             for rank in range(arguments.ranks)]
    assert lives[odd].wait_for("the other operation is next"), lives[odd].output
    since = time.monotonic()
    for rank, life in enumerate(lives):
        code = life.wait()
        assert code == 1, f"rank {rank} ended with {harness.signal_name(code)}:\n{life.output}"
        # Ranks that join a world have done two operations already.
        assert f"all-reduce (sum) {call + 2} of Float [8]" in life.output, life.output
        assert rank == odd or f"rank {odd} (process {lives[odd].pid} on " in life.output, life.output
        assert rank != odd or "met other operations on other ranks: rank " in life.output, life.output
    seconds = time.monotonic() - since
    assert seconds < MISMATCH_LIMIT_SECONDS, f"{seconds:.1f} s until all were gone"
    totals.mismatches.append(seconds)
    return f"another {other} in call {call} of rank {odd}: named, all gone after {seconds:.2f} s"


def restart_once(arguments, folder, whole, totals):
    run = harness.Run(arguments.binary, folder / "run", arguments_of(arguments.ranks, 2 * STEPS))
    life = run.start("--restarts=3")
    signal_one(life, arguments.random.randint(1, STEPS // 2), arguments.random, signal.SIGKILL)
    code = life.wait()
    assert code == 0, f"{run.directory}: {harness.signal_name(code)} with restarts:\n{life.output}"
    assert "restart 1 of at most 3" in life.output, life.output
    assert run.final_hash() == whole.final_hash(), f"{run.directory} differs from {whole.directory}"
    assert run.failure() is None, f"{run.directory}: the run ended well, but failure.json says {run.failure()}"
    totals.restarted += 1
    return "equal"


def kill_each_start(life, line, random):
    """Kills a rank of each start once lines are there; how often."""
    kills = 0
    while all(life.wait_for_next(line) for _ in range(SAVED_AFTER_LINES)):
        processes = harness.ranks_of(life)
        os.kill(processes[random.choice(sorted(processes))], signal.SIGKILL)
        kills += 1
        if not life.wait_for_next("; restart |; no restart "):
            break
    return kills


def policy_once(arguments, folder, restarts, saves):
    """A run that is killed in each of its starts, after a save or before the first one."""
    frequency = 1 if saves else -1
    run = endless(arguments, folder, f"config.CHECKPOINT.CHECKPOINT_ITER_FREQUENCY={frequency}",
                  "config.CHECKPOINT.CHECKPOINT_FREQUENCY=-1")
    life = run.start(f"--restarts={restarts}")
    kills = kill_each_start(life, r"step [0-9]+/", arguments.random)
    code = life.wait()
    assert code == 128 + signal.SIGKILL, f"{run.directory}: {harness.signal_name(code)}:\n{life.output}"
    tries, last = (restarts + 1, f"no restart after {restarts}, the most that were allowed") if saves else (
        3, "no restart after 3 tries that saved none")
    assert kills == tries, f"{run.directory}: {kills} tries, expected {tries}:\n{life.output}"
    assert last in life.output, life.output
    for number in range(1, tries):
        assert f"; restart {number} of at most {restarts}" in life.output, life.output
    return f"{tries} tries, each logged"


def orphan_once(arguments, folder, totals):
    """The launcher is killed anywhere from its first line on: while ranks start, meet, build, train or save."""
    run = endless(arguments, folder)
    life = run.start()
    assert life.wait_for("this command starts "), life.output
    # At random, because that is what it is about; the wait ends early only for a launcher that has failed.
    assert not life.ends_within(arguments.random.uniform(0, 4)), life.output
    os.kill(life.pid, signal.SIGSTOP)  # so that it starts nobody while its ranks are counted
    files = {pid: os.pidfd_open(pid) for pid in harness.ranks_of(life).values()}
    os.kill(life.pid, signal.SIGKILL)
    since = time.monotonic()
    for pid, file in files.items():
        gone = select.select([file], [], [], harness.HANG_SECONDS)[0]
        assert gone, f"{run.directory}: process {pid} has outlived its launcher"
        os.close(file)
    seconds = time.monotonic() - since
    life.wait()
    assert seconds < LIMIT_SECONDS, f"{run.directory}: {seconds:.1f} s until all were gone"
    totals.orphans.append(seconds)
    return f"its {len(files)} ranks gone after {seconds:.2f} s"


def repeat(count, name, trial):
    for number in range(1, count + 1):
        with harness.Scratch() as folder:
            print(f"{name} {number}: {trial(folder)}", flush=True)


def restarts(arguments, totals):
    if not arguments.restarts:
        return
    with harness.Scratch() as folder:
        whole = harness.Run(arguments.binary, folder / "whole", arguments_of(arguments.ranks, 2 * STEPS))
        whole.finish()
        repeat(arguments.restarts, "restart", lambda scratch: restart_once(arguments, scratch, whole, totals))
    repeat(1, "killed after each save", lambda folder: policy_once(arguments, folder, 3, True))
    repeat(1, "killed before the first save", lambda folder: policy_once(arguments, folder, 9, False))
    totals.policies = 2


def main():
    arguments = harness.parse_arguments(__doc__, programs=["odd_rank"], kills=50, hangs=20, mismatches=10, restarts=10,
                                        orphans=20, ranks=4)
    totals = Totals()
    for name, trial, count in (("kill", kill_once, arguments.kills), ("hang", hang_once, arguments.hangs),
                               ("mismatch", mismatch_once, arguments.mismatches),
                               ("killed launcher", orphan_once, arguments.orphans)):
        repeat(count, name, lambda folder, trial=trial: trial(arguments, folder, totals))
    restarts(arguments, totals)
    for name, seconds in (("F10: killed ranks", totals.kills), ("F11: hung ranks", totals.hangs),
                          ("F11: mismatched operations", totals.mismatches), ("killed launchers", totals.orphans)):
        if seconds:
            print(f"{name} of worlds of {arguments.ranks}: {len(seconds)} of {len(seconds)} as expected, no process left; all "
                  f"gone after {sorted(seconds)[len(seconds) // 2]:.2f} s (median), {max(seconds):.2f} s at most")
    print(f"F12: {totals.restarted} of {totals.restarted} runs that were started again bitwise equal; {totals.policies} "
          "of 2 policies as told")


if __name__ == "__main__":
    main()
