# SPDX-License-Identifier: Apache-2.0
"""The packages of ssl/ form layers; a package depends on itself and on layers below only.

check_layers(root) reads the labels in the BUILD files under ssl/ and returns one message per
label that points up or sideways. //ssl/testing is for tests and may be used from anywhere;
packages that are not in LAYERS must be entered there.
"""
import pathlib
import re

LAYERS = (
    ("base", "openmp"),
    ("config", "io", "distributed", "kernels"),
    ("core",),
    ("data", "losses", "meters", "models", "optim"),
    ("vissl", "weights"),
    ("hooks", "methods"),
    ("engines",),
    ("",),  # //ssl itself: builtins
    ("check", "launch"),
    ("tools",),
)
ANYWHERE = "testing"
RANK = {package: rank for rank, layer in enumerate(LAYERS) for package in layer}
LABEL = re.compile(r'"//ssl(?:/([a-z_0-9]+))?[^"]*"')


def check_build_file(path, text):
    """Messages for the BUILD file at `path`, 'ssl/<package>/.../BUILD.bazel'."""
    parts = path.split("/")
    package = parts[1] if len(parts) > 2 else ""
    if package == ANYWHERE:
        return []
    if package not in RANK:
        return [f"{path}:1: package ssl/{package} is not in LAYERS of tests/layering/layer_checks.py"]
    messages = []
    for number, line in enumerate(text.splitlines(), 1):
        for match in LABEL.finditer(line):
            other = match.group(1) or ""
            below = other in RANK and RANK[other] < RANK[package]
            if not (other in (package, ANYWHERE) or below or is_visibility(match.group(0))):
                messages.append(f"{path}:{number}: ssl/{package} may not depend on {match.group(0)}: not a layer below it")
    return messages


def is_visibility(label):
    return "__subpackages__" in label or "__pkg__" in label


def check_layers(root):
    root = pathlib.Path(root)
    return [message for path in sorted(root.glob("ssl/**/BUILD.bazel"))
            for message in check_build_file(path.relative_to(root).as_posix(), path.read_text(encoding="utf-8"))]
