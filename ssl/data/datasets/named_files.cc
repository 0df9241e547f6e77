// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/datasets/named_files.h"

namespace ssl {

bool NamedFiles::Add(const std::string& source, absl::string_view message) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (messages_.size() >= kMostSources && messages_.count(source) == 0) messages_.clear();
  std::set<std::string>& named = messages_[source];
  return named.size() < kMostOfSource && named.emplace(message).second;
}

}  // namespace ssl
