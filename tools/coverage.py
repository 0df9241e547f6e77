# SPDX-License-Identifier: Apache-2.0
"""Measures which lines of some source files the tests of some packages run, with gcov.

  python3 tools/coverage.py                                     checkpoint store, session, trainer and parsers
  python3 tools/coverage.py --sources '^ssl/io/' --tests //ssl/io/...

Debian's Bazel 4.2.3 lacks the tools of `bazel coverage`, so this builds with --config=coverage, runs the test binaries
itself and reads what gcov says. Prints a table, and with --lines the lines that nothing ran. Fails below --goal.
"""
import argparse
import collections
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCES = "|".join((
    r"^ssl/core/(checkpoint\w*|session|trainer|run_\w+|state_dict|train_state|\w+_train_step)\.cc$",
    r"^ssl/io/\w+\.cc$",
    r"^ssl/config/(yaml_reader|flow_text|key_check|compose|sweep|reader|fields|node)\.cc$",
    r"^ssl/data/image/decode_\w+\.cc$",
    r"^ssl/data/datasets/(idx_file|idx_dataset|binary_dataset|label_table|array_dataset|string_list|image_folder)\.cc$"))
TESTS = ["//ssl/core/...", "//ssl/io/...", "//ssl/config/...", "//ssl/data/...", "//ssl/hooks/...", "//ssl/weights/..."]


# Building with counters asks for this repository, which Debian's Bazel lacks.
FLAGS = ("--config=coverage", f"--override_repository=remote_coverage_tools={ROOT}/tools/coverage_tools")


def bazel(arguments, *command):
    result = subprocess.run([*arguments.bazel.split(), *command], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    if result.returncode != 0:
        sys.exit(f"bazel {command[0]} failed with exit code {result.returncode}")
    return result.stdout.split()


def test_binaries(arguments):
    """{label: path} of the C++ tests, built with counters."""
    labels = bazel(arguments, "query", f"kind(cc_test, set({' '.join(arguments.tests)}))")
    bazel(arguments, "build", *FLAGS, *labels)
    folder = pathlib.Path(bazel(arguments, "info", *FLAGS, "bazel-bin")[0])
    return {label: folder / label[2:].replace(":", "/") for label in labels}, folder


def run_test(binary, counters):
    """Runs a test where Bazel would; its counters go below the folder `counters`."""
    with tempfile.TemporaryDirectory() as scratch:
        runfiles = pathlib.Path(f"{binary}.runfiles")
        environment = {**os.environ, "GCOV_PREFIX": str(counters), "TEST_TMPDIR": scratch,
                       "TEST_SRCDIR": str(runfiles), "RUNFILES_DIR": str(runfiles), "TEST_WORKSPACE": "ssl"}
        result = subprocess.run([binary], cwd=runfiles / "ssl", env=environment, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True, errors="replace")
    return result.returncode, result.stdout


def read_counters(counters, build_folder, pattern):
    """{source: {line: how often it ran}}, added up over all objects."""
    lines = collections.defaultdict(collections.Counter)
    for path in sorted(counters.rglob("*.gcda")):
        inner = re.split(r"/bazel-out/[^/]+/bin/", str(path))[-1]
        notes = build_folder / pathlib.Path(inner).with_suffix(".gcno")
        if not notes.exists():
            continue
        shutil.copy(notes, path.with_suffix(".gcno"))
        report = subprocess.run(["gcov", "--json-format", "--stdout", path], stdout=subprocess.PIPE, cwd=ROOT, check=True)
        for text in report.stdout.decode().splitlines():
            for file in json.loads(text)["files"]:
                if pattern.search(file["file"]) and not file["file"].endswith("_test.cc"):
                    for line in file["lines"]:
                        lines[file["file"]][line["line_number"]] += line["count"]
    return lines


def ranges(numbers):
    """[1, 2, 3, 7] -> '1-3, 7'."""
    parts = []
    for number in numbers:
        if parts and number == parts[-1][1] + 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in parts)


def print_table(lines, show_lines):
    """Returns the share of lines that ran."""
    total = covered = 0
    for source in sorted(lines):
        missing = sorted(number for number, count in lines[source].items() if count == 0)
        ran = len(lines[source]) - len(missing)
        total, covered = total + len(lines[source]), covered + ran
        print(f"{100 * ran / len(lines[source]):6.1f} %  {ran:5} of {len(lines[source]):5}  {source}"
              + (f"  not run: {ranges(missing)}" if missing and show_lines else ""))
    if total == 0:
        sys.exit("no line of these sources was compiled into these tests")
    print(f"{100 * covered / total:6.1f} %  {covered:5} of {total:5}  together")
    return covered / total


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--tests", nargs="+", default=TESTS, help="targets whose C++ tests run")
    parser.add_argument("--sources", default=SOURCES, help="regular expression of the files to report")
    parser.add_argument("--goal", type=float, default=95.0, help="percent of lines, all files together")
    parser.add_argument("--lines", action="store_true", help="name the lines that nothing ran")
    parser.add_argument("--bazel", default="./bazelw", help="how to call Bazel")
    arguments = parser.parse_args()
    binaries, build_folder = test_binaries(arguments)
    with tempfile.TemporaryDirectory() as folder:
        counters = pathlib.Path(folder)
        for label, binary in binaries.items():
            code, output = run_test(binary, counters)
            if code != 0:
                sys.exit(f"{output}\n{label} failed with exit code {code}")
        share = print_table(read_counters(counters, build_folder, re.compile(arguments.sources)), arguments.lines)
    if 100 * share < arguments.goal:
        sys.exit(f"{100 * share:.1f} % of the lines ran, the goal is {arguments.goal:g} %")


if __name__ == "__main__":
    main()
