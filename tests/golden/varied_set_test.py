# SPDX-License-Identifier: Apache-2.0
"""Golden tests on other sets: a valid one passes, malformed ones fail without a crash.

Arguments: FOLDER=PROGRAM, a test program and the folder of the set that it is written with.
"""
import collections
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import vary_golden

DAMAGE_SEEDS = (0, 1)

Program = collections.namedtuple("Program", "name path source")


def programs():
    pairs = [argument.split("=", 1) for argument in sys.argv[1:]]
    return [Program(pathlib.Path(path).name, os.path.abspath(path), pathlib.Path(source)) for source, path in pairs]


class VariedSetTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.programs = programs()
        cls.folder = pathlib.Path(tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR")))

    def make(self, damage_seed):
        """Varies every source. Returns the new sets by source."""
        sets = {}
        for source in {program.source for program in self.programs}:
            sets[source] = self.folder / f"{damage_seed}" / source
            vary_golden.make(source, sets[source], damage_seed)
        return sets

    def run_test(self, program, golden_set):
        environment = dict(os.environ, SSL_GOLDEN_DIR=str(golden_set), OMP_NUM_THREADS="1")
        environment.pop("XML_OUTPUT_FILE", None)
        return subprocess.run([program.path, "--gtest_filter=*Golden.*:ModelsNames.*"], env=environment, text=True,
                              errors="replace", stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)

    def test_valid_set_passes(self):
        sets = self.make(None)
        beyond = 0
        for program in self.programs:
            with self.subTest(program.name):
                result = self.run_test(program, sets[program.source])
                self.assertEqual(result.returncode, 0, result.stdout[-5000:])
                self.assertNotIn("[  PASSED  ] 0 tests", result.stdout)
                beyond += "not expressible: " in result.stdout
        self.assertGreater(beyond, 0)

    def test_malformed_set_fails_with_a_message(self):
        failed = 0
        for seed in DAMAGE_SEEDS:
            sets = self.make(seed)
            for program in self.programs:
                with self.subTest(test=program.name, seed=seed):
                    result = self.run_test(program, sets[program.source])
                    self.assertIn(result.returncode, (0, 1), result.stdout[-5000:])
                    self.assertEqual(result.returncode == 1, "[  FAILED  ]" in result.stdout)
                    failed += result.returncode
        self.assertGreater(failed, len(self.programs))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
