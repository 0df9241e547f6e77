// SPDX-License-Identifier: Apache-2.0
//
// Configuration files. What is read can be written, and reads back equal.
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "ssl/config/node.h"
#include "ssl/config/yaml.h"
#include "tests/fuzz/fuzz_target.h"

namespace ssl::fuzz {

std::vector<std::string> Samples() {
  return {
      "config:\n  LOSS:\n    name: swav_loss\n    swav_loss: {temperature: 0.1, num_crops: 8, queue: {start_iter: "
      "0}}\n",
      "a: &anchor [1, 2.5, -3e-7, .inf, ~]\nb: *anchor\nc: {d: *anchor, e: 'it''s', f: \"\\u00e9\\n\"}\n",
      "text: |\n  two\n  lines\nfolded: >-\n  one\n  line\n? complex\n: value\nempty:\n",
      "# comment\n%YAML 1.2\n---\n- - a\n  - b\n- {c: [d, {e: f}]}\n- !!str 1\n- \"quoted: no map\"\n...\n",
      "base: &base {lr: 0.1, epochs: 100}\nrun:\n  <<: *base\n  lr: 0.3\nnull: null\ntrue: yes\n0x1F: 0o17\n",
      "a: 1\na: 2\n\"a\": 3\nlist:\n- 1\n-   2\n-\n  - 3\n",
  };
}

}  // namespace ssl::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::vector<std::string> warnings;
  const auto tree = ssl::ParseYaml(ssl::fuzz::ToView(data, size), "fuzz.yaml", &warnings);
  if (!tree.ok()) {
    ssl::fuzz::CheckFuzz(absl::IsInvalidArgument(tree.status()), "a mistake in YAML is an InvalidArgument");
    return 0;
  }
  const std::string text = ssl::WriteYaml(*tree);
  if (static_cast<int64_t>(text.size()) > ssl::kMaxYamlBytes) return 0;
  const auto again = ssl::ParseYaml(text, "again.yaml", nullptr);
  ssl::fuzz::CheckFuzz(again.ok(), absl::StrCat("what was written reads back: ", again.status().ToString()));
  ssl::fuzz::CheckFuzz(*again == *tree, "what was written reads back equal");
  return 0;
}
