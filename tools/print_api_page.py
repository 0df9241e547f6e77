# SPDX-License-Identifier: Apache-2.0
"""Prints docs/api.md: the libraries that other workspaces may depend on, each with what its header says first.

  python3 tools/print_api_page.py > docs/api.md

Standard library only. tests/docs/api_page_test.py compares the page with what this prints.
"""
import pathlib
import re
import sys

HEAD = """# The public libraries

Made by `python3 tools/print_api_page.py > docs/api.md`; do not edit.

A Bazel workspace that embeds the trainer depends on these and on nothing else of `@ssl`: all other libraries are
visible inside of this repository alone. `@ssl//ssl/core` brings those of its package that a host program calls.
[examples/embed](../examples/embed) is built with them.
"""
PUBLIC = 'visibility = ["//visibility:public"]'
LIBRARY = re.compile(r"^(?:ssl_)?cc_library\((.*?)^\)", re.MULTILINE | re.DOTALL)


def public_libraries(root):
    """(package, name, its first header or None) of each, sorted."""
    found = []
    for build in sorted((root / "ssl").rglob("BUILD.bazel")):
        for rule in LIBRARY.findall(build.read_text(encoding="utf-8")):
            if PUBLIC in rule:
                header = re.search(r'hdrs = \[\s*"([^"]+)"', rule)
                name = re.search(r'name = "([^"]+)"', rule).group(1)
                found.append((build.parent.relative_to(root).as_posix(), name, header and header.group(1)))
    return sorted(found)


def first_sentence(header):
    """Returns the first sentence of the comment that a header begins with."""
    words = []
    for line in header.read_text(encoding="utf-8").splitlines()[2:]:
        if not line.startswith("// "):
            break
        words.append(line[3:])
    text = " ".join(words)
    end = re.search(r"[.:](\s|$)", text)
    return (text[:end.start()] if end else text) + "."


def page(root):
    text = HEAD + "\n| library | header | what it is |\n|---|---|---|\n"
    for folder, name, header in public_libraries(root):
        label = f"@ssl//{folder}" if folder.endswith("/" + name) else f"@ssl//{folder}:{name}"
        about = "| Everything below it that a host program calls." if header is None else (
            f"[{header}](../{folder}/{header}) | {first_sentence(root / folder / header)}")
        text += f"| `{label}` | {about} |\n"
    return text


if __name__ == "__main__":
    sys.stdout.write(page(pathlib.Path(__file__).resolve().parent.parent))
