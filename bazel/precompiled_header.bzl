# SPDX-License-Identifier: Apache-2.0
"""A header that is parsed once for all files that are compiled with the same options."""

load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")
load("@bazel_tools//tools/build_defs/cc:action_names.bzl", "CPP_COMPILE_ACTION_NAME")

def _precompiled_header_impl(ctx):
    toolchain = find_cpp_toolchain(ctx)
    features = cc_common.configure_features(ctx = ctx, cc_toolchain = toolchain)
    context = cc_common.merge_cc_infos(cc_infos = [dep[CcInfo] for dep in ctx.attr.deps]).compilation_context

    # GCC looks for <header>.gch beside <header>, before the header itself.
    header = ctx.actions.declare_file(ctx.label.name + ".h")
    ctx.actions.symlink(output = header, target_file = ctx.file.src)
    # Of what was precompiled. GCC does not list <header>.gch among the files that it read; it lists this one, whose
    # contents change with it.
    version = ctx.actions.declare_file(ctx.label.name + "_version.h")
    headers = [header, version]
    if not "clang" in toolchain.compiler:  # clang refuses a file whose options differ; GCC reads the header instead.
        precompiled = ctx.actions.declare_file(ctx.label.name + ".h.gch")
        variables = cc_common.create_compile_variables(
            feature_configuration = features,
            cc_toolchain = toolchain,
            source_file = ctx.file.src.path,
            output_file = precompiled.path,
            user_compile_flags = ctx.fragments.cpp.copts + ctx.fragments.cpp.cxxopts + ctx.attr.copts + ["-xc++-header"],
            quote_include_directories = context.quote_includes,
            include_directories = context.includes,
            system_include_directories = context.system_includes,
            preprocessor_defines = context.defines,
            use_pic = True,
        )
        compiler = cc_common.get_tool_for_action(
            feature_configuration = features,
            action_name = CPP_COMPILE_ACTION_NAME,
        )
        ctx.actions.run_shell(
            mnemonic = "PrecompileHeader",
            progress_message = "Precompiling %s" % header.short_path,
            command = '"$@" && echo "// $(sha256sum <{})" >{}'.format(precompiled.path, version.path),
            arguments = [compiler] + cc_common.get_memory_inefficient_command_line(
                feature_configuration = features,
                action_name = CPP_COMPILE_ACTION_NAME,
                variables = variables,
            ),
            env = cc_common.get_environment_variables(
                feature_configuration = features,
                action_name = CPP_COMPILE_ACTION_NAME,
                variables = variables,
            ),
            inputs = depset([ctx.file.src], transitive = [toolchain.all_files, context.headers]),
            outputs = [precompiled, version],
            # As files are compiled: LibTorch's headers are too many to link them into a sandbox.
            execution_requirements = {"no-sandbox": "1"},
        )
        headers.append(precompiled)
    else:
        ctx.actions.write(output = version, content = "")
    own = cc_common.create_compilation_context(headers = depset(headers))
    dependencies = [dep[CcInfo] for dep in ctx.attr.deps]
    return [
        DefaultInfo(files = depset(headers)),
        cc_common.merge_cc_infos(cc_infos = [CcInfo(compilation_context = own)] + dependencies),
    ]

precompiled_header = rule(
    implementation = _precompiled_header_impl,
    doc = """The header <name>.h with the contents of `src`, precompiled for GCC.

A file that depends on it is compiled with -include <package>/<name>.h -include <package>/<name>_version.h.
Options must be those of the files: where they differ (-mavx2, a sanitizer for some files), GCC reads the header
itself, which is slower and means the same.""",
    attrs = {
        "src": attr.label(mandatory = True, allow_single_file = [".inc"], doc = "Lines of #include."),
        "copts": attr.string_list(doc = "Options of the files, beyond those of the command line."),
        "deps": attr.label_list(providers = [CcInfo], doc = "What `src` includes."),
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
    },
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
    provides = [CcInfo],
)
