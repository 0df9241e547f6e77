"""Repositories that Bazel 4.2.3 itself asks for, so that no build needs its usual download host."""

load("@bazel_tools//tools/build_defs/repo:utils.bzl", "maybe")

_DEBIAN_RULES = "/usr/share/bazel/rules"

def toolchain_repositories():
    """Declares rules_cc, rules_java, rules_proto, platforms and the coverage stand-in.

    Debian's Bazel ships the Java and protobuf rules as packages; its rules_cc is too
    old, and coverage tools are not packaged, so both have a small local stand-in.
    """
    maybe(native.local_repository, name = "rules_cc", path = "third_party/rules_cc")
    maybe(native.local_repository, name = "remote_coverage_tools", path = "third_party/coverage_tools")
    maybe(native.local_repository, name = "rules_java", path = _DEBIAN_RULES + "/java")
    maybe(native.local_repository, name = "rules_proto", path = _DEBIAN_RULES + "/proto")
    maybe(native.local_repository, name = "platforms", path = "/usr/share/bazel/platforms")
