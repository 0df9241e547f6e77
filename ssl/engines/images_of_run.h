// SPDX-License-Identifier: Apache-2.0
//
// How a trained network has seen images: what an evaluation of it takes from the run, whatever its own configuration
// leaves to chance, to the number of its images or to a file that has been edited since.
#ifndef SSL_ENGINES_IMAGES_OF_RUN_H_
#define SSL_ENGINES_IMAGES_OF_RUN_H_

#include <string>
#include <vector>

#include "ssl/config/node.h"
#include "ssl/core/recorded_run.h"

namespace ssl {

// The keys of DATA.<SPLIT> by which the pixels of a file become an image, before any transform.
inline constexpr const char* kReadingKeys[] = {"DECODE", "EXIF_ORIENTATION", "GRAY_16_BIT", "IMAGE_CHANNELS"};

// Sets TRANSFORMS and these keys of DATA.TRAIN to what the run had, where that is something else and nobody has typed
// it (or set it in a program). For people: a sentence for each.
//   defaults: OptionCatalog::Defaults()
std::vector<std::string> TakeImagesOfRun(const RecordedRun& run, const ConfigNode& defaults, ConfigNode* config);

// For people, where DATA.TRAIN.DATA_PATHS of `config` names other places than that of the run: which images the network
// was trained on, and how many there were. "" where they are the same, or the run does not tell.
std::string OtherImagesOfRun(const RecordedRun& run, const ConfigNode& config);

}  // namespace ssl

#endif  // SSL_ENGINES_IMAGES_OF_RUN_H_
