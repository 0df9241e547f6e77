# SPDX-License-Identifier: Apache-2.0
"""GoogleTest and GoogleMock 1.12 from Debian."""

load("@bazel_tools//tools/build_defs/repo:utils.bzl", "maybe")
load("//bazel:debian.bzl", "debian_packages")

def googletest():
    maybe(
        debian_packages,
        name = "com_google_googletest",
        packages = ["libgtest-dev", "libgmock-dev"],
        build_file = Label("//third_party/googletest:googletest.BUILD.bazel"),
    )
