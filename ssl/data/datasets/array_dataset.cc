// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/datasets/array_dataset.h"

#include <cstddef>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "ssl/base/crc32c.h"
#include "ssl/data/sample.h"

namespace ssl {

absl::StatusOr<std::unique_ptr<ArrayDataset>> ArrayDataset::Create(ImageArray array, std::string description) {
  if (array.count < 1 || array.height < 1 || array.width < 1) {
    return absl::InvalidArgumentError(absl::StrCat(description, ": holds ", array.count, " images of ", array.width,
                                                   " x ", array.height, " pixels, expected at least one of each"));
  }
  if (array.channels != 1 && array.channels != 3) {
    return absl::InvalidArgumentError(
        absl::StrCat(description, ": images have ", array.channels, " channels, expected 1 or 3"));
  }
  const size_t expected = static_cast<size_t>(array.count) * array.height * array.width * array.channels;
  if (array.pixels.size() != expected) {
    return absl::InvalidArgumentError(
        absl::StrCat(description, ": holds ", array.pixels.size(), " bytes of pixels, expected ", expected));
  }
  if (!array.labels.empty() && array.labels.size() != static_cast<size_t>(array.count)) {
    return absl::InvalidArgumentError(
        absl::StrCat(description, ": holds ", array.labels.size(), " labels for ", array.count, " images"));
  }
  return absl::WrapUnique(new ArrayDataset(std::move(array), std::move(description)));
}

ArrayDataset::ArrayDataset(ImageArray array, std::string description)
    : array_(std::move(array)), description_(std::move(description)) {}

absl::Status ArrayDataset::Get(int64_t index, Sample* sample) const {
  const uint8_t* pixels = array_.pixels.data() + index * image_bytes();
  sample->view(0).image.Borrow(pixels, array_.height, array_.width, array_.channels);
  if (has_labels()) sample->label = array_.labels[index];
  return absl::OkStatus();
}

std::string ArrayDataset::SampleIdentity(int64_t index) const {
  const auto* pixels = reinterpret_cast<const char*>(array_.pixels.data()) + index * image_bytes();
  const uint32_t checksum = Crc32c(absl::string_view(pixels, static_cast<size_t>(image_bytes())));
  return absl::StrCat("pixels ", absl::Hex(checksum, absl::kZeroPad8));
}

}  // namespace ssl
