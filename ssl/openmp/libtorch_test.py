# SPDX-License-Identifier: Apache-2.0
"""LibTorch computes the same bits by our OpenMP runtime as by libgomp, and finds all of its functions there."""
import os
import pathlib
import re
import subprocess
import sys
import unittest

OWN, LIBGOMP = sys.argv[1:3]
FUNCTION = re.compile(r"\b((?:GOMP|omp)_[a-z]\w+)")


def lines(program):
    environment = dict(os.environ, OMP_NUM_THREADS="3")
    return subprocess.run([program], env=environment, check=True, capture_output=True, text=True).stdout.splitlines()


def functions(path, defined):
    """The names of OpenMP functions that a file defines for others, or looks for in others."""
    symbols = subprocess.run(["readelf", "--dyn-syms", "--wide", path], check=True, capture_output=True, text=True)
    return {name for line in symbols.stdout.splitlines() if (" UND " not in line) == defined
            for name in FUNCTION.findall(line)}


def libraries(program):
    """Those of LibTorch that a program loads, and those beside them, which LibTorch may load later; not libgomp."""
    loaded = subprocess.run(["ldd", program], check=True, capture_output=True, text=True).stdout
    paths = {pathlib.Path(line.split("=> ")[1].split(" (")[0]).resolve() for line in loaded.splitlines()
             if "torch" in line}
    paths.update(*(path.parent.glob("libtorch*.so*") for path in paths))
    return [path for path in paths if not path.name.startswith("libgomp")]


class LibTorchTest(unittest.TestCase):
    def test_bits_are_equal(self):
        own, libgomp = lines(OWN), lines(LIBGOMP)
        self.assertTrue(own[0].endswith("print_bits"), own[0])
        self.assertIn("libgomp", libgomp[0])
        self.assertEqual(own[1:], libgomp[1:])
        self.assertEqual(len(own), 25)

    def test_each_function_that_libtorch_calls_is_ours(self):
        needed = set().union(*(functions(path, defined=False) for path in libraries(OWN)))
        self.assertIn("GOMP_parallel", needed)
        self.assertEqual(needed - functions(OWN, defined=True), set())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
