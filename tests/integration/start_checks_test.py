# SPDX-License-Identifier: Apache-2.0
"""What the start of a training is refused for, whoever asks before it hears: --check_config, --dry_run and the estimate
of its time. And a run directory among the images."""
import os
import random
import shutil
import subprocess
import unittest

from tests.integration.run_case import BINARY, RunCase, environment
from tests.security import testing_images

ASKING = (("engine_name=train", "--check_config"), ("engine_name=train", "--dry_run"), ("engine_name=estimate",))
# Two small crops of each image, as --config=folder makes them.
SMALL = ("config.DATA.TRAIN.TRANSFORMS.1.size=24", "config.OPTIMIZER.num_epochs=1")


class StartChecksTest(RunCase):

    def make_images(self, *folders, count=8):
        generator = random.Random(1)
        for folder in folders:
            (self.folder / folder).mkdir(parents=True, exist_ok=True)
            for i in range(count):
                (self.folder / folder / f"{i}.png").write_bytes(testing_images.png(40, 30, generator))

    def folder_run(self, *arguments, images="photos", run="run"):
        directory = () if run is None else (f"config.CHECKPOINT.DIR={run}",)
        return self.call("--config=folder", f"config.DATA.TRAIN.DATA_PATHS=[{images}]", *directory, *SMALL, *arguments)

    def assert_all_refuse(self, code, *parts, **options):
        for asking in ASKING:
            with self.subTest(asking):
                result = self.folder_run(*asking, **options)
                self.assertEqual(result.returncode, code, result.stdout + result.stderr)
                for part in parts:
                    self.assertIn(part, result.stdout + result.stderr)

    def files(self):
        return sorted(self.folder.rglob("*"))

    def test_another_number_of_images_is_refused_by_whoever_asks(self):
        self.make_images("photos/sky", "photos/sea")
        self.assertEqual(self.folder_run("engine_name=train").returncode, 0)
        for asking in ASKING:
            self.assertEqual(self.folder_run(*asking).returncode, 0)
        (self.folder / "photos/sky/0.png").rename(self.folder / "photos/sky/more.jpeg")
        (self.folder / "photos/sky/8.png").write_bytes((self.folder / "photos/sky/1.png").read_bytes())
        refusal = "DATA.TRAIN.num_samples: 16 in the checkpoint, 17 now (counted in photos; command line:2)"
        self.assert_refused(self.folder_run("engine_name=train"), 2, refusal)
        self.assert_all_refuse(2, refusal)

    def test_directory_in_use_is_told_to_whoever_asks(self):
        training = self.start(3)
        before = self.files()
        for asking in ASKING:
            with self.subTest(asking):
                result = self.tiny(*asking)
                self.assertEqual(result.returncode, 5, result.stdout + result.stderr)
                self.assertIn("run directory run cannot be used: lock run/.lock: is held by process",
                              result.stdout + result.stderr)
        self.assertEqual(self.files(), before)
        training.kill()
        self.end(training)

    def test_estimate_beside_the_training_of_the_same_command_is_no_second_run(self):
        self.finish("engine_name=[estimate,train]")

    def test_run_among_the_images_is_refused_before_anything_is_written(self):
        self.make_images("photos/sky", "photos/sea", "flat")
        before = self.files()
        way_out = "config.CHECKPOINT.DIR chooses another"
        for images, run in (("photos", "photos/sky/run"), ("flat", "flat"), (".", None)):
            with self.subTest(images=images, run=run):
                self.assert_all_refuse(2, way_out, images=images, run=run)
        for engine in ("train", "preview", "check_data", "train --launch=local:2", "train config.SEED_VALUE=0,1"):
            with self.subTest(engine=engine):
                self.assert_refused(self.folder_run(*f"engine_name={engine}".split(), run="photos/run"), 2, way_out)
        self.assertEqual(self.files(), before)

    def test_run_in_a_folder_that_is_passed_over_may_lie_there(self):
        self.make_images("photos/sky", "photos/sea")
        for _ in range(2):
            result = self.folder_run("engine_name=train", run="photos/.runs/mine")
            self.assertEqual(result.returncode, 0, result.stderr)

    def test_what_an_earlier_version_left_among_the_images_is_explained(self):
        self.make_images("photos/sky", "photos/sea")
        (self.folder / "photos/runs/folder").mkdir(parents=True)
        (self.folder / "photos/runs/folder/log.txt").write_text("")
        result = self.folder_run("engine_name=train", "--check_config", run="photos/runs/folder")
        self.assertEqual(result.returncode, 2)
        self.assertIn("config.CHECKPOINT.DIR chooses another", result.stdout)


    # What was typed, and meant otherwise.

    def assert_refused_at_once(self, result, *parts):
        self.assert_refused(result, 2, *parts)
        self.assertEqual([path for path in self.files() if path.name not in ("photos", "run.yaml")], [])

    def test_paths_in_which_nothing_is_replaced_are_refused_wherever_they_stand(self):
        home = os.environ["HOME"] = str(self.folder / "home")
        (self.folder / "run.yaml").write_text("config: {EXPORT: {OUTPUT_DIR: '${oc.env:HOME}/x'}}\n")
        for token, expected in (("config.CHECKPOINT.DIR=~/runs/a", "/runs/a"), ("+config=run", "/x"),
                                ("config.EXTRACT_FEATURES.OUTPUT_DIR=$HOME/feat", "/feat"),
                                ("config.EXPORT.FILES=[~/m.safetensors]", "/m.safetensors"),
                                ("config.MODEL.WEIGHTS_INIT.PARAMS_FILE=~/w.pth", "/w.pth")):
            for flags in ((), ("--check_config",)):
                result = self.call("--config=test/swav_tiny", "engine_name=train", token, *flags)
                self.assertEqual(result.returncode, 2, result.stderr)
                self.assertIn(f"; expected {home}{expected}", result.stdout + result.stderr)
        self.assertEqual(self.files(), [self.folder / "run.yaml"])

    def test_an_empty_path_is_told_as_one(self):
        for key in ("DATA.TRAIN.DATA_PATHS", "DATA.TEST.DATA_PATHS"):
            self.make_images("photos/sky", "photos/sea")
            self.assert_refused(self.folder_run("engine_name=[train,knn]", f"config.{key}=['']"), 2,
                                f"config.{key} has an empty path: a variable of the shell may be unset")

    def test_engines_with_a_comma_are_told_how_one_run_has_them(self):
        result = self.call("--config=test/swav_tiny", "engine_name=train,knn")
        self.assert_refused_at_once(result, "nothing will be trained for knn; expected engine_name=[train,knn], one run")

    def test_a_sweep_of_which_nothing_was_trained_leaves_its_place(self):
        self.make_images("photos/sky", "photos/sea")
        sweep = ("--config=folder", "config.CHECKPOINT.DIR=run", *SMALL, "engine_name=train")
        wrong = self.call(*sweep, "config.DATA.TRAIN.DATA_PATHS=[no],[none]")
        self.assertEqual(wrong.stdout.count("  failed  "), 2, wrong.stdout)
        right = self.call(*sweep, "config.DATA.TRAIN.DATA_PATHS=[photos]", "config.SEED_VALUE=1,2")
        self.assertEqual(right.returncode, 0, right.stdout + right.stderr)
        self.assertEqual(right.stdout.count("loss="), 2, right.stdout)

    def test_a_copy_of_the_program_says_where_it_looked(self):
        copy = self.folder / "copy"
        shutil.copy(BINARY, copy)
        variables = {name: value for name, value in environment().items() if not name.startswith("RUNFILES")}
        loaded = subprocess.run(["ldd", BINARY], check=True, capture_output=True, text=True).stdout
        variables["LD_LIBRARY_PATH"] = ":".join({os.path.dirname(line.split()[2]) for line in loaded.splitlines() if "/_solib" in line})
        call = lambda: subprocess.run([copy, "--config=quickstart", "--print_config"], cwd=self.folder, env=variables,
                                      capture_output=True, text=True)
        self.assert_refused(call(), 2, f"nor below ./configs/config, {copy}.runfiles/ssl/configs/config")
        variables["RUNFILES_DIR"] = f"{BINARY}.runfiles"
        if not os.path.isdir(variables["RUNFILES_DIR"]):  # a test's own are elsewhere
            variables["RUNFILES_DIR"] = os.environ["TEST_SRCDIR"]
        self.assertEqual(call().returncode, 0, call().stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
