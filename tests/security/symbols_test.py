# SPDX-License-Identifier: Apache-2.0
"""What ssl_main asks of the libraries that it loads: nothing that runs code out of a file, starts a program other than
itself, or loads a library by a name of the user's choice. (LibTorch contains all of that; it is not called.)"""
import pathlib
import re
import subprocess
import sys
import unittest

BINARY = pathlib.Path(sys.argv.pop(1)).absolute()

FORBIDDEN = re.compile(
    r"^(torch::(load|pickle_load|jit::load|jit::unpickle|jit::pickle_load|jit::import_ir_module|jit::_load\w*)\b"
    r"|torch::serialize::InputArchive|caffe2::serialize::PyTorchStreamReader|.*\bUnpickler\b"
    r"|(system|popen|wordexp|dlopen|dlmopen|fexecve|execl|execle|execlp|execv|execve|execvp|execvpe"
    r"|posix_spawn|posix_spawnp)$)")


# glog mails log lines with it when its flag --logmailer says so; nothing here sets it or passes flags on.
OF_GLOG = ["popen"]
# ssl/launch/rank_process.cc starts the ranks of a run by it: this very program, with its own command line.
OF_LAUNCHER = ["execve"]


def undefined_symbols(binary):
    lines = subprocess.run(["nm", "--dynamic", "--undefined-only", "--demangle", binary], check=True,
                           capture_output=True, text=True).stdout.splitlines()
    # "                 U popen@GLIBC_2.2.5"
    return [re.sub(r"@+[\w.]+$", "", line.split(maxsplit=1)[1]) for line in lines]


class SymbolsTest(unittest.TestCase):

    def test_binary_asks_for_nothing_forbidden(self):
        symbols = undefined_symbols(BINARY)
        self.assertGreater(len(symbols), 500)
        self.assertTrue(any(symbol.startswith("at::_ops::") for symbol in symbols), "LibTorch is a shared library here")
        self.assertEqual(sorted(symbol for symbol in symbols if FORBIDDEN.search(symbol)), OF_LAUNCHER + OF_GLOG)

    def test_rule_finds_what_it_forbids(self):
        for symbol in ("system", "popen", "dlopen", "execve", "posix_spawn", "torch::jit::Unpickler::parse_ivalue()",
                       "torch::pickle_load(std::vector<char, std::allocator<char> > const&)",
                       "torch::jit::load(std::string const&, std::optional<c10::Device>, bool)",
                       "caffe2::serialize::PyTorchStreamReader::PyTorchStreamReader(std::string const&)"):
            self.assertRegex(symbol, FORBIDDEN)
        for symbol in ("at::_ops::conv2d::call(at::Tensor const&)", "std::system_category()", "sysconf", "dl_iterate_phdr"):
            self.assertNotRegex(symbol, FORBIDDEN)


if __name__ == "__main__":
    unittest.main()
