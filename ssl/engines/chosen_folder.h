// SPDX-License-Identifier: Apache-2.0
//
// A folder for an engine's files that the user has chosen, in place of one in the run directory.
#ifndef SSL_ENGINES_CHOSEN_FOLDER_H_
#define SSL_ENGINES_CHOSEN_FOLDER_H_

#include <string>

#include "absl/status/status.h"
#include "ssl/engines/engine.h"

namespace ssl {

// For Engine::Check: the error of an attempt to write there, with the place of config.<key> ("EXPORT.OUTPUT_DIR"); OK
// where the key is "". Rank 0 attempts it. Collective.
absl::Status CheckChosenFolder(const std::string& key, EngineContext& context);

}  // namespace ssl

#endif  // SSL_ENGINES_CHOSEN_FOLDER_H_
