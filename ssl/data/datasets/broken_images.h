// SPDX-License-Identifier: Apache-2.0
//
// Keeps count of images that cannot be read. A few are a nuisance that must not end a run of days; many mean that a
// path or a disk is wrong. Each image counts once, however often it is read, so that the numbers depend neither on the
// threads nor on how many epochs a run has. The data sets that make one have one count. Takes a byte for each image.
// Thread-safe.
#ifndef SSL_DATA_DATASETS_BROKEN_IMAGES_H_
#define SSL_DATA_DATASETS_BROKEN_IMAGES_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "ssl/data/datasets/named_files.h"
#include "ssl/data/read_fault.h"

namespace ssl {

// Whether an error of reading a file is the process's, not the file's: no descriptor or memory left. It says nothing
// about the image.
bool IsErrorOfProcess(const absl::Status& reason);

// How many of `images` may be broken where the share max_fraction of them may. Above 0, one always may: of nine test
// images, one is more than a tenth.
double MostBroken(double max_fraction, int64_t images);

class BrokenImages {
 public:
  // Among the first kWindow images that are read, fewer when the data set is smaller, MostBroken may be broken, and at
  // any time, unless max_fraction is 1, kMostInARow reads in a row: when more fail, the disk is gone, and grey images
  // would be learned. Of a part of the data set, which chance may have given more than its share of them, some more
  // may be, but never more than of the whole. place: the key that says so, for messages. reader: who reads, where
  // others read other images of the data set: "rank 1 of 2"; "": nobody else.
  static constexpr int64_t kWindow = 1000;
  static constexpr int64_t kMostInARow = 100;
  // split: of the configuration, such as "config.DATA.TRAIN", for messages; "": they do not say.
  BrokenImages(int64_t dataset_size, double max_fraction, std::string place, std::string reader = "",
               std::string split = "");
  ~BrokenImages();
  BrokenImages(const BrokenImages&) = delete;
  BrokenImages& operator=(const BrokenImages&) = delete;

  // Those that `files` has named already, of the same source, are not named again. Without a call, files are named once
  // each by this count. Called before any is read.
  void NameOnce(std::shared_ptr<NamedFiles> files, std::string source);

  // Makes one count of both: the images of this data set are judged and told of together with those of `first`, and by
  // its rule. Reads in a row also count for each data set, as each may lie on a disk of its own, but for one of which
  // all images may be broken. Called before any is read, and on one that nobody has joined.
  void Join(BrokenImages* first);

  // Of the images of all data sets that are joined, only so many are ever read, at least 1. Called before any is.
  void WillRead(int64_t images);

  // They are read as they lie there, where broken ones may stand side by side, such as those of a class: all that are
  // read are judged by instead of the first ones, and rows say nothing. Called before any is read.
  void WillReadInOrder();

  // Image `index` was read.
  void AddGood(int64_t index);

  // Image `index` was not, for `reason`, which names it, and which is a `fault` (not kNone). Warns of the first few
  // (named_files.h), then of the 10th, 100th, 1000th, ... DataLoss when these are too many. An error that is the
  // process's, not the image's (no descriptor or memory left), is returned as it is and counts for nothing.
  absl::Status AddBroken(int64_t index, ReadFault fault, const absl::Status& reason);

  // Of all data sets that are joined.
  int64_t broken() const;
  // "this process tried 300 images of config.DATA.TRAIN, 5 of which cannot be read: 2 missing, 3 damaged", or "rank 1
  // of 2 tried ..." where others read. It counts what was tried, be it read ahead or for its size alone; what a
  // training has taken, over all ranks and starts, the hook `broken_images` counts. Logged when the last of these data
  // sets goes, where a broken one and others were tried: of one alone the warning has said it.
  std::string Summary() const;

 private:
  struct Count;  // what joined data sets share
  enum State : uint8_t { kUnread, kGood, kBroken };

  absl::Status CheckRow(const absl::Status& reason);

  std::vector<std::atomic<uint8_t>> states_;  // of each image
  std::atomic<int64_t> in_a_row_{0};          // reads that failed since the last good one, repeated ones too
  std::shared_ptr<Count> count_;
};

}  // namespace ssl

#endif  // SSL_DATA_DATASETS_BROKEN_IMAGES_H_
