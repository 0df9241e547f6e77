// SPDX-License-Identifier: Apache-2.0
//
// Writes the seeds of a fuzz target into a folder, as the corpus that the fuzzer starts from: write_seeds FOLDER
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "tests/fuzz/fuzz_target.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "expected one argument, a folder\n";
    return 2;
  }
  std::filesystem::create_directories(argv[1]);
  const std::vector<std::string> seeds = ssl::fuzz::MakeSeeds(ssl::fuzz::Samples(), 256);
  for (size_t i = 0; i < seeds.size(); ++i) {
    std::ofstream(std::string(argv[1]) + "/seed" + std::to_string(i), std::ios::binary) << seeds[i];
  }
  return 0;
}
