// SPDX-License-Identifier: Apache-2.0
//
// What a power loss would leave of a directory: a model of files and names, of which each
// file has bytes and synced bytes, and each directory has names and synced names. The model
// is pessimistic: nothing is durable before its fsync, and truncation destroys old bytes at
// once. Not thread-safe. Part of FaultFileSystem.

#ifndef SSL_IO_TESTING_DURABLE_TREE_H_
#define SSL_IO_TESTING_DURABLE_TREE_H_

#include <map>
#include <memory>
#include <random>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "ssl/io/file_system.h"

namespace ssl {

struct DurableNode {
  bool is_directory = false;
  std::string bytes;   // of a file: as readers see it now
  std::string synced;  // of a file: after a power loss
  // Of a directory: names now, and after a power loss.
  std::map<std::string, std::shared_ptr<DurableNode>> names;
  std::map<std::string, std::shared_ptr<DurableNode>> synced_names;
};

class DurableTree {
 public:
  // Paths outside `root` are not modelled: calls on them do nothing.
  explicit DurableTree(std::string root);

  // Takes what `base` has under the root as durable.
  absl::Status Import(FileSystem& base);
  // Makes `base` hold, under the root, what is durable, and nothing else.
  absl::Status WriteSynced(FileSystem& base);
  // Like WriteSynced, but of what was not synced an arbitrary part has reached the disk: some names and not others, and
  // of a file some blocks, in any order, some of them damaged. This object must not be used afterwards.
  absl::Status WriteMixture(FileSystem& base, std::mt19937_64& random);

  // The file of `path`, made when missing; nullptr outside the root.
  std::shared_ptr<DurableNode> OpenFile(absl::string_view path, bool truncate);
  void CreateDirectories(absl::string_view path);  // durable at once, as FileSystem promises
  void Rename(absl::string_view from, absl::string_view to);
  void Exchange(absl::string_view left, absl::string_view right);
  void Remove(absl::string_view path);
  void SyncDirectory(absl::string_view path);

 private:
  absl::Status EmptyRoot(FileSystem& base) const;
  std::shared_ptr<DurableNode> Find(absl::string_view path) const;
  // The directory that holds `path`, and the last component in *name.
  std::shared_ptr<DurableNode> FindParent(absl::string_view path, std::string* name) const;

  std::string root_;
  std::shared_ptr<DurableNode> top_;
};

}  // namespace ssl

#endif  // SSL_IO_TESTING_DURABLE_TREE_H_
