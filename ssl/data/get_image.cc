// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/get_image.h"

#include "absl/strings/str_cat.h"
#include "ssl/base/status_util.h"
#include "ssl/data/image/image.h"
#include "ssl/data/read_fault.h"

namespace ssl {
namespace {

absl::Status CheckImage(const Image& image) {
  const bool has_pixels = image.height() > 0 && image.width() > 0;
  if (has_pixels && (image.channels() == 1 || image.channels() == 3)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the data set gave an image of ", image.width(), " x ", image.height(),
                                                 " pixels and ", image.channels(),
                                                 " channels, expected pixels, and 1 or 3 channels"));
}

}  // namespace

absl::Status GetImage(const Dataset& dataset, int64_t index, Sample* sample) {
  sample->ResetViews(1);
  sample->index = index;
  sample->SetLabel(-1);
  sample->fault = ReadFault::kNone;
  sample->view(0).image.Borrow(nullptr, 0, 0, 0);
  absl::Status read = dataset.Get(index, sample);
  if (read.ok()) read = CheckImage(sample->view(0).image);
  return read.ok() ? read : Annotate(read, absl::StrCat("sample ", index, " of ", dataset.description()));
}

}  // namespace ssl
