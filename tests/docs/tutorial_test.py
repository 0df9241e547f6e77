# SPDX-License-Identifier: Apache-2.0
"""Every ssl_main command of docs/tutorial.md runs, in the order of the page, on a few small images, and leaves the files
that the page names. Shorter trainings on smaller crops are all that differs from what the page says."""
import json
import pathlib
import random
import re
import shlex
import subprocess
import sys
import tempfile
import unittest

from tests.docs.tutorial_snippets import commands, snippets
from tests.security import testing_images

BINARY = pathlib.Path(sys.argv.pop(1)).absolute()
PAGE = pathlib.Path(sys.argv.pop(1)).absolute()

SHORTER = ["config.OPTIMIZER.num_epochs=2", "config.DATA.TRAIN.TRANSFORMS.1.size=32"]
COLORS = {"beach": (200, 180, 120), "forest": (40, 120, 50), "night": (20, 20, 60)}


def image(color, generator):
    """A PNG of 60 x 45 pixels with a light spot somewhere."""
    x, y = generator.randrange(60), generator.randrange(45)
    rows = b"".join(b"\0" + bytes(min(255, value + (80 if (i - x) ** 2 + (j - y) ** 2 < 100 else generator.randrange(20)))
                                  for i in range(60) for value in color) for j in range(45))
    return testing_images.png_of(60, 45, rows)


class TutorialTest(unittest.TestCase):

    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        self.page = PAGE.read_text()

    def make_photos(self, classes):
        generator = random.Random(1)
        for name in classes:
            folder = self.folder / "photos" / name
            folder.mkdir(parents=True, exist_ok=True)
            for i in range(14):
                (folder / f"{i:03}.png").write_bytes(image(COLORS.get(name, COLORS["beach"]), generator))

    def call(self, line):
        arguments = shlex.split(line)[1:]
        result = subprocess.run([BINARY, *arguments, *SHORTER], cwd=self.folder, capture_output=True, text=True)
        self.assertEqual(result.returncode, 0, f"{line}\n{result.stdout}\n{result.stderr}")
        return result

    def run_page(self):
        return {line: self.call(line) for line in commands(self.page)}

    def test_every_command_runs_and_leaves_what_the_page_says(self):
        self.make_photos(COLORS)
        results = self.run_page()
        self.assertEqual(len(results), 10)
        for line, result in results.items():
            if "check_data" in line:
                self.assertIn("42 images", result.stdout)
                self.assertIn("mean: [", result.stdout)
            if "engine_name" not in line:
                for said in ("estimate: ", "trained network", "untrained network", "neighbors.png"):
                    self.assertIn(said, result.stdout)
                self.assertIn("folder recipe: config.DATA.TRAIN.BATCHSIZE_PER_REPLICA=", result.stderr)
        for path in re.findall(r"runs/folder/[\w/]+\.\w+", self.page):
            self.assertTrue((self.folder / path).is_file(), path)
        for split in ("train", "test"):
            names = json.loads((self.folder / f"runs/folder/features/{split}_files.json").read_text())
            self.assertTrue(all((self.folder / name).is_file() for name in names), names)
        steps = json.loads((self.folder / "runs/folder/results.json").read_text())["extract_features"]["transforms"]
        self.assertEqual([step["name"] for step in steps], ["Resize", "CenterCrop", "ToTensor", "Normalize"])
        for kind in ("features", "targets", "inds"):
            for split in ("train", "test"):
                self.assertTrue(list((self.folder / "runs/folder/features").glob(
                    f"rank*_chunk*_{split}_res5avg_{kind}.npy")), f"{split} {kind}")
        figures = json.loads((self.folder / "runs/folder/results.json").read_text())
        self.assertEqual(figures["check_data"]["train"]["broken"], 0)
        self.assertIn("untrained", figures["knn"])

    def test_images_without_classes_train_and_have_neighbors(self):
        self.make_photos([""])
        line = next(line for line in commands(self.page) if "engine_name" not in line)
        result = self.call(line)
        self.assertNotIn("kNN", result.stdout)
        self.assertTrue((self.folder / "runs/folder/neighbors.png").is_file())
        neighbors = json.loads((self.folder / "runs/folder/neighbors.json").read_text())
        self.assertTrue(neighbors["trained"][0]["query"].startswith("photos/"))

    def test_python_of_the_page_is_python(self):
        texts = snippets(self.page)
        self.assertEqual(len(texts), 3)
        for text in texts:
            compile(text, "tutorial.md", "exec")


if __name__ == "__main__":
    unittest.main()
