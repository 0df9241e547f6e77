# SPDX-License-Identifier: Apache-2.0
"""JSON for Modern C++ 3.11 from Debian (header only)."""

load("@bazel_tools//tools/build_defs/repo:utils.bzl", "maybe")
load("//bazel:debian.bzl", "debian_packages")

def nlohmann_json():
    maybe(
        debian_packages,
        name = "com_github_nlohmann_json",
        packages = ["nlohmann-json3-dev"],
        build_file = Label("//third_party/nlohmann_json:nlohmann_json.BUILD.bazel"),
    )
