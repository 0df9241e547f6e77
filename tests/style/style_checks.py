# SPDX-License-Identifier: Apache-2.0
"""The checks of the source tree: each finds lines that break a rule of the house style.

check_tree(root) walks the tree as it lies on disk and returns one message per violation,
"path:line: what is wrong". A pattern here is written so that it does not match itself
(`TOD[O]`), which lets this file be checked like any other.
"""
import os
import pathlib
import re

MAX_LINES = 400
MAX_COLUMNS = 120
SOURCES = (".h", ".cc", ".bzl", ".py", ".sh")
SCRIPTS_WITHOUT_SUFFIX = ("bazelw", ".ci/run")
TEXTS = SOURCES + (".md", ".bazel", ".yaml", ".yml", ".bazelrc")
GLOG_USER = "ssl/base/log.cc"  # glog is set up through flags of its own
RANK_STARTER = "ssl/launch/rank_process.cc"  # starts the ranks of a run, and nothing else starts anything
SKIPPED_FOLDERS = {".git", "__pycache__"}
SPDX = "SPDX-License-Identifier: Apache-2.0"


class Rule:
    """A pattern that no line may match in files that `applies` picks by their path."""

    def __init__(self, pattern, message, applies):
        self.pattern = re.compile(pattern)
        self.message = message
        self.applies = applies


def is_cpp(path):
    return path.endswith((".h", ".cc"))


def may_use_flags(path):
    return path.startswith(("ssl/tools/", "examples/"))


def may_start_programs(path):
    return path.endswith("_test.cc") or "/testing/" in path


def may_print(path):
    return may_use_flags(path) or path.endswith("_test.cc") or path.split("/")[-1].startswith("bench_")


RULES = (
    Rule(r"[<\"]torch/torch[.]h|[<\"]ATen/ATen[.]h", "umbrella header; include the header of each operator", is_cpp),
    Rule(r"#include\s*[<\"]glog/", "glog outside ssl/base/log.cc; use SSL_LOG of ssl/base/log.h",
         lambda path: is_cpp(path) and path != GLOG_USER),
    Rule(r"\bFLAGS[_]|[<\"]gflags/|\bDEFINE_(bool|string|u?int(32|64)|double)\b",
         "command-line flag outside ssl/tools and examples; use an options struct",
         lambda path: is_cpp(path) and not may_use_flags(path) and path != GLOG_USER),
    Rule(r"com_github_gflags_gflag[s]", "dependency on gflags outside ssl/tools and examples",
         lambda path: path.startswith("ssl/") and path.endswith("BUILD.bazel") and not may_use_flags(path)),
    Rule(r"^(?!\s*//).*(\bstd::(cout|cerr)\b|\b(printf|puts)\(|\bfprintf\(std)",
         "direct output outside tools, tests, benchmarks and examples; use SSL_LOG or return the text",
         lambda path: is_cpp(path) and path.startswith("ssl/") and not may_print(path)),
    Rule(r"^(?!\s*//).*((?<![\w.>])(system|popen|dlopen|dlmopen|exec[lv]p?e?|posix_spawnp?|wordexp)\("
         r"|\btorch::(load|pickle_load|jit::(load|unpickle|import_ir_module))\(|\bjit::Unpickler\b)",
         "starts a program, loads a library or runs code out of a file; see docs/security.md",
         lambda path: is_cpp(path) and not may_start_programs(path) and path != RANK_STARTER),
    Rule(r"\b(TOD[O]|FIXM[E]|XX[X])\b", "note to self; do it or open an issue", lambda path: True),
    Rule(r"\bDISABLE[D]_|\bGTEST_SKI[P]\b", "test that does not run", is_cpp),
    Rule(r"(?<![\w.\-$}])/(work|root|home)/", "path of one machine", lambda path: True),
)


def expected_guard(path):
    """'ssl/base/log.h' -> 'SSL_BASE_LOG_H_'; 'tests/golden/index.h' -> 'SSL_TESTS_GOLDEN_INDEX_H_'."""
    inner = path[len("ssl/"):] if path.startswith("ssl/") else path
    return "SSL_" + re.sub(r"[^A-Za-z0-9]", "_", inner).upper() + "_"


def check_guard(path, lines):
    expected = expected_guard(path)
    directives = [(number, line.split()) for number, line in enumerate(lines, 1) if line.startswith("#")]
    if len(directives) < 2:
        return [f"{path}:1: include guard {expected} is missing"]
    messages = []
    for (number, words), directive in zip(directives, ("#ifndef", "#define")):
        if words[:2] != [directive, expected]:
            messages.append(f"{path}:{number}: include guard: found '{' '.join(words)}', expected '{directive} {expected}'")
    return messages


def is_source(path):
    return path.endswith(SOURCES) or path in SCRIPTS_WITHOUT_SUFFIX


def check_page(path, lines):
    """Lines of prose have at most MAX_COLUMNS. Tables and commands may be longer, and pages that a program makes."""
    if any(line.startswith("Made by `") for line in lines):
        return []
    messages = []
    is_fenced = False
    for number, line in enumerate(lines, 1):
        is_fenced ^= line.lstrip().startswith("```")
        is_prose = not is_fenced and not line.startswith("    ") and not line.lstrip().startswith("|")
        if is_prose and len(line) > MAX_COLUMNS:
            messages.append(f"{path}:{number}: {len(line)} columns, at most {MAX_COLUMNS}")
    return messages


def check_file(path, text):
    """Violations in one file; `path` is relative to the root and has forward slashes."""
    lines = text.splitlines()
    messages = []
    if is_source(path):
        if len(lines) > MAX_LINES:
            messages.append(f"{path}:{MAX_LINES + 1}: {len(lines)} lines, at most {MAX_LINES}; split it by the reader's question")
        # A script's first line is its interpreter.
        head = lines[1:2] if lines and lines[0].startswith("#!") else lines[:1]
        if head not in ([f"// {SPDX}"], [f"# {SPDX}"]):
            messages.append(f"{path}:1: first line is not '{'//' if is_cpp(path) else '#'} {SPDX}'")
    if path.endswith(".h") and path.startswith(("ssl/", "tests/")):
        messages += check_guard(path, lines)
    if path.endswith(".md"):
        messages += check_page(path, lines)
    for rule in RULES:
        if rule.applies(path):
            messages += [f"{path}:{number}: {rule.message}: {line.strip()}"
                         for number, line in enumerate(lines, 1) if rule.pattern.search(line)]
    return messages


def walk(root):
    """Paths of the tree's text files, relative to `root`; Bazel's links and user.bazelrc are not of the tree."""
    root = pathlib.Path(root)
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if name not in SKIPPED_FOLDERS
                            and not (pathlib.Path(folder) / name).is_symlink())
        for name in sorted(files):
            path = (pathlib.Path(folder) / name).relative_to(root).as_posix()
            if path != "user.bazelrc" and (path.endswith(TEXTS) or is_source(path)):
                yield path


def check_tree(root):
    messages = []
    for path in walk(root):
        messages += check_file(path, (pathlib.Path(root) / path).read_text(encoding="utf-8"))
    return messages
