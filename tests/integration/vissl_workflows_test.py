# SPDX-License-Identifier: Apache-2.0
"""What VISSL's users do, as whole processes: its configurations with fragments and overrides, supervised training,
linear evaluation, fine-tuning, extraction, export, sweeps and checks of a configuration."""
import ast
import json
import re
import signal
import struct
import subprocess
import unittest
import zlib

from tests.integration.run_case import BINARY, RunCase, environment, held_at


def png(side, value):
    """A grey square with a diagonal of `value`, as an 8-bit PNG."""
    rows = b"".join(b"\0" + bytes(value if x == y else 40 for x in range(side)) for y in range(side))

    def chunk(kind, data):
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    header = struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def npy_header(path):
    """dtype, shape and number of data bytes of a .npy file."""
    data = path.read_bytes()
    assert data[:6] == b"\x93NUMPY", path
    size = struct.unpack("<H", data[8:10])[0]
    header = ast.literal_eval(data[10:10 + size].decode())
    return header["descr"], header["shape"], len(data) - 10 - size


def tensors(path):
    """Bytes by name of a .safetensors file."""
    data = path.read_bytes()
    begin = 8 + struct.unpack("<Q", data[:8])[0]
    entries = json.loads(data[8:begin])
    return {name: data[begin + entry["data_offsets"][0]:begin + entry["data_offsets"][1]]
            for name, entry in entries.items() if name != "__metadata__"}


