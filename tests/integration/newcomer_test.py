# SPDX-License-Identifier: Apache-2.0
"""What somebody does first, as whole processes: pre-train on a folder of images with a configuration that has no
DATA.TEST, then evaluate the run. And what must not pass: classes that differ between folders, weights that are no
numbers, a stop in the middle."""
import ast
import json
import os
import pathlib
import random
import signal
import struct
import subprocess
import sys
import tempfile
import unittest
import zlib

BINARY = pathlib.Path(sys.argv.pop(1)).absolute()

# Two crops of 24 pixels, a ResNet of 4 channels: seconds.
CONFIG = """# @package _global_
config:
  LOG_FREQUENCY: 1
  TEST_MODEL: False
  CHECKPOINT: {DIR: run}
  DATA:
    NUM_DATALOADER_WORKERS: 1
    TRAIN:
      DATA_SOURCES: [disk_folder]
      BATCHSIZE_PER_REPLICA: 8
      DROP_LAST: True
      COLLATE_FUNCTION: multicrop_collator
      TRANSFORMS:
        - {name: ImgPilToMultiCrop, total_num_crops: 2, num_crops: [2], size_crops: [24], crop_scales: [[0.5, 1.0]]}
        - {name: RandomHorizontalFlip}
        - {name: ToTensor}
        - {name: Normalize, mean: [0.5, 0.5, 0.5], std: [0.25, 0.25, 0.25]}
  MODEL:
    TRUNK: {NAME: resnet, RESNETS: {DEPTH: 18, WIDTH_MULTIPLIER: 0.0625, STEM: small}}
    HEAD: {PARAMS: [["swav_head", {"dims": [32, 32, 16], "use_bn": True, "num_clusters": [8]}]]}
  LOSS: {name: swav_loss}
  OPTIMIZER:
    name: sgd
    num_epochs: 1
    param_schedulers: {lr: {name: cosine, start_value: 0.01, end_value: 0.0}}
"""

# What turns CONFIG into a classifier of four classes that is tested after its last epoch.
SUPERVISED = """# @package _global_
config:
  TEST_MODEL: True
  TEST_EVERY_NUM_EPOCH: 100
  DATA:
    TRAIN:
      COLLATE_FUNCTION: default_collate
      TRANSFORMS: &views
        - {name: Resize, size: 24}
        - {name: CenterCrop, size: 24}
        - {name: ToTensor}
        - {name: Normalize, mean: [0.5, 0.5, 0.5], std: [0.25, 0.25, 0.25]}
    TEST: {DATA_SOURCES: [disk_folder], BATCHSIZE_PER_REPLICA: 8, TRANSFORMS: *views}
  METERS: {names: [accuracy_list_meter], accuracy_list_meter: {topk_values: [1]}}
  MODEL:
    HEAD: {PARAMS: [["mlp", {"dims": [32, 4]}]]}
  LOSS: {name: cross_entropy_multiple_output_single_target}
  OPTIMIZER:
    num_epochs: 8
    momentum: 0.9
    param_schedulers: {lr: {name: cosine, update_interval: step, start_value: 0.05, end_value: 0.0}}
"""

COLORS = {"ant": (220, 40, 40), "bee": (40, 220, 40), "cat": (40, 40, 220), "dog": (200, 200, 40)}


def png(side, color, seed):
    """A square of one colour with noise, as an 8-bit RGB PNG."""
    noise = random.Random(seed)
    rows = b"".join(b"\0" + bytes(value + noise.randrange(-30, 31) for _ in range(side) for value in color)
                    for _ in range(side))

    def chunk(kind, data):
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


