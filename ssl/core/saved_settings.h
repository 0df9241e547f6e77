// SPDX-License-Identifier: Apache-2.0
//
// The settings of a run as its checkpoint keeps them (run_identity.h): texts by their keys.
#ifndef SSL_CORE_SAVED_SETTINGS_H_
#define SSL_CORE_SAVED_SETTINGS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ssl/config/node.h"

namespace ssl {

using SavedSettings = std::map<std::string, std::string>;

inline constexpr uint64_t kSettingsFormatVersion = 1;
inline constexpr char kAmpDtype[] = "MODEL.AMP_PARAMS.AMP_DTYPE";
inline constexpr char kGrey16[] = ".GRAY_16_BIT";
inline constexpr char kGrey16BeforeTheKey[] = "clip";  // what runs did that did not know the key
// Ends the name of the places that a setting of paths stands for: no key of a configuration has a blank.
inline constexpr char kPlaces[] = " places";

// The value as YAML on one line, with quotes around what would be another value without. Equal values have equal
// texts: 0.1 and 1e-1, True and yes, {a: 1, b: 2} and {b: 2, a: 1}. Bytes that are no UTF-8 are replaced, as they are
// in the file.
std::string SettingText(const ConfigNode& value);

// True when an older version, which wrote no quotes and once kept the order of keys, has saved `value` as `text`.
bool IsSavedAsWritten(const ConfigNode& value, absl::string_view text);

// The value that was saved as `text`. parse: ParseYaml, which this library does not link. InvalidArgument where the
// text does not tell: it had bytes that were no UTF-8, or an older version wrote it without the quotes that it needs.
// What looks like two items of a list in a text of an older version is taken for two.
absl::StatusOr<ConfigNode> NodeOfSaved(absl::string_view text,
                                       absl::FunctionRef<absl::StatusOr<ConfigNode>(absl::string_view)> parse);

// All settings of the tree under "config". Maps are taken apart; everything else, a list of transforms too, is one
// value. Those that name paths have their places beside them (kPlaces), as JSON.
SavedSettings SettingsOf(const ConfigNode& config);

// The place of the innermost value that the text of `value` has at `offset`.
SourceLocation PlaceInText(const ConfigNode& value, size_t offset);

// True for a setting that names files or folders, which may be named in several ways.
bool NamesPaths(absl::string_view key);
// The text of such a setting of an older version with each path absolute in the working directory of now and without
// links, '.', '..' and '/' at its end; the text itself where it does not tell its paths.
std::string WithNormalPaths(absl::string_view text);
// True when the setting of paths `key` has named the places that `now` names.
bool NamesSamePlaces(const SavedSettings& saved, const std::string& key, const ConfigNode& now);
// True when nothing is at any of the places any more that the setting `key` has named. False where the places are not
// known, as those of relative paths that an older version has saved.
bool PlacesAreGone(const SavedSettings& saved, const std::string& key);
// The recorded places for people: "[/data/a, /data/b]".
std::string PlacesForMessage(const SavedSettings& settings, const std::string& key);

// What RunIdentity::ToJson has written, with the places where they were recorded; what was counted among it where
// `with_counts`. DataLoss, which names `origin`, for another text.
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