class WorkflowTest(RunCase):

    def finish(self, *arguments):
        """Runs to the end; returns stdout."""
        result = self.call(*arguments)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def results(self, run):
        return json.loads((self.folder / run / "results.json").read_text())

    def phases(self, run):
        return [json.loads(line) for line in (self.folder / run / "metrics.json").read_text().splitlines()]

    def make_image_folder(self, path, per_class=6):
        for label, value in (("cat", 200), ("dog", 90)):
            folder = self.folder / path / label
            folder.mkdir(parents=True)
            for i in range(per_class):
                (folder / f"{i}.png").write_bytes(png(20 + i, value))

    # Training with labels.

    def test_supervised_training_measures_each_phase(self):
        self.finish("--config=test/supervised_tiny")
        phases = self.phases("runs/supervised_tiny")
        self.assertEqual([sorted(k for k in p if "accuracy" in k) for p in phases],
                         [["train_accuracy_list_meter"], ["test_accuracy_list_meter"]] * 2)
        top1 = phases[-1]["test_accuracy_list_meter"]["top_1"]["0"]
        self.assertGreater(top1, 40.0, "four classes of stripes: chance is 25 %")

    def test_linear_evaluation_leaves_the_trunk_alone(self):
        self.finish("--config=test/linear_tiny")
        accuracy = self.phases("runs/linear_tiny")[-1]["test_accuracy_list_meter"]["top_1"]
        self.assertEqual(sorted(accuracy), ["res4", "res5avg"])

    def test_few_labels(self):
        self.finish("--config=test/low_data_tiny")
        self.assertEqual(len(self.phases("runs/low_data_tiny")), 4)

    # Other methods.

    def test_each_method_trains(self):
        for method in ("barlow_twins", "moco", "simclr"):
            with self.subTest(method):
                self.finish(f"--config=test/{method}_tiny", "engine_name=train", f"config.CHECKPOINT.DIR={method}")
                losses = [phase["train_loss"]["mean"] for phase in self.phases(method)]
                self.assertEqual(len(losses), 2)

    # Engines.

    def test_pretraining_then_fine_tuning(self):
        out = self.finish("--config=test/full_tune_tiny")
        self.assertIn("top-1", out)
        self.assertIn("full_tune", self.results("runs/full_tune_tiny"))

    def test_extracted_features_are_npy_files_and_feed_linear_evaluation(self):
        self.finish("--config=test/extract_tiny")
        features = self.folder / "runs/extract_tiny/features"
        for layer, width in (("res4", 64), ("res5avg", 32)):
            for split, count in (("train", 80), ("test", 40)):
                stem = f"rank0_chunk0_{split}_{layer}"
                self.assertEqual(npy_header(features / f"{stem}_features.npy"),
                                 ("<f4", (count, width), 4 * count * width))
                self.assertEqual(npy_header(features / f"{stem}_targets.npy"), ("<i8", (count, 1), 8 * count))
                self.assertEqual(npy_header(features / f"{stem}_inds.npy"), ("<i8", (count,), 8 * count))
        self.assertIn("linear_eval", self.results("runs/extract_tiny"))

    def test_a_vision_transformer_trains_and_gives_its_features_by_name(self):
        self.finish("--config=test/vision_transformer_tiny")
        features = self.folder / "runs/vision_transformer_tiny/features"
        for layer, width in (("blkCLS0", 32), ("concatCLS2", 64), ("lastMAP", 128), ("lastCLS", 32)):
            stem = f"rank0_chunk0_test_{layer}"
            self.assertEqual(npy_header(features / f"{stem}_features.npy"), ("<f4", (40, width), 4 * 40 * width))

    def test_label_predictions_of_an_image_folder(self):
        self.make_image_folder("train")
        self.make_image_folder("test", per_class=3)
        sources = [f"config.DATA.{split}.{key}" for split in ("TRAIN", "TEST")
                   for key in ("DATA_SOURCES=[disk_folder]", "LABEL_SOURCES=[disk_folder]", "DATA_LIMIT=-1",
                               "BATCHSIZE_PER_REPLICA=4", "TRANSFORMS=[{name: Resize, size: [16, 16]}, {name: ToTensor}]")]
        out = self.finish("--config=test/supervised_tiny", *sources, "config.DATA.TRAIN.DATA_PATHS=[train]",
                          "config.DATA.TEST.DATA_PATHS=[test]", "engine_name=[train, extract_label_predictions]")
        self.assertIn("top-1", out)
        run = self.folder / "runs/supervised_tiny"
        files = sorted(path.name for path in run.rglob("rank0_test_*_predictions.npy"))
        self.assertEqual(len(files), 1, list(run.rglob("*.npy")))
        self.assertEqual(npy_header(next(run.rglob(files[0])))[1], (6, 2))

    def test_export_and_back(self):
        self.finish("--config=test/swav_tiny", "engine_name=[train, export]")
        exported = self.folder / "runs/swav_tiny/export"
        self.assertEqual(sorted(p.name for p in exported.iterdir()), ["model.pth", "model.safetensors"])
        for name in ("model.pth", "model.safetensors"):
            result = self.call("--config=test/supervised_tiny", f"config.CHECKPOINT.DIR=again_{name}",
                               f"config.MODEL.WEIGHTS_INIT.PARAMS_FILE={exported / name}",
                               "config.OPTIMIZER.num_epochs=1")
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn("loaded", result.stderr)

    def test_weights_that_match_nothing_are_refused(self):
        self.finish("--config=test/swav_tiny", "engine_name=[train, export]")
        file = self.folder / "runs/swav_tiny/export/model.safetensors"
        result = self.call("--config=test/supervised_tiny", f"config.MODEL.WEIGHTS_INIT.PARAMS_FILE={file}",
                           "config.MODEL.WEIGHTS_INIT.APPEND_PREFIX=trunk.other.")
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn("conv1.weight", result.stderr)

    def test_missing_weights_are_named(self):
        for file, part in (("none.pth", "none.pth"), ("", "no trained weights")):
            result = self.call("--config=test/swav_tiny", "engine_name=knn",
                               f"config.MODEL.WEIGHTS_INIT.PARAMS_FILE={file}")
            self.assertEqual(result.returncode, 2, result.stderr)
            self.assertIn(part, result.stderr)

    # Images on a disk.

    def test_image_folder_trains_and_counts_broken_files(self):
        self.make_image_folder("train")
        self.make_image_folder("test")
        (self.folder / "train/cat/broken.png").write_bytes(b"no picture")
        sources = [f"config.DATA.{split}.{key}=[disk_folder]" for split in ("TRAIN", "TEST")
                   for key in ("DATA_SOURCES", "LABEL_SOURCES")]
        result = self.call("--config=test/supervised_tiny", *sources, "config.DATA.TRAIN.DATA_PATHS=[train]",
                           "config.DATA.TEST.DATA_PATHS=[test]", "config.DATA.TRAIN.DATA_LIMIT=-1",
                           "config.DATA.TEST.DATA_LIMIT=-1", "config.DATA.TRAIN.BATCHSIZE_PER_REPLICA=4",
                           "+config.DATA.TRAIN.MAX_BROKEN_FRACTION=0.5",
                           "config.DATA.TRAIN.TRANSFORMS=[{name: Resize, size: [16, 16]}, {name: ToTensor}]",
                           "config.DATA.TEST.TRANSFORMS=[{name: Resize, size: [16, 16]}, {name: ToTensor}]")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("broken.png", result.stderr)

    # VISSL's command line.

    def test_vissl_resnet50_with_fragments_and_overrides(self):
        self.finish("config=pretrain/swav/swav_resnet50_imagenet.yaml",
                    "+config/pretrain/swav/transforms=multicrop_2x224_4x96",
                    "+config/pretrain/swav/optimization=small_batch",
                    "config.DATA.TRAIN.DATA_SOURCES=[synthetic]", "config.DATA.TRAIN.DATA_LIMIT=4",
                    "config.DATA.TRAIN.BATCHSIZE_PER_REPLICA=2", "config.DATA.NUM_DATALOADER_WORKERS=1",
                    "config.LOSS.swav_loss.queue.queue_length=0", "config.OPTIMIZER.num_epochs=1",
                    "config.CHECKPOINT.DIR=swav50", "config.MODEL.AMP_PARAMS.USE_AMP=false", "node_id=0",
                    "hydra.verbose=true")
        lines = [json.loads(line) for line in (self.folder / "swav50/metrics.jsonl").read_text().splitlines()]
        self.assertEqual(lines[-1]["iteration"], 2)

    def test_printed_configuration_reads_back(self):
        first = self.finish("--config=test/swav_tiny", "--print_config", "config.OPTIMIZER.weight_decay=1e-5")
        (self.folder / "printed.yaml").write_text(first)
        self.assertEqual(self.finish("--config=printed.yaml", "--print_config"), first)

    def test_sweep_goes_on_after_a_failure_and_ends_with_a_table(self):
        result = self.call("--config=test/swav_tiny", "engine_name=train", "config.CHECKPOINT.DIR=swept",
                           "config.OPTIMIZER.num_epochs=1", "config.SEED_VALUE=0,1",
                           "config.OPTIMIZER.grad_acc_steps=1,100000")
        self.assertEqual(result.returncode, 2, result.stderr)
        table = [line for line in result.stdout.splitlines() if line.startswith("sweep_")]
        self.assertEqual([line.split()[:2] for line in table],
                         [["sweep_0", "finished"], ["sweep_1", "failed"], ["sweep_2", "finished"],
                          ["sweep_3", "failed"]])
        self.assertIn("config.SEED_VALUE=1 config.OPTIMIZER.grad_acc_steps=100000", table[3])
        for run in ("sweep_0", "sweep_2"):
            self.assertTrue((self.folder / "swept" / run / "checkpoints/LATEST").is_file(), run)

    # The form in which United Perception configures hooks.

    def test_hooks_of_the_list_run_keep_their_state_and_resume(self):
        tokens = ["--config=test/swav_tiny", "+config/hooks=united_perception", "engine_name=train",
                  "config.CHECKPOINT.DIR=listed", "config.OPTIMIZER.num_epochs=2"]
        self.finish(*tokens)
        limits = self.limits("listed")
        self.assertEqual(sorted(limits), [1, *range(2, 21, 2)])
        self.assertGreater(min(limits.values()), 0)
        self.assertEqual(len(set(limits.values())), len(limits))
        tokens = ["config.CHECKPOINT.DIR=resumed" if "DIR=" in token else token for token in tokens]
        stopped_at = self.stop_in_mid_run(*tokens)
        self.assertIn(f"resuming at iteration {stopped_at} of 20", self.run_to_the_end(*tokens))
        resumed = self.limits("resumed")
        for iteration in range(stopped_at + 3, 21):  # the reports before cover other steps: a start has one of its own
            self.assertEqual(resumed.get(iteration), limits.get(iteration), iteration)
        for name in ("model.safetensors", "state_rank0.safetensors"):
            state = tensors(self.folder / "resumed/checkpoints/step_20" / name)
            other = tensors(self.folder / "listed/checkpoints/step_20" / name)
            self.assertEqual(state.keys(), other.keys(), name)
            # How long parts took is no other run's.
            differ = [key for key in state if state[key] != other[key] and "memory_checkpoint/measured" not in key]
            self.assertEqual(differ, [])
        self.assertIn("hooks/grad_clipper/limit", state)
        passes = "hooks/memory_checkpoint/measured/passes"
        self.assertEqual(state[passes], other[passes])

    # LiBai's default list: its period of 20, beside our reports of the first two iterations.

    def test_hooks_of_libais_default_trainer_run(self):
        log = self.run_to_the_end("--config=test/swav_tiny", "+config/hooks=libai_default", "engine_name=train",
                                  "config.CHECKPOINT.DIR=libai", "config.OPTIMIZER.num_epochs=3",
                                  "config.HOOKS.TENSORBOARD_SETUP.USE_TENSORBOARD=False")
        lines = [json.loads(line) for line in (self.folder / "libai/metrics.jsonl").read_text().splitlines()]
        self.assertEqual([line["iteration"] for line in lines if "Training/Loss" in line], [1, 2, 20, 30])
        printed = re.findall(r"eta: (\S+)  iteration: (\d+)/30  consumed_samples: (\d+)  .*Training/Loss: ", log)
        self.assertEqual([line[1:] for line in printed], [("20", "160"), ("30", "240")])
        self.assertEqual(printed[-1][0], "0:00:00")
        self.assertEqual(len(list((self.folder / "libai/tb_logs").iterdir())), 1)
        self.assertIn("Average train batch time", log)
        self.assertTrue((self.folder / "libai/checkpoints/best.step").is_file())

    def limits(self, run):
        """The clipper's limit by iteration."""
        lines = [json.loads(line) for line in (self.folder / run / "metrics.jsonl").read_text().splitlines()]
        return {line["iteration"]: line["Training/grad_norm_limit"] for line in lines
                if "Training/grad_norm_limit" in line}

    def stop_in_mid_run(self, *arguments):
        """Sends SIGTERM when step 6 is logged; returns the iteration at which the run has stopped."""
        process = subprocess.Popen([BINARY, *arguments], cwd=self.folder, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True,
                                   env={**environment(), **held_at("step 6/", until=signal.SIGTERM)})
        for line in process.stderr:
            if "step 6/" in line:
                process.send_signal(signal.SIGTERM)
                break
        summary, log = process.communicate()
        self.assertEqual(process.returncode, 75, log)
        return int(re.search(r"stopped at iteration (\d+) of 20 .*; the same command goes on", summary).group(1))

    def run_to_the_end(self, *arguments):
        """The log of a run that finishes."""
        result = self.call(*arguments)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stderr

    def test_recomputed_activations_change_nothing(self):
        checkpointing = "config.MODEL.ACTIVATION_CHECKPOINTING."
        hook = "config.hooks=[{type: memory_checkpoint, kwargs: {%s}}]"
        runs = {"plain": [], "static": [checkpointing + "USE_ACTIVATION_CHECKPOINTING=True",
                                        checkpointing + "NUM_ACTIVATION_CHECKPOINTING_SPLITS=3"],
                "hook": [hook % ""], "limit": [hook % "dc_cfg: {warmup_iters: 2, max_memory: 1, strategy: optimal}"]}
        weights = {}
        for name, tokens in runs.items():
            self.finish("--config=test/swav_tiny", "engine_name=train", "config.CHECKPOINT.DIR=" + name, *tokens)
            log = (self.folder / name / "log.txt").read_text()
            newest = max(self.folder.glob(name + "/checkpoints/step_*"), key=lambda path: int(path.name.split("_")[1]))
            weights[name] = (newest / "model.safetensors").read_bytes()
            self.assertEqual("memory_checkpoint: tensors take" in log, name == "limit", log)
        self.assertEqual(len(set(weights.values())), 1)

    def test_unknown_hooks_and_options_of_the_list_are_named(self):
        for hooks, part in (("[{type: grad_cliper}]", "did you mean 'grad_clip"),
                            ("[{type: grad_clipper, kwargs: {mode: average, tolerence: 2}}]",
                             "did you mean 'tolerance'?")):
            code, text = self.check("--config=test/swav_tiny", "config.hooks=" + hooks)
            self.assertEqual(code, 2, text)
            self.assertIn(part, text)

    # --check_config: 0 would run here, 2 mistakes, 3 a fragment or components that are not here.

    def check(self, *arguments):
        result = self.call("--check_config", *arguments)
        return result.returncode, result.stdout + result.stderr

    def test_check_of_a_configuration_that_runs(self):
        self.assertEqual(self.check("--config=test/swav_tiny")[0], 0)

    def test_check_of_a_configuration_that_the_checkpoints_refuse(self):
        run = ("--config=test/swav_tiny", f"config.CHECKPOINT.DIR={self.folder / 'run'}")
        self.assertEqual(self.call(*run, "engine_name=train").returncode, 0)
        self.assertEqual(self.check(*run, "engine_name=train")[0], 0)
        code, text = self.check(*run, "engine_name=train", "config.SEED_VALUE=5")
        self.assertEqual(code, 2, text)
        self.assertIn("SEED_VALUE: ", text)
        self.assertNotIn("would run here", text)
        self.assertEqual(self.check(*run, "engine_name=knn", "config.SEED_VALUE=5")[0], 0)

    def test_check_reports_every_mistake_at_once(self):
        code, text = self.check("--config=test/swav_tiny", "config.OPTIMIZER.num_epochs=many",
                                "config.LOSS.swav_loss.temperature=-1", "config.MODEL.TRUNK.NAME=rsenet")
        self.assertEqual(code, 2, text)
        for part in ("config.OPTIMIZER.num_epochs", "config.LOSS.swav_loss.temperature", "did you mean 'resnet'?"):
            self.assertIn(part, text)

    def test_check_names_components_that_are_not_here(self):
        code, text = self.check("--config=test/swav_tiny", "config.MODEL.TRUNK.NAME=convit")
        self.assertEqual(code, 3, text)
        self.assertIn("convit", text)

    def test_check_of_a_fragment(self):
        code, text = self.check("--config=pretrain/swav/transforms/multicrop_2x224_4x96")
        self.assertEqual(code, 3, text)


if __name__ == "__main__":
    unittest.main(verbosity=2)
