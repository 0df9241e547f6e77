// SPDX-License-Identifier: Apache-2.0
//
// Which images of the training set could not be read, over the whole run and all ranks. Stage kReport.
//
// A train phase that has met a new one ends with a line in the log, by kind, and with <run
// directory>/broken_images.json, which is also written again where it was damaged since:
//
//   {"broken_images": 2, "by_kind": {"missing": 1, ..., "damaged": 1, ...},
//    "images": [{"index": 17, "kind": "damaged", "name": "/data/cat/17.jpg"}, ...]}
//
// by position in the data set and the kinds of ssl/data/read_fault.h, all of which are in by_kind. Each image counts
// once, and those count that the training has taken, not those that workers have read ahead: the file is the same for
// any number of threads and ranks, and after any stop. State: `images`.
#ifndef SSL_HOOKS_BROKEN_IMAGES_HOOK_H_
#define SSL_HOOKS_BROKEN_IMAGES_HOOK_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ssl/config/fields.h"
#include "ssl/core/hook.h"
#include "ssl/core/registries.h"
#include "ssl/core/step_context.h"
#include "ssl/data/read_fault.h"
#include "ssl/data/replaced_images.h"
#include "ssl/hooks/once_per_run.h"
#include "ssl/io/file_system.h"

namespace ssl {

inline constexpr char kBrokenImagesFile[] = "broken_images.json";  // of a run directory

// How many images the file `path` counts of each kind, by the kinds' names, all of which are there; empty when there is
// no such file: none was broken. Files of earlier versions, which know fewer kinds, are read. DataLoss for a file that
// is another.
absl::StatusOr<std::map<std::string, int64_t>> ReadBrokenImageCounts(FileSystem& file_system, const std::string& path);

// The section HOOKS.BROKEN_IMAGES (ours).
struct BrokenImagesOptions : public OncePerRunOptions {
  bool count = true;

  absl::string_view section() const override { return "HOOKS.BROKEN_IMAGES"; }
  bool enabled() const override { return count; }
  std::vector<std::string> leaves() const override { return {kBrokenImagesFile}; }
  void VisitFields(FieldVisitor& visitor) override;
};

class BrokenImagesHook : public Hook {
 public:
  // file: of the run directory; empty: none is written.
  BrokenImagesHook(std::string file, FileSystem& file_system) : file_(std::move(file)), file_system_(file_system) {}

  absl::string_view name() const override { return "broken_images"; }
  HookStage stage() const override { return HookStage::kReport; }
  WithinUpdate within_update() const override { return WithinUpdate::kObserves; }

  std::vector<PlannedAction> Plan() const override;

  absl::Status OnStep(StepContext& context) override;
  // Collective.
  absl::Status OnPhaseEnd(StepContext& context) override;

  void VisitState(StateVisitor& visitor) override;

 private:
  // In the log and in the file.
  absl::Status Tell(const ReplacedImages& source);
  // Of all ranks; a line for the log.
  std::string Summary() const;
  std::string ToJson(const ReplacedImages& source) const;

  const std::string file_;
  FileSystem& file_system_;
  std::map<int64_t, ReadFault> images_;  // that this rank knows of
  size_t told_ = 0;                      // how many of them the file has; rank 0's
  size_t taken_ = 0;                     // how many of the source are among them
  std::string state_;                    // images_ as a checkpoint has them
};

absl::Status RegisterBrokenImagesHook(Registries* registries);

}  // namespace ssl

#endif  // SSL_HOOKS_BROKEN_IMAGES_HOOK_H_
