# SPDX-License-Identifier: Apache-2.0
"""Finds relative links in Markdown files that point to nothing.

check_links(root) returns one message per dead link, "path:line: link ...". Links to other
hosts and anchors inside a page are not followed; code blocks and code spans hold no links.
"""
import os
import pathlib
import re

LINK = re.compile(r"\[[^\]]*\]\(\s*<?([^)\s>]+)>?[^)]*\)|^\s*\[[^\]]+\]:\s*(\S+)")
CODE_SPAN = re.compile(r"`[^`]*`")
FENCE = re.compile(r"^\s*(```|~~~)")
SKIPPED_FOLDERS = {".git"}


def links(text):
    """(line number, target) of each link in Markdown `text`."""
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        if FENCE.match(line):
            fenced = not fenced
        elif not fenced:
            for match in LINK.finditer(CODE_SPAN.sub("", line)):
                yield number, match.group(1) or match.group(2)


def is_relative(target):
    return not re.match(r"[a-zA-Z][a-zA-Z0-9+.-]*:|#|//", target)


def dead_links(root, path):
    messages = []
    for number, target in links((root / path).read_text(encoding="utf-8")):
        if not is_relative(target):
            continue
        name = target.split("#", 1)[0]
        # A leading slash means the root of the repository, as on code hosts.
        place = root / name.lstrip("/") if name.startswith("/") else (root / path).parent / name
        if not place.exists():
            messages.append(f"{path}:{number}: link to {target}, but there is no such file")
        elif root not in place.resolve().parents and place.resolve() != root:
            messages.append(f"{path}:{number}: link to {target} leaves the repository")
    return messages


def pages(root):
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if name not in SKIPPED_FOLDERS
                            and not (pathlib.Path(folder) / name).is_symlink())
        for name in sorted(files):
            if name.endswith(".md"):
                yield (pathlib.Path(folder) / name).relative_to(root).as_posix()


def check_links(root):
    root = pathlib.Path(root).resolve()
    return [message for path in pages(root) for message in dead_links(root, path)]
