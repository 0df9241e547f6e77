# SPDX-License-Identifier: Apache-2.0
"""Names of files that would tell a terminal what to do, or look like lines of the log: they are printed escaped, and the
letters of good names stay."""
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import unittest

import testing_images

BINARY = pathlib.Path(sys.argv.pop(1)).absolute()
FORGED = "18:00:00 I train.cc:1 a line of a stranger"
BROKEN = (f"a/\x1b[31mred\a\n{FORGED}.png".encode(), b"b/\xff\xe2\x80\xae\x9b.png", "b/zwölf.png".encode())
# Control characters but the line feed, what exchanges the direction of writing, and what no UTF-8 had.
RAW = re.compile("[\0-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufffd]")


class HostileNamesTest(unittest.TestCase):

    def setUp(self):
        self._folder = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self._folder.name)
        self.images = self.folder / "images"
        generator = random.Random(1)
        for name in ("a", "b"):
            (self.images / name).mkdir(parents=True)
            for number in range(9):
                (self.images / name / f"{number}.png").write_bytes(testing_images.png(24, 20, generator))
        for name in BROKEN:
            pathlib.Path(os.fsdecode(os.fsencode(self.images) + b"/" + name)).write_bytes(b"no image")
        (self.images / "a" / "page.\x1b[2J").write_bytes(b"of another kind")

    def tearDown(self):
        self._folder.cleanup()

    def call(self, *arguments):
        """Standard output, standard error, log.txt; nothing raw is in any."""
        result = subprocess.run([
            BINARY, "--config=test/swav_tiny", "config.CHECKPOINT.DIR=run", "config.DATA.TRAIN.DATA_LIMIT=-1",
            "config.DATA.TRAIN.BATCHSIZE_PER_REPLICA=21", "config.DATA.TRAIN.MAX_BROKEN_FRACTION=0.5", *arguments
        ], cwd=self.folder, capture_output=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
        self.assertEqual(result.returncode, 0, result.stderr)
        log = (self.folder / "run" / "log.txt").read_bytes()
        texts = [text.decode(errors="replace") for text in (result.stdout, result.stderr, log)]
        for text in texts:
            self.assertIsNone(RAW.search(text), repr(text))
            self.assertNotIn(FORGED, [line[:len(FORGED)] for line in text.splitlines()])
        return texts

    def of_folder(self, *arguments):
        return self.call("config.DATA.TRAIN.DATA_SOURCES=[disk_folder]", f"config.DATA.TRAIN.DATA_PATHS=[{self.images}]",
                         *arguments)

    def assert_names(self, text):
        for escaped in (rf"/a/\x1b[31mred\x07\n{FORGED}.png: image is", r"/b/\xff\u202e\x9b.png: image is",
                        "/b/zwölf.png: image is"):
            self.assertIn(escaped, text)

    def test_table_of_a_folder(self):
        output, _, _ = self.of_folder("engine_name=check_data")
        self.assert_names(output)
        self.assertIn(r"not read: .\x1b[2j 1", output)

    def assert_files(self, names):
        """Names in JSON, taken back as docs/data.md says, are files that can be opened."""
        paths = [os.fsencode(name) for name in names]
        self.assertEqual(sorted(os.path.relpath(path, os.fsencode(self.images)) for path in paths), sorted(BROKEN))
        for path in paths:
            with open(path, "rb") as file:
                self.assertEqual(file.read(), b"no image")

    def test_names_in_json(self):
        self.of_folder("engine_name=[train,check_data]")
        broken = json.loads((self.folder / "run" / "broken_images.json").read_text(encoding="utf-8"))
        self.assert_files(image["name"] for image in broken["images"])
        checked = json.loads((self.folder / "run" / "data_check.json").read_text(encoding="utf-8"))
        self.assert_files(image["file"] for image in checked["train"]["broken"]["not an image"])

    def test_log_of_a_training(self):
        _, error, log = self.of_folder("engine_name=train")
        self.assert_names(error)
        self.assert_names(log)

    def test_missing_files_of_a_list(self):
        paths = [os.fsencode(self.images) + b"/a/%d.png" % number for number in range(9)]
        (self.folder / "list.txt").write_bytes(b"\n".join(paths + [b"/no/\x1b[31m\a\xff.png"]))
        output, _, _ = self.call("config.DATA.TRAIN.DATA_SOURCES=[disk_filelist]",
                                 "config.DATA.TRAIN.DATA_PATHS=[list.txt]", "config.DATA.TRAIN.LABEL_SOURCES=[]",
                                 "config.DATA.TRAIN.BATCHSIZE_PER_REPLICA=10", "engine_name=check_data")
        self.assertIn(r"/no/\x1b[31m\x07\xff.png: opening failed", output)


if __name__ == "__main__":
    unittest.main()
