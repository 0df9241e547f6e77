# SPDX-License-Identifier: Apache-2.0
"""Debian packages as repositories: trusted through apt's signatures, checked against a lock file."""

_TIMEOUT_S = 1800

def _debian_packages_impl(ctx):
    script = ctx.path(ctx.attr._fetch)
    lock = ctx.path(ctx.attr._lock)
    ctx.report_progress("downloading " + " ".join(ctx.attr.packages))
    command = ["python3", str(script), "--lock", str(lock), "--into", "."] + ctx.attr.packages
    result = ctx.execute(command, timeout = _TIMEOUT_S, quiet = True)
    if result.return_code:
        fail("%s: %s" % (ctx.name, result.stderr))
    if result.stderr:
        print(ctx.name + ": " + result.stderr.strip())
    for merged, pattern in ctx.attr.merge_archives.items():
        _merge_archives(ctx, merged, pattern)
    for path, content in ctx.attr.extra_files.items():
        ctx.file(path, content, executable = False)
    ctx.symlink(ctx.attr.build_file, "BUILD.bazel")

def _merge_archives(ctx, merged, pattern):
    # Debian ships Abseil as many order-sensitive archives; one archive has no order.
    script = "(echo create %s; for a in %s; do echo addlib $a; done; echo save; echo end) | ar -M" % (merged, pattern)
    result = ctx.execute(["bash", "-c", script])
    if result.return_code:
        fail("%s: merging %s: %s" % (ctx.name, pattern, result.stderr))

debian_packages = repository_rule(
    implementation = _debian_packages_impl,
    doc = "Unpacks Debian packages. bazel/fetch_debian.py says what is accepted.",
    attrs = {
        "packages": attr.string_list(mandatory = True, doc = "Package names; versions stand in the lock file."),
        "merge_archives": attr.string_dict(doc = "New archive -> shell pattern of the archives it joins."),
        "extra_files": attr.string_dict(doc = "Path -> content of files to add, for sub-packages."),
        "build_file": attr.label(mandatory = True),
        "_fetch": attr.label(default = "//bazel:fetch_debian.py"),
        "_lock": attr.label(default = "//third_party:debian.lock.json"),
    },
)
