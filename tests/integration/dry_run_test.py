# SPDX-License-Identifier: Apache-2.0
"""ssl_main --dry_run: what it says a run will do is what the run does, and it leaves nothing."""
import re
import unittest

from tests.integration.run_case import RunCase


class DryRunTest(RunCase):

    def run_main(self, *arguments, config="test/swav_tiny"):
        return self.call(f"--config={config}", "config.CHECKPOINT.DIR=run", *arguments)

    def test_it_tells_the_checkpoints_that_the_run_leaves_and_writes_nothing(self):
        dry = self.run_main("--dry_run", "engine_name=train")
        self.assertEqual(dry.returncode, 0, dry.stderr)
        self.assertEqual(list(self.folder.iterdir()), [])
        self.assertIn("2 epochs of 10 updates, 20 in all; 0 test phases", dry.stdout)
        self.assertRegex(dry.stdout, r"checkpoint +saves the run each epoch +at 10 +at 20 +2 times\n"
                                     r"checkpoint +saves the run every 3 updates +at 3, 6, 9 +at 12, 15, 18 +6 times")
        self.assertNotIn(" W ", dry.stderr)
        told = re.search(r"  (checkpoints/step_.*) \(2 of", dry.stdout).group(1).split(", ")
        self.assertEqual(self.run_main("engine_name=train").returncode, 0)
        left = sorted(str(path.relative_to(self.folder / "run"))
                      for path in (self.folder / "run/checkpoints").glob("step_*"))
        self.assertEqual(sorted(told), left)

    def test_drawings_are_all_there_and_the_end_adds_none(self):
        hooks = "config.hooks=[{type: feature_vis, kwargs: {freq: 3}}]"
        dry = self.run_main("--dry_run", "engine_name=train", hooks)
        told = re.search(r"  (feat_vis/.*) \(6 of 6\)", dry.stdout).group(1).split(", ")
        self.assertEqual(self.run_main("engine_name=train", hooks).returncode, 0)
        left = {str(path.relative_to(self.folder / "run")) for path in (self.folder / "run/feat_vis").glob("*")}
        self.assertEqual({re.sub(r"(iteration_\d+).*", r"\1", name) for name in left}, set(told))

    def test_a_trace_is_told_of_and_the_last_epoch_has_no_part_after_it(self):
        hooks = ("config.hooks=[{type: profiler, kwargs: {START_ITERATION: 3, NUM_ITERATIONS: 2}}, "
                 "{type: reload, kwargs: {mini_epoch: 2}}]")
        dry = self.run_main("--dry_run", "engine_name=train", hooks)
        self.assertRegex(dry.stdout, r"reload +finishes one of 2 parts of the data +at ")
        self.assertNotRegex(dry.stdout, r"phase_metrics .* 0 times")
        told = re.search(r"\n  (profile/.*)\n", dry.stdout).group(1)
        self.assertEqual(told, "profile/rank*_iterations_4-*.json")
        self.assertEqual(self.run_main("engine_name=train", hooks).returncode, 0)
        left = [path.name for path in (self.folder / "run").glob(told)]
        self.assertEqual(left, ["rank0_iterations_4-5.json"])

    def test_each_hook_says_when_and_files_of_sinks_are_all_there(self):
        hooks = ("+config/hooks=united_perception", "config.HOOKS.TENSORBOARD_SETUP.USE_TENSORBOARD=True",
                 "config.HOOKS.EMA_MODEL.SAVE_EMA_MODEL=True")
        dry = self.run_main("--dry_run", "engine_name=train", *hooks)
        self.assertEqual(dry.returncode, 0, dry.stderr)
        of_events = {line.split()[0] for line in dry.stdout.splitlines() if "acts whenever its events come" in line}
        self.assertEqual(of_events, {"swav_failure_report"})  # errors have no time
        self.assertRegex(dry.stdout, r"train_logger +reports metrics \(and of updates 1 and 2\) +at 2, 4, 6, 8, 10 ")
        self.assertRegex(dry.stdout, r"memory_summary +logs memory, in a run from its start +at 1 +- +1 time\n")
        self.assertRegex(dry.stdout, r"ema +updates the averages +at each of 10 updates ")
        self.assertRegex(dry.stdout, r"grad_clipper +clips gradients +at each of 10 updates ")
        self.assertIn("\n  log/events.out.tfevents.*\n", dry.stdout)
        told = re.search(r"files of metric sinks:\n  (.*)\n", dry.stdout).group(1).split(", ")
        self.assertEqual(told, ["metrics.jsonl", "tb_logs/events.out.tfevents.*"])
        self.assertEqual(self.run_main("engine_name=train", *hooks).returncode, 0)
        for pattern in [*told, "log/events.out.tfevents.*"]:
            self.assertEqual(len(list((self.folder / "run").glob(pattern))), 1, pattern)

    def test_the_end_is_saved_and_one_of_two_rules_may_never_be_due(self):
        dry = self.run_main("--dry_run", "engine_name=train", "+config/hooks=libai_default")
        self.assertRegex(dry.stdout, r"eval +evaluates at the end +- +at 20 +1 time\n"
                                     r"eval +evaluates every 5000 updates +- +- +0 times\n")
        self.assertIn("  checkpoints/step_20 (1 of 1)\n", dry.stdout)
        self.assertIn("  checkpoints/best.step, and the checkpoint that it names", dry.stdout)
        self.assertNotIn("hook 'eval' evaluates never", dry.stderr)
        self.assertIn("hook 'checkpoint' saves the run never: it is due every 5000 updates, and the run has 20", dry.stderr)

    def test_a_run_means_the_same_when_it_starts_with_its_own_configuration(self):
        hooks = ("config.hooks=[{type: PeriodicWriter}, {type: PeriodicCheckpointer}, "
                 "{type: BestCheckpointer, kwargs: {val_metric: Training/loss_mean}}]")
        self.assertEqual(self.run_main("engine_name=train", hooks).returncode, 0)
        first = self.run_main("--dry_run", "engine_name=train", hooks)
        again = self.call("--config=run/train_config.yaml", "--dry_run")
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertEqual(again.stdout, first.stdout)
        dumped = (self.folder / "run/train_config.yaml").read_text()
        self.assertIn("        METRICS: [Training/loss_mean]\n", dumped)

    def test_a_run_that_is_there_is_told_of(self):
        train = ("engine_name=train", "config.OPTIMIZER.num_epochs=1")
        self.assertEqual(self.run_main(*train).returncode, 0)
        more = self.run_main("--dry_run", "engine_name=train", "config.OPTIMIZER.num_epochs=2",
                             "config.CHECKPOINT.ALLOW_CHANGES=[OPTIMIZER]")
        self.assertEqual(more.returncode, 0, more.stderr)
        self.assertIn("a run is there: a start goes on after iteration 10, of the whole run below\n", more.stdout)
        anew = self.run_main("--dry_run", *train, "config.CHECKPOINT.OVERWRITE_EXISTING=True")
        self.assertIn("the run that is there is removed; a start begins anew\n", anew.stdout)
        refused = self.run_main("--dry_run", *train, "config.SEED_VALUE=5")
        self.assertEqual(refused.returncode, 2)
        self.assertIn("SEED_VALUE: 0 in the checkpoint, 5", refused.stderr)

    def test_hooks_that_never_act_are_warned_about(self):
        dry = self.run_main("--dry_run", "config.CHECKPOINT.CHECKPOINT_ITER_FREQUENCY=1000",
                            "config.CHECKPOINT.CHECKPOINT_FREQUENCY=-1",
                            "config.CHECKPOINT.ROLLING_START=5", "config.hooks=[{type: memory_empty}]",
                            config="test/supervised_tiny")
        self.assertEqual(dry.returncode, 0, dry.stderr)
        self.assertIn("hook 'checkpoint' saves the run never: it is due every 1000 updates, and the run has 20",
                      dry.stderr)
        self.assertIn("hook 'memory_empty' gives free memory back never: it is due every 100 updates, and the run has 20",
                      dry.stderr)
        self.assertIn("hook 'checkpoint' replaces the rolling checkpoint never: it is due each epoch from 5 on",
                      dry.stderr)

    def test_an_evaluation_and_mistakes(self):
        dry = self.run_main("--dry_run", "engine_name=knn")
        self.assertEqual(dry.returncode, 0, dry.stderr)
        self.assertEqual(dry.stdout, "ranks: one process\nengines: knn\nrun directory: run\n")
        self.assertEqual(self.run_main("--dry_run", "config.SEED_VALUE=0,1").returncode, 2)
        missing = self.run_main("--dry_run", "config.hooks=[{type: grad_cliper}]")
        self.assertEqual(missing.returncode, 2)
        self.assertIn("grad_clipper", missing.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
