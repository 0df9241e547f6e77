# SPDX-License-Identifier: Apache-2.0
"""Sweeps whose runs have several ranks each."""
import signal
import unittest

from tests.integration.ranks_case import RanksCase

TWO = "--launch=local:2"


class RanksSweepTest(RanksCase):

    def test_each_run_of_a_sweep_has_its_ranks(self):
        done = self.world(TWO, "config.OPTIMIZER.num_epochs=1", "config.SEED_VALUE=0,1")
        self.assertEqual(done.end(), 0, done.output)
        for number in (0, 1):
            self.assertRegex(done.output, rf"(?m)^sweep_{number}   finished  config.SEED_VALUE={number}")
            self.assertIn(f"sweep_{number}/checkpoints/step_5/state_rank1.safetensors", self.files())
        self.finished(TWO, "config.OPTIMIZER.num_epochs=1", "config.SEED_VALUE=1", run="alone")
        self.assertEqual(self.weights(5, run="run/sweep_1"), self.weights(5, run="alone"))

    def test_a_stop_ends_a_sweep_of_ranks_and_the_same_command_goes_on(self):
        arguments = (TWO, "config.OPTIMIZER.num_epochs=2", "config.SEED_VALUE=0,1")
        world = self.world(*arguments)
        self.assertTrue(world.wait_for("step 3/"), world.output)
        world.process.send_signal(signal.SIGTERM)
        self.assertEqual(world.end(), 75, world.output)
        self.assertIn("1 runs were not started", world.output)
        again = self.finished(*arguments)
        self.assertIn("resuming at iteration", again.output)
        self.assertIn("sweep_1   finished", again.output)


if __name__ == "__main__":
    unittest.main(verbosity=2)
