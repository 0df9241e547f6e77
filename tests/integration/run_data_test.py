# SPDX-License-Identifier: Apache-2.0
"""Which data a run goes on with, and what an evaluation of a run takes from it: whole processes over a folder of images
with the recipe of --config=folder, which chooses by their number where no run lies."""
import json
import random
import shutil
import unittest

from tests.integration.run_case import RunCase
from tests.security import testing_images

CROP = "config.DATA.TRAIN.TRANSFORMS.1.size=24"
EPOCHS = "config.OPTIMIZER.num_epochs=1"
NO_WORKERS = "config.DATA.NUM_DATALOADER_WORKERS=0"


class RunDataTest(RunCase):

    def setUp(self):
        super().setUp()
        self.make_images("photos/sky")
        self.make_images("photos/sea")
        self.assertEqual(self.run_on("photos", CROP, EPOCHS, "engine_name=train").returncode, 0)

    def make_images(self, folder, count=8):
        generator = random.Random(folder)
        (self.folder / folder).mkdir(parents=True, exist_ok=True)
        for i in range(count):
            (self.folder / folder / f"{i}.png").write_bytes(testing_images.png(40, 30, generator))

    def run_on(self, images, *arguments, run="run", **options):
        return self.call("--config=folder", f"config.DATA.TRAIN.DATA_PATHS=[{images}]", f"config.CHECKPOINT.DIR={run}",
                         NO_WORKERS, *arguments, **options)

    def train_on(self, images, *arguments, **options):
        return self.run_on(images, CROP, EPOCHS, "engine_name=train", *arguments, **options)

    def results(self):
        return json.loads((self.folder / "run/results.json").read_text())

    def goes_on(self, result):
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("resuming at iteration", result.stderr)

    def test_other_images_are_evaluated_as_the_run_saw_its_own(self):
        def transforms(images, *arguments):
            result = self.run_on(images, "engine_name=extract_features", *arguments)
            self.assertEqual(result.returncode, 0, result.stderr)
            return self.results()["extract_features"]
        own = transforms("photos")
        self.make_images("few", 3)
        few = transforms("few", "config.EXTRACT_FEATURES.OUTPUT_DIR=few_features")
        self.assertEqual(few["transforms"], own["transforms"])
        self.assertEqual([few["transforms"][1]["size"], few["data"]["train"]], [24, ["few"]])
        self.assertEqual([few["train_samples"], few["test_samples"]], [2, 1])
        whole = transforms("few", "config.DATA.TRAIN.HOLD_OUT_FRACTION=0")
        self.assertEqual(whole["train_samples"], 3)
        self.assertNotIn("test", whole["data"])
        result = self.run_on("photos", "engine_name=knn", "config.DATA.TRAIN.HOLD_OUT_FRACTION=0")
        self.assert_refused(result, 2, "config.DATA.TRAIN.HOLD_OUT_FRACTION above 0 holds one out")
        typed = transforms("photos", "config.DATA.TRAIN.TRANSFORMS.1.size=32")
        self.assertEqual(typed["transforms"][1]["size"], 32)

    def test_other_images_of_the_same_number_are_refused_and_may_be_allowed(self):
        (self.folder / "photos/sky/0.png").rename(self.folder / "photos/sky/new.png")
        result = self.train_on("photos")
        self.assert_refused(result, 2, "DATA.TRAIN.samples: other names or labels than in the checkpoint; now the first "
                            "that differ are in 'sky/1.png'")
        self.assertIn("ALLOW_CHANGES=[DATA.TRAIN.samples]", result.stderr)
        self.goes_on(self.train_on("photos", "config.CHECKPOINT.ALLOW_CHANGES=[DATA.TRAIN.samples]"))

    def test_the_same_folder_in_another_spelling_and_place_goes_on(self):
        for same in ("photos/", "./photos", self.folder / "photos"):
            with self.subTest(same):
                self.goes_on(self.train_on(same))
        shutil.copytree(self.folder / "photos", self.folder / "copy")
        self.assert_refused(self.train_on("copy"), 2, "DATA.TRAIN.DATA_PATHS: [photos] in the checkpoint, [copy] now")
        shutil.rmtree(self.folder / "photos")
        self.goes_on(self.train_on("copy"))

    def test_a_folder_with_a_comma_is_another_one_while_it_is_there(self):
        for name in ("a, b", "a, c"):
            shutil.copytree(self.folder / "photos", self.folder / name)
        self.assertEqual(self.train_on("'a, b'", run="comma").returncode, 0)
        self.assert_refused(self.train_on("'a, c'", run="comma"), 2,
                            'DATA.TRAIN.DATA_PATHS: ["a, b"] in the checkpoint, ["a, c"] now')
        shutil.rmtree(self.folder / "a, b")
        self.goes_on(self.train_on("'a, c'", run="comma"))

    def test_a_relative_path_is_the_folder_of_its_working_directory(self):
        folder = self.folder.resolve()
        shutil.copytree(folder / "photos", folder / "other/photos")
        there = {"run": folder / "run", "prefix": ("env", "-C", str(folder / "other"))}
        for images in ("photos", folder / "other/photos"):
            self.assert_refused(self.train_on(images, **there), 2, "ALLOW_CHANGES=[DATA.TRAIN.DATA_PATHS]")
        self.goes_on(self.train_on(folder / "photos", **there))
        shutil.rmtree(folder / "photos")
        self.goes_on(self.train_on("photos", **there))

    def test_images_that_are_gone_are_told_first(self):
        other = "config.SEED_VALUE=7"
        (self.folder / "photos").rename(self.folder / "away")
        for more in ((), (other,)):
            result = self.train_on("photos", *more)
            self.assert_refused(result, 2, "photos")
            self.assertNotIn("in the checkpoint", result.stderr)
        (self.folder / "photos").mkdir()
        result = self.train_on("photos", other)
        self.assert_refused(result, 2, "photos")
        self.assertNotIn("in the checkpoint", result.stderr)

    def test_all_that_differs_is_told_at_once(self):
        (self.folder / "photos/sky/8.png").write_bytes((self.folder / "photos/sky/1.png").read_bytes())
        result = self.train_on("photos", "config.SEED_VALUE=7")
        self.assert_refused(result, 2, "DATA.TRAIN.num_samples: 16 in the checkpoint, 17 now")
        advice = "config.CHECKPOINT.ALLOW_CHANGES=[DATA.TRAIN.num_samples,SEED_VALUE]"
        self.assertIn(advice, result.stderr)
        self.assertNotIn("BATCHSIZE", result.stderr.split(" E ")[1])
        self.goes_on(self.train_on("photos", "config.SEED_VALUE=7", advice))

    def test_configuration_of_a_run_that_was_moved_belongs_to_where_it_lies(self):
        (self.folder / "run").rename(self.folder / "moved")
        result = self.call("--config=moved/train_config.yaml", "engine_name=train")
        self.goes_on(result)
        self.assertIn("config.CHECKPOINT.DIR is moved, where this file lies", result.stderr)
        self.assertFalse((self.folder / "run").exists())


if __name__ == "__main__":
    unittest.main(verbosity=2)
