# SPDX-License-Identifier: Apache-2.0
"""A test that a target does not depend, directly or not, on what it must not know."""

_SCRIPT = "//tests/layering:expect_no_labels.sh"

def assert_no_dependency(name, target, forbidden, **kwargs):
    """Declares the test `name`, which fails and lists them when `target` has forbidden dependencies.

    Args:
      name: of the test.
      target: absolute label, such as "//ssl/core".
      forbidden: regular expressions, each searched in the labels of all dependencies:
        "^//ssl/data", "gflags".
      **kwargs: passed to the test.
    """
    query = name + "_query"
    native.genquery(
        name = query,
        testonly = True,
        expression = "filter('%s', deps(%s))" % ("|".join(forbidden), target),
        opts = ["--noimplicit_deps"],
        scope = [target],
    )
    native.sh_test(
        name = name,
        size = "small",
        srcs = [_SCRIPT],
        args = [target, "$(location :%s)" % query],
        data = [":" + query],
        **kwargs
    )
