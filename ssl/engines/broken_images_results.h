// SPDX-License-Identifier: Apache-2.0
//
// How many images could not be read, as results tell it, whichever engine has read them:
//
//   "broken_images": {"total": 3, "by_kind": {"missing": 1, ..., "damaged": 2, ...}}             of a training
//   "broken_images": {"train": {"total": 3, "by_kind": {...}}, "test": ...}                      of an evaluation
//
// Of an evaluation, "broken_images" is always there, and empty where all images could be read. It does without those
// that could not: they are neither compared nor shown.
#ifndef SSL_ENGINES_BROKEN_IMAGES_RESULTS_H_
#define SSL_ENGINES_BROKEN_IMAGES_RESULTS_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "ssl/config/node.h"
#include "ssl/core/batch_source.h"
#include "ssl/data/read_fault.h"
#include "ssl/distributed/communicator.h"

namespace ssl {

inline constexpr char kBrokenImagesKey[] = "broken_images";

// {"total", "by_kind"}. by_kind: by the kinds' names (ssl/data/read_fault.h).
ConfigNode BrokenImagesTree(const std::map<std::string, int64_t>& by_kind);

// Of what all ranks have read of `source` so far, by position in the data set. A source of a host's own that does not
// tell has none. Collective.
absl::StatusOr<std::map<int64_t, ReadFault>> BrokenImagesOf(const BatchSource& source, Communicator& communicator);

// By the names of splits, empty where none was broken.
using BrokenSplits = std::vector<std::pair<std::string, std::map<int64_t, ReadFault>>>;
ConfigNode BrokenImagesTree(const BrokenSplits& splits);

// One for each of `sources`, by its name, that has met some so far, on whichever rank, each image once: empty where
// none was broken. A source of a host's own that does not tell counts as such. Collective.
absl::StatusOr<ConfigNode> BrokenImagesOf(const std::vector<std::pair<std::string, const BatchSource*>>& sources,
                                          Communicator& communicator);

// For below a table: "left out, as they cannot be read: 6 images of train, 2 images of test\n"; "" for none. broken: of
// an evaluation.
std::string BrokenImagesLine(const ConfigNode& broken);

// For below a table of features: "6 images of train, 2 images of test cannot be read: ...\n", and which files name
// them; "" for none.
std::string BrokenRowsLine(const ConfigNode& broken);

}  // namespace ssl

#endif  // SSL_ENGINES_BROKEN_IMAGES_RESULTS_H_
