# SPDX-License-Identifier: Apache-2.0
"""Compares the restore of a checkpoint with torch.load and a copy into the model, of the same number of bytes.

  ./bazelw build -c opt //ssl/core:bench_checkpoint
  VENV/bin/python tools/bench/compare_restore.py --directory DIR

The two take turns, `--runs` times each, and medians are compared. Ours is what //ssl/core:bench_checkpoint prints: it
checks every byte against its checksum; torch.load checks none. Both read from the page cache. VENV needs torch 2.11.0.
"""
import argparse
import pathlib
import re
import statistics
import subprocess
import tempfile
import time

import torch

TENSORS = 100  # as bench_checkpoint has
RESTORE = re.compile(r"^restore +([\d.]+) ms", re.MULTILINE)


def torch_restore(path, model, mmap):
    """Seconds until the tensors of `model` hold what `path` does."""
    began = time.perf_counter()
    state = torch.load(path, weights_only=True, mmap=mmap)
    for name, value in state.items():
        model[name].copy_(value)
    return time.perf_counter() - began


def ours(arguments, directory):
    """Milliseconds of a restore, a median of bench_checkpoint's own."""
    output = subprocess.run([arguments.bench, directory, str(arguments.megabytes), str(arguments.repeats)], check=True,
                            stdout=subprocess.PIPE, text=True).stdout
    return float(RESTORE.search(output).group(1))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench", default="bazel-bin/ssl/core/bench_checkpoint")
    parser.add_argument("--directory", default=None, help="on the disk to measure; default: the temporary folder")
    parser.add_argument("--megabytes", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--runs", type=int, default=3)
    arguments = parser.parse_args()
    values = arguments.megabytes * 1_000_000 // 4 // TENSORS
    model = {f"tensor{i}": torch.randn(values) for i in range(TENSORS)}
    times = {"ours": [], "torch.load": [], "torch.load, mmap": []}
    with tempfile.TemporaryDirectory(dir=arguments.directory) as directory:
        path = pathlib.Path(directory) / "state.pth"
        torch.save(model, path)
        for _ in range(arguments.runs):
            times["ours"].append(ours(arguments, f"{directory}/ours"))  # which it removes
            for name, mmap in (("torch.load", False), ("torch.load, mmap", True)):
                seconds = [torch_restore(path, model, mmap) for _ in range(arguments.repeats)]
                times[name].append(1000 * statistics.median(seconds))
    for name, values in times.items():
        print(f"{name:<18} {statistics.median(values):7.1f} ms   ({min(values):.1f} to {max(values):.1f})")
    for name in list(times)[1:]:
        print(f"{name} / ours: {statistics.median(times[name]) / statistics.median(times['ours']):.2f}")


if __name__ == "__main__":
    main()
