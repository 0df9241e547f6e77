# SPDX-License-Identifier: Apache-2.0
"""A library of which dependents only link: nothing of it reaches the command that compiles them."""

def _link_only_impl(ctx):
    merged = cc_common.merge_cc_infos(cc_infos = [dep[CcInfo] for dep in ctx.attr.deps])
    return [CcInfo(linking_context = merged.linking_context)]

link_only = rule(
    implementation = _link_only_impl,
    doc = """Passes on what its dependencies link, without include paths and defines.

Even a library without headers adds the path of its repository to the compiler's command, and files would compile to
entries of their own in caches.""",
    attrs = {"deps": attr.label_list(providers = [CcInfo])},
    provides = [CcInfo],
)
