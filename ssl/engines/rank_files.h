// SPDX-License-Identifier: Apache-2.0
//
// A table of the files that several ranks have written, of which each knows its own.
#ifndef SSL_ENGINES_RANK_FILES_H_
#define SSL_ENGINES_RANK_FILES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ssl/distributed/communicator.h"
#include "ssl/engines/feature_files.h"

namespace ssl {

struct SplitRows {
  std::string split;    // "test"
  int64_t samples = 0;  // of the data set
  int64_t rows = 0;     // that this rank has written of them
};

// FormatArrayTable of this rank's `arrays`. Of several ranks the sum is that of all, and below it stand how many files
// there are in all, and the splits that have more rows than samples, because all ranks have as many: `splits` are those
// of every rank, in one order. Collective.
absl::StatusOr<std::string> FormatRankFiles(const std::string& directory, const std::vector<WrittenArray>& arrays,
                                            const std::vector<SplitRows>& splits, Communicator& communicator);

}  // namespace ssl

#endif  // SSL_ENGINES_RANK_FILES_H_
