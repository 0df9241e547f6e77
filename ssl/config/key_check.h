// SPDX-License-Identifier: Apache-2.0
//
// Compares the keys of a config with those of the defaults. The keys of a section (a map of
// the defaults that is neither empty nor free-form) are all the keys that may stand there;
// below lists, values and free-form nodes everything may. Internal to compose.
//
//   KeyProblems problems;
//   CheckKeys(defaults, file, "", defaults, &problems);
#ifndef SSL_CONFIG_KEY_CHECK_H_
#define SSL_CONFIG_KEY_CHECK_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "ssl/config/node.h"

namespace ssl {

// A file of another program has thousands of unknown keys; nobody reads as many hints.
constexpr size_t kMaxListedKeys = 50;
// For a check of the file itself, which wants them all; hints for a hostile file would still cost seconds.
constexpr size_t kMaxListedKeysOfCheck = 2000;

struct KeyProblems {
  size_t max_listed_keys = kMaxListedKeys;
  std::vector<std::string> unknown_keys;  // "file:line: unknown key 'x'; did you mean 'y'?"
  int unlisted_keys = 0;                  // Further unknown keys, after the first max_listed_keys.
  std::vector<std::string> wrong_kinds;   // "file:line: x is 'v', expected a map"
};

// Whether `path` is empty, or has nothing between two of its dots or at an end.
bool HasEmptyPart(absl::string_view path);

bool IsSection(const ConfigNode& defaults);

// Compares `overlay` with `defaults`, both standing at `path` of the tree `root`.
void CheckKeys(const ConfigNode& defaults, const ConfigNode& overlay, const std::string& path, const ConfigNode& root,
               KeyProblems* problems);

// Whether `path` leads to a key of `tree`, or to or below a free-form node of it.
bool HasKey(const ConfigNode& tree, absl::string_view path);

// "unknown key 'config.LOS.name'; did you mean 'config.LOSS.name'?": the first wrong part is
// replaced by the nearest key of its map, or else the last part is looked up in all of `root`.
std::string UnknownKey(absl::string_view path, const ConfigNode& root);

}  // namespace ssl

#endif  // SSL_CONFIG_KEY_CHECK_H_
