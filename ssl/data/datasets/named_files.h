// SPDX-License-Identifier: Apache-2.0
//
// Which broken files the log has named, so that each is named once, however many phases read it. Thread-safe.
#ifndef SSL_DATA_DATASETS_NAMED_FILES_H_
#define SSL_DATA_DATASETS_NAMED_FILES_H_

#include <cstddef>
#include <map>
#include <mutex>
#include <set>
#include <string>

#include "absl/strings/string_view.h"

namespace ssl {

class NamedFiles {
 public:
  // A source has so many named; the others are only counted. Above kMostSources all begin anew.
  static constexpr size_t kMostOfSource = 5;
  static constexpr size_t kMostSources = 1000;

  // Whether `message`, of a file of `source`, is one of the first and was not yet asked for.
  bool Add(const std::string& source, absl::string_view message);

 private:
  std::mutex mutex_;
  std::map<std::string, std::set<std::string>> messages_;  // by source
};

}  // namespace ssl

#endif  // SSL_DATA_DATASETS_NAMED_FILES_H_
