# SPDX-License-Identifier: Apache-2.0
"""docs/data.md, from its first line to its last: its shell lines and Python write files, and every ssl_main command reads
what they wrote."""
import pathlib
import random
import struct
import subprocess
import sys
import tempfile
import unittest

from tests.docs.tutorial_snippets import blocks, commands
from tests.security import testing_images

BINARY = pathlib.Path(sys.argv.pop(1)).absolute()
PAGE = pathlib.Path(sys.argv.pop(1)).absolute()

CLASSES = ("beach", "forest")
PER_CLASS = 6


def write_array(path, kind, shape, content):
    """A .npy file of format 1.0, as numpy writes it."""
    header = repr({"descr": kind, "fortran_order": False, "shape": shape}).encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + content)


class DataPageTest(unittest.TestCase):

    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        self.generator = random.Random(1)
        for photos in ("photos", "more_photos"):
            for name in CLASSES:
                (self.folder / photos / name).mkdir(parents=True)
                for i in range(PER_CLASS):
                    image = testing_images.png(70, 64, self.generator)  # what it is, its content says
                    (self.folder / photos / name / f"{i:03}.jpg").write_bytes(image)

    def shell(self, line):
        result = subprocess.run(["bash", "-c", f'ssl_main() {{ "{BINARY}" "$@"; }}; {line}'], cwd=self.folder,
                                capture_output=True, text=True)
        self.assertEqual(result.returncode, 0, f"{line}\n{result.stdout}\n{result.stderr}")
        return result.stdout

    def write_arrays(self):
        """What the page's NumPy does: it is not among what tests may use."""
        count = len(CLASSES) * PER_CLASS
        write_array(self.folder / "images.npy", "|u1", (count, 64, 64, 3), self.generator.randbytes(count * 64 * 64 * 3))
        labels = [number for number in range(len(CLASSES)) for _ in range(PER_CLASS)]
        write_array(self.folder / "labels.npy", "<i8", (count,), struct.pack(f"<{count}q", *labels))

    def python(self, text):
        if "numpy" in text:
            compile(text, "data.md", "exec")
            self.write_arrays()
        else:
            subprocess.run([sys.executable, "-c", text], cwd=self.folder, check=True)

    def test_page_in_its_order(self):
        reports = {}
        for language, text in blocks(PAGE.read_text()):
            if language == "python":
                self.python(text)
                continue
            for line in text.splitlines():
                if not line.startswith("photos/"):  # what lies there
                    reports[line] = self.shell(line)
        self.assertEqual([line for line in reports if line.startswith("ssl_main ")], commands(PAGE.read_text()))
        reports = {line: report for line, report in reports.items() if line.startswith("ssl_main ")}
        self.assertEqual(len(reports), 8)
        for line, report in reports.items():
            with self.subTest(line):
                several = "[photos,more_photos]" in line
                self.assertIn(f"{(2 if several else 1) * len(CLASSES) * PER_CLASS} images", report)
                has_labels = "disk_filelist" not in line or "LABEL_PATHS" in line
                self.assertRegex(report, rf"classes +{len(CLASSES)} " if has_labels else r"classes +0 ")
                self.assertRegex(report, r"broken +0\n")


if __name__ == "__main__":
    unittest.main()
