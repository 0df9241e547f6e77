# SPDX-License-Identifier: Apache-2.0
"""Repositories that Bazel 4.2.3 itself asks for, so that no build needs its usual download host."""

load("@bazel_tools//tools/build_defs/repo:utils.bzl", "maybe")

_DEBIAN_RULES = "/usr/share/bazel/rules"

def _stand_in_impl(ctx):
    for source, path in ctx.attr.files.items():
        ctx.symlink(source, path)

# A local_repository would be looked up in the embedding workspace; labels are found in ours.
_stand_in = repository_rule(
    implementation = _stand_in_impl,
    doc = "A repository made of a few of this workspace's files.",
    attrs = {"files": attr.label_keyed_string_dict(mandatory = True, doc = "File -> its path in the repository.")},
)

def toolchain_repositories():
    """Declares rules_cc, rules_java, rules_proto, platforms and the coverage stand-in.

    Debian's Bazel ships the Java and protobuf rules as packages; its rules_cc is too
    old, and coverage tools are not packaged, so both have a small local stand-in.
    """
    maybe(
        _stand_in,
        name = "rules_cc",
        files = {
            Label("//third_party/rules_cc:BUILD.bazel"): "BUILD.bazel",
            Label("//third_party/rules_cc/cc:BUILD.bazel"): "cc/BUILD.bazel",
            Label("//third_party/rules_cc/cc:defs.bzl"): "cc/defs.bzl",
        },
    )
    maybe(
        _stand_in,
        name = "remote_coverage_tools",
        files = {Label("//third_party/coverage_tools:BUILD.bazel"): "BUILD.bazel"},
    )
    maybe(native.local_repository, name = "rules_java", path = _DEBIAN_RULES + "/java")
    maybe(native.local_repository, name = "rules_proto", path = _DEBIAN_RULES + "/proto")
    maybe(native.local_repository, name = "platforms", path = "/usr/share/bazel/platforms")
