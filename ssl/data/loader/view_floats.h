// SPDX-License-Identifier: Apache-2.0
//
// The floats of a view, as a batch holds them: its pixels through its table, mirrored if it says so, and a grey image
// repeated in all channels. A pure function.
#ifndef SSL_DATA_LOADER_VIEW_FLOATS_H_
#define SSL_DATA_LOADER_VIEW_FLOATS_H_

#include "ssl/data/sample.h"

namespace ssl {

// output: height x width x channels. channels: 1 or 3, at least those of the image; the view has a table.
void WriteViewFloats(const View& view, int channels, float* output);

}  // namespace ssl

#endif  // SSL_DATA_LOADER_VIEW_FLOATS_H_