class NewcomerTest(unittest.TestCase):

    def setUp(self):
        self._folder = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self._folder.name)
        (self.folder / "mine.yaml").write_text(CONFIG)

    def tearDown(self):
        self._folder.cleanup()

    def make_folder(self, path, classes=tuple(COLORS), per_class=10, first=0):
        """Images of several sizes; `first` is the seed of the first, so that folders differ."""
        for name in classes:
            folder = self.folder / path / name
            folder.mkdir(parents=True)
            for i in range(per_class):
                (folder / f"{i:03}.png").write_bytes(png(28 + i % 3, COLORS[name], f"{name}{first + i}"))

    def run_main(self, *arguments):
        return subprocess.run([BINARY, "--config=mine.yaml", *arguments], cwd=self.folder, capture_output=True,
                              text=True, env=environment())

    def finish(self, *arguments):
        result = self.run_main(*arguments)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result

    def fail_with(self, code, *arguments):
        """Runs into an error; returns its line."""
        result = self.run_main(*arguments)
        self.assertEqual(result.returncode, code, result.stderr)
        return "\n".join(line for line in result.stderr.splitlines() if " E " in line or "[E" in line) or result.stderr

    def results(self):
        return json.loads((self.folder / "run/results.json").read_text())

    def train(self, data="photos"):
        self.finish(f"config.DATA.TRAIN.DATA_PATHS=[{data}]")

    def test_check_data_reports_and_fails_where_a_training_would(self):
        self.make_folder("photos")
        data = "config.DATA.TRAIN.DATA_PATHS=[photos]"
        report = self.finish(data, "engine_name=check_data").stdout
        for said in ("40 images", "broken", "ant 10, bee 10", "- name: Normalize"):
            self.assertIn(said, report)
        for i in range(8):
            (self.folder / f"photos/ant/{i:03}.png").write_bytes(b"")
        result = self.run_main(data, "engine_name=[check_data,train]")
        self.assertEqual(result.returncode, 4, result.stderr)
        self.assertIn("photos/ant/000.png: image file is empty", result.stdout)
        self.assertIn("MAX_BROKEN_FRACTION", result.stderr)
        self.assertEqual(self.results()["check_data"]["train"]["broken"], 8)
        self.assertFalse((self.folder / "run/checkpoints").exists())

    def test_folder_then_every_evaluation(self):
        self.make_folder("photos")
        self.train()
        data = "config.DATA.TRAIN.DATA_PATHS=[photos]"
        knn = self.finish(data, "engine_name=knn")
        for said in ("10% of the data set of DATA.TRAIN, of each class", "config.DATA.TEST.DATA_PATHS", "Resize 24, CenterCrop 24",
                     "TOPK 20", "config.NEAREST_NEIGHBOR"):
            self.assertIn(said, knn.stderr)
        self.assertIn("cosine kNN, k=20, T=0.07", knn.stdout)
        linear = self.finish(data, "engine_name=linear_eval")
        self.assertIn("linear probe", linear.stdout)
        results = self.results()
        for engine in ("knn", "linear_eval"):
            for subject in ("raw_pixels", "untrained", "trained"):
                # Four colours: whatever looks at the images tells them apart.
                self.assertGreaterEqual(results[engine][subject], 0.75, f"{engine} {subject}")
        self.finish(data, "engine_name=extract_features")
        features = self.results()["extract_features"]
        self.assertEqual((features["layers"], features["train_samples"], features["test_samples"]), (["res5avg"], 36, 4))
        self.assertIn((36, 32), [shape(path) for path in (self.folder / "run/features").glob("*train*_features.npy")])
        on_files = self.finish(data, "engine_name=knn", "config.NEAREST_NEIGHBOR.FEATURES.PATH=run/features")
        self.assertIn("trained network", on_files.stdout)
        self.assertNotIn("the test set is", on_files.stderr)

    def test_evaluation_of_the_written_configuration_is_the_same(self):
        self.make_folder("photos")
        self.train()
        first = self.finish("config.DATA.TRAIN.DATA_PATHS=[photos]", "engine_name=knn").stdout
        saved = self.folder / "saved.yaml"
        saved.write_text((self.folder / "run/train_config.yaml").read_text())
        again = subprocess.run([BINARY, f"--config={saved}", "engine_name=knn"], cwd=self.folder, capture_output=True,
                               text=True, env=environment())
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertEqual(again.stdout, first)

    def test_folder_beside_the_training_folder_is_the_test_set(self):
        self.make_folder("data/train")
        self.make_folder("data/test", per_class=3, first=100)
        self.train("data/train")
        result = self.finish("config.DATA.TRAIN.DATA_PATHS=[data/train]", "engine_name=extract_features")
        self.assertIn("the test set is data/test", result.stderr)
        self.assertEqual(self.results()["extract_features"]["train_samples"], 40)
        self.assertEqual(self.results()["extract_features"]["test_samples"], 12)

    # Classes are compared by name.

    def test_test_folder_without_a_class_keeps_the_accuracy(self):
        self.make_folder("data/train")
        self.make_folder("fewer", classes=("bee", "cat", "dog"), per_class=5, first=100)
        self.train("data/train")
        for engine in ("knn", "linear_eval"):
            self.finish("config.DATA.TRAIN.DATA_PATHS=[data/train]", f"engine_name={engine}",
                        "config.DATA.TEST.DATA_PATHS=[fewer]")
            # By number, bee would be ant, cat would be bee, dog would be cat: none right.
            self.assertGreaterEqual(self.results()[engine]["raw_pixels"], 0.9, engine)

    def test_classes_that_were_renamed_are_noticed(self):
        self.make_folder("data/train")
        self.make_folder("data/test", per_class=5, first=100)
        (self.folder / "classifier.yaml").write_text(SUPERVISED)
        arguments = ["+config=classifier.yaml", "config.DATA.TRAIN.DATA_PATHS=[data/train]",
                     "config.DATA.TEST.DATA_PATHS=[data/test]"]
        self.finish(*arguments, "config.OPTIMIZER.num_epochs=1")
        for split in ("train", "test"):
            (self.folder / "data" / split / "ant").rename(self.folder / "data" / split / "zant")
        # The outputs of the network would stand for other classes than those they were trained on.
        error = self.fail_with(2, *arguments, "config.OPTIMIZER.num_epochs=1", "engine_name=extract_label_predictions")
        self.assertIn("zant", error)
        resumed = self.run_main(*arguments, "config.OPTIMIZER.num_epochs=2",
                                "config.CHECKPOINT.ALLOW_CHANGES=[OPTIMIZER.num_epochs]")
        self.assertEqual(resumed.returncode, 2, resumed.stderr)
        self.assertIn("DATA.TRAIN.classes: [ant, bee, cat, dog] in the checkpoint", resumed.stderr)

    def test_extracted_features_keep_the_names(self):
        self.make_folder("data/train")
        self.make_folder("fewer", classes=("bee", "cat", "dog"), per_class=5, first=100)
        self.train("data/train")
        data = ["config.DATA.TRAIN.DATA_PATHS=[data/train]", "config.DATA.TEST.DATA_PATHS=[fewer]"]
        self.finish(*data, "engine_name=[extract_features, knn]")
        of_data = self.results()["knn"]["trained"]
        self.finish(*data, "engine_name=knn", "config.NEAREST_NEIGHBOR.FEATURES.PATH=run/features")
        self.assertEqual(self.results()["knn"]["trained"], of_data)

    def test_class_that_training_lacks_is_refused(self):
        self.make_folder("data/train", classes=("ant", "bee", "cat"))
        self.make_folder("more", per_class=2, first=100)
        self.train("data/train")
        for engine in ("knn", "linear_eval"):
            error = self.fail_with(2, "config.DATA.TRAIN.DATA_PATHS=[data/train]", f"engine_name={engine}",
                                   "config.DATA.TEST.DATA_PATHS=[more]")
            for part in ("config.DATA.TEST.DATA_PATHS [more]", "dog (1)", "ant, bee, cat (3)", "leave them out"):
                self.assertIn(part, error)
            self.assertNotIn(engine, self.results())

    def test_fine_tuning_follows_from_training_and_compares_names(self):
        self.make_folder("data/train")
        self.make_folder("fewer", classes=("bee", "cat", "dog"), per_class=2, first=100)
        self.make_folder("others", classes=("ant", "bee", "cat"), per_class=2)
        (self.folder / "others/cat").rename(self.folder / "others/eel")
        self.train("data/train")
        tune = ["config.DATA.TRAIN.DATA_PATHS=[data/train]", "engine_name=full_tune", "config.FULL_TUNE.NUM_EPOCHS=1",
                "config.FULL_TUNE.BATCH_SIZE=8"]
        self.assertIn("10% of the data set of DATA.TRAIN, of each class", self.finish(*tune).stderr)
        self.assertIn("top1", self.results()["full_tune"])
        error = self.fail_with(2, *tune, "config.DATA.TEST.DATA_PATHS=[others]")
        for part in ("config.DATA.TEST.DATA_PATHS [others]", "eel (1)", "config.DATA.TRAIN.DATA_PATHS [data/train]"):
            self.assertIn(part, error)
        self.finish(*tune, "config.DATA.TEST.DATA_PATHS=[fewer]", "config.FULL_TUNE.NUM_EPOCHS=30",
                    "config.FULL_TUNE.LEARNING_RATE=0.05", "config.CHECKPOINT.OVERWRITE_EXISTING=True")
        # By number, none would be right.
        self.assertGreaterEqual(self.results()["full_tune"]["top1"], 0.6)

    def test_classifier_is_tested_by_the_names_of_classes(self):
        self.make_folder("data/train")
        self.make_folder("fewer", classes=("bee", "cat", "dog"), per_class=5, first=100)
        self.make_folder("others", classes=("bee", "cat"), per_class=2)
        (self.folder / "others/cat").rename(self.folder / "others/eel")
        (self.folder / "classifier.yaml").write_text(SUPERVISED)
        data = ["+config=classifier.yaml", "config.DATA.TRAIN.DATA_PATHS=[data/train]"]
        self.finish(*data, "config.DATA.TEST.DATA_PATHS=[fewer]")
        tested = json.loads((self.folder / "run/metrics.json").read_text().splitlines()[-1])
        # By number, none would be right.
        self.assertGreaterEqual(tested["test_accuracy_list_meter"]["top_1"]["0"], 60.0)
        self.finish(*data, "config.DATA.TEST.DATA_PATHS=[fewer]", "engine_name=extract_label_predictions")
        self.assertGreaterEqual(self.results()["extract_label_predictions"]["test"]["heads"], 0.6)
        self.assertEqual(values(self.folder / "run/rank0_test_heads_targets.npy"), [1] * 5 + [2] * 5 + [3] * 5)
        for way in (["engine_name=extract_label_predictions"], ["config.CHECKPOINT.DIR=other"]):
            error = self.fail_with(2, *data, "config.DATA.TEST.DATA_PATHS=[others]", *way)
            for part in ("config.DATA.TEST.DATA_PATHS [others]", "eel (1)", "DATA_PATHS [data/train]"):
                self.assertIn(part, error)

    # Messages that name the next step.

    def test_wrong_starts_say_what_to_do(self):
        self.make_folder("photos", per_class=4)
        data = "config.DATA.TRAIN.DATA_PATHS=[photos]"
        for code, arguments, part in (
                (2, [data, "engine_name=[]"], "engine_name names no engine, expected one"),
                (2, [data, "engine_name=knn"], "train first (engine_name=train"),
                (2, ["config.DATA.TRAIN.DATA_PATHS=[mine.yaml]"], "mine.yaml is a file, expected a folder"),
                (2, [data, "engine_name=knn", "config.NEAREST_NEIGHBOR.FEATURES.PATH=nowhere"],
                 "engine_name=extract_features writes one")):
            self.assertIn(part, self.fail_with(code, *arguments))
        bare = subprocess.run([BINARY, "mine.yaml"], cwd=self.folder, capture_output=True, text=True, env=environment())
        self.assertEqual(bare.returncode, 2)
        self.assertIn("such as --config=mine.yaml", bare.stderr)

    def test_evaluation_of_another_network_names_the_runs_configuration(self):
        self.make_folder("photos", per_class=4)
        self.train()
        error = self.fail_with(2, "config.DATA.TRAIN.DATA_PATHS=[photos]", "engine_name=knn",
                               "config.MODEL.TRUNK.RESNETS.DEPTH=34")
        self.assertIn("--config=run/train_config.yaml", error)

    def test_images_of_one_class_give_a_warning(self):
        self.make_folder("photos", classes=("ant",), per_class=12)
        self.train()
        result = self.finish("config.DATA.TRAIN.DATA_PATHS=[photos]", "engine_name=knn")
        self.assertIn("config.DATA.TRAIN.DATA_PATHS [photos] has one class only", result.stderr)

    def test_sweep_takes_its_directory_for_chosen(self):
        self.make_folder("photos", per_class=4)
        result = self.finish("config.DATA.TRAIN.DATA_PATHS=[photos]", "config.SEED_VALUE=1,2")
        self.assertIn("run directory: run/sweep_1\n", result.stderr)

    # What must not pass for a result.

    def test_new_run_keeps_nothing_of_the_earlier_ones_evaluations(self):
        self.make_folder("photos", per_class=4)
        data = "config.DATA.TRAIN.DATA_PATHS=[photos]"
        self.train()
        self.finish(data, "engine_name=[knn, extract_features]",
                    "config.NEAREST_NEIGHBOR.SAVE_PREDICTIONS=True")
        self.fail_with(2, data, "engine_name=knn", "config.DATA.TEST.DATA_PATHS=[nowhere]")
        run = self.folder / "run"
        for name in ("notes.npy", "my_config.yaml"):
            (run / name).write_text("mine")
        # As of a supervised run: this one predicts no labels.
        (run / "rank0_test_heads_predictions.npy").write_text("of an earlier run")
        for written in ("kNN_*.npy", "rank0_test_*.npy", "knn_failure.json",
                        "knn_extract_features_config.yaml", "features"):
            self.assertTrue(list(run.glob(written)), written)
        self.finish(data, "config.SEED_VALUE=1", "config.CHECKPOINT.OVERWRITE_EXISTING=True")
        self.assertEqual(sorted(path.name for path in run.iterdir()),
                         [".lock", "checkpoints", "log.txt", "metrics.json", "metrics.jsonl", "my_config.yaml", "notes.npy",
                          "results.json", "train_config.yaml"])
        self.assertEqual(list(self.results()), ["train_seconds"])

    def test_weights_that_are_no_numbers_are_refused(self):
        self.make_folder("photos")
        self.train()
        self.finish("config.DATA.TRAIN.DATA_PATHS=[photos]", "engine_name=export",
                    "config.EXPORT.FILES=[model.safetensors]", "config.EXPORT.FORMAT=native")
        path = self.folder / "run/export/model.safetensors"
        content = bytearray(path.read_bytes())
        size = struct.unpack("<Q", content[:8])[0]
        header = json.loads(content[8:8 + size])
        begin, end = header["trunk.conv1.weight"]["data_offsets"]
        content[8 + size + begin:8 + size + end] = struct.pack("<f", float("nan")) * ((end - begin) // 4)
        path.write_bytes(content)
        error = self.fail_with(4, "config.DATA.TRAIN.DATA_PATHS=[photos]", "engine_name=knn",
                               "config.CHECKPOINT.DIR=other", f"config.MODEL.WEIGHTS_INIT.PARAMS_FILE={path}")
        for part in (str(path), "trunk.conv1.weight", "not finite"):
            self.assertIn(part, error)

    def test_stopped_evaluation_writes_no_results_and_says_so(self):
        self.make_folder("photos", per_class=200)
        self.train()
        before = (self.folder / "run/results.json").read_bytes()
        # A linear evaluation that would take minutes, stopped at its first line about the test set.
        process = subprocess.Popen([BINARY, "--config=mine.yaml", "config.DATA.TRAIN.DATA_PATHS=[photos]",
                                    "engine_name=linear_eval", "config.LINEAR_EVAL.NUM_EPOCHS=100000"],
                                   cwd=self.folder, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True,
                                   env=environment())
        for line in process.stderr:
            if "evaluation:" in line:
                process.send_signal(signal.SIGTERM)
                break
        process.stderr.read()
        process.stderr.close()
        self.assertEqual(process.wait(), 75)
        self.assertEqual((self.folder / "run/results.json").read_bytes(), before)


def shape(path):
    """The shape of a .npy file."""
    data = path.read_bytes()
    header = data[10:10 + struct.unpack("<H", data[8:10])[0]].decode()
    return ast.literal_eval(header)["shape"]


def values(path):
    """The int64 values of a .npy file."""
    data = path.read_bytes()
    begin = 10 + struct.unpack("<H", data[8:10])[0]
    return list(struct.unpack(f"<{(len(data) - begin) // 8}q", data[begin:]))


def environment():
    return {**os.environ, "OMP_NUM_THREADS": "1"}


if __name__ == "__main__":
    unittest.main(verbosity=2)
