// SPDX-License-Identifier: Apache-2.0
//
// Arrays that belong together, as files of one directory: predictions and the targets that they are compared with.
//
//   SSL_RETURN_IF_ERROR(ReplaceArrays(directory, {{"predictions.npy", classes}, {"targets.npy", labels}}, {},
//                                     file_system, communicator).status());
#ifndef SSL_ENGINES_ARRAY_SET_H_
#define SSL_ENGINES_ARRAY_SET_H_

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ssl/distributed/communicator.h"
#include "ssl/engines/feature_files.h"
#include "ssl/io/file_system.h"

namespace ssl {

struct NamedArray {
  std::string file;   // without the directory
  at::Tensor values;  // float or int64, on the CPU
};

// The arrays of all ranks are one set; a rank may have none of it. Each writes its own into a folder,
// "<first file>.tmp-<process>", and once all of all ranks are complete, they take the place of files of those names and
// of `earlier`, other files of the earlier set. However it ends, `directory` never holds files of an earlier set beside
// files of this one: those of the earlier set stay, or some are missing. One run at a time writes a set of these names.
// Returns this rank's; Aborted when it failed on another one. Collective.
absl::StatusOr<std::vector<WrittenArray>> ReplaceArrays(const std::string& directory,
                                                        const std::vector<NamedArray>& arrays,
                                                        std::vector<std::string> earlier, FileSystem& file_system,
                                                        Communicator& communicator);

}  // namespace ssl

#endif  // SSL_ENGINES_ARRAY_SET_H_
