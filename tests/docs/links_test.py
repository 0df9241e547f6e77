# SPDX-License-Identifier: Apache-2.0
"""Every relative link in the tree's Markdown pages points to a file that exists."""
import pathlib
import unittest

from tests.docs import link_checks


class LinksTest(unittest.TestCase):
    def setUp(self):
        self.root = pathlib.Path("WORKSPACE").resolve().parent

    def test_the_walk_sees_the_pages(self):
        self.assertLessEqual({"README.md", "CONTRIBUTING.md"}, set(link_checks.pages(self.root)))

    def test_no_link_is_dead(self):
        messages = link_checks.check_links(self.root)
        self.assertEqual(len(messages), 0, "\n" + "\n".join(messages))


if __name__ == "__main__":
    unittest.main()
