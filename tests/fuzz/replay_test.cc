// SPDX-License-Identifier: Apache-2.0
//
// Runs a fuzz target, in a plain test, on its seeds and on every input that once broke it.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/fuzz/fuzz_target.h"

namespace ssl::fuzz {
namespace {

constexpr size_t kSeeds = 256;

void Replay(const std::string& input) {
  // An own allocation: a read behind the last byte must not find the string's terminating zero.
  const std::vector<uint8_t> bytes(input.begin(), input.end());
  EXPECT_EQ(LLVMFuzzerTestOneInput(bytes.data(), bytes.size()), 0);
}

std::vector<std::filesystem::path> FindingFiles() {
  const std::string folder = std::string(std::getenv("TEST_SRCDIR")) + "/" + std::getenv("TEST_WORKSPACE") +
                             "/tests/fuzz/findings/" + std::getenv("SSL_FUZZ_TARGET");
  std::vector<std::filesystem::path> files;
  if (!std::filesystem::is_directory(folder)) return files;  // nothing was found yet
  for (const auto& entry : std::filesystem::directory_iterator(folder)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

TEST(FuzzReplay, SeedsKeepThePromises) {
  const std::vector<std::string> samples = Samples();
  ASSERT_FALSE(samples.empty());
  const std::vector<std::string> seeds = MakeSeeds(samples, kSeeds);
  for (const std::string& seed : seeds) Replay(seed);
  Replay("");
  std::cout << "replayed " << seeds.size() << " seeds from " << samples.size() << " samples" << std::endl;
}

TEST(FuzzReplay, FindingsKeepThePromises) {
  const std::vector<std::filesystem::path> files = FindingFiles();
  for (const std::filesystem::path& path : files) {
    std::cout << path.filename().string() << std::endl;
    std::ifstream file(path, std::ios::binary);
    Replay(std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()));
  }
  std::cout << "replayed " << files.size() << " findings" << std::endl;
}

}  // namespace
}  // namespace ssl::fuzz
