# SPDX-License-Identifier: Apache-2.0
"""Runs every command of docs/tutorial.md on a folder of images with classes, then the page's Python in its order, and
checks what it makes. The test of the page (tutorial_test.py) uses its reading of the page, too.

Run by hand, with numpy, scikit-learn, torch, torchvision, timm, safetensors and Pillow:
  ./bazelw build //ssl/tools:ssl_main
  VENV/bin/python tests/docs/tutorial_snippets.py bazel-bin/ssl/tools/ssl_main PHOTOS [OVERRIDE ...]

PHOTOS is copied into a temporary folder as `photos`; an override such as config.OPTIMIZER.num_epochs=2 is added to each
command. The features that torchvision's and timm's networks compute must be the extracted ones, to 1e-5 of their
largest value.
"""
import argparse
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import tempfile

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "tutorial.md"
TOLERANCE = 1e-5


def blocks(page):
    """The code blocks of a page, as (language, text)."""
    return re.findall(r"^```(\w*)\n(.*?)^```", page, flags=re.MULTILINE | re.DOTALL)


def commands(page):
    return [line for language, text in blocks(page) if not language
            for line in text.splitlines() if line.startswith("ssl_main ")]


def snippets(page):
    return [text for language, text in blocks(page) if language == "python"]


def run_commands(page, binary, overrides):
    for line in commands(page):
        print(line, flush=True)
        subprocess.run([binary, *shlex.split(line)[1:], *overrides], check=True, capture_output=True)


def run_snippets(page):
    """The names that the page's Python leaves. Its image of a class "beach" becomes the first one that can be read."""
    names = {}
    features = pathlib.Path("runs/folder/features")
    broken = {image["index"] for image in json.loads((features / "train_broken.json").read_text())}
    files = json.loads((features / "train_files.json").read_text())
    image = next(name for index, name in enumerate(files) if index not in broken)
    for text in snippets(page):
        exec(compile(text.replace("photos/beach/001.jpg", image), str(PAGE), "exec"), names)
    return names


def check_features(names):
    """The row of the first training image that can be read, torchvision's and timm's features of it."""
    torch = names["torch"]
    row = int(names["load"]("train", "inds").argmin())
    extracted = torch.from_numpy(names["features"][row])
    image = names["Image"].open(names["files"]("train")[row]).convert("RGB")
    with torch.no_grad():
        computed = {"torchvision": names["feature"][0], "timm": names["network"].eval()(names["prepare"](image)[None])[0]}
    for name, feature in computed.items():
        difference = float((feature - extracted).abs().max() / extracted.abs().max())
        print(f"{name}: largest difference {difference:.2e} of the largest value")
        assert difference < TOLERANCE, name


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ssl_main", type=pathlib.Path)
    parser.add_argument("photos", type=pathlib.Path)
    parser.add_argument("overrides", nargs="*", metavar="OVERRIDE")
    arguments = parser.parse_args()
    binary = arguments.ssl_main.resolve()
    page = PAGE.read_text()
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(arguments.photos, pathlib.Path(folder) / "photos")
        os.chdir(folder)
        run_commands(page, binary, arguments.overrides)
        check_features(run_snippets(page))
        os.chdir("/")


if __name__ == "__main__":
    main()
