# SPDX-License-Identifier: Apache-2.0
"""The lists of hooks of other programs (configs/config/hooks) on the quickstart's images, in its number format: what
they do and leave, not only that they run."""
import hashlib
import json
import signal
import unittest

from tests.integration.run_case import RunCase


class HookListsTest(RunCase):

    def train(self, hooks, *arguments):
        """The log of 40 updates on Fashion-MNIST."""
        result = self.call("--config=quickstart", f"+config/hooks={hooks}", "engine_name=train",
                           "config.CHECKPOINT.DIR=run", "config.OPTIMIZER.num_epochs=1",
                           "config.DATA.TRAIN.DATA_LIMIT=640", "config.DATA.TRAIN.BATCHSIZE_PER_REPLICA=16", *arguments)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stderr

    def lines(self, file):
        return [json.loads(line) for line in (self.folder / "run" / file).read_text().splitlines()]

    def test_those_of_united_perceptions_documentation(self):
        log = self.train("united_perception")
        self.assertIn("memory_checkpoint: tensors take up to", log)  # planned, behind 30 batches of warm-up
        limits = [line["iteration"] for line in self.lines("metrics.jsonl") if "Training/grad_norm_limit" in line]
        self.assertEqual(limits, [1, *range(2, 41, 2)])
        self.assertEqual(len(list((self.folder / "run/log").iterdir())), 1)
        self.assertIn("no checkpoint will be the best", log)  # the quickstart has no test phases
        self.assertTrue((self.folder / "run/checkpoints/step_40").is_dir())

    def test_when_united_perceptions_documentation_tests_and_saves(self):
        arguments = ("--config=quickstart", "+config/hooks=united_perception_trainer", "engine_name=train",
                     "config.CHECKPOINT.DIR=run", "config.trainer.max_epoch=4", "config.OPTIMIZER.num_epochs=4",
                     "config.DATA.TRAIN.DATA_LIMIT=640",
                     "config.DATA.TRAIN.BATCHSIZE_PER_REPLICA=16")
        dry = self.call(*arguments, "--dry_run")
        self.assertIn("config.trainer.max_epoch: 4 is config.OPTIMIZER.num_epochs: 4", dry.stderr)
        self.assertIn("4 epochs of 20 updates, 80 in all", dry.stdout)  # of half the data each
        self.assertRegex(dry.stdout, r"reload +finishes one of 2 parts of the data +at 20 +at 80 +4 times")
        checked = self.call(*arguments, "--check_config")
        self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)
        line = "config.trainer.save_freq: 1 is config.CHECKPOINT.CHECKPOINT_FREQUENCY: 1"
        self.assertEqual((checked.stdout + checked.stderr).count(line), 1, checked.stdout + checked.stderr)
        result = self.call(*arguments)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("reload: epoch 4 visits part 2 of 2 of the data set, in pass 2", result.stderr)
        self.assertEqual({path.name for path in (self.folder / "run/checkpoints").glob("step_*")},
                         {"step_20", "step_40", "step_60", "step_80"})
        self.assertEqual(len(list((self.folder / "run/vis_gt/iteration_1").iterdir())), 1)
        again = self.call("--config=run/train_config.yaml", "--dry_run")
        self.assertEqual(again.returncode, 0, again.stderr)
        both = self.call(*arguments, "config.OPTIMIZER.num_epochs=3")
        self.assertEqual(both.returncode, 2)
        self.assertIn("config.trainer.max_epoch means config.OPTIMIZER.num_epochs: 4", both.stderr)

    def test_a_stopped_run_in_mixed_precision_goes_on_with_its_plan(self):
        arguments = ["config.MODEL.AMP_PARAMS.USE_AMP=True", "config.hooks=[{type: memory_checkpoint, "
                     "kwargs: {dc_cfg: {warmup_iters: 8}}}]"]
        self.finish("engine_name=train", *arguments, run="undisturbed")
        for step in (2, 12):  # in the warm-up, and behind it
            run = f"stopped_{step}"
            process = self.start(step, *arguments, run=run, until=signal.SIGTERM)
            process.send_signal(signal.SIGTERM)
            self.assertEqual(self.end(process)[0], 75)
            result = self.finish("engine_name=train", *arguments, run=run)
            self.assertEqual(self.weights(run), self.weights("undisturbed"), step)
            self.assertEqual(result.stderr.count("memory_checkpoint: tensors take up to"), 1)

    def weights(self, run):
        file = self.folder / run / "checkpoints/step_20/model.safetensors"
        return hashlib.sha256(file.read_bytes()).hexdigest()

    def test_those_of_libais_default_trainer(self):
        self.train("libai_default", "config.HOOKS.EVAL.NUM_TRAIN_SAMPLES=1000",
                   "config.HOOKS.EVAL.NUM_TEST_SAMPLES=500", "config.HOOKS.EVAL.LINEAR_EPOCHS=2")
        evaluated = self.lines("metrics.json")[-1]
        self.assertGreater(evaluated["evaluation_knn"]["top_1"], 30, evaluated)  # 10 is chance
        self.assertTrue((self.folder / "run/checkpoints/best.step").is_file())


if __name__ == "__main__":
    unittest.main(verbosity=2)
