# SPDX-License-Identifier: Apache-2.0
"""Puts a link in the place of everything that a run writes, then runs: what the link leads to must stay as it is. The
run may refuse the link, naming it, or replace it."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

BINARY = pathlib.Path(sys.argv.pop(1)).absolute()
FILES = (".lock", "log.txt", "train_config.yaml", "metrics.jsonl", "metrics.json", "results.json", "checkpoints/LATEST",
         "checkpoints/step_4.tmp", "checkpoints/step_4")

# What writes there. Folders of hooks stand in config.hooks.
DRAWS = ("config.hooks=[{type: feature_vis, kwargs: {freq: 2}}, {type: grad_cam, kwargs: {freq: 2}}, "
         "{type: crop_images}]")
PROFILES = "config.hooks=[{type: profiler, kwargs: {NUM_ITERATIONS: 1}}]"
LOGS = "config.hooks=[{type: train_val_logger}]"
LOGS_BELOW = "config.hooks=[{type: train_val_logger, kwargs: {logdir: sub/x}}]"
FULL_TUNE = "engine_name=[train, full_tune]"
EXPORT = ("engine_name=[export]", "config.EXPORT.FILES=[model.safetensors, sub/model.safetensors]")
FOLDERS = {
    "checkpoints": (),
    "checkpoints/step_3.tmp": (),
    "checkpoints/step_3": (),
    "tb_logs": (),
    "log": (LOGS,),
    "sub": (LOGS_BELOW,),
    "sub/x": (LOGS_BELOW,),
    "profile": (PROFILES,),
    "feat_vis": (DRAWS,),
    "feat_vis/iteration_2": (DRAWS,),
    "crops": (DRAWS,),
    "crops/iteration_1": (DRAWS,),
    "grad_cam": (DRAWS,),
    "grad_cam/iteration_2": (DRAWS,),
    "features": ("engine_name=[train, extract_features]",),
    "features/.features": ("engine_name=[train, extract_features]",),
    "full_tune": (FULL_TUNE,),
    "full_tune/checkpoints": (FULL_TUNE,),
    "export": EXPORT,
    "export/sub": EXPORT,
}
CONTENT = "precious\n"


class PlantedLinksTest(unittest.TestCase):

    def setUp(self):
        self._folder = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self._folder.name)
        self.victim = self.folder / "victim"

    def tearDown(self):
        self._folder.cleanup()

    def run_main(self, run, *arguments):
        return subprocess.run([BINARY, "--config=test/swav_tiny", f"config.CHECKPOINT.DIR={run}",
                               "config.DATA.TRAIN.DATA_LIMIT=16", "config.OPTIMIZER.num_epochs=2", *arguments],
                              cwd=self.folder, capture_output=True, text=True,
                              env={**os.environ, "OMP_NUM_THREADS": "1"})

    def plant(self, name):
        run = self.folder / name.replace("/", "_").strip(".")
        path = run / name
        path.parent.mkdir(parents=True)
        if name.startswith("export"):  # what is exported has to be there
            self.assertEqual(self.run_main(run, "engine_name=train").returncode, 0)
        path.symlink_to(self.victim)
        return run, path

    def check(self, name, result, path):
        """Either the link is gone, or the run ended with an error that names it."""
        if path.is_symlink() and result.returncode != 0:
            self.assertIn(str(path), result.stderr)
            # What is read before it is written is refused for what it holds.
            if name not in ("results.json", "checkpoints/step_3", "checkpoints/step_4"):
                self.assertIn("symbolic link", result.stderr)
        else:
            self.assertEqual(result.returncode, 0, f"{name}: {result.stderr}")

    def test_files(self):
        self.victim.write_text(CONTENT)
        for name in FILES:
            with self.subTest(name):
                run, path = self.plant(name)
                result = self.run_main(run)
                self.assertEqual(self.victim.read_text(), CONTENT)
                if name == "log.txt":  # lines go to stderr only
                    self.assertIn(f"log file {path} cannot be opened", result.stderr)
                else:
                    self.check(name, result, path)

    def test_folders(self):
        for name, arguments in FOLDERS.items():
            with self.subTest(name):
                self.victim = self.folder / f"victim_of_{name.replace('/', '_')}"
                (self.victim / "other").mkdir(parents=True)
                (self.victim / "precious").write_text(CONTENT)
                run, path = self.plant(name)
                result = self.run_main(run, *(arguments or ("engine_name=train",)))
                self.assertEqual(sorted(os.listdir(self.victim)), ["other", "precious"])
                self.assertEqual((self.victim / "precious").read_text(), CONTENT)
                # A link that is still there was met, or else the run does not write where this test thinks.
                self.assertTrue(result.returncode != 0 or not path.is_symlink(), f"{name} was not written to")
                self.check(name, result, path)

    def test_failure_report(self):
        self.victim.write_text(CONTENT)
        run, _ = self.plant("failure.json")
        (run / "checkpoints").write_text("no folder")
        self.assertNotEqual(self.run_main(run).returncode, 0)
        self.assertEqual(self.victim.read_text(), CONTENT)

    def test_run_directory_itself_may_be_a_link(self):
        self.victim.mkdir()
        (self.folder / "run").symlink_to(self.victim)
        result = self.run_main(self.folder / "run", "engine_name=train")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertTrue((self.victim / "checkpoints/LATEST").is_file())


if __name__ == "__main__":
    unittest.main()
