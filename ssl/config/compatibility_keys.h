// SPDX-License-Identifier: Apache-2.0
//
// Keys that VISSL's configurations have and that no options struct of this program reads. Knowing them keeps files of
// VISSL free of unknown-key warnings, and tells a user which of their settings have no effect here. Internal to
// option_catalog, but for the structs. A plain value; const use is safe from any thread.
//
//   {"DATA.PIN_MEMORY", "true", CompatibilityKey::Support::kIgnored, "batches are written in place"}
#ifndef SSL_CONFIG_COMPATIBILITY_KEYS_H_
#define SSL_CONFIG_COMPATIBILITY_KEYS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "ssl/config/node.h"
#include "ssl/config/problem.h"

namespace ssl {

// All paths here are relative to `config`: "MODEL.TRUNK.XCIT.ETA".
struct CompatibilityKey {
  enum class Support {
    kIgnored,  // The setting is not needed here: any value gives the same run.
    kNotYet,   // The setting would change the run, and does not.
  };

  std::string path;
  // VISSL's default as a flow value (flow_text.h): false, 3, 0.1, "tcp", null, [0, 1]; its type is the type that values
  // are checked against. A map, {} most of all, is free form: any keys may stand below.
  std::string default_yaml;
  Support support = Support::kIgnored;
  std::string note;  // Why it is ignored, or what is missing.
};

// A key of the kind kNotYet to which a configuration gives another value than VISSL's default.
struct UnsupportedKey {
  std::string path;
  SourceLocation location;  // Of the value.
  std::string value;        // For a message: "'3'", "a list".
  std::string note;
};

class CompatibilityKeys {
 public:
  enum class ValueType { kAny, kBool, kInt, kFloat, kString, kList };

  struct Entry {
    CompatibilityKey key;
    ConfigNode default_value;
    ValueType type = ValueType::kAny;
    ValueType element_type = ValueType::kAny;  // Of a list.

    // "bool", "int", "float", "string", "list of int", "list", "any".
    std::string TypeName() const;
  };

  // Adds all `keys` or none. InvalidArgument for a path with an empty part or a default that is no flow value;
  // AlreadyExists for a key that stands twice or below another one. One line for each such key.
  absl::Status Add(std::vector<CompatibilityKey> keys);

  // In the order of addition.
  const std::vector<Entry>& entries() const { return entries_; }

  // Every key with its default, as a tree.
  const ConfigNode& defaults() const { return defaults_; }

  // Adds the values of another type than the default has. An integer is a float, any scalar is a string, and null is
  // right anywhere. `config` is the tree under "config".
  void Check(const ConfigNode& config, std::vector<ConfigProblem>* problems) const;

  // The kNotYet keys with another value than the default, sorted by file and line. Numbers compare as numbers, booleans
  // in any case; null, "", [] and {} are the same.
  std::vector<UnsupportedKey> Unsupported(const ConfigNode& config) const;

 private:
  std::vector<Entry> entries_;
  ConfigNode defaults_ = ConfigNode::Map();
};

// Ok without paths; else AlreadyExists "key 'A.B' is declared twice", a line for each.
absl::Status DeclaredOnce(const std::vector<std::string>& common_paths);

}  // namespace ssl

#endif  // SSL_CONFIG_COMPATIBILITY_KEYS_H_
