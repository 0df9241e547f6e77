// SPDX-License-Identifier: Apache-2.0
#include "ssl/launch/testing/launch_case.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

int OpenNew(const std::string& path) { return open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600); }

std::vector<std::string> Lines(const std::string& path) {
  std::vector<std::string> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

}  // namespace

LaunchCase::LaunchCase(int64_t size, std::vector<std::string> script) : dir_(MakeTempDir("launch")) {
  options.command = {"ssl/launch/scripted_rank"};
  options.command.insert(options.command.end(), script.begin(), script.end());
  options.first.size = options.first.local_size = size;
  options.grace = absl::InfiniteDuration();
  options.output_fd = OpenNew(dir_ + "/output");
  options.error_fd = OpenNew(dir_ + "/error");
}

LaunchCase::~LaunchCase() {
  close(options.output_fd);
  close(options.error_fd);
}

std::vector<std::string> LaunchCase::Output() const { return Lines(dir_ + "/output"); }

std::vector<std::string> LaunchCase::Errors() const { return Lines(dir_ + "/error"); }

std::string MakeFifo() {
  const std::string path = MakeTempDir("fifo") + "/fifo";
  mkfifo(path.c_str(), 0600);
  return path;
}

}  // namespace ssl
