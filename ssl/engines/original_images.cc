// SPDX-License-Identifier: Apache-2.0
#include "ssl/engines/original_images.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "ssl/base/status_macros.h"
#include "ssl/data/get_image.h"
#include "ssl/data/sample.h"

namespace ssl {

std::string OriginalImages::Name(int64_t index) const {
  std::string path = dataset_.ImagePath(index);
  return path.empty() ? absl::StrCat("image ", index) : path;
}

std::string OriginalImages::ShortName(int64_t index) const {
  const std::string name = Name(index);
  const size_t file = name.rfind('/');
  const absl::Span<const std::string> classes = dataset_.ClassNames();
  const int64_t label = dataset_.Label(index);
  if (label >= 0 && label < static_cast<int64_t>(classes.size())) {
    return absl::StrCat(classes[label], "/", file == std::string::npos ? name : name.substr(file + 1));
  }
  if (file == std::string::npos || file == 0) return name;
  const size_t folder = name.rfind('/', file - 1);
  return folder == std::string::npos ? name : name.substr(folder + 1);
}

absl::StatusOr<Image> OriginalImages::Read(int64_t index) const {
  Sample sample;
  SSL_RETURN_IF_ERROR(GetImage(dataset_, index, &sample));
  return std::move(sample.view(0).image);
}

}  // namespace ssl
