// SPDX-License-Identifier: Apache-2.0
#include "ssl/tools/run_files.h"

#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace ssl {

std::string RunFilesDirectory(const std::string& program) {
  // A Bazel test or `bazel run` names the directory; otherwise it lies beside the binary.
  const char* from_environment = std::getenv("RUNFILES_DIR");
  std::error_code error;
  const std::filesystem::path executable = std::filesystem::read_symlink("/proc/self/exe", error);
  for (const std::string& candidate : {std::string(from_environment != nullptr ? from_environment : ""),
                                       program + ".runfiles", executable.string() + ".runfiles"}) {
    if (!candidate.empty() && std::filesystem::is_directory(candidate, error)) {
      return std::filesystem::absolute(candidate, error).string();
    }
  }
  return executable.string() + ".runfiles";
}

}  // namespace ssl
