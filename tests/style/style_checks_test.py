# SPDX-License-Identifier: Apache-2.0
"""Each check finds a planted violation, and lets its permitted neighbour pass."""
import pathlib
import tempfile
import unittest

from tests.style import style_checks

HEAD = "// SPDX-License-Identifier: Apache-2.0\n"


def messages(path, text, head=HEAD):
    return style_checks.check_file(path, head + text)


def guarded(guard):
    return f"#ifndef {guard}\n#define {guard}\n#endif  // {guard}\n"


class CheckFileTest(unittest.TestCase):
    def assert_found(self, path, text, part):
        found = messages(path, text)
        self.assertEqual(len(found), 1, found)
        self.assertTrue(found[0].startswith(path + ":"), found[0])
        self.assertIn(part, found[0])

    def assert_clean(self, path, text):
        self.assertEqual(messages(path, text), [])

    def test_clean_file_has_no_message(self):
        self.assert_clean("ssl/base/a.cc", '#include "ssl/base/a.h"\n#include <ATen/core/Tensor.h>\n')

    def test_message_has_path_line_and_text(self):
        self.assertEqual(messages("ssl/a.cc", "int a;\n// " + "TO" + "DO b\n"),
                         ["ssl/a.cc:3: note to self; do it or open an issue: // " + "TO" + "DO b"])

    def test_400_lines_pass_and_401_do_not(self):
        self.assert_clean("ssl/a.cc", "int a;\n" * 399)
        self.assert_found("ssl/a.cc", "int a;\n" * 400, "401 lines, at most 400")

    def test_prose_of_120_columns_passes_and_121_do_not(self):
        self.assert_clean("docs/a.md", "a" * 120 + "\n| " + "a" * 200 + " |\n\n    " + "a" * 200 + "\n")
        self.assert_clean("docs/a.md", "```\n" + "a" * 200 + "\n```\n")
        self.assert_clean("docs/a.md", "Made by `./bazelw run //a > docs/a.md`; do not edit.\n" + "a" * 200 + "\n")
        self.assert_found("docs/a.md", "```\n```\n" + "a" * 121 + "\n", "121 columns, at most 120")

    def test_umbrella_headers(self):
        self.assert_found("ssl/a.cc", "#include <torch/" + "torch.h>\n", "umbrella header")
        self.assert_found("tests/a.cc", "#include <ATen/" + "ATen.h>\n", "umbrella header")

    def test_glog_only_in_log_cc(self):
        self.assert_found("ssl/base/clock.cc", "#include <glog/logging.h>\n", "glog outside")
        self.assert_clean("ssl/base/log.cc", "#include <glog/logging.h>\n")

    def test_flags_only_in_tools_and_examples(self):
        self.assert_found("ssl/core/a.cc", "int a = FLAGS" + "_a;\n", "command-line flag")
        self.assert_found("ssl/core/a.cc", "#include <gflags/gflags.h>\n", "command-line flag")
        self.assert_found("ssl/core/a.cc", 'DEFINE_string(a, "", "");\n', "command-line flag")
        self.assert_clean("ssl/base/log.cc", "FLAGS" + "_logtostderr = true;\n")
        self.assert_clean("ssl/tools/a.cc", "int a = FLAGS" + "_a;\n")
        self.assert_clean("examples/embed/a.cc", "int a = FLAGS" + "_a;\n")

    def test_gflags_dependency_only_in_tools(self):
        dependency = '"@com_github_gflags_gflags' + '//:gflags"\n'
        self.assert_found("ssl/core/BUILD.bazel", dependency, "dependency on gflags")
        self.assert_clean("ssl/tools/BUILD.bazel", dependency)

    def test_output_only_in_tools_and_examples(self):
        self.assert_found("ssl/core/a.cc", "std::cout << 1;\n", "direct output")
        self.assert_found("ssl/core/a.cc", '  printf("a");\n', "direct output")
        self.assert_found("ssl/core/a.cc", '  std::fprintf(stderr, "a");\n', "direct output")
        self.assert_clean("ssl/tools/a.cc", "std::cout << 1;\n")
        self.assert_clean("ssl/optim/bench_update.cc", '  std::printf("a");\n')
        self.assert_clean("ssl/optim/sgd_test.cc", "std::cout << 1;\n")

    def test_output_in_a_comment_is_an_example(self):
        self.assert_clean("ssl/core/a.h", guarded("SSL_CORE_A_H_") + "//   std::cout << a;\n")

    def test_writing_to_a_file_is_no_output(self):
        self.assert_clean("ssl/core/a.cc", '  fprintf(file, "a");\n')

    def test_formatting_into_a_buffer_is_no_output(self):
        self.assert_clean("ssl/core/a.cc", "snprintf(buffer, 3, f); std::snprintf(b, 3, f); absl::StrFormat(f);\n")

    def test_what_runs_programs_or_code_out_of_files(self):
        for line in ('std::system(command.c_str());', 'FILE* pipe = popen("ls", "r");', "::execvp(name, arguments);",
                     "module = torch::jit::load(path);", "dlopen(path, RTLD_NOW);",
                     "torch::jit::Unpickler unpickler(reader);"):
            self.assert_found("ssl/io/x.cc", line + "\n", "runs code out of a file")
            self.assert_clean("ssl/io/x_test.cc", line + "\n")
            self.assert_clean("ssl/io/testing/x.cc", line + "\n")
        self.assert_found("ssl/launch/x.cc", "execve(program, arguments, environment);\n", "starts a program")
        self.assert_clean("ssl/launch/rank_process.cc", "execve(program, arguments, environment);\n")
        for line in ("file_system(path);", "state.system(3);", "// never call torch::load(path)",
                     "Unpickler unpickler(bytes);"):
            self.assert_clean("ssl/io/x.cc", line + "\n")

    def test_notes_to_self(self):
        for note in ("TO" + "DO", "FIX" + "ME", "XX" + "X"):
            self.assert_found("docs/a.md", f"{note}: later\n", "note to self")

    def test_part_of_a_word_is_no_note(self):
        self.assert_clean("docs/a.md", "XX" + "XX and AUTO" + "DOC\n")

    def test_tests_that_do_not_run(self):
        self.assert_found("ssl/a_test.cc", "TEST(A, DISABLE" + "D_B) {}\n", "does not run")
        self.assert_found("ssl/a_test.cc", "  GTEST_SKI" + "P();\n", "does not run")

    def test_paths_of_a_machine(self):
        for folder in ("work", "root", "home"):
            self.assert_found("ssl/a.cc", f'Open("/{folder}' + '/me/a");\n', "path of one machine")

    def test_folder_below_another_is_no_machine_path(self):
        self.assert_clean("docs/a.md", "see data/home" + "/a, ${HOME}/work" + "/a and ../root" + "/b\n")

    def test_licence_line_is_first(self):
        self.assertEqual(messages("ssl/a.cc", "int a;\n", head=""),
                         ["ssl/a.cc:1: first line is not '// SPDX-License-Identifier: Apache-2.0'"])

    def test_licence_line_follows_the_interpreter(self):
        self.assertEqual(messages("bazelw", "", head="#!/bin/sh\n# SPDX-License-Identifier: Apache-2.0\n"), [])
        self.assertEqual(len(messages("bazelw", "", head="#!/bin/sh\n")), 1)

    def test_guard_names_the_path(self):
        self.assert_clean("ssl/data/transforms/flip.h", guarded("SSL_DATA_TRANSFORMS_FLIP_H_"))
        self.assert_clean("tests/golden/index.h", guarded("SSL_TESTS_GOLDEN_INDEX_H_"))

    def test_wrong_guard_names_both_lines(self):
        found = messages("ssl/base/log.h", guarded("LOG_H"))
        self.assertEqual([m.split(":")[1] for m in found], ["2", "3"])
        self.assertIn("expected '#ifndef SSL_BASE_LOG_H_'", found[0])

    def test_missing_guard(self):
        self.assert_found("ssl/base/log.h", "int a;\n", "include guard SSL_BASE_LOG_H_ is missing")


class CheckTreeTest(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.root = pathlib.Path(temporary.name)

    def write(self, path, text):
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)

    def test_violation_deep_in_the_tree_is_found(self):
        self.write("ssl/data/transforms/flip.cc", HEAD + "// FIX" + "ME\n")
        self.assertEqual(len(style_checks.check_tree(self.root)), 1)

    def test_hidden_script_is_checked(self):
        self.write(".ci/run", "#!/bin/sh\n")
        self.assertEqual(len(style_checks.check_tree(self.root)), 1)

    def test_links_git_and_user_settings_are_left_out(self):
        bad = "// FIX" + "ME\n"
        self.write("elsewhere/a.cc", HEAD)
        self.write(".git/a.cc", bad)
        self.write("user.bazelrc", bad)
        with tempfile.TemporaryDirectory() as outside:
            (pathlib.Path(outside) / "a.cc").write_text(bad)
            (self.root / "bazel-out").symlink_to(outside)
            self.assertEqual(list(style_checks.walk(self.root)), ["elsewhere/a.cc"])


if __name__ == "__main__":
    unittest.main()
