# SPDX-License-Identifier: Apache-2.0
"""RE2 from Debian."""

load("@bazel_tools//tools/build_defs/repo:utils.bzl", "maybe")
load("//bazel:debian.bzl", "debian_packages")

def re2():
    maybe(
        debian_packages,
        name = "com_googlesource_code_re2",
        packages = ["libre2-dev"],
        build_file = Label("//third_party/re2:re2.BUILD.bazel"),
    )
