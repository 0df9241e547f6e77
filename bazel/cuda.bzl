# SPDX-License-Identifier: Apache-2.0
"""Kernels for NVIDIA GPUs: .cu files, compiled by nvcc."""

load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")

# Machine code for the A100, H100 and H200, B200, in this order; newer GPUs translate the PTX of the last.
ARCHITECTURES = ["80", "90", "100"]

_FLAGS = [
    "-std=c++17",
    "-O3",
    "-Xcompiler=-fPIC,-O2,-g0,-Wall,-Wextra",
    "-Werror=all-warnings",
    "-Xptxas=-v",
] + [
    "-gencode=arch=compute_%s,code=sm_%s" % (architecture, architecture)
    for architecture in ARCHITECTURES
] + ["-gencode=arch=compute_{0},code=compute_{0}".format(ARCHITECTURES[-1])]

# $1: the object, $2: what ptxas says. The name of an intermediate file is part of the object: with --keep it is the same
# each time, without it has the process's number. Times are left out for the same reason.
_COMPILE = """
folder=$(mktemp -d) && trap 'rm -rf "$folder"' EXIT
object=$1 report=$2; shift 2
if ! "$@" --keep --keep-dir="$folder" -o "$object" 2> "$folder/report"; then cat "$folder/report" >&2; exit 1; fi
sed '/Compile time/d' "$folder/report" > "$report"
"""

CudaToolkitInfo = provider(fields = {"nvcc": "The compiler's file.", "files": "depset of what it reads and starts."})

def _cuda_toolkit_impl(ctx):
    return [CudaToolkitInfo(nvcc = ctx.file.nvcc, files = depset(ctx.files.files))]

cuda_toolkit = rule(
    implementation = _cuda_toolkit_impl,
    doc = "nvcc with what belongs to it; for //third_party/nvidia:cuda_toolkit.",
    attrs = {
        "nvcc": attr.label(mandatory = True, allow_single_file = True),
        "files": attr.label_list(mandatory = True, allow_files = True),
    },
)

def _compile(ctx, toolkit, cc_toolchain, compilation_context, source):
    base = "_cuda/%s/%s" % (ctx.label.name, source.basename)
    report = ctx.actions.declare_file(base + ".ptxas.txt")
    object = ctx.actions.declare_file(base + ".pic.o")
    arguments = ctx.actions.args()
    arguments.add_all([object, report, toolkit.nvcc, "-c", source, "-ccbin", cc_toolchain.compiler_executable])
    arguments.add_all(_FLAGS)

    # nvcc knows no -iquote.
    arguments.add_all(compilation_context.quote_includes, before_each = "-I")
    arguments.add_all(compilation_context.includes, before_each = "-I")
    arguments.add_all(compilation_context.system_includes, before_each = "-isystem")
    arguments.add_all(compilation_context.defines, format_each = "-D%s")
    ctx.actions.run_shell(
        command = _COMPILE,
        arguments = [arguments],
        # The compiler, too: a workspace may have it from a repository.
        inputs = depset(
            [source],
            transitive = [toolkit.files, cc_toolchain.all_files, compilation_context.headers],
        ),
        outputs = [object, report],
        mnemonic = "CudaCompile",
        progress_message = "Compiling %s" % source.short_path,
        use_default_shell_env = True,
    )
    return object, report

def _compile_all(ctx, toolkit, cc_toolchain, compilation_context):
    objects = []
    reports = []
    for source in ctx.files.srcs:
        object, report = _compile(ctx, toolkit, cc_toolchain, compilation_context, source)
        objects.append(object)
        reports.append(report)
    all_reports = ctx.actions.declare_file(ctx.label.name + ".ptxas.txt")
    ctx.actions.run_shell(
        command = "cat \"${@:2}\" > \"$1\"",
        arguments = [ctx.actions.args().add(all_reports).add_all(reports)],
        inputs = reports,
        outputs = [all_reports],
        mnemonic = "CudaReport",
    )
    return objects, all_reports

def _toolkit(ctx):
    if CudaToolkitInfo in ctx.attr._toolkit:
        return ctx.attr._toolkit[CudaToolkitInfo]
    if ctx.var.get("accelerator") == "cuda":
        fail("--define=accelerator=cuda needs --@ssl//third_party/nvidia:cuda_toolkit as well: docs/cuda.md of ssl")
    return None

def _cuda_library_impl(ctx):
    cc_toolchain = find_cpp_toolchain(ctx)
    own = cc_common.create_compilation_context(
        headers = depset(ctx.files.hdrs),
        quote_includes = depset([ctx.label.workspace_root or "."]),
    )
    deps = [dep[CcInfo] for dep in ctx.attr.deps]
    exported = cc_common.merge_cc_infos(cc_infos = [CcInfo(compilation_context = own)] + deps)
    toolkit = _toolkit(ctx)
    if toolkit == None:
        return [exported]

    with_runtime = cc_common.merge_cc_infos(cc_infos = [exported] + [dep[CcInfo] for dep in ctx.attr._runtime])
    objects, report = _compile_all(ctx, toolkit, cc_toolchain, with_runtime.compilation_context)
    linking_context, linked = cc_common.create_linking_context_from_compilation_outputs(
        actions = ctx.actions,
        name = ctx.label.name,
        feature_configuration = cc_common.configure_features(ctx = ctx, cc_toolchain = cc_toolchain),
        cc_toolchain = cc_toolchain,
        compilation_outputs = cc_common.create_compilation_outputs(pic_objects = depset(objects)),
        linking_contexts = [with_runtime.linking_context],
        disallow_dynamic_library = True,
    )
    return [
        DefaultInfo(files = depset([linked.library_to_link.pic_static_library, report])),
        CcInfo(compilation_context = exported.compilation_context, linking_context = linking_context),
    ]

cuda_library = rule(
    implementation = _cuda_library_impl,
    doc = """Kernels and the C++ functions that launch them: one .h, its .cu, its deps listed per include.

A C++ library has it in its deps like any other. Only --config=cuda compiles it: `select()` on "//bazel:cuda" between a
.cc that calls its functions and one that does without. In other builds it is its headers alone and downloads nothing,
so that it may stand in deps there all the same, outside of a select(). C++17, with the warnings of ssl_cc_library and
machine code for each of ARCHITECTURES. Beside the archive lies `<name>.ptxas.txt`: registers, shared memory and spills
of each kernel.

LibTorch's headers compile slowly in a .cu, for each architecture anew; a header that takes pointers and a stream needs
none of them. One that includes <cuda_runtime_api.h> needs "@libtorch//:device_headers" in its dependents' deps: CUDA's
headers are passed to the .cu alone.""",
    attrs = {
        "srcs": attr.label_list(mandatory = True, allow_files = [".cu"], doc = "Of different names."),
        "hdrs": attr.label_list(allow_files = [".h", ".cuh"]),
        "deps": attr.label_list(providers = [CcInfo]),
        "_toolkit": attr.label(default = "//third_party/nvidia:cuda_toolkit"),
        "_runtime": attr.label_list(
            default = ["@nvidia_cuda_runtime//:cudart", "@nvidia_cuda_runtime//:headers"],
            providers = [CcInfo],
        ),
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
    },
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
    provides = [CcInfo],
)
