// SPDX-License-Identifier: Apache-2.0
//
// Which rows of extracted features are of images that could not be read, as <split>_broken.json beside the arrays:
//
//   [{"index": 17, "kind": "damaged"}, ...]
//
// by position in the data set, as *_inds.npy has it, and the kinds of ssl/data/read_fault.h; [] where there are none.
#ifndef SSL_ENGINES_BROKEN_ROWS_H_
#define SSL_ENGINES_BROKEN_ROWS_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ssl/data/read_fault.h"
#include "ssl/io/file_system.h"

namespace ssl {

std::string BrokenRowsFile(const std::string& directory, const std::string& split);

absl::Status WriteBrokenRows(const std::string& directory, const std::string& split,
                             const std::map<int64_t, ReadFault>& images, FileSystem& file_system);

// None where there is no file: VISSL writes none. DataLoss for a file that is another.
absl::StatusOr<std::map<int64_t, ReadFault>> ReadBrokenRows(const std::string& directory, const std::string& split,
                                                            FileSystem& file_system);

}  // namespace ssl

#endif  // SSL_ENGINES_BROKEN_ROWS_H_
