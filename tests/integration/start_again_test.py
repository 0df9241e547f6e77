# SPDX-License-Identifier: Apache-2.0
"""Starts in a directory that holds a run: what a refused one leaves alone, and what the written configuration repeats."""
import signal
import unittest

from tests.integration.run_case import STEPS, RunCase


class StartAgainTest(RunCase):

    def content(self):
        return {path: path.read_bytes() for path in (self.folder / "run").rglob("*")
                if path.is_file() and path.name not in ("log.txt", ".lock")}

    def assert_content(self, before):
        now = self.content()
        changed = [path for path in sorted({*now, *before}) if now.get(path) != before.get(path)]
        self.assertEqual(changed, [])

    def test_start_with_other_settings_changes_nothing_but_the_log(self):
        self.finish("engine_name=train")
        before = self.content()
        self.assert_refused(self.tiny("engine_name=train", "config.SEED_VALUE=5"), 2, "SEED_VALUE: ", "ALLOW_CHANGES")
        self.assert_content(before)

    def test_start_that_is_refused_while_it_is_built_changes_nothing_but_the_log(self):
        self.finish("engine_name=train")
        before = self.content()
        # Known once the samples are counted, once the weights are read, and once the checkpoint is restored.
        self.assert_refused(self.tiny("engine_name=train", "config.DATA.TRAIN.BATCHSIZE_PER_REPLICA=32",
                                      "config.CHECKPOINT.ALLOW_CHANGES=[DATA.TRAIN.BATCHSIZE_PER_REPLICA]"),
                            2, "updates")
        self.assert_content(before)
        self.assert_refused(self.call("--config=test/simclr_tiny", "config.CHECKPOINT.DIR=run", "engine_name=train",
                                      "config.CHECKPOINT.OVERWRITE_EXISTING=True",
                                      "config.MODEL.WEIGHTS_INIT.PARAMS_FILE=gone.pth"), 2, "gone.pth")
        self.assert_content(before)
        self.assert_refused(self.tiny("engine_name=train", "config.OPTIMIZER.num_epochs=1",
                                      "config.CHECKPOINT.ALLOW_CHANGES=[OPTIMIZER.num_epochs]"), 2, "behind the end")
        self.assert_content(before)
        again = self.call("--config=run/train_config.yaml")
        self.assertEqual(again.returncode, 0, again.stderr)

    def test_failure_of_the_training_outlives_a_refused_start(self):
        first = self.start(12)
        first.send_signal(signal.SIGSEGV)
        self.end(first)
        report = self.failure()
        self.assertEqual(report["signal"], signal.SIGSEGV)
        self.assert_refused(self.tiny("engine_name=train", "config.MODEL.WEIGHTS_INIT.PARAMS_FILE=gone.pth",
                                      "config.CHECKPOINT.OVERWRITE_EXISTING=True"), 2, "gone.pth")
        self.assertEqual(self.failure(), report)
        # What keeps this very run from going on is its own failure, and a start that goes on removes the report.
        checkpoints = sorted((self.folder / "run/checkpoints").glob("step_*/model.safetensors"))
        saved = [path.read_bytes() for path in checkpoints]
        for path in checkpoints:
            path.write_bytes(b"")
        self.assert_refused(self.tiny("engine_name=train"), 4, "no checkpoint is intact")
        self.assertEqual(self.failure()["exit_code"], 4)
        for path, content in zip(checkpoints, saved):
            path.write_bytes(content)
        self.finish("engine_name=train")
        self.assertFalse((self.folder / "run/failure.json").exists())

    def test_resume_from_goes_back_to_a_step(self):
        self.finish("engine_name=train")
        model = self.folder / "run/checkpoints/step_20/model.safetensors"
        first = model.read_bytes()
        steps = sorted(int(path.name[5:]) for path in (self.folder / "run/checkpoints").glob("step_*"))
        result = self.finish("engine_name=train", f"--resume_from={steps[0]}")
        self.assertIn(f"step {steps[0] + 1}/", result.stderr)
        self.assertNotIn(f"step {steps[0]}/", result.stderr)
        self.assertEqual(model.read_bytes(), first)
        self.assert_refused(self.tiny("engine_name=train", "--resume_from=3"), 2, "RESUME_FROM")
        self.assert_refused(self.tiny("engine_name=train", "--resume_from=soon"), 2, "RESUME_FROM is 'soon', expected an integer")

    def test_written_configuration_goes_on_and_goes_back_or_begins_anew_no_more(self):
        keep = ("engine_name=train", "config.CHECKPOINT.KEEP_LAST=0")
        self.finish(*keep)
        step = min(int(path.name[5:]) for path in (self.folder / "run/checkpoints").glob("step_*"))
        self.finish(*keep, f"--resume_from={step}")
        again = self.call("--config=run/train_config.yaml", "engine_name=knn")
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertIn(f"checkpoint of iteration {STEPS}", again.stderr)
        self.finish(*keep, "config.SEED_VALUE=5", "config.CHECKPOINT.OVERWRITE_EXISTING=True")
        self.assert_refused(self.call("--config=run/train_config.yaml", "config.OPTIMIZER.num_epochs=300"), 2,
                            "OPTIMIZER.num_epochs: ")
        self.assertTrue((self.folder / f"run/checkpoints/step_{STEPS}").is_dir())
        # What an evaluation repeats is the evaluation of that step.
        self.finish("engine_name=knn", "config.SEED_VALUE=5", f"--resume_from={step}")
        again = self.call("--config=run/knn_config.yaml")
        self.assertIn(f"checkpoint of iteration {step}", again.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
