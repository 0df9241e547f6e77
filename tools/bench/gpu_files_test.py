# SPDX-License-Identifier: Apache-2.0
"""The configurations that compare_gpu.py runs are accepted on a CPU, as they stand and with what --tiny puts on top."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

from tools.bench import compare_gpu

BINARY = pathlib.Path(sys.argv.pop(1)).absolute()
CPU_IMAGES = ["config.MACHINE.DEVICE=cpu", "config.DATA.TRAIN.DATA_SOURCES=[synthetic]",
              "config.DATA.TRAIN.DEFAULT_GRAY_IMG_SIZE=28"]


class GpuFilesTest(unittest.TestCase):

    def check(self, name, *more):
        with tempfile.TemporaryDirectory() as folder:
            return subprocess.run([BINARY, "--check_config", f"--config=bench/{name}_gpu_peer", *more], cwd=folder,
                                  capture_output=True, text=True, check=False)

    def test_each_file_is_accepted(self):
        for name, workload in compare_gpu.WORKLOADS.items():
            with self.subTest(name):
                result = self.check(name, *CPU_IMAGES, f"config.DATA.TRAIN.DATA_LIMIT={workload.batch}")
                self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def test_each_file_is_accepted_where_it_is_tried_without_a_gpu(self):
        for name, workload in compare_gpu.WORKLOADS.items():
            with self.subTest(name):
                tiny = compare_gpu.fill(compare_gpu.OURS_TINY + list(workload.tiny), images=compare_gpu.TINY_BATCH)
                result = self.check(name, *CPU_IMAGES, *tiny)
                self.assertEqual(result.returncode, 0, result.stdout + result.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
