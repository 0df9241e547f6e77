# SPDX-License-Identifier: Apache-2.0
"""Runs the real ssl_main as a process, on configs/config/test/swav_tiny.yaml: what a user, a scheduler and a crash
do to it. Processes are watched through their log, never by waiting."""
import gzip
import json
import signal
import struct
import subprocess
import unittest

from tests.integration.run_case import BINARY, STEPS, RunCase, environment


class SslMainTest(RunCase):

    def run_main(self, run, *arguments):
        return self.tiny(*arguments, run=self.folder / run)

    def train(self, run, *arguments):
        """Trains to the end and returns the bytes of the final model."""
        result = self.run_main(run, "engine_name=train", *arguments)
        self.assertEqual(result.returncode, 0, result.stderr)
        return self.model(run, STEPS)

    def model(self, run, step):
        return (self.folder / run / f"checkpoints/step_{step}/model.safetensors").read_bytes()

    def signal_at(self, run, step, number):
        """Trains, with the signal at the progress line of `step`; the exit code."""
        return self.signalled("--config=test/swav_tiny", f"config.CHECKPOINT.DIR={self.folder / run}", "engine_name=train",
                              number=number, when=f"step {step}/")[0]

    def assert_refused(self, result, code, *parts):
        self.assertEqual(result.returncode, code, result.stderr)
        errors = [line for line in result.stderr.splitlines() if " E " in line]
        self.assertEqual(len(errors), 1, result.stderr)
        for part in parts:
            self.assertIn(part, result.stderr)

    # What a run leaves behind.

    def test_run_leaves_what_the_documentation_promises(self):
        result = self.run_main("run")
        self.assertEqual(result.returncode, 0, result.stderr)
        run = self.folder / "run"
        for name in ("train_config.yaml", "log.txt", "metrics.jsonl", "metrics.json", "results.json",
                     "checkpoints/LATEST"):
            self.assertTrue((run / name).is_file(), name)
        self.assertTrue(list((run / "tb_logs").iterdir()))
        results = json.loads((run / "results.json").read_text())
        self.assertEqual(results["knn"]["k"], 5)
        for key in ("raw_pixels", "untrained", "trained"):
            self.assertTrue(0 <= results["knn"][key] <= 1, key)
            self.assertIn(f"{100 * results['knn'][key]:.2f}%", result.stdout)
        self.assertGreater(results["train_seconds"], 0)
        lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
        self.assertEqual(lines[-1]["iteration"], STEPS)

    def test_written_configuration_repeats_the_run(self):
        first = self.train("first")
        again = subprocess.run(
            [BINARY, f"--config={self.folder / 'first/train_config.yaml'}", f"config.CHECKPOINT.DIR={self.folder / 'again'}"],
            cwd=self.folder, capture_output=True, text=True, env=environment())
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertNotIn("unknown key", again.stderr)
        self.assertEqual(self.model("again", STEPS), first)

    def test_loader_threads_do_not_change_the_weights(self):
        expected = self.train("workers0", "config.DATA.NUM_DATALOADER_WORKERS=0")
        self.assertEqual(self.train("workers1", "config.DATA.NUM_DATALOADER_WORKERS=1"), expected)
        self.assertEqual(self.train("workers4", "config.DATA.NUM_DATALOADER_WORKERS=4"), expected)

    def test_another_seed_changes_the_weights(self):
        self.assertNotEqual(self.train("seed0"), self.train("seed1", "config.SEED_VALUE=1"))

    # Interruptions.

    def test_kill_at_any_step_then_the_same_command_ends_with_equal_weights(self):
        expected = self.train("whole")
        for step in (1, 7, 12, 19):
            self.assertEqual(self.signal_at(f"killed{step}", step, signal.SIGKILL), -signal.SIGKILL)
            self.assertEqual(self.train(f"killed{step}"), expected, f"killed at step {step}")

    def test_stop_signals_save_and_the_same_command_resumes(self):
        expected = self.train("whole")
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR2):
            self.assertEqual(self.signal_at(f"stopped{number}", 7, number), 75)
            steps = [int(path.name[5:]) for path in (self.folder / f"stopped{number}/checkpoints").glob("step_*")]
            self.assertEqual(max(steps), 7)
            self.assertEqual(self.train(f"stopped{number}"), expected)

    def test_metrics_have_no_iteration_twice_after_a_kill(self):
        self.signal_at("killed", 8, signal.SIGKILL)
        self.train("killed")
        lines = [json.loads(line) for line in (self.folder / "killed/metrics.jsonl").read_text().splitlines()]
        self.assertEqual([line["iteration"] for line in lines if "Training/Loss" in line], list(range(1, STEPS + 1)))
        self.assertEqual([line["iteration"] for line in lines if "Training/loss_mean" in line], [STEPS // 2, STEPS])

    def test_corrupt_newest_checkpoint_falls_back_and_ends_with_equal_weights(self):
        expected = self.train("whole")
        self.signal_at("damaged", 10, signal.SIGTERM)
        newest = max((self.folder / "damaged/checkpoints").glob("step_*"), key=lambda path: int(path.name[5:]))
        content = bytearray((newest / "model.safetensors").read_bytes())
        content[-1] ^= 1
        (newest / "model.safetensors").write_bytes(content)
        result = self.run_main("damaged", "engine_name=train")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn(f"damaged checkpoint passed over: file {newest / 'model.safetensors'}", result.stderr)
        self.assertEqual(self.model("damaged", STEPS), expected)

    def test_no_intact_checkpoint_is_refused(self):
        self.train("run")
        for manifest in (self.folder / "run/checkpoints").glob("step_*/MANIFEST.json"):
            manifest.write_text("{}")
        self.assert_refused(self.run_main("run", "engine_name=train"), 4, "no checkpoint is intact", "step_20")
        self.assertEqual(json.loads((self.folder / "run/failure.json").read_text())["exit_code"], 4)

    # Mistakes.

    def test_unknown_key_on_the_command_line(self):
        self.assert_refused(self.run_main("run", "config.OPTIMIZER.num_epoch=3"), 2, "command line",
                            "unknown key 'config.OPTIMIZER.num_epoch'", "did you mean 'config.OPTIMIZER.num_epochs'?")

    def test_wrong_type(self):
        self.assert_refused(self.run_main("run", "config.OPTIMIZER.num_epochs=many"), 2,
                            "config.OPTIMIZER.num_epochs is 'many', expected an integer")

    def test_batch_larger_than_the_data_set(self):
        self.assert_refused(self.run_main("run", "config.DATA.TRAIN.BATCHSIZE_PER_REPLICA=100"), 2,
                            "config.DATA.TRAIN.BATCHSIZE_PER_REPLICA", "100", "80")

    def test_missing_configuration(self):
        result = subprocess.run([BINARY, "--config=quikstart"], cwd=self.folder, capture_output=True, text=True,
                                env=environment())
        self.assert_refused(result, 2, "quikstart")

    def test_unwritable_run_directory(self):
        (self.folder / "file").write_text("not a directory")
        result = self.run_main("file/run")
        self.assert_refused(result, 5, f"run directory {self.folder / 'file/run'} cannot be used", "File exists")

    def test_more_prototypes_than_the_batch_can_fill_is_warned_about(self):
        result = self.run_main("run", "engine_name=train", "config.OPTIMIZER.num_epochs=1",
                               "config.MODEL.HEAD.PARAMS=[[swav_head, {dims: [32, 32, 16], num_clusters: [50]}]]")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stderr, r" W .*num_prototypes is 50, but only 8 images")

    def idx_arguments(self):
        folder = self.folder / "idx"
        folder.mkdir()
        for name, count in (("train", 16), ("t10k", 8)):
            images = struct.pack(">IIII", 0x803, count, 28, 28) + bytes(range(256)) * (count * 28 * 28 // 256 + 1)
            (folder / f"{name}-images-idx3-ubyte.gz").write_bytes(gzip.compress(images[:16 + count * 784]))
            (folder / f"{name}-labels-idx1-ubyte.gz").write_bytes(
                gzip.compress(struct.pack(">II", 0x801, count) + bytes(count)))
        arguments = ["engine_name=train"]
        for split in ("TRAIN", "TEST"):
            arguments += [f"config.DATA.{split}.DATA_SOURCES=[torchvision_dataset]",
                          f"config.DATA.{split}.DATASET_NAMES=[fashion_mnist]",
                          f"config.DATA.{split}.DATA_PATHS=[{folder}]", f"config.DATA.{split}.DATA_LIMIT=-1"]
        return folder, arguments

    def test_idx_files_train(self):
        _, arguments = self.idx_arguments()
        self.assertEqual(self.run_main("run", *arguments).returncode, 0)

    def test_missing_idx_file(self):
        folder, arguments = self.idx_arguments()
        (folder / "train-images-idx3-ubyte.gz").unlink()
        self.assert_refused(self.run_main("run", *arguments), 2, str(folder / "train-images-idx3-ubyte"))

    def test_truncated_idx_file(self):
        folder, arguments = self.idx_arguments()
        path = folder / "train-images-idx3-ubyte.gz"
        path.write_bytes(gzip.compress(gzip.decompress(path.read_bytes())[:5000]))
        self.assert_refused(self.run_main("run", *arguments), 4, str(path), "12544", "4984")

    def test_label_count_that_differs(self):
        folder, arguments = self.idx_arguments()
        path = folder / "train-labels-idx1-ubyte.gz"
        path.write_bytes(gzip.compress(struct.pack(">II", 0x801, 15) + bytes(15)))
        result = self.run_main("run", *arguments)
        self.assertIn(result.returncode, (2, 4), result.stderr)
        for part in (str(path), "15", "16"):
            self.assertIn(part, result.stderr)

    def test_help_and_lists(self):
        self.assertIn("--config=quickstart", subprocess.run([BINARY, "--help"], capture_output=True, text=True).stdout)
        listed = subprocess.run([BINARY, "--list=methods"], capture_output=True, text=True)
        self.assertIn("swav_loss\n", listed.stdout)
        keys = subprocess.run([BINARY, "--help_config=LOSS.swav_loss"], capture_output=True, text=True).stdout
        self.assertIn("epsilon", keys)


if __name__ == "__main__":
    unittest.main()
