# SPDX-License-Identifier: Apache-2.0
"""Dead links are found, live ones and what only looks like a link are not reported."""
import pathlib
import tempfile
import unittest

from tests.docs import link_checks


class CheckLinksTest(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.root = pathlib.Path(temporary.name).resolve()
        (self.root / "docs").mkdir()
        (self.root / "docs/hooks.md").write_text("# Hooks\n")

    def check(self, text, path="docs/page.md"):
        (self.root / path).write_text(text)
        return link_checks.check_links(self.root)

    def test_dead_link_names_page_line_and_target(self):
        self.assertEqual(self.check("a\n\nSee [hooks](hook.md).\n"),
                         ["docs/page.md:3: link to hook.md, but there is no such file"])

    def test_live_links_relative_to_the_page(self):
        self.assertEqual(self.check("[a](hooks.md) [b](../docs/hooks.md#anchor) [c](./) ![d](hooks.md 'title')\n"), [])

    def test_leading_slash_is_the_repository(self):
        self.assertEqual(self.check("[a](/docs/hooks.md)\n"), [])
        self.assertEqual(len(self.check("[a](/hooks.md)\n")), 1)

    def test_each_dead_link_of_a_line_counts(self):
        self.assertEqual(len(self.check("[a](x.md) and [b](y.md)\n", path="README.md")), 2)

    def test_reference_definitions_are_links(self):
        self.assertEqual(len(self.check("See [hooks].\n\n[hooks]: hook.md\n")), 1)

    def test_other_hosts_and_anchors_are_not_followed(self):
        self.assertEqual(self.check("[a](https://example.org/x) [b](#part) [c](mailto:a@example.org)\n"), [])

    def test_code_holds_no_links(self):
        self.assertEqual(self.check("`a[0](x)`\n```\n[a](x.md)\n```\n"), [])

    def test_text_after_a_code_block_is_checked_again(self):
        self.assertEqual(len(self.check("```\ncode\n```\n[a](x.md)\n")), 1)

    def test_link_out_of_the_repository_is_reported(self):
        self.assertIn("leaves the repository", self.check("[a](../..)\n")[0])


if __name__ == "__main__":
    unittest.main()
