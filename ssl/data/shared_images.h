// SPDX-License-Identifier: Apache-2.0
#ifndef SSL_DATA_SHARED_IMAGES_H_
#define SSL_DATA_SHARED_IMAGES_H_

#include <cstdint>
#include <string>

#include "ssl/core/batch_source.h"
#include "ssl/data/dataset.h"

namespace ssl {

// How many images of `test` are images of `train`: by the paths of their files, however the folders are spelled, which
// reads no file; those without a path by Dataset::SampleIdentity and their position in the array that they lie in, of
// parts in the whole one. Without an identity nothing is said of them. A copy of a file is another image here. Takes
// about a second for a million files, and a few for a million folders.
int64_t CountSharedImages(const Dataset& train, const Dataset& test);

// The same of the data sets behind two sources (dataset_source.h); 0 behind those of a host's own kind.
int64_t CountSharedImages(const BatchSource& train, const BatchSource& test);

// The number in results.json.
inline constexpr char kSharedImagesKey[] = "test_images_in_training";

// For people: "37 of the 37 test images are training images ..."; "" for none.
std::string SharedImagesSentence(int64_t shared, int64_t test_images);

}  // namespace ssl

#endif  // SSL_DATA_SHARED_IMAGES_H_
