// SPDX-License-Identifier: Apache-2.0
//
// The page docs/vissl_keys.md: every key of the configuration, and what it does here. Stateless; safe from any thread.
#ifndef SSL_VISSL_COMPATIBILITY_PAGE_H_
#define SSL_VISSL_COMPATIBILITY_PAGE_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ssl/config/node.h"
#include "ssl/config/option_catalog.h"

namespace ssl {

// Path relative to `config` -> VISSL's default.
using VisslDefaults = std::map<std::string, ConfigNode>;

// text: YAML, one line "KEY: VALUE" for each key, as in testdata/default_keys.yaml.
absl::StatusOr<VisslDefaults> ParseVisslDefaults(absl::string_view text);

// One table for each section, one row for each of `entries`.
std::string CompatibilityPage(const std::vector<CatalogEntry>& entries, const VisslDefaults& vissl_defaults);

}  // namespace ssl

#endif  // SSL_VISSL_COMPATIBILITY_PAGE_H_
