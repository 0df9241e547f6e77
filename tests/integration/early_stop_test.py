# SPDX-License-Identifier: Apache-2.0
"""A training that ends by its own decision (HOOKS.EARLY_STOP), as whole processes: it counts as finished, so whatever
comes after it goes on."""
import json
import unittest

from tests.integration.run_case import RunCase

# Nothing gains that much: the first epoch sets the best value, the second one ends the run. 10 steps are an epoch.
EARLY = ("config.HOOKS.EARLY_STOP.METRIC=Training/loss_mean", "config.HOOKS.EARLY_STOP.MIN_DELTA=1000",
         "config.HOOKS.EARLY_STOP.PATIENCE=1")
END = 20


class EarlyStopTest(RunCase):

    def run_main(self, *arguments, epochs=4, config="test/swav_tiny"):
        return self.call(f"--config={config}", "config.CHECKPOINT.DIR=run",
                         f"config.OPTIMIZER.num_epochs={epochs}", *arguments)

    def finish(self, *arguments, **options):
        result = self.run_main(*arguments, **options)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result

    def assert_ended_early(self, result, steps=40, metric="Training/loss_mean"):
        self.assertIn(f"finished early at iteration {END} of {steps}", result.stdout)
        self.assertIn(f"the run ends early at iteration {END}: early_stop: {metric} has not been better than",
                      result.stderr)
        self.assertIn(f"of training: early_stop: {metric} has not been better than", result.stdout)

    def assert_noted(self, metric="Training/loss_mean"):
        step, why = (self.folder / "run/checkpoints/FINISHED").read_text().splitlines()
        self.assertEqual(step, f"step_{END}")
        self.assertIn(f"early_stop: {metric} has not been better than", why)

    def test_engines_after_the_training_run(self):
        self.assert_ended_early(self.finish(*EARLY))
        self.assert_noted()
        results = json.loads((self.folder / "run/results.json").read_text())
        self.assertIn("trained", results["knn"])

    def test_repeated_start_says_so_and_evaluates(self):
        self.finish("engine_name=train", *EARLY)
        model = (self.folder / f"run/checkpoints/step_{END}/model.safetensors").read_bytes()
        again = self.finish(*EARLY)
        self.assert_ended_early(again)
        self.assertNotIn(f"step {END + 1}/", again.stderr)
        self.assertEqual((self.folder / f"run/checkpoints/step_{END}/model.safetensors").read_bytes(), model)
        self.assertIn("knn", json.loads((self.folder / "run/results.json").read_text()))

    def test_metric_of_test_phases_ends_the_run_after_one(self):
        arguments = ("engine_name=train", *EARLY, "config.HOOKS.EARLY_STOP.METRIC=Testing/loss_mean")
        for _ in range(2):  # the checkpoint is from before the test phase, which a start measures again
            result = self.finish(*arguments, config="test/supervised_tiny")
            self.assert_ended_early(result, metric="Testing/loss_mean")
            phases = [json.loads(line) for line in (self.folder / "run/metrics.json").read_text().splitlines()]
            self.assertEqual([phase["phase_idx"] for phase in phases], [0, 1, 2, 3])
            self.assert_noted(metric="Testing/loss_mean")

    def test_metric_that_no_phase_has_is_refused(self):
        result = self.run_main(*EARLY, "config.HOOKS.EARLY_STOP.METRIC=Testing/loss_mean", "--check_config")
        self.assertEqual(result.returncode, 2, result.stdout + result.stderr)
        self.assertIn("METRIC is 'Testing/loss_mean', which this run never measures: config.TEST_MODEL is false",
                      result.stdout)

    def test_each_run_of_a_sweep_ends_early_and_the_next_one_starts(self):
        for _ in range(2):
            result = self.finish("engine_name=train", "config.SEED_VALUE=0,1", *EARLY)
            table = [line.split()[:2] for line in result.stdout.splitlines() if line.startswith("sweep_")]
            self.assertEqual(table, [["sweep_0", "finished"], ["sweep_1", "finished"]])
            self.assertEqual(result.stdout.count(f"finished early at iteration {END} of 40"), 2)

    def test_more_epochs_alone_train_nothing_and_a_larger_patience_goes_on(self):
        self.finish("engine_name=train", *EARLY)
        longer = self.finish("engine_name=train", *EARLY, "config.CHECKPOINT.ALLOW_CHANGES=[OPTIMIZER.num_epochs]",
                             epochs=6)
        self.assert_ended_early(longer, steps=60)
        self.assertIn("config.HOOKS.EARLY_STOP.PATIENCE", longer.stderr)
        patient = self.finish("engine_name=train", *EARLY, "config.HOOKS.EARLY_STOP.PATIENCE=3")
        self.assertIn("finished at iteration 40 of 40", patient.stdout)


if __name__ == "__main__":
    unittest.main(verbosity=2)
