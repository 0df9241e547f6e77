# SPDX-License-Identifier: Apache-2.0
"""The source tree follows the rules of style_checks.py.

The tree is found behind the link that the test's runfiles hold to WORKSPACE, so that new
files and folders are seen without being listed in a BUILD file.
"""
import pathlib
import unittest

from tests.style import style_checks


class StyleTest(unittest.TestCase):
    def setUp(self):
        self.root = pathlib.Path("WORKSPACE").resolve().parent

    def test_the_walk_sees_the_whole_tree(self):
        paths = set(style_checks.walk(self.root))
        self.assertLessEqual({"bazelw", ".ci/run", "bazel/ssl.bzl", "tests/style/style_test.py", "ssl/base/log.cc"}, paths)

    def test_no_file_breaks_a_rule(self):
        messages = style_checks.check_tree(self.root)
        self.assertEqual(len(messages), 0, "\n" + "\n".join(messages))


if __name__ == "__main__":
    unittest.main()
