# SPDX-License-Identifier: Apache-2.0
"""Abseil LTS 20220623 from Debian, under Abseil's own labels (@com_google_absl//absl/...)."""

load("@bazel_tools//tools/build_defs/repo:utils.bzl", "maybe")
load("//bazel:debian.bzl", "debian_packages")

# Package of Abseil's tree -> its public targets that exist in this release. All of them
# stand for one merged archive: Debian's separate archives depend on their link order.
_TARGETS = {
    "algorithm": ["algorithm", "container"],
    "base": ["base", "config", "core_headers", "endian"],
    "cleanup": ["cleanup"],
    "container": ["btree", "fixed_array", "flat_hash_map", "flat_hash_set", "inlined_vector", "node_hash_map"],
    "functional": ["any_invocable", "bind_front", "function_ref"],
    "hash": ["hash"],
    "memory": ["memory"],
    "meta": ["type_traits"],
    "numeric": ["bits", "int128"],
    "random": ["random"],
    "status": ["status", "statusor"],
    "strings": ["cord", "str_format", "strings"],
    "synchronization": ["synchronization"],
    "time": ["time"],
    "types": ["any", "optional", "span", "variant"],
    "utility": ["utility"],
}

def _build_file(names):
    lines = ['package(default_visibility = ["//visibility:public"])']
    lines += ['alias(name = "%s", actual = "//:absl")' % name for name in names]
    return "\n".join(lines) + "\n"

def abseil():
    maybe(
        debian_packages,
        name = "com_google_absl",
        packages = ["libabsl-dev"],
        merge_archives = {
            "usr/lib/x86_64-linux-gnu/libabsl_merged.a": "usr/lib/x86_64-linux-gnu/libabsl_*.a",
        },
        extra_files = {"absl/%s/BUILD.bazel" % package: _build_file(names) for package, names in _TARGETS.items()},
        build_file = Label("//third_party/abseil:abseil.BUILD.bazel"),
    )
