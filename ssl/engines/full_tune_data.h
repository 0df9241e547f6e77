// SPDX-License-Identifier: Apache-2.0
//
// What a fine-tuning (full_tune_engine.h) is trained and measured on, and which keys say so.
#ifndef SSL_ENGINES_FULL_TUNE_DATA_H_
#define SSL_ENGINES_FULL_TUNE_DATA_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ssl/config/node.h"
#include "ssl/engines/engine.h"

namespace ssl {

// What the new head is trained and measured on.
struct LabelledData {
  int64_t num_samples = 0;  // that are trained on, of all ranks
  int64_t num_classes = 0;
};

// FULL_TUNE.DATA_LIMIT as settings of DATA.TRAIN; -1 changes nothing.
void SetFewLabels(int64_t data_limit, ConfigNode* config);

// context: with a complete configuration, of which DATA.TRAIN has all labels. num_classes: 0: counted, with those that
// data_limit (-1: all) leaves out.
absl::StatusOr<LabelledData> OpenLabelledData(int64_t num_classes, int64_t data_limit, EngineContext& context);

// Opens what the phases of the fine-tuning read, for what is wrong with it. tuned: its configuration; context: with the
// complete one that it follows from.
absl::Status OpenPhases(const ConfigNode& tuned, EngineContext& context);

// "file:line: "; "" for a key that no file sets.
std::string PlaceOfKey(absl::string_view key, const ConfigNode& config);

// A line for each key of the fine-tuning's configuration that `message` names and that the user has not written.
std::string WhoSets(absl::string_view message, const ConfigNode& config);

}  // namespace ssl

#endif  // SSL_ENGINES_FULL_TUNE_DATA_H_
