// SPDX-License-Identifier: Apache-2.0
//
// What lies where in a tar file of WebDataset's layout: members whose path is the same up to the first dot of the file
// name are one sample ("train/0001.jpg", "train/0001.cls"), and follow one another.
//
// The file is not trusted. Read are the headers alone (POSIX ustar, pax paths and sizes, GNU long names) and the
// labels. Behind the first dot of its name, a sample's image has jpg, jpeg, png or webp: the first of these that it
// has, in whatever order they stand. Its label is the integer that cls holds, or "label" or else "cls" of json, where
// null is none; two that differ are an error. Other members count as unknown. A json that cannot be read, such as one
// with Python's NaN, gives no label. As in WebDataset, a sample with two members of one ending is an error: they are
// two samples of one name, or one that was written twice.
#ifndef SSL_DATA_DATASETS_TAR_INDEX_H_
#define SSL_DATA_DATASETS_TAR_INDEX_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ssl/base/stop_token.h"
#include "ssl/io/file_system.h"

namespace ssl {

struct TarSample {
  int64_t offset = 0;  // of the image's bytes in the file
  int64_t size = 0;
  int64_t label = -1;  // -1: none
  std::string name;    // of the image: "train/0001.jpg"; any bytes but NUL
};

struct TarIndex {
  std::vector<TarSample> samples;     // in the order of the file
  int64_t samples_without_image = 0;  // left out
  int64_t unknown_members = 0;        // files that are neither image nor label
  int64_t other_members = 0;          // links, devices: left out
  int64_t unread_json = 0;            // members
  int64_t second_images = 0;          // members: left out, as the sample has another image
  // For messages, of the first such member each; "" where there is none.
  std::string first_unread_json;   // what is wrong with it
  std::string first_second_image;  // it, and the image that stays
  std::string first_dotted;        // the name of one that ends like an image, but not behind its first dot
};

// DataLoss: not a tar file, a damaged header, a member or the end mark cut off. InvalidArgument: a label that is none,
// labels that differ, a sample in two pieces, an ending twice in a sample. Cancelled: stopped (`stop` may be null).
// Messages name the path and what was found.
absl::StatusOr<TarIndex> ReadTarIndex(const ReadableFile& file, const std::string& path, const StopToken* stop);

}  // namespace ssl

#endif  // SSL_DATA_DATASETS_TAR_INDEX_H_
