# SPDX-License-Identifier: Apache-2.0
"""Two runs in one directory, a lock that a dead process left behind, and a directory that goes away under a run."""
import os
import pathlib
import shutil
import signal
import socket
import sys
import unittest

from tests.reliability import harness

BINARY = pathlib.Path(sys.argv.pop(1)).absolute()
ARGUMENTS = ["--config=test/swav_tiny", "engine_name=train"]
# So long that it is always ended by the test.
ENDLESS = [*ARGUMENTS, "config.OPTIMIZER.num_epochs=100000", "config.CHECKPOINT.CHECKPOINT_FREQUENCY=1000000"]
EXIT_STORAGE = 5


class RunDirectoryTest(unittest.TestCase):

    def setUp(self):
        scratch = harness.Scratch()
        self.folder = scratch.__enter__()
        self.addCleanup(scratch.__exit__, None)

    def start_endless(self, name="run"):
        """A run that trains, holds its directory, and goes on until something ends it."""
        run = harness.Run(BINARY, self.folder / name, ENDLESS)
        return run, self.start(run)

    def start(self, run):
        """A life that has begun to train; one that the test does not end, its cleanup does."""
        life = run.start()
        self.addCleanup(life.kill)
        self.assertTrue(life.wait_for("step 2/"), life.output)
        return life

    def end(self, life):
        life.signal(signal.SIGTERM)
        self.assertEqual(life.wait(), harness.STOPPED, life.output)

    def snapshot(self, run):
        return {name: (run.directory / name).read_bytes() for name in ("train_config.yaml", ".lock")}

    def test_second_run_is_refused_and_changes_nothing(self):
        run, first = self.start_endless()
        before = self.snapshot(run)
        second = harness.Run(BINARY, run.directory, [*ARGUMENTS, "config.SEED_VALUE=7"]).start()
        self.assertEqual(second.wait(), EXIT_STORAGE, second.output)
        print(f"F27: second start refused after {second.seconds:.2f} s")
        for part in (str(run.directory), f"process {first.pid}", socket.gethostname()):
            self.assertIn(part, second.output)
        self.assertEqual(self.snapshot(run), before)
        self.assertIsNone(run.failure())
        self.assertNotIn("SEED_VALUE: 7", (run.directory / "train_config.yaml").read_text())
        self.assertNotIn(second.lines[-1], (run.directory / "log.txt").read_text(), "wrote into the first run's log")
        self.end(first)

    def test_lock_of_a_killed_process_is_taken_over(self):
        run, first = self.start_endless()
        first.signal(signal.SIGKILL)
        self.assertEqual(first.wait(), -signal.SIGKILL)
        self.assertTrue((run.directory / ".lock").exists())
        self.end_after_a_step(run)

    def test_what_a_lock_file_says_does_not_lock(self):
        run = harness.Run(BINARY, self.folder / "run", ENDLESS)
        run.directory.mkdir()
        (run.directory / ".lock").write_text(f"process {os.getpid()} on {socket.gethostname()}\n")
        self.end_after_a_step(run)

    def end_after_a_step(self, run):
        self.end(self.start(run))

    def take_away(self, run, life):
        """Removes the directory between two instructions of the run."""
        life.signal(signal.SIGSTOP)
        shutil.rmtree(run.directory)

    def test_run_whose_directory_was_deleted_ends_and_makes_no_new_one(self):
        run, life = self.start_endless()
        self.take_away(run, life)
        life.signal(signal.SIGCONT)
        self.assertEqual(life.wait(), EXIT_STORAGE, life.output)
        self.assertIn(str(run.directory), life.lines[-1])
        self.assertFalse(run.checkpoints.exists(), "a checkpoint went to a directory that somebody had removed")

    def test_run_whose_directory_was_replaced_leaves_the_new_run_alone(self):
        whole = harness.Run(BINARY, self.folder / "whole", ARGUMENTS)
        whole.finish()
        run, old = self.start_endless()
        self.take_away(run, old)
        new = harness.Run(BINARY, run.directory, ARGUMENTS)
        life = self.start(new)
        life.signal(signal.SIGSTOP)
        old.signal(signal.SIGCONT)
        self.assertEqual(old.wait(), EXIT_STORAGE, old.output)
        life.signal(signal.SIGCONT)
        self.assertEqual(life.wait(), 0, life.output)
        self.assertEqual(new.final_hash(), whole.final_hash())


if __name__ == "__main__":
    unittest.main()
