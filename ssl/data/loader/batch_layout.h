// SPDX-License-Identifier: Apache-2.0
//
// What a batch looks like; the same for all batches of a run.
#ifndef SSL_DATA_LOADER_BATCH_LAYOUT_H_
#define SSL_DATA_LOADER_BATCH_LAYOUT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "ssl/data/collator.h"

namespace ssl {

struct ViewShape {
  int height = 0;
  int width = 0;
};

struct BatchLayout {
  int64_t batch_size = 0;
  int channels = 3;  // of the tensors; a grey image is replicated into 3
  bool has_labels = false;
  std::vector<ViewShape> views = {};
  std::vector<CollatedInput> inputs = {CollatedInput()};  // that `views` make up
  // Of the names of `inputs`: one, whose tensors are the batch's views, or several, which are its named inputs.
  std::vector<std::string> input_keys = {CollatedInput().name};
  int64_t label_columns = 0;  // of the samples; 0: a class each
  TargetLayout targets = {};
};

}  // namespace ssl

#endif  // SSL_DATA_LOADER_BATCH_LAYOUT_H_
