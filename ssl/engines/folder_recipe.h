// SPDX-License-Identifier: Apache-2.0
//
// What a training on somebody's own folder of images leaves to the number of images: with FOLDER_RECIPE.ENABLED, this
// fills in what the configuration does not say, and logs each choice with its reason and the key that says otherwise.
//
//   OPTIMIZER.num_epochs, DATA.TRAIN.BATCHSIZE_PER_REPLICA   where nobody has set them: no file, no program
//   DATA.TRAIN.TRANSFORMS                                    where a size is "auto"
//
// The aim is a training of about the same length on two cores for any folder from a few hundred images to some
// thousand: few images are seen often and in large crops, many less often and in smaller ones. More take longer, which
// the log says.
//
// Where a run lies in CHECKPOINT.DIR, what it had stays: it goes on, or its network is evaluated, also on other images
// or on more of them. A batch takes no more than there are of other images.
#ifndef SSL_ENGINES_FOLDER_RECIPE_H_
#define SSL_ENGINES_FOLDER_RECIPE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "ssl/config/fields.h"
#include "ssl/config/node.h"
#include "ssl/core/registries.h"

namespace ssl {

// The section FOLDER_RECIPE. Ours.
struct FolderRecipeOptions : Options {
  bool enabled = false;
  void VisitFields(FieldVisitor& visitor) override;
};

struct FolderChoices {
  int64_t crop_size = 0;  // pixels
  int64_t num_epochs = 0;
  int64_t batch_size = 0;  // of all ranks; no more than there are images
};

// images: at least 1. A pure function.
FolderChoices ChooseForFolder(int64_t images);

// A resolver (registries.h). Looks at DATA.TRAIN for its size when there is something to choose and no run that has
// chosen. Where the data cannot be opened, which whoever trains on it will tell, 1000 images are assumed.
absl::Status ResolveFolderRecipe(const Registries& registries, ConfigNode* config);

// Whether the data that it has chosen for are a single image, which a training has nothing to compare with. config: of
// one rank.
bool IsForOneImage(const ConfigNode& config);

}  // namespace ssl

#endif  // SSL_ENGINES_FOLDER_RECIPE_H_
