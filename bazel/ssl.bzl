# SPDX-License-Identifier: Apache-2.0
"""The rules that this workspace's C++ is built with."""

_COPTS = ["-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter"]

# Tiers say what a .cc may include: 0 no LibTorch, 1 ATen/core/Tensor.h and per-operator
# headers, 2 torch/nn and c10d. Headers are tier 0 or 1 always. The define turns the
# umbrella headers into a compile error.
_NO_UMBRELLA = ["TORCH_ASSERT_ONLY_METHOD_OPERATORS"]

def _local_defines(tier):
    if tier not in (0, 1, 2):
        fail("tier is %s, expected 0, 1 or 2" % tier)
    return _NO_UMBRELLA if tier < 2 else []

def _torch(tier):
    return ["@libtorch//:libtorch"] if tier > 0 else []

def ssl_cc_library(name, tier = 0, copts = [], local_defines = [], deps = [], **kwargs):
    """A library: one header, its .cc, its deps listed per include."""
    native.cc_library(
        name = name,
        copts = _COPTS + copts,
        local_defines = _local_defines(tier) + local_defines,
        deps = deps + _torch(tier),
        **kwargs
    )

def ssl_cc_test(name, tier = 0, deps = [], size = "small", **kwargs):
    """A GoogleTest with its main."""
    native.cc_test(
        name = name,
        size = size,
        copts = _COPTS,
        local_defines = _local_defines(tier),
        deps = deps + _torch(tier) + ["@com_google_googletest//:gtest_main"],
        **kwargs
    )

def ssl_cc_binary(name, tier = 0, deps = [], **kwargs):
    native.cc_binary(
        name = name,
        copts = _COPTS,
        local_defines = _local_defines(tier),
        deps = deps + _torch(tier),
        **kwargs
    )
