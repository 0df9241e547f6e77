// SPDX-License-Identifier: Apache-2.0
//
// Access to the pixels of a view for transforms that read or change them.
#ifndef SSL_DATA_TRANSFORMS_PIXEL_VIEW_H_
#define SSL_DATA_TRANSFORMS_PIXEL_VIEW_H_

#include "absl/status/status.h"
#include "ssl/data/sample.h"

namespace ssl {

// InvalidArgument when the view went through ToTensor already: its pixels are final.
absl::Status CheckPixelsOpen(const View& view);

// InvalidArgument when the view went through RandomErasing: what was erased would move or change with its pixels.
absl::Status CheckNothingErased(const View& view);

// Carries out a mirroring that so far was only noted, so that positions in the image mean what they say.
void ApplyFlip(View* view);

}  // namespace ssl

#endif  // SSL_DATA_TRANSFORMS_PIXEL_VIEW_H_
