// SPDX-License-Identifier: Apache-2.0
//
// Fills an options struct from a config tree and reports everything that is wrong at once.
// Stateless; safe from any thread.
//
//   SwavLossOptions options;
//   SSL_RETURN_IF_ERROR(ReadOptions(*root.FindPath("config.LOSS.swav_loss"),
//                                   "config.LOSS.swav_loss", UnknownKeys::kError, &options));
#ifndef SSL_CONFIG_READER_H_
#define SSL_CONFIG_READER_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "ssl/config/fields.h"
#include "ssl/config/node.h"
#include "ssl/config/problem.h"

namespace ssl {

enum class UnknownKeys { kError, kIgnore };

// What ReadOptions finds wrong, in the order of the fields; empty when all is right.
std::vector<ConfigProblem> ReadProblems(const ConfigNode& node, absl::string_view path, UnknownKeys unknown,
                                        Options* options);

// `node` is the map that stands at `path` (used in messages only). Missing keys keep their
// defaults; null empties strings and lists, and leaves a section or a whole struct at its
// defaults. InvalidArgument with one line per problem otherwise, in the order of the fields:
//   swav.yaml:12: config.LOSS.swav_loss.temperature is 'x', expected a number above 0
// and *options then holds the values that were right.
absl::Status ReadOptions(const ConfigNode& node, absl::string_view path, UnknownKeys unknown, Options* options);

}  // namespace ssl

#endif  // SSL_CONFIG_READER_H_
