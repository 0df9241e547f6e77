// SPDX-License-Identifier: Apache-2.0
//
// Images in tar shards of WebDataset's layout (tar_index.h). Opening a data set reads the headers of all shards once;
// from then on a sample is found by its number, so that samplers shuffle over all shards, and ranks and resumed
// runs go on at any sample, as with any other data set. A sample takes about 100 bytes of memory. Images of a shard
// that is written anew meanwhile cannot be read: what its headers said holds no more.
#ifndef SSL_DATA_DATASETS_TAR_DATASET_H_
#define SSL_DATA_DATASETS_TAR_DATASET_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ssl/config/node.h"
#include "ssl/core/registries.h"
#include "ssl/data/dataset.h"
#include "ssl/data/datasets/encoded_image_dataset.h"
#include "ssl/data/datasets/path_list.h"
#include "ssl/io/file_stamp.h"

namespace ssl {

// A tar file, as it was when its samples were found.
struct TarShard {
  std::string path;
  FileStamp stamp;
};

// Where the image of a sample lies.
struct TarPlace {
  int32_t shard = 0;
  int64_t offset = 0;
  int64_t size = 0;
};

class TarDataset : public EncodedImageDataset {
 public:
  // names: of the images; as many as places. labels: likewise, or none.
  TarDataset(std::vector<TarShard> shards, std::vector<TarPlace> places, PathList names, std::vector<int64_t> labels,
             EncodedImageOptions options);

  // "train-000.tar/0001.jpg"
  std::string ImagePath(int64_t index) const override;
  // The same without the folder of the shard, and the size of its file.
  std::string SampleIdentity(int64_t index) const override;

 private:
  // A shard is opened for each image, as a file of its own would be: thousands that stay open reach the system's limit.
  FilePart Locate(int64_t index, std::string* path) const override {
    *path = shards_[places_[index].shard].path;
    return {places_[index].offset, places_[index].size};
  }
  const FileStamp* IndexedFile(int64_t index) const override { return &shards_[places_[index].shard].stamp; }

  const std::vector<TarShard> shards_;
  const std::vector<TarPlace> places_;
  const PathList names_;
};

// DATA_SOURCES: [tar_shards]: the shards of DATA_PATHS: a tar file, a folder whose files *.tar are the shards, or a
// pattern as WebDataset has them, "train-{000..146}.tar", in quotes. Without DATA_PATHS the folder "train" (for SPLIT
// test: "val" or "test") of the folder that DATASET_NAMES is known to have. Samples are those of the shards, in the
// order of their names. They have labels when all of them do. InvalidArgument: no shard or no image, a shard twice,
// labels of some samples only. A shard that looks like a copy of another is warned about.
absl::StatusOr<std::unique_ptr<Dataset>> MakeTarShards(const ConfigNode& data_split, const BuildContext& context);

}  // namespace ssl

#endif  // SSL_DATA_DATASETS_TAR_DATASET_H_
