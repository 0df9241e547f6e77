# SPDX-License-Identifier: Apache-2.0
"""The three levels are accepted in their places, and nothing else is."""
import unittest

from tests.layering import visibility_checks


def check(package, default, *targets):
    path = f"ssl/{package}/BUILD.bazel" if package else "ssl/BUILD.bazel"
    text = f"package(default_visibility = [{default}])\n\n"
    text += "".join(f"ssl_cc_library(\n    visibility = [{target}],\n)\n" for target in targets)
    return visibility_checks.check_build_file(path, text)


class CheckBuildFileTest(unittest.TestCase):
    def test_a_package_is_of_this_repository(self):
        self.assertEqual(check("", '"//:__subpackages__"'), [])
        self.assertEqual(check("core/testing", '"//:__subpackages__"'), [])
        self.assertIn("ssl/tools/BUILD.bazel:1: default_visibility", check("tools", '"//visibility:public"')[0])
        self.assertEqual(len(check("vissl", '"//examples:__subpackages__", "//ssl:__subpackages__"')), 1)

    def test_a_target_may_be_private_or_public(self):
        self.assertEqual(check("core", '"//:__subpackages__"', '"//visibility:private"', '"//visibility:public"'), [])
        messages = check("core", '"//:__subpackages__"', '"//visibility:private"', '"//ssl/data:__pkg__"')
        self.assertEqual(messages, ['ssl/core/BUILD.bazel:7: visibility is ["//ssl/data:__pkg__"], '
                                    'expected ["//visibility:private"], ["//visibility:public"] or none'])

    def test_a_package_has_to_say_it(self):
        messages = visibility_checks.check_build_file("ssl/core/BUILD.bazel", "ssl_cc_library()\n")
        self.assertIn("default_visibility is none", messages[0])


if __name__ == "__main__":
    unittest.main()
