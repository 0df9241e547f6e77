// SPDX-License-Identifier: Apache-2.0
//
// What a source of batches tells about images that could not be read: a BatchSource that reads images has this
// interface as well.
#ifndef SSL_DATA_REPLACED_IMAGES_H_
#define SSL_DATA_REPLACED_IMAGES_H_

#include <cstdint>
#include <map>
#include <string>

#include "ssl/data/read_fault.h"

namespace ssl {

class ReplacedImages {
 public:
  virtual ~ReplacedImages() = default;

  // By position in the data set: the samples of all batches that Next has handed out so far whose image was replaced.
  // What workers have read ahead is not among them, so that this depends on neither threads nor a stop.
  virtual const std::map<int64_t, ReadFault>& replaced_images() const = 0;

  // The image's name for people, such as its path. index: a position in the data set.
  virtual std::string ImageName(int64_t index) const = 0;
};

}  // namespace ssl

#endif  // SSL_DATA_REPLACED_IMAGES_H_
