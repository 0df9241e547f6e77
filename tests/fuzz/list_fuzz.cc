// SPDX-License-Identifier: Apache-2.0
//
// Lists of files and of labels, as text.
#include <string>
#include <vector>

#include "ssl/data/datasets/label_table.h"
#include "ssl/data/datasets/string_list.h"
#include "ssl/io/file_system.h"
#include "tests/fuzz/fuzz_target.h"

namespace ssl::fuzz {

std::vector<std::string> Samples() {
  return {"/data/a.jpg\n/data/b.jpg\n", "0\n12\n3\n", "cat\r\ndog\r\ncat\r\n\r\n\n", "no line end", "1\n-1\n0x2\n 3\n"};
}

}  // namespace ssl::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string path = ssl::fuzz::WriteFuzzFile(ssl::fuzz::ToView(data, size), "input.txt");
  ssl::FileSystem& files = ssl::PosixFileSystem();
  const auto strings = ssl::ReadStringList(files, path);
  const auto labels = ssl::ReadLabelFile(files, path);
  if (strings.ok()) {
    for (const std::string& line : *strings) {
      ssl::fuzz::CheckFuzz(!line.empty() && line.find('\n') == std::string::npos, "a string is one line with text");
    }
  }
  if (labels.ok()) {
    ssl::fuzz::CheckFuzz(strings.ok() && strings->size() == labels->values.size(), "each line has a label");
    for (const int64_t label : labels->values) ssl::fuzz::CheckFuzz(label >= 0, "no class is negative");
  }
  return 0;
}
