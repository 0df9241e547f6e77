# SPDX-License-Identifier: Apache-2.0
"""The checkpoint with the best test metric, as whole processes: it outlives KEEP_LAST, stops and restarts, and
evaluations find it by its name."""
import json
import signal
import unittest

from tests.integration.run_case import RunCase

BEST = "config.HOOKS.BEST_CHECKPOINT.METRICS=[Testing/loss_mean]"


class BestCheckpointTest(RunCase):

    def run_main(self, *arguments, stop_when=None):
        """Runs one process, with SIGTERM at the first line of the log that holds `stop_when`; (exit code, log)."""
        return self.signalled("--config=test/supervised_tiny", "config.CHECKPOINT.DIR=run",
                              "config.OPTIMIZER.num_epochs=6", "config.CHECKPOINT.KEEP_LAST=1", *arguments,
                              number=signal.SIGTERM, when=stop_when)

    def losses(self):
        """The iteration and the loss of each test phase."""
        lines = [json.loads(line) for line in (self.folder / "run/metrics.json").read_text().splitlines()]
        return [(line["iteration"], line["test_loss"]["mean"]) for line in lines if "test_loss" in line]

    def named(self, name="best"):
        return int((self.folder / f"run/checkpoints/{name}.step").read_text().strip().removeprefix("step_"))

    def steps(self):
        return sorted(int(path.name[5:]) for path in (self.folder / "run/checkpoints").glob("step_*"))

    def check_best(self, pick):
        tests = self.losses()
        best = pick(tests, key=lambda test: test[1])[0]
        self.assertEqual(self.named(), best, tests)
        self.assertEqual(self.steps(), sorted({best, tests[-1][0]}))
        return best

    def test_the_best_outlives_keep_last_and_restarts(self):
        # "max" of a loss that falls: the first epoch is the best one, and everything after it would remove it.
        arguments = ("engine_name=train", BEST, "config.HOOKS.BEST_CHECKPOINT.MODE=max")
        code, log = self.run_main(*arguments, stop_when="test | epoch 2/6")
        self.assertEqual(code, 75, log)
        code, log = self.run_main(*arguments)
        self.assertEqual(code, 0, log)
        best = self.check_best(max)
        self.assertLess(best, self.losses()[-1][0])
        # Evaluations read the newest checkpoint, or the one that is asked for.
        for extra, step in (((), self.losses()[-1][0]), (("config.CHECKPOINT.EVALUATE=best",), best)):
            code, log = self.run_main("engine_name=knn", *extra)
            self.assertEqual(code, 0, log)
            self.assertIn(f"evaluating the network with: checkpoint of iteration {step}", log)

    def test_united_perceptions_name_keeps_the_best_loss(self):
        code, log = self.run_main("engine_name=train", "config.hooks=[{type: auto_save_best}, {type: auto_checkpoint}]")
        self.assertEqual(code, 0, log)
        self.check_best(min)

    def test_without_tests_united_perceptions_name_is_a_warning(self):
        code, log = self.run_main("engine_name=train", "config.hooks=[{type: auto_save_best}]", "config.TEST_MODEL=False",
                                  "config.OPTIMIZER.num_epochs=1")
        self.assertEqual(code, 0, log)
        self.assertIn("METRICS is 'Testing/loss_mean', which this run never measures: config.TEST_MODEL is false", log)
        self.assertFalse((self.folder / "run/checkpoints/best.step").exists())

    def test_a_metric_that_is_never_measured_is_refused(self):
        code, log = self.run_main("engine_name=train", BEST, "config.TEST_MODEL=False")
        self.assertEqual(code, 2, log)
        self.assertIn("METRICS is 'Testing/loss_mean', which this run never measures: config.TEST_MODEL is false", log)

    def test_without_it_only_the_newest_stays(self):
        self.assertEqual(self.run_main("engine_name=train")[0], 0)
        self.assertEqual(self.steps(), [self.losses()[-1][0]])


if __name__ == "__main__":
    unittest.main(verbosity=2)
