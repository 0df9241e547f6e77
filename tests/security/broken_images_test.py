# SPDX-License-Identifier: Apache-2.0
"""Trains on a folder in which images of every kind are damaged: the run ends, tells how many there are of each kind, and
its weights depend neither on the loader's threads nor on an interruption. SSL_SEED=N draws other images, SSL_IMAGES=N
makes more of them (one in a hundred is damaged, of each kind)."""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import unittest

import testing_images

BINARY = pathlib.Path(sys.argv.pop(1)).absolute()
SEED = int(os.environ.get("SSL_SEED", "1"))
IMAGES = int(os.environ.get("SSL_IMAGES", "300"))
BATCH = 10
STEPS_OF_AN_EPOCH = IMAGES // BATCH
KINDS = ("missing", "unreadable", "empty", "truncated", "damaged", "not an image", "unsupported", "too large")


class BrokenImagesTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        print(f"{IMAGES} images from seed {SEED}", file=sys.stderr)
        cls._folder = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls._folder.name)
        counts = testing_images.write_folder(cls.folder / "images", IMAGES, IMAGES // 100, SEED)
        parts = ", ".join(f"{counts[name]} {name}" for name in KINDS if name in counts)
        cls.counts = {"total": sum(counts.values()), "by_kind": {**dict.fromkeys(KINDS, 0), **counts}}
        cls.summary = f"{sum(counts.values())} images of the training set could not be read so far: {parts}"
        cls.expected = cls.train("whole", "config.DATA.NUM_DATALOADER_WORKERS=0")

    @classmethod
    def tearDownClass(cls):
        cls._folder.cleanup()

    @classmethod
    def command(cls, run, *arguments):
        return [BINARY, "--config=test/swav_tiny", "engine_name=train", f"config.CHECKPOINT.DIR={cls.folder / run}",
                "config.DATA.TRAIN.DATA_SOURCES=[disk_folder]", f"config.DATA.TRAIN.DATA_PATHS=[{cls.folder / 'images'}]",
                "config.DATA.TRAIN.DATA_LIMIT=-1", f"config.DATA.TRAIN.BATCHSIZE_PER_REPLICA={BATCH}",
                "config.DATA.TRAIN.MAX_BROKEN_FRACTION=0.06", *arguments]

    @classmethod
    def train(cls, run, *arguments):
        result = subprocess.run(cls.command(run, *arguments), cwd=cls.folder, capture_output=True, text=True,
                                env=environment())
        assert result.returncode == 0, result.stderr
        assert cls.summary in result.stderr, f"expected '{cls.summary}' in {result.stderr}"
        last = [line for line in result.stderr.splitlines() if "not be read" in line or "cannot be read" in line][-1]
        assert "this process tried " in last, f"expected '{last}' to say whose count it is"
        total = f"; of the run's images {cls.counts['total']} could not be read"
        assert total in result.stdout, f"expected '{total}' in {result.stdout}"
        found = json.loads((cls.folder / run / "results.json").read_text())["broken_images"]
        assert found == cls.counts, f"results.json has {found}, expected {cls.counts}"
        newest = max((cls.folder / run / "checkpoints").glob("step_*"), key=lambda path: int(path.name[5:]))
        return newest.name, (newest / "model.safetensors").read_bytes()

    def test_threads_do_not_change_weights_and_counts(self):
        for workers in (1, 2, 4):
            self.assertEqual(self.train(f"w{workers}", f"config.DATA.NUM_DATALOADER_WORKERS={workers}"), self.expected)

    def test_interrupted_runs_end_with_the_same_weights_and_counts(self):
        """In the first epoch and in the last one, which has met some of the images already."""
        for number, step, code in ((signal.SIGKILL, 7, -signal.SIGKILL), (signal.SIGTERM, STEPS_OF_AN_EPOCH + 3, 75)):
            with self.subTest(number):
                run = f"ended_by_{int(number)}"
                self.interrupt(run, number, f"step {step}/", code)
                self.assertEqual(self.train(run), self.expected)

    def interrupt(self, run, number, line_with, code):
        process = subprocess.Popen(self.command(run), cwd=self.folder, stderr=subprocess.PIPE, text=True,
                                   stdout=subprocess.DEVNULL, env=environment())
        for line in process.stderr:
            if line_with in line:
                process.send_signal(number)
                break
        process.stderr.read()
        process.stderr.close()
        self.assertEqual(process.wait(), code)

    def test_each_file_is_named_once_and_each_phase_ends_with_one_line(self):
        transforms = "[{name: Resize, size: 24}, {name: CenterCrop, size: 24}, {name: ToTensor}]"
        result = subprocess.run(
            self.command("both", "engine_name=[train,knn]", "config.DATA.TEST.DATA_SOURCES=[disk_folder]",
                         f"config.DATA.TEST.DATA_PATHS=[{self.folder / 'images'}]", "config.DATA.TEST.DATA_LIMIT=-1",
                         "config.DATA.TEST.MAX_BROKEN_FRACTION=0.06", f"config.DATA.TEST.TRANSFORMS={transforms}"),
            cwd=self.folder, capture_output=True, text=True, env=environment())
        self.assertEqual(result.returncode, 0, result.stderr)
        named = re.findall("image cannot be read and is replaced: (.*)", result.stderr)
        self.assertEqual(len(named), 5, result.stderr)
        self.assertEqual(len(set(named)), 5, named)
        tried = re.findall(r"this process tried (\d+) images? of config.DATA.(\w+), (\d+) of which", result.stderr)
        whole = [(split, broken) for images, split, broken in tried if int(images) == IMAGES]
        broken = str(self.counts["total"])
        # The training, the two splits for the network before it and after.
        self.assertEqual(sorted(whole), [("TEST", broken)] + 2 * [("TRAIN", broken)], result.stderr)
        self.assertNotIn("1", [images for images, _, _ in tried])

    def test_more_than_the_limit_end_the_run(self):
        result = subprocess.run(self.command("limited", "config.DATA.TRAIN.MAX_BROKEN_FRACTION=0.04"), cwd=self.folder,
                                capture_output=True, text=True, env=environment())
        self.assertEqual(result.returncode, 4, result.stderr)
        self.assertIn("MAX_BROKEN_FRACTION allows a share of 0.04", result.stderr)


def environment():
    return {**os.environ, "OMP_NUM_THREADS": "1"}


if __name__ == "__main__":
    unittest.main()
