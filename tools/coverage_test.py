# SPDX-License-Identifier: Apache-2.0
"""The coverage script finds the lines that ran, and those that did not, of a program that it did not compile itself."""
import contextlib
import io
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

from tools import coverage

PROGRAM = """int Twice(int x) {
  if (x > 100)
    return 0;
  return 2 * x;
}
int main(int argc, char**) { return Twice(argc) == 2 ? 0 : 1; }
"""


class CoverageTest(unittest.TestCase):

    def test_ranges(self):
        self.assertEqual(coverage.ranges([1, 2, 3, 7, 9, 10]), "1-3, 7, 9-10")
        self.assertEqual(coverage.ranges([]), "")

    def test_lines_of_a_real_program(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            objects = folder / "bazel-out/k8-opt/bin/a"
            objects.mkdir(parents=True)
            (folder / "twice.cc").write_text(PROGRAM)
            subprocess.run(["g++", "-O0", "--coverage", "-c", "twice.cc", "-o", objects / "twice.o"], cwd=folder, check=True)
            subprocess.run(["g++", "--coverage", objects / "twice.o", "-o", "twice"], cwd=folder, check=True)
            code, output = coverage.run_test(self.with_runfiles(folder / "twice"), folder / "counters")
            self.assertEqual((code, output), (0, ""))

            lines = coverage.read_counters(folder / "counters", folder / "bazel-out/k8-opt/bin", re.compile("twice"))

            self.assertEqual(dict(lines["twice.cc"]), {1: 1, 2: 1, 3: 0, 4: 1, 6: 1})
            text = io.StringIO()
            with contextlib.redirect_stdout(text):
                self.assertEqual(coverage.print_table(lines, show_lines=True), 0.8)
            self.assertIn("80.0 %      4 of     5  twice.cc  not run: 3", text.getvalue())
            self.assertEqual(coverage.read_counters(folder / "counters", folder / "bazel-out/k8-opt/bin", re.compile("x")), {})

    def with_runfiles(self, binary):
        os.makedirs(f"{binary}.runfiles/ssl")
        return binary


if __name__ == "__main__":
    unittest.main()
