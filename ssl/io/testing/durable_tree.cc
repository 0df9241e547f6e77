// SPDX-License-Identifier: Apache-2.0

#include "ssl/io/testing/durable_tree.h"

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "ssl/base/status_macros.h"
#include "ssl/io/file_system.h"

namespace ssl {
namespace {

using NodePtr = std::shared_ptr<DurableNode>;

NodePtr MakeDirectory() {
  NodePtr node = std::make_shared<DurableNode>();
  node->is_directory = true;
  return node;
}

// Components of `path` below `root`; false when it lies outside.
bool SplitBelow(absl::string_view root, absl::string_view path, std::vector<std::string>* components) {
  if (!absl::ConsumePrefix(&path, root)) return false;
  if (!path.empty() && path.front() != '/') return false;
  *components = absl::StrSplit(path, '/', absl::SkipEmpty());
  return true;
}

absl::Status ImportInto(FileSystem& base, const std::string& path, DurableNode& node) {
  node.is_directory = base.IsDirectory(path);
  if (!node.is_directory) {
    SSL_ASSIGN_OR_RETURN(node.bytes, base.Read(path));
    node.synced = node.bytes;
    return absl::OkStatus();
  }
  SSL_ASSIGN_OR_RETURN(const std::vector<std::string> names, base.List(path));
  for (const std::string& name : names) {
    NodePtr& child = node.names[name];
    child = std::make_shared<DurableNode>();
    SSL_RETURN_IF_ERROR(ImportInto(base, absl::StrCat(path, "/", name), *child));
  }
  node.synced_names = node.names;
  return absl::OkStatus();
}

// What is durable is also what there is, once the power is back.
absl::Status WriteNode(FileSystem& base, const std::string& path, DurableNode& node) {
  if (!node.is_directory) {
    node.bytes = node.synced;
    SSL_ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> file, base.Create(path));
    SSL_RETURN_IF_ERROR(file->Append(node.synced));
    return file->Close();
  }
  SSL_RETURN_IF_ERROR(base.CreateDirectories(path));
  node.names = node.synced_names;
  for (auto& [name, child] : node.names) {
    SSL_RETURN_IF_ERROR(WriteNode(base, absl::StrCat(path, "/", name), *child));
  }
  return absl::OkStatus();
}

constexpr size_t kBlockBytes = 64;  // small, so that the small files of a test have many

bool Coin(std::mt19937_64& random) { return (random() & 1) != 0; }

// What a disk may hold of a file that was being written: its length, old or new, and each block old, new or damaged.
std::string MixBytes(const DurableNode& node, std::mt19937_64& random) {
  if (node.bytes == node.synced || Coin(random)) return node.synced;
  if (Coin(random)) return node.bytes;
  std::string mixed = Coin(random) ? node.bytes : node.synced;
  for (size_t begin = 0; begin < mixed.size(); begin += kBlockBytes) {
    const size_t size = std::min(kBlockBytes, mixed.size() - begin);
    const std::string& from = Coin(random) ? node.bytes : node.synced;
    std::string block = begin < from.size() ? from.substr(begin, size) : "";
    block.resize(size, '\0');
    if (random() % 4 == 0) block[random() % size] ^= static_cast<char>(1 << (random() % 8));
    mixed.replace(begin, size, block);
  }
  // What a sync has promised and no write has touched since stays.
  const auto differs = std::mismatch(node.synced.begin(), node.synced.end(), node.bytes.begin(), node.bytes.end());
  const size_t promised = differs.first - node.synced.begin();
  return node.synced.substr(0, promised) + mixed.substr(promised);
}

// Of each name that changed since the last sync, the old or the new meaning.
std::map<std::string, NodePtr> MixNames(const DurableNode& node, std::mt19937_64& random) {
  std::map<std::string, NodePtr> all = node.synced_names;
  all.insert(node.names.begin(), node.names.end());
  std::map<std::string, NodePtr> mixed;
  for (const auto& [name, unused] : all) {
    const auto& source = Coin(random) ? node.names : node.synced_names;
    const auto found = source.find(name);
    if (found != source.end()) mixed.insert(*found);
  }
  return mixed;
}

absl::Status WriteMixedNode(FileSystem& base, const std::string& path, const DurableNode& node,
                            std::mt19937_64& random) {
  if (!node.is_directory) {
    SSL_ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> file, base.Create(path));
    SSL_RETURN_IF_ERROR(file->Append(MixBytes(node, random)));
    return file->Close();
  }
  SSL_RETURN_IF_ERROR(base.CreateDirectories(path));
  for (const auto& [name, child] : MixNames(node, random)) {
    SSL_RETURN_IF_ERROR(WriteMixedNode(base, absl::StrCat(path, "/", name), *child, random));
  }
  return absl::OkStatus();
}

