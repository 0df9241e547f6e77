// SPDX-License-Identifier: Apache-2.0
//
// One entry of TRANSFORMS: changes the views of a sample, in place.
//
// Transforms are immutable and shared by all worker threads. Randomness comes from the context alone, whose streams
// depend on (seed, epoch, sample, view, operation), so the result does not depend on threads, batches or a resume.
#ifndef SSL_DATA_TRANSFORM_H_
#define SSL_DATA_TRANSFORM_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "ssl/base/random.h"
#include "ssl/data/image/needed_region.h"
#include "ssl/data/sample.h"
#include "ssl/data/transform_scratch.h"

namespace ssl {

// What a transform does to the floats that pixels become.
enum class FloatRule {
  kNone,      // nothing: it changes pixels
  kTable,     // sets the view's table, to the same in every sample
  kByChance,  // gives some samples another table, or floats of their own
};

// Where a transform runs. Lives during one Apply.
struct TransformContext {
  uint64_t seed = 0;
  uint64_t epoch = 0;
  uint64_t sample = 0;     // index in the data set
  uint64_t operation = 0;  // position in TRANSFORMS, below kListLimit; see Nested
  TransformScratch& scratch;

  // Longest list of transforms.
  static constexpr uint64_t kListLimit = 1024;

  CounterRandom Random(int view) const { return CounterRandom(seed, epoch, sample, view, operation); }

  // For transform `position` of a list that this transform holds: streams of its own. Positions are the digits of a
  // number to the base kListLimit, in which the outer position is raised by one, so that no two numbers are equal.
  TransformContext Nested(uint64_t position) const {
    return {seed, epoch, sample, (operation + 1) * kListLimit + position, scratch};
  }
};

class ViewTransform;

class Transform {
 public:
  virtual ~Transform() = default;

  // The name in TRANSFORMS.
  virtual absl::string_view name() const = 0;
  virtual absl::Status Apply(const TransformContext& context, Sample* sample) const = 0;

  // The box that holds all pixels that it reads when a sample has `views` equal views of this size, plain and just
  // read: the rest need not be decoded. May be asked before there is an image, and draws as Apply does. One that says
  // more than 1 for the reduction takes images of that fraction of their size as well (Image::reduction).
  virtual NeededPixels Needs(const TransformContext& context, int views, int height, int width) const {
    return WholeImage(height, width);
  }

  // How many equal views a sample has behind it when it does no more than to copy `views` equal ones; 0 when it does
  // more.
  virtual int CopiesOf(int views) const { return 0; }

  // How many classes the label has that it gives every sample, 0 ... n - 1, in place of the data set's; 0 when it gives
  // none.
  virtual int64_t num_label_classes() const { return 0; }

  virtual FloatRule float_rule() const { return FloatRule::kNone; }

  // This transform, if it treats every view by itself; null otherwise.
  virtual const ViewTransform* as_view_transform() const { return nullptr; }
};

// A transform that treats every view by itself, so that it can also be applied to some of them.
class ViewTransform : public Transform {
 public:
  // Applies it to all views.
  absl::Status Apply(const TransformContext& context, Sample* sample) const final {
    for (int v = 0; v < sample->num_views(); ++v) {
      absl::Status status = ApplyToView(context, v, &sample->view(v));
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  // view: the one at `index` of its sample, which names the random stream.
  virtual absl::Status ApplyToView(const TransformContext& context, int index, View* view) const = 0;

  const ViewTransform* as_view_transform() const final { return this; }
};

}  // namespace ssl

#endif  // SSL_DATA_TRANSFORM_H_
