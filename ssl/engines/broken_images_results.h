// SPDX-License-Identifier: Apache-2.0
//
// How many images could not be read, as results tell it, whichever engine has read them:
//
//   "broken_images": {"total": 3, "by_kind": {"missing": 1, ..., "damaged": 2, ...}}             of a training
//   "broken_images": {"train": {"total": 3, "by_kind": {...}}, "test": ...}                      of an evaluation
//
// Of an evaluation, "broken_images" is always there, and empty where all images could be read.
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
#include "ssl/distributed/communicator.h"

namespace ssl {

inline constexpr char kBrokenImagesKey[] = "broken_images";

// {"total", "by_kind"}. by_kind: by the kinds' names (ssl/data/read_fault.h).
ConfigNode BrokenImagesTree(const std::map<std::string, int64_t>& by_kind);

// One for each of `sources`, by its name, that has met some so far, on whichever rank, each image once: empty where
// none was broken. A source of a host's own that does not tell counts as such. Collective.
absl::StatusOr<ConfigNode> BrokenImagesOf(const std::vector<std::pair<std::string, const BatchSource*>>& sources,
                                          Communicator& communicator);

}  // namespace ssl

#endif  // SSL_ENGINES_BROKEN_IMAGES_RESULTS_H_
