// SPDX-License-Identifier: Apache-2.0
//
// What checkpoints are called: step_<iteration>, and names of their own that keep them. Such a name is a file beside
// the checkpoints, `<name>.step`, with the text "step_<iteration>": replacing it is one rename, so that a crash leaves
// it with the old checkpoint or with the new one. A second line "replaceable" says that the checkpoint is there for
// that name alone, and goes when the name does.
#ifndef SSL_CORE_CHECKPOINT_NAMES_H_
#define SSL_CORE_CHECKPOINT_NAMES_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ssl/io/file_system.h"

namespace ssl {

std::string StepName(int64_t iteration);

// "step_120" -> 120; -1 for any other name.
int64_t IterationOf(absl::string_view step_name);

// Not thread-safe; one process at a time writes.
class CheckpointNames {
 public:
  // `file_system` outlives it.
  CheckpointNames(std::string directory, FileSystem& file_system);

  // Iterations by name, whether their checkpoints are there or not. DataLoss, naming the file, for one that holds
  // anything else.
  absl::StatusOr<std::map<std::string, int64_t>> All() const;

  // Those that have a name.
  absl::StatusOr<std::set<int64_t>> Iterations() const;

  // A checkpoint that has lost its last name.
  struct Nameless {
    int64_t iteration = -1;  // below 0: there is none
    bool replaceable = false;
  };

  // Gives the name to `iteration`; returns which one has no name any more. InvalidArgument for a name that is empty or
  // has other characters than letters, digits, '_', '-' and '.'.
  absl::StatusOr<Nameless> Move(const std::string& name, int64_t iteration, bool replaceable);

  // Whether a name says that `iteration` is replaceable; Keep takes that back.
  absl::StatusOr<bool> IsReplaceable(int64_t iteration) const;
  absl::Status Keep(int64_t iteration);

  // Removes the files that hold anything else; for people, a sentence for each. What is to have the name is told by
  // the state of the run.
  absl::StatusOr<std::vector<std::string>> DropDamaged();

  // OK, too, when nothing has the name.
  absl::Status Drop(const std::string& name);

  // Drops the names of all that lie after `iteration`.
  absl::Status DropAfter(int64_t iteration);

  // Whether `file` is what a killed process left of Move.
  static bool IsLeftOver(absl::string_view file);

 private:
  // What the file of a name says.
  struct Named {
    int64_t iteration = -1;
    bool replaceable = false;
  };

  std::string Path(absl::string_view name) const;
  absl::StatusOr<Named> Read(absl::string_view name) const;
  absl::StatusOr<std::map<std::string, Named>> ReadAll() const;
  absl::Status Write(absl::string_view name, const Named& named);

  const std::string directory_;
  FileSystem& file_system_;
};

}  // namespace ssl

#endif  // SSL_CORE_CHECKPOINT_NAMES_H_
