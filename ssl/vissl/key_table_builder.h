// SPDX-License-Identifier: Apache-2.0
//
// Writes tables of keys that are not read, section by section. A plain value.
//
//   KeyTableBuilder table;
//   table.Ignored("DATA", "threads write batches in place", {{"PIN_MEMORY", "true"}});
//   return table.Take();
#ifndef SSL_VISSL_KEY_TABLE_BUILDER_H_
#define SSL_VISSL_KEY_TABLE_BUILDER_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "ssl/config/compatibility_keys.h"
#include "ssl/config/node.h"

namespace ssl {

// A key relative to its section, and its default as a flow value.
struct KeyDefault {
  std::string key;
  std::string default_yaml;
};

class KeyTableBuilder {
 public:
  // Keys below `section` ("" for `config` itself) that need no reading here, and why.
  void Ignored(absl::string_view section, absl::string_view note, const std::vector<KeyDefault>& keys) {
    Add(section, CompatibilityKey::Support::kIgnored, note, keys);
  }

  // Keys that would change the run, and what is missing.
  void NotYet(absl::string_view section, absl::string_view note, const std::vector<KeyDefault>& keys) {
    Add(section, CompatibilityKey::Support::kNotYet, note, keys);
  }

  std::vector<CompatibilityKey> Take() { return std::move(keys_); }

 private:
  void Add(absl::string_view section, CompatibilityKey::Support support, absl::string_view note,
           const std::vector<KeyDefault>& keys) {
    for (const auto& [key, default_yaml] : keys) {
      keys_.push_back({JoinPath(section, key), default_yaml, support, std::string(note)});
    }
  }

  std::vector<CompatibilityKey> keys_;
};

}  // namespace ssl

#endif  // SSL_VISSL_KEY_TABLE_BUILDER_H_
