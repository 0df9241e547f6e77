# SPDX-License-Identifier: Apache-2.0
"""Ranks that hang, die, or are stopped at a bad moment: who is named, what is said, and with which code all end."""
import os
import signal
import unittest

from tests.integration.ranks_case import RanksCase, children, has_variable

TWO = "--launch=local:2"
ENDLESS = "config.OPTIMIZER.num_epochs=100000"
SYNC_BN = "config.MODEL.SYNC_BN_CONFIG.CONVERT_BN_TO_SYNC_BN=True"
SHARDED = "config.TRAINER.TASK_NAME=self_supervision_fsdp_task"
TIMEOUT = "config.DISTRIBUTED.TIMEOUT_SECONDS=5"


class WithinAStepTest(RanksCase):
    """The others wait within forward or backward, where a Status has to pass through LibTorch as an exception."""

    def hang(self, *arguments, run):
        world = self.world(TWO, ENDLESS, TIMEOUT, *arguments, run=run)
        self.assertTrue(world.wait_for("step 5/"), world.output)
        pid = world.rank(1)
        os.kill(pid, signal.SIGSTOP)
        self.assertEqual(world.end(), 7, world.output)
        self.assertIn(f"rank 1 (pid {pid}) does not answer rank 0: killing it", world.output)
        self.assertIn(f"the first failure: rank 1 (pid {pid}) did not answer the others", world.output)
        self.assertNotIn("[ssl/", world.output)
        report = self.failure(run=run)
        self.assertEqual((report["rank"], report["code"], report["exit_code"]), (1, "DEADLINE_EXCEEDED", 7))
        self.assertIn("no answer from rank 1", report["message"])

    def test_a_rank_that_hangs_is_killed_and_named(self):
        self.hang(SYNC_BN, run="normalised")
        self.hang(SHARDED, run="sharded")

    def test_a_rank_that_dies_is_named_without_internals(self):
        world = self.world(TWO, ENDLESS, SYNC_BN)
        self.assertTrue(world.wait_for("step 5/"), world.output)
        pid = world.rank(1)
        os.kill(pid, signal.SIGKILL)
        self.assertEqual(world.end(), 128 + signal.SIGKILL, world.output)
        self.assertIn(f"lost a connection: rank 1 (process {pid} on ", world.output)
        self.assertNotIn("[ssl/", world.output)
        self.assertNotIn("UNAVAILABLE: ", world.output, "a message, not a status")


class EarlyStopTest(RanksCase):

    def stop_at_once(self, world, number, when):
        self.assertTrue(world.wait_for(when), world.output)
        world.process.send_signal(number)
        return world.end()

    def loading(self, world, rank):
        """The process of a rank that is just being started: its variables are there once its program is."""
        while True:
            for child in children(world.process.pid):
                if has_variable(child, f"RANK={rank}"):
                    return child
            self.assertIsNone(world.process.poll(), world.output)

    def test_a_stop_while_ranks_load_is_a_stop(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR2):
            world = self.world(TWO, ENDLESS)
            self.assertEqual(self.stop_at_once(world, number, "this command starts 2 ranks"), 75, world.output)
            self.assertIn("stopped before the first step", world.output)
            self.assertFalse((self.folder / "run").exists())

    def test_a_stop_while_ranks_load_again_is_a_stop(self):
        world = self.world(TWO, ENDLESS, "--restarts=3")
        self.assertTrue(world.wait_for("step 5/"), world.output)
        pid = world.rank(1)
        os.kill(pid, signal.SIGKILL)
        self.assertEqual(self.stop_at_once(world, signal.SIGTERM, "restart 1 of at most 3"), 75, world.output)
        report = self.failure()
        self.assertEqual((report["rank"], report["signal"], report["restarts"]), (1, 9, 0), "of the start before")

    def test_a_stop_of_one_rank_that_loads_is_a_stop_of_all(self):
        world = self.world("--launch=local:3", ENDLESS, "config.DISTRIBUTED.CONNECT_SECONDS=2")
        self.assertTrue(world.wait_for("this command starts 3 ranks"), world.output)
        os.kill(self.loading(world, 2), signal.SIGTERM)
        self.assertEqual(world.end(), 75, world.output)

    def test_a_stop_of_one_rank_while_it_is_built_is_a_stop_of_all(self):
        world = self.world("--launch=local:3", ENDLESS, "--restarts=3")
        self.assertTrue(world.wait_for("run directory: "), world.output)
        os.kill(world.rank(2), signal.SIGTERM)
        self.assertEqual(world.end(), 75, world.output)
        self.assertNotIn(" E ", world.output)
        self.assertNotIn("restart", world.output)
        self.assertNotIn("failure.json", self.files())


if __name__ == "__main__":
    unittest.main(verbosity=2)
