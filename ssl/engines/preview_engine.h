// SPDX-License-Identifier: Apache-2.0
//
// engine_name=preview: what the network will see, before anything is trained, as <run directory>/preview.png. A row for
// each of the first images of the first training batch: the image as it is in its file, scaled, then its views (crops)
// in their own sizes, un-normalised, pixel for pixel those of that batch: same order, same random crops and colours.
// Captions: file and size, and the size of each view. An image that cannot be read is shown as what training puts in
// its place, with why instead of its size; the summary says how many. No network. Rank 0's batch. Results:
// {"preview": {"file", "images", "views"}}.
#ifndef SSL_ENGINES_PREVIEW_ENGINE_H_
#define SSL_ENGINES_PREVIEW_ENGINE_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "ssl/config/fields.h"
#include "ssl/engines/engine.h"

namespace ssl {

// The section PREVIEW. Ours.
struct PreviewOptions : Options {
  int64_t num_images = 8;
  void VisitFields(FieldVisitor& visitor) override;
};

absl::StatusOr<std::unique_ptr<Engine>> MakePreviewEngine(const ConfigNode& config, const BuildContext& context);

}  // namespace ssl

#endif  // SSL_ENGINES_PREVIEW_ENGINE_H_
