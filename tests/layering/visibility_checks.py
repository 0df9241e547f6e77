# SPDX-License-Identifier: Apache-2.0
"""Who may use a library of ssl/: one of three levels.

- Libraries belong to this repository: each package's default_visibility is //:__subpackages__.
- One that only its package uses says //visibility:private.
- One that is an interface for other workspaces says //visibility:public; docs/api.md lists these.

check_visibilities(root) returns one message per BUILD file or line that breaks this.
"""
import pathlib
import re

OPEN = '["//visibility:public"]'
REPOSITORY = '["//:__subpackages__"]'
PRIVATE = '["//visibility:private"]'
DEFAULT = re.compile(r"\bdefault_visibility = (\[[^\]]*\])")
OF_A_TARGET = re.compile(r"(?<!default_)\bvisibility = (\[[^\]]*\])")


def check_build_file(path, text):
    """Messages for the BUILD file at `path`."""
    defaults = DEFAULT.findall(text)
    messages = []
    if defaults != [REPOSITORY]:
        found = defaults[0] if defaults else "none"
        messages.append(f"{path}:1: default_visibility is {' '.join(found.split())}, expected {REPOSITORY}")
    for match in OF_A_TARGET.finditer(text):
        if match.group(1) not in (PRIVATE, OPEN):
            line = text.count("\n", 0, match.start()) + 1
            messages.append(f"{path}:{line}: visibility is {' '.join(match.group(1).split())}, "
                            f"expected {PRIVATE}, {OPEN} or none")
    return messages


def check_visibilities(root):
    root = pathlib.Path(root)
    return [message for path in sorted(root.glob("ssl/**/BUILD.bazel"))
            for message in check_build_file(path.relative_to(root).as_posix(), path.read_text(encoding="utf-8"))]
