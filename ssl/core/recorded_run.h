// SPDX-License-Identifier: Apache-2.0
//
// The checkpoints in a run's directory tell of that run, to whoever works on it and does not train it.
#ifndef SSL_CORE_RECORDED_RUN_H_
#define SSL_CORE_RECORDED_RUN_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "ssl/config/node.h"
#include "ssl/core/registries.h"
#include "ssl/core/saved_settings.h"
#include "ssl/io/file_system.h"

namespace ssl {

struct RecordedRun {
  SavedSettings settings;  // with what was counted, such as DATA.TRAIN.num_samples
  int64_t ranks = 1;       // that saved it
  std::string origin;      // the file that says so: <run directory>/checkpoints/step_120/config.json
};

// Reads the newest checkpoint in `run_directory` that tells its settings; its tensors are not looked at. There is none
// where no run lies.
std::optional<RecordedRun> FindRecordedRun(const std::string& run_directory, FileSystem& file_system);

// A resolver (registries.h). GRAY_16_BIT that nobody sets is what the run that lies in CHECKPOINT.DIR had, unless it is
// removed; a run from before there was the key made grey values above 255 white.
absl::Status ResolveGrey16(const Registries& registries, ConfigNode* config);

}  // namespace ssl

#endif  // SSL_CORE_RECORDED_RUN_H_
