# SPDX-License-Identifier: Apache-2.0
"""Damages the checkpoints of a run and starts the command again. It names what is damaged, goes on from the newest
checkpoint that is intact, writes the damaged ones anew and ends bitwise equal; with none intact it ends with exit code 4
and leaves the files alone.

  bazel run //tests/reliability:damaged_checkpoints                   12 kinds of damage, then 200 random bits
  bazel run //tests/reliability:damaged_checkpoints -- --seed=7 --flips=20
"""
import re
import shutil

from tests.reliability import harness

ARGUMENTS = ["--config=test/swav_tiny", "engine_name=train", "config.CHECKPOINT.CHECKPOINT_ITER_FREQUENCY=5",
             "config.CHECKPOINT.KEEP_LAST=3", "config.LOSS.swav_loss.queue.queue_length=16"]
STATE_FILES = ("model.safetensors", "optimizer.safetensors", "state_rank0.safetensors")
STEPS = (10, 15, 20)  # checkpoints of the finished run
EXIT_DATA = 4


def flip(path, random):
    """Flips one bit anywhere in the file; returns where."""
    data = bytearray(path.read_bytes())
    at, bit = random.randrange(len(data)), random.randrange(8)
    data[at] ^= 1 << bit
    path.write_bytes(data)
    return f"{path.name} byte {at} bit {bit}"


def cut(path, random):
    path.write_bytes(path.read_bytes()[:random.randrange(path.stat().st_size)])


class Damaged:
    """A copy of the finished run, at the place where it was trained."""

    def __init__(self, binary, folder):
        self.run = harness.Run(binary, folder / "run", ARGUMENTS)
        self.run.finish()
        assert tuple(self.run.steps()) == STEPS, self.run.steps()
        self.hash = self.run.final_hash()
        self._intact = folder / "intact"
        self.run.directory.rename(self._intact)

    def fresh(self):
        shutil.rmtree(self.run.directory, ignore_errors=True)
        shutil.copytree(self._intact, self.run.directory)
        return {step: self.run.step_directory(step) for step in STEPS}

    def start_again(self):
        life = self.run.start()
        return life.wait(), life.output

    def check_falls_back(self, step, *names):
        """The run goes on from `step`, names what it passed over, and leaves intact checkpoints only."""
        code, output = self.start_again()
        assert code == 0, f"exit code {code}:\n{output}"
        for name in names:
            assert re.search(rf" W .*{re.escape(name)}", output), f"no warning names {name}:\n{output}"
        assert f"resuming at iteration {step} " in output, f"expected to go on from step {step}:\n{output}"
        assert self.run.final_hash() == self.hash, f"differs after resuming at {step}"
        self.check_intact_now()

    def check_intact_now(self):
        code, output = self.start_again()
        assert code == 0 and f"resuming at iteration {STEPS[-1]} " in output, f"newest is not intact afterwards:\n{output}"

    def check_refused(self):
        before = {step: sorted(path.iterdir()) for step, path in self.paths().items()}
        code, output = self.start_again()
        assert code == EXIT_DATA and "no checkpoint is intact" in output, f"exit code {code}:\n{output}"
        assert {step: sorted(path.iterdir()) for step, path in self.paths().items()} == before, "files were changed"
        failure = self.run.failure()
        assert failure and failure["exit_code"] == EXIT_DATA, failure

    def paths(self):
        return {step: self.run.step_directory(step) for step in self.run.steps()}


def check_table(damaged, random):
    """Twelve kinds of damage; returns their number."""
    newest, middle, oldest = reversed(STEPS)
    cases = 0
    for name in STATE_FILES:
        flip(damaged.fresh()[newest] / name, random)
        damaged.check_falls_back(middle, name)
        cases += 1
    for name in ("model.safetensors", "MANIFEST.json"):
        cut(damaged.fresh()[newest] / name, random)
        damaged.check_falls_back(middle, name)
        (damaged.fresh()[newest] / name).unlink()
        damaged.check_falls_back(middle, name)
        cases += 2
    for name in STATE_FILES:  # a file of another step
        steps = damaged.fresh()
        shutil.copy(steps[middle] / name, steps[newest] / name)
        damaged.check_falls_back(middle, name)
        cases += 1
    steps = damaged.fresh()
    for step in (newest, middle):
        flip(steps[step] / "model.safetensors", random)
    damaged.check_falls_back(oldest, f"step_{newest}", f"step_{middle}")
    steps = damaged.fresh()
    for path in steps.values():
        flip(path / "model.safetensors", random)
    damaged.check_refused()
    return cases + 2


def check_flip(damaged, random):
    """A random bit of a random file of the newest checkpoint. Returns whether the file was passed over."""
    steps = damaged.fresh()
    name = random.choice(STATE_FILES + ("MANIFEST.json",))
    where = flip(steps[STEPS[-1]] / name, random)
    code, output = damaged.start_again()
    assert code == 0, f"{where}: exit code {code}:\n{output}"
    assert damaged.run.final_hash() == damaged.hash, f"{where}: the final state differs"
    passed_over = f"resuming at iteration {STEPS[-2]} " in output
    assert passed_over or name == "MANIFEST.json", f"{where}: not noticed:\n{output}"
    return passed_over


def main():
    arguments = harness.parse_arguments(__doc__, flips=200)
    with harness.Scratch() as folder:
        damaged = Damaged(arguments.binary, folder)
        kinds = check_table(damaged, arguments.random)
        print(f"F6: {kinds} of {kinds} kinds of damage end as documented", flush=True)
        found = sum(check_flip(damaged, arguments.random) for _ in range(arguments.flips))
    print(f"F5: {found} of {arguments.flips} flipped bits led to the previous checkpoint, the others changed a manifest's text "
          f"and not its meaning; {arguments.flips} of {arguments.flips} final states bitwise equal")


if __name__ == "__main__":
    main()
