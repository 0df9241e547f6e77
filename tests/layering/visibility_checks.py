# SPDX-License-Identifier: Apache-2.0
"""Who may use a package of ssl/: one of three levels, said once for each package.

- PUBLIC packages are the interface for other workspaces: default_visibility is //visibility:public.
- All others belong to this repository: default_visibility is //:__subpackages__.
- A target that only its package uses says //visibility:private; no target says anything else.

check_visibilities(root) returns one message per BUILD file or line that breaks this.
"""
import pathlib
import re

PUBLIC = (
    "",  # //ssl itself: builtins
    "base",
    "check",
    "config",
    "core",
    "data",
    "data/collators",
    "data/datasets",
    "data/image",
    "data/loader",
    "data/samplers",
    "data/transforms",
    "distributed",
    "engines",
    "hooks",
    "hooks/sinks",
    "io",
    "losses",
    "meters",
    "methods",
    "methods/barlow_twins",
    "methods/moco",
    "methods/simclr",
    "methods/supervised",
    "methods/swav",
    "models",
    "models/heads",
    "models/trunks",
    "optim",
    "weights",
)
OPEN = '["//visibility:public"]'
REPOSITORY = '["//:__subpackages__"]'
PRIVATE = '["//visibility:private"]'
DEFAULT = re.compile(r"\bdefault_visibility = (\[[^\]]*\])")
OF_A_TARGET = re.compile(r"(?<!default_)\bvisibility = (\[[^\]]*\])")


def check_build_file(path, text):
    """Messages for the BUILD file at `path`, 'ssl/<package>/BUILD.bazel'."""
    package = path[len("ssl/"):].rpartition("/")[0]
    expected = OPEN if package in PUBLIC else REPOSITORY
    defaults = DEFAULT.findall(text)
    messages = []
    if defaults != [expected]:
        found = defaults[0] if defaults else "none"
        messages.append(f"{path}:1: default_visibility is {' '.join(found.split())}, expected {expected}: "
                        "see PUBLIC in tests/layering/visibility_checks.py")
    for match in OF_A_TARGET.finditer(text):
        if match.group(1) != PRIVATE:
            line = text.count("\n", 0, match.start()) + 1
            messages.append(f"{path}:{line}: visibility is {' '.join(match.group(1).split())}, expected {PRIVATE} or none")
    return messages


def check_visibilities(root):
    root = pathlib.Path(root)
    return [message for path in sorted(root.glob("ssl/**/BUILD.bazel"))
            for message in check_build_file(path.relative_to(root).as_posix(), path.read_text(encoding="utf-8"))]