// The names below a removed directory go one by one, and none of it is synced.
void ForgetNames(DurableNode& node) {
  for (auto& [name, child] : node.names) ForgetNames(*child);
  node.names.clear();
}

}  // namespace

DurableTree::DurableTree(std::string root) : root_(absl::StripSuffix(root, "/")), top_(MakeDirectory()) {}

absl::Status DurableTree::Import(FileSystem& base) { return ImportInto(base, root_, *top_); }

absl::Status DurableTree::EmptyRoot(FileSystem& base) const {
  SSL_ASSIGN_OR_RETURN(const std::vector<std::string> names, base.List(root_));
  for (const std::string& name : names) {
    SSL_RETURN_IF_ERROR(base.RemoveAll(absl::StrCat(root_, "/", name)));
  }
  return absl::OkStatus();
}

absl::Status DurableTree::WriteSynced(FileSystem& base) {
  SSL_RETURN_IF_ERROR(EmptyRoot(base));
  return WriteNode(base, root_, *top_);
}

absl::Status DurableTree::WriteMixture(FileSystem& base, std::mt19937_64& random) {
  SSL_RETURN_IF_ERROR(EmptyRoot(base));
  return WriteMixedNode(base, root_, *top_, random);
}

NodePtr DurableTree::OpenFile(absl::string_view path, bool truncate) {
  std::string name;
  const NodePtr parent = FindParent(path, &name);
  if (parent == nullptr) return nullptr;
  NodePtr& node = parent->names[name];
  if (node == nullptr) node = std::make_shared<DurableNode>();
  if (truncate) {
    node->bytes.clear();
    node->synced.clear();
  }
  return node;
}

void DurableTree::CreateDirectories(absl::string_view path) {
  std::vector<std::string> components;
  if (!SplitBelow(root_, path, &components)) return;
  NodePtr node = top_;
  for (const std::string& component : components) {
    NodePtr& child = node->names[component];
    if (child == nullptr) {
      child = MakeDirectory();
      // The parent's sync makes all of its names durable, not only this one.
      node->synced_names = node->names;
    }
    node = child;
  }
}

void DurableTree::Rename(absl::string_view from, absl::string_view to) {
  std::string from_name;
  std::string to_name;
  const NodePtr from_parent = FindParent(from, &from_name);
  const NodePtr to_parent = FindParent(to, &to_name);
  if (from_parent == nullptr || to_parent == nullptr) return;
  NodePtr node = std::move(from_parent->names[from_name]);
  from_parent->names.erase(from_name);
  to_parent->names[to_name] = std::move(node);
}

void DurableTree::Exchange(absl::string_view left, absl::string_view right) {
  std::string left_name;
  std::string right_name;
  const NodePtr left_parent = FindParent(left, &left_name);
  const NodePtr right_parent = FindParent(right, &right_name);
  if (left_parent != nullptr && right_parent != nullptr) {
    std::swap(left_parent->names[left_name], right_parent->names[right_name]);
  }
}

void DurableTree::Remove(absl::string_view path) {
  std::string name;
  const NodePtr parent = FindParent(path, &name);
  if (parent == nullptr) return;
  const auto removed = parent->names.find(name);
  if (removed == parent->names.end()) return;
  ForgetNames(*removed->second);
  parent->names.erase(removed);
}

void DurableTree::SyncDirectory(absl::string_view path) {
  const NodePtr node = Find(path);
  if (node != nullptr) node->synced_names = node->names;
}

NodePtr DurableTree::Find(absl::string_view path) const {
  std::vector<std::string> components;
  if (!SplitBelow(root_, path, &components)) return nullptr;
  NodePtr node = top_;
  for (const std::string& component : components) {
    const auto child = node->names.find(component);
    if (child == node->names.end()) return nullptr;
    node = child->second;
  }
  return node;
}

NodePtr DurableTree::FindParent(absl::string_view path, std::string* name) const {
  path = absl::StripSuffix(path, "/");
  *name = std::string(path.substr(path.rfind('/') + 1));
  return Find(ParentDirectory(path));
}

}  // namespace ssl
