// SPDX-License-Identifier: Apache-2.0
//
// OneHotEncode (VISSL): the label becomes a row of num_classes (1000) numbers, 1 for its class, or for each of the
// classes that several label files give it, and 0 for the others. Of labels that are a row already, those that are
// given keep their 1, and what is unknown becomes 0.
#ifndef SSL_DATA_TRANSFORMS_ONE_HOT_ENCODE_H_
#define SSL_DATA_TRANSFORMS_ONE_HOT_ENCODE_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ssl/config/fields.h"
#include "ssl/config/node.h"
#include "ssl/core/registries.h"
#include "ssl/data/transform.h"

namespace ssl {

class OneHotEncode : public Transform {
 public:
  explicit OneHotEncode(int64_t num_classes) : num_classes_(num_classes) {}

  absl::string_view name() const override { return "OneHotEncode"; }
  absl::Status Apply(const TransformContext& context, Sample* sample) const override;

 private:
  int64_t num_classes_;
};

absl::StatusOr<std::unique_ptr<Transform>> MakeOneHotEncode(const ConfigNode& entry, const BuildContext& context);
std::unique_ptr<Options> MakeOneHotEncodeOptions();

}  // namespace ssl

#endif  // SSL_DATA_TRANSFORMS_ONE_HOT_ENCODE_H_
