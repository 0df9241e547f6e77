// SPDX-License-Identifier: Apache-2.0
//
// Arrays that belong together, as files of one directory: predictions and the targets that they are compared with.
//
//   SSL_RETURN_IF_ERROR(ReplaceArrays(directory, {{"predictions.npy", classes}, {"targets.npy", labels}}, {},
//                                     file_system).status());
#ifndef SSL_ENGINES_ARRAY_SET_H_
#define SSL_ENGINES_ARRAY_SET_H_

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ssl/engines/feature_files.h"
#include "ssl/io/file_system.h"

namespace ssl {

struct NamedArray {
  std::string file;   // without the directory
  at::Tensor values;  // float or int64, on the CPU
};

// Writes all of them into a folder of their own, "<first file>.tmp-<process>", and puts them into the place of files of
// those names, and of `earlier`, other files of the earlier set, once all are complete. However it ends, `directory`
// never holds files of an earlier set beside files of this one: those of the earlier set stay, or some are missing. One
// process at a time writes a set of these names.
absl::StatusOr<std::vector<WrittenArray>> ReplaceArrays(const std::string& directory,
                                                        const std::vector<NamedArray>& arrays,
                                                        std::vector<std::string> earlier, FileSystem& file_system);

}  // namespace ssl

#endif  // SSL_ENGINES_ARRAY_SET_H_
