// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/datasets/synthetic_dataset.h"

#include <algorithm>
#include <cmath>

#include "ssl/base/random.h"
#include "ssl/base/status_macros.h"
#include "ssl/data/data_options.h"
#include "ssl/data/sample.h"

namespace ssl {
namespace {

constexpr double kPi = 3.14159265358979323846;

}  // namespace

absl::Status SyntheticDataset::Get(int64_t index, Sample* sample) const {
  const int side = options_.side;
  const int64_t label = options_.num_classes > 0 ? index % options_.num_classes : 0;
  if (options_.num_classes > 0) sample->label = label;

  CounterRandom random(options_.seed, /*epoch=*/0, index, /*view=*/0, /*operation=*/0);
  const double angle = kPi * label / std::max<int64_t>(options_.num_classes, 1);
  const double frequency = 2.0 * kPi * (2.0 + label % 3) / side;
  const double phase = random.Uniform(0.0, 2.0 * kPi);
  const double contrast = random.Uniform(40.0, 90.0);
  const double along_x = frequency * std::cos(angle);
  const double along_y = frequency * std::sin(angle);

  uint8_t* pixel = sample->view(0).image.Allocate(side, side, options_.channels);
  for (int y = 0; y < side; ++y) {
    for (int x = 0; x < side; ++x) {
      const double stripes = 128.0 + contrast * std::sin(along_x * x + along_y * y + phase);
      const uint32_t noise = random.Next();
      for (int c = 0; c < options_.channels; ++c) {
        const double noisy = stripes + ((noise >> (8 * c)) & 31) - 16.0;
        *pixel++ = static_cast<uint8_t>(std::clamp(noisy, 0.0, 255.0));
      }
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Dataset>> MakeSyntheticDataset(const ConfigNode& data_split,
                                                              const BuildContext& context) {
  SSL_ASSIGN_OR_RETURN(const DataSplitOptions split, ReadDataSplit(data_split, context.config));
  SyntheticDatasetOptions options;
  if (split.data_limit > 0) options.size = split.data_limit;
  options.side = static_cast<int>(split.default_gray_img_size);
  options.channels = static_cast<int>(split.image_channels);
  options.num_classes = split.random_synthetic_labels;
  options.seed = split.split == "test" ? 1 : 0;
  return std::make_unique<SyntheticDataset>(options);
}

}  // namespace ssl
