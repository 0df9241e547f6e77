// SPDX-License-Identifier: Apache-2.0
#include "ssl/engines/original_images.h"

#include "absl/strings/str_cat.h"
#include "ssl/base/status_macros.h"
#include "ssl/data/sample.h"

namespace ssl {

std::string OriginalImages::Name(int64_t index) const {
  std::string path = dataset_->ImagePath(index);
  return path.empty() ? absl::StrCat("image ", index) : path;
}

std::string OriginalImages::ShortName(int64_t index) const {
  const std::string name = Name(index);
  const size_t file = name.rfind('/');
  if (file == std::string::npos || file == 0) return name;
  const size_t folder = name.rfind('/', file - 1);
  return folder == std::string::npos ? name : name.substr(folder + 1);
}

absl::StatusOr<Image> OriginalImages::Read(int64_t index) const {
  Sample sample;
  sample.ResetViews(1);
  sample.index = index;
  SSL_RETURN_IF_ERROR(dataset_->Get(index, &sample));
  return std::move(sample.view(0).image);
}

}  // namespace ssl
