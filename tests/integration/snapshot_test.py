# SPDX-License-Identifier: Apache-2.0
"""SIGUSR1, as whole processes: a training saves at the next step and goes on to the very same end; where there is
nothing to save it does nothing. Processes are watched through their log, never by waiting."""
import re
import signal
import unittest

from tests.integration.run_case import STEPS, RunCase, without_command


class SnapshotTest(RunCase):

    def run_main(self, run, *arguments, signal_when=None):
        """Runs to the end, with SIGUSR1 where its log first holds `signal_when`; (exit code, log)."""
        return self.signalled("--config=test/swav_tiny", f"config.CHECKPOINT.DIR={run}",
                              "config.CHECKPOINT.CHECKPOINT_FREQUENCY=-1",
                              "config.CHECKPOINT.CHECKPOINT_ITER_FREQUENCY=-1", *arguments,
                              number=signal.SIGUSR1, when=signal_when)

    def steps(self, run):
        return sorted(int(path.name[5:]) for path in (self.folder / run / "checkpoints").glob("step_*"))

    def model(self, run):
        return (self.folder / run / f"checkpoints/step_{STEPS}/model.safetensors").read_bytes()

    def test_a_run_saves_at_that_step_and_goes_on_to_the_same_end(self):
        self.assertEqual(self.run_main("whole", "engine_name=train")[0], 0)
        self.assertEqual(self.steps("whole"), [STEPS])
        code, log = self.run_main("asked", "engine_name=train", signal_when="step 7/")
        self.assertEqual(code, 0, log)
        saved = [int(step) for step in re.findall(r"snapshot asked for at iteration (\d+): saving", log)]
        self.assertEqual(saved, [7], log)
        self.assertEqual(self.steps("asked"), [7, STEPS])
        self.assertEqual(self.model("asked"), self.model("whole"))
        # What was saved is a checkpoint like any other.
        code, log = self.run_main("asked", "engine_name=train", "config.CHECKPOINT.RESUME_FROM=7")
        self.assertEqual(code, 0, log)
        self.assertIn(f"resuming at iteration 7 of {STEPS}", log)
        self.assertEqual(self.model("asked"), self.model("whole"))

    def test_while_a_run_is_built_or_begins_it_does_no_harm(self):
        self.assertEqual(self.run_main("whole", "engine_name=train")[0], 0)
        for run, when in (("built", "run directory:"), ("begun", "hooks:")):
            code, log = self.run_main(run, "engine_name=train", signal_when=when)
            self.assertEqual(code, 0, log)
            self.assertEqual(self.model(run), self.model("whole"))

    def test_an_evaluation_does_not_mind(self):
        self.assertEqual(self.run_main("run", "engine_name=train")[0], 0)
        code, log = self.run_main("run", "engine_name=knn", signal_when="evaluating the network with: checkpoint")
        self.assertEqual(code, 0, log)
        self.assertIn("evaluating the network with: checkpoint", log)
        self.assertNotIn("snapshot", without_command(log))
        self.assertEqual(self.steps("run"), [STEPS])


if __name__ == "__main__":
    unittest.main(verbosity=2)
