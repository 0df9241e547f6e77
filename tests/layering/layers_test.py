# SPDX-License-Identifier: Apache-2.0
"""No package under ssl/ depends on a layer above it or beside it, and each is visible to whom it is meant for."""
import pathlib
import unittest

from tests.layering import layer_checks, visibility_checks


class LayersTest(unittest.TestCase):
    def setUp(self):
        self.root = pathlib.Path("WORKSPACE").resolve().parent

    def test_all_dependencies_point_down(self):
        self.assertTrue((self.root / "ssl/core/BUILD.bazel").exists())
        messages = layer_checks.check_layers(self.root)
        self.assertEqual(len(messages), 0, "\n" + "\n".join(messages))

    def test_each_package_has_its_visibility(self):
        messages = visibility_checks.check_visibilities(self.root)
        self.assertEqual(len(messages), 0, "\n" + "\n".join(messages))


if __name__ == "__main__":
    unittest.main()
