# SPDX-License-Identifier: Apache-2.0
"""Labels that point up or sideways are found; those that point down are not."""
import pathlib
import tempfile
import unittest

from tests.layering import layer_checks


def check(package, label):
    path = f"ssl/{package}/BUILD.bazel" if package else "ssl/BUILD.bazel"
    return layer_checks.check_build_file(path, f'cc_library(\n    deps = ["{label}"],\n)\n')


class CheckBuildFileTest(unittest.TestCase):
    def test_down_is_allowed(self):
        self.assertEqual(check("core", "//ssl/base:log"), [])
        self.assertEqual(check("tools", "//ssl:builtins"), [])
        self.assertEqual(check("methods/swav", "//ssl/losses:swav_loss"), [])

    def test_own_package_is_allowed(self):
        self.assertEqual(check("data/transforms", "//ssl/data:transform"), [])

    def test_up_is_found_with_path_and_line(self):
        self.assertEqual(check("base", "//ssl/core"),
                         ['ssl/base/BUILD.bazel:2: ssl/base may not depend on "//ssl/core": not a layer below it'])

    def test_sideways_is_found(self):
        self.assertEqual(len(check("models", "//ssl/data/image:image")), 1)
        self.assertEqual(len(check("hooks", "//ssl/methods/swav")), 1)

    def test_builtins_are_above_the_plugins(self):
        self.assertEqual(len(check("engines", "//ssl:builtins")), 1)
        self.assertEqual(check("", "//ssl/methods:register_methods"), [])

    def test_testing_may_be_used_anywhere(self):
        self.assertEqual(check("base", "//ssl/testing:status_matchers"), [])

    def test_visibility_is_no_dependency(self):
        self.assertEqual(check("base", "//ssl:__subpackages__"), [])
        self.assertEqual(check("base", "//ssl/core:__pkg__"), [])

    def test_unknown_package_must_be_entered(self):
        self.assertIn("is not in LAYERS", check("novelty", "//ssl/base:log")[0])
        self.assertEqual(len(check("core", "//ssl/novelty:x")), 1)


class CheckLayersTest(unittest.TestCase):
    def test_nested_packages_are_read(self):
        with tempfile.TemporaryDirectory() as root:
            folder = pathlib.Path(root) / "ssl/data/transforms"
            folder.mkdir(parents=True)
            (folder / "BUILD.bazel").write_text('deps = ["//ssl/methods/swav"]\n')
            self.assertEqual(len(layer_checks.check_layers(root)), 1)


if __name__ == "__main__":
    unittest.main()
