# SPDX-License-Identifier: Apache-2.0
"""The configurations of tools/bench/vissl would run here: every key and name is known, and each model can be built."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

BINARY = pathlib.Path(sys.argv.pop(1)).absolute()
FILES = sorted((pathlib.Path(__file__).parent / "vissl").glob("*.yaml"))


class VisslFilesTest(unittest.TestCase):

    def test_each_file_is_accepted(self):
        self.assertEqual([file.stem for file in FILES], ["moco_fmnist", "swav_fmnist", "swav_fmnist_2crops"])
        for file in FILES:
            with self.subTest(file.stem), tempfile.TemporaryDirectory() as folder:
                # Images of its own make stand in for the folder that make_pngs.py writes.
                result = subprocess.run(
                    [BINARY, "--check_config", f"--config={file}", "config.DATA.TRAIN.DATA_SOURCES=[synthetic]",
                     "config.DATA.TRAIN.DATA_LIMIT=64", "config.DATA.TRAIN.DEFAULT_GRAY_IMG_SIZE=28"],
                    cwd=folder, capture_output=True, text=True)
                self.assertEqual(result.returncode, 0, result.stdout + result.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
