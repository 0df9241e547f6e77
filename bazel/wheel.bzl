# SPDX-License-Identifier: Apache-2.0
"""Python wheels as repositories: pinned by version and sha256, fetched by pip, never run as Python."""

_PLATFORMS = [
    "manylinux_2_28_x86_64",
    "manylinux_2_27_x86_64",
    "manylinux_2_25_x86_64",
    "manylinux_2_18_x86_64",
    "manylinux_2_17_x86_64",
    "manylinux2014_x86_64",
]
_TIMEOUT_S = 3600

def _run(ctx, what, command):
    result = ctx.execute(command, timeout = _TIMEOUT_S, quiet = True)
    if "No module named pip" in result.stderr:
        fail("%s: python3 has no pip: apt-get install python3-pip, or call ./bazelw, which does" % ctx.name)
    if result.return_code:
        fail("%s: %s failed:\n%s%s" % (ctx.name, what, result.stdout, result.stderr))

def _check_platform(ctx):
    machine = ctx.execute(["uname", "-sm"]).stdout.strip()
    if machine != "Linux x86_64":
        fail("%s: the pinned wheels are for Linux x86_64, but this machine is %s" % (ctx.name, machine))

def _wheel_archive_impl(ctx):
    _check_platform(ctx)
    pins = {"%s==%s" % (ctx.attr.package, ctx.attr.version): ctx.attr.sha256}
    pins.update(ctx.attr.companions)
    ctx.file("requirements.txt", "".join(["%s --hash=sha256:%s\n" % (wheel, sha256) for wheel, sha256 in pins.items()]))
    command = ["python3", "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    command += ["--no-deps", "--require-hashes", "--only-binary=:all:", "--python-version=3.11"]
    for platform in _PLATFORMS:
        command += ["--platform", platform]
    command += ["--dest", "download", "--requirement", "requirements.txt"]
    ctx.report_progress("downloading %s %s" % (ctx.attr.package, ctx.attr.version))
    _run(ctx, "pip download of %s %s (is the package index reachable?)" % (ctx.attr.package, ctx.attr.version), command)
    for wheel in ctx.path("download").readdir():
        ctx.report_progress("unpacking " + wheel.basename)
        _run(ctx, "unpacking", ["unzip", "-q", str(wheel)] + ctx.attr.members)
    ctx.delete("download")
    ctx.symlink(ctx.attr.build_file, "BUILD.bazel")

wheel_archive = repository_rule(
    implementation = _wheel_archive_impl,
    doc = "Unpacks one wheel, or several into one folder. Any other content than `sha256` is refused by pip.",
    attrs = {
        "package": attr.string(mandatory = True, doc = "Name on the package index."),
        "version": attr.string(mandatory = True),
        "sha256": attr.string(mandatory = True, doc = "Of the .whl file."),
        "companions": attr.string_dict(doc = "<package>==<version> -> sha256 of wheels unpacked beside it."),
        "members": attr.string_list(doc = "Patterns of the files to unpack; all when empty."),
        "build_file": attr.label(mandatory = True),
    },
)
