# SPDX-License-Identifier: Apache-2.0
"""docs/api.md lists the public libraries, and those are few."""
import pathlib
import unittest

from tools import print_api_page

MOST = 60


class ApiPageTest(unittest.TestCase):
    def setUp(self):
        self.root = pathlib.Path("WORKSPACE").resolve().parent

    def test_the_page_is_what_the_script_prints(self):
        page = (self.root / "docs/api.md").read_text(encoding="utf-8")
        self.assertEqual(page, print_api_page.page(self.root), "run python3 tools/print_api_page.py > docs/api.md")

    def test_few_libraries_are_public(self):
        libraries = print_api_page.public_libraries(self.root)
        self.assertIn(("ssl/core", "core", None), libraries)
        self.assertLessEqual(len(libraries), MOST)


if __name__ == "__main__":
    unittest.main()
