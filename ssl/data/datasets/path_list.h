// SPDX-License-Identifier: Apache-2.0
//
// Many paths in little memory: one string for all of them instead of a million small ones. Paths share a beginning,
// such as the folder of the data set, which is kept once. Const use is thread-safe.
#ifndef SSL_DATA_DATASETS_PATH_LIST_H_
#define SSL_DATA_DATASETS_PATH_LIST_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace ssl {

class PathList {
 public:
  // prefix: what every path begins with, such as "/data/imagenet/train/".
  explicit PathList(std::string prefix = "") : prefix_(std::move(prefix)) {}

  // Before many paths of so many bytes: a list that grows by and by needs up to three times its size meanwhile.
  void Reserve(int64_t bytes) { text_.reserve(static_cast<size_t>(bytes)); }

  // rest: the path without the prefix.
  void Add(absl::string_view rest) {
    text_.append(rest.data(), rest.size());
    ends_.push_back(text_.size());
  }

  int64_t size() const { return static_cast<int64_t>(ends_.size()); }
  const std::string& prefix() const { return prefix_; }

  // Makes the folder that all paths have in common a part of the prefix.
  void ShareFolder();

  // The path without the prefix; valid until the list changes.
  absl::string_view Rest(int64_t index) const {
    const uint64_t begin = index == 0 ? 0 : ends_[index - 1];
    return absl::string_view(text_).substr(begin, ends_[index] - begin);
  }

  std::string operator[](int64_t index) const { return absl::StrCat(prefix_, Rest(index)); }

  // The same into `path`, which keeps its memory: reused, it takes no new one.
  void Get(int64_t index, std::string* path) const {
    *path = prefix_;
    const absl::string_view rest = Rest(index);
    path->append(rest.data(), rest.size());
  }

 private:
  std::string prefix_;
  std::string text_;
  std::vector<uint64_t> ends_;  // of each path in text_
};

}  // namespace ssl

#endif  // SSL_DATA_DATASETS_PATH_LIST_H_
