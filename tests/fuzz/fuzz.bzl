# SPDX-License-Identifier: Apache-2.0
"""The programs of a fuzz target."""

load("//bazel:ssl.bzl", "ssl_cc_binary", "ssl_cc_library", "ssl_cc_test")

def fuzz_target(name, deps, data = []):
    """Three programs around NAME_fuzz.cc.

    NAME_replay_test runs seeds and findings everywhere. NAME_fuzz is the fuzzer: --config=fuzz only. NAME_seeds writes
    the corpus that it starts from.
    """
    ssl_cc_library(
        name = name + "_target",
        testonly = True,
        srcs = [name + "_fuzz.cc"],
        data = data,
        deps = deps + [
            ":fuzz_target",
            "@com_google_absl//absl/status",
            "@com_google_absl//absl/status:statusor",
            "@com_google_absl//absl/strings",
        ],
        alwayslink = True,
    )
    ssl_cc_test(
        name = name + "_replay_test",
        srcs = ["replay_test.cc"],
        data = native.glob(["findings/" + name + "/*"]),
        env = {"SSL_FUZZ_TARGET": name},
        deps = [":" + name + "_target", ":fuzz_target"],
    )
    ssl_cc_binary(
        name = name + "_seeds",
        testonly = True,
        srcs = ["write_seeds.cc"],
        tags = ["manual"],
        deps = [":" + name + "_target", ":fuzz_target"],
    )
    ssl_cc_binary(
        name = name + "_fuzz",
        testonly = True,
        linkopts = ["-fsanitize=fuzzer"],
        tags = ["manual"],
        deps = [":" + name + "_target"],
    )
