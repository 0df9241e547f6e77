// SPDX-License-Identifier: Apache-2.0
//
// The files of one extraction come to their folder together: they are written into a folder of their own there, and
// take the place of an earlier extraction's when all are complete; where that is interrupted, what is there is neither,
// and reading it is an error. One extraction uses a folder at a time.
//
//   SSL_ASSIGN_OR_RETURN(const auto staging, FeatureStaging::Open("/runs/a/features", file_system, communicator));
//   ... write files below staging->path() ...
//   SSL_RETURN_IF_ERROR(staging->Publish({"train", "test"}));
#ifndef SSL_ENGINES_FEATURE_STAGING_H_
#define SSL_ENGINES_FEATURE_STAGING_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ssl/distributed/communicator.h"
#include "ssl/io/file_system.h"

namespace ssl {

class FeatureStaging {
 public:
  // Makes `directory`, takes its lock, and removes what a killed extraction left; rank 0 does so for all. Unavailable,
  // naming process and host, while another extraction has it; what else is wrong is the place, which the error names.
  // The references outlive the object. Collective.
  static absl::StatusOr<std::unique_ptr<FeatureStaging>> Open(const std::string& directory, FileSystem& file_system,
                                                              Communicator& communicator);
  // Removes what was not published.
  ~FeatureStaging();

  const std::string& path() const { return path_; }

  // Puts all files into the place of the feature files of `splits`, once every rank has written its own. Collective.
  absl::Status Publish(const std::vector<std::string>& splits);

 private:
  FeatureStaging(std::string directory, FileSystem& file_system, Communicator& communicator);

  absl::Status Prepare();
  absl::Status TakeFolder();
  absl::Status Replace(const std::vector<std::string>& splits);

  const std::string directory_;
  const std::string path_;
  FileSystem& file_system_;
  Communicator& communicator_;
  std::unique_ptr<FileLock> lock_;  // rank 0
};

}  // namespace ssl

#endif  // SSL_ENGINES_FEATURE_STAGING_H_
