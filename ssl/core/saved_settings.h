// SPDX-License-Identifier: Apache-2.0
//
// The settings of a run as its checkpoint keeps them (run_identity.h): texts by their keys.
#ifndef SSL_CORE_SAVED_SETTINGS_H_
#define SSL_CORE_SAVED_SETTINGS_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ssl/config/node.h"

namespace ssl {

using SavedSettings = std::map<std::string, std::string>;

inline constexpr uint64_t kSettingsFormatVersion = 1;
inline constexpr char kAmpDtype[] = "MODEL.AMP_PARAMS.AMP_DTYPE";

// What RunIdentity::ToJson has written; what was counted among it where `with_counts`. DataLoss, which names `origin`,
// for another text.
absl::StatusOr<SavedSettings> ParseSavedSettings(absl::string_view json, bool with_counts, absl::string_view origin);

// Whether the run computes in the format that AMP_DTYPE names: not without USE_AMP, and not by apex's O0, which is
// float32. defaults: of keys that are not there.
bool UsesAmpDtype(const ConfigNode& defaults, const SavedSettings& settings);

// Replaces an empty AMP_DTYPE by the format that it stands for, where the run computes in it. Empty is one format
// on a CPU and another on a GPU, which is no part of a run's identity; what the state of the run depends on is the
// format.
void SettleAmpDtype(const ConfigNode& defaults, SavedSettings* settings);

// What to set, behind the place of a value that is not `saved`; "" unless it is AMP_DTYPE, and empty: `now`.
std::string AmpDtypeHint(absl::string_view key, const ConfigNode& now, absl::string_view saved);

}  // namespace ssl

#endif  // SSL_CORE_SAVED_SETTINGS_H_
