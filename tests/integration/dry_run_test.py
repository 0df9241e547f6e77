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
        self.assertRegex(dry.stdout, r"checkpoint +saves the run +at 3, 6, 9 +at 12, 15, 18 +6 times")
        self.assertNotIn(" W ", dry.stderr)
        told = re.search(r"  (checkpoints/step_.*) \(2 of", dry.stdout).group(1).split(", ")
        self.assertEqual(self.run_main("engine_name=train").returncode, 0)
        left = sorted(str(path.relative_to(self.folder / "run"))
                      for path in (self.folder / "run/checkpoints").glob("step_*"))
        self.assertEqual(sorted(told), left)

    def test_hooks_that_never_act_are_warned_about(self):
        dry = self.run_main("--dry_run", "config.CHECKPOINT.CHECKPOINT_ITER_FREQUENCY=1000",
                            "config.CHECKPOINT.ROLLING_START=5", "config.hooks=[{type: memory_empty}]",
                            config="test/supervised_tiny")
        self.assertEqual(dry.returncode, 0, dry.stderr)
        self.assertIn("hook 'checkpoint' saves the run never: it is due every 1000 updates, and the run has 20",
                      dry.stderr)
        self.assertIn("hook 'memory_empty' gives free memory back never: it is due every 100 updates, and the run has 20",
                      dry.stderr)
        self.assertIn("hook 'checkpoint' replaces the rolling checkpoint never: it is due every 1 epochs from 5 on",
                      dry.stderr)

    def test_an_evaluation_and_mistakes(self):
        dry = self.run_main("--dry_run", "engine_name=knn")
        self.assertEqual(dry.returncode, 0, dry.stderr)
        self.assertEqual(dry.stdout, "engines: knn\nrun directory: run\n")
        self.assertEqual(self.run_main("--dry_run", "config.SEED_VALUE=0,1").returncode, 2)
        missing = self.run_main("--dry_run", "config.hooks=[{type: grad_cliper}]")
        self.assertEqual(missing.returncode, 2)
        self.assertIn("grad_clipper", missing.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
