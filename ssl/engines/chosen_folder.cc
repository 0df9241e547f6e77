// SPDX-License-Identifier: Apache-2.0
#include "ssl/engines/chosen_folder.h"

#include <unistd.h>

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ssl/base/status_macros.h"
#include "ssl/base/status_util.h"
#include "ssl/config/node.h"
#include "ssl/distributed/agree.h"
#include "ssl/io/file_system.h"

namespace ssl {
namespace {

// OK where `path` can be made, or written into when it is there; else the error of an attempt. A folder is made and
// removed: a system that refuses one may allow it by its modes, as /proc does.
absl::Status TryFolder(const std::string& path, FileSystem& file_system) {
  std::string nearest = path;
  while (!file_system.Exists(nearest)) {
    std::string parent = ParentDirectory(nearest);
    if (parent == nearest) break;
    nearest = std::move(parent);
  }
  // Makes nothing, because something is there: it says what is in the way.
  if (!file_system.IsDirectory(nearest)) return file_system.CreateDirectories(path);
  const std::string attempt = absl::StrCat(nearest, "/.ssl-attempt-", getpid());
  SSL_RETURN_IF_ERROR(file_system.CreateDirectories(attempt));
  return file_system.RemoveAll(attempt);
}

}  // namespace

absl::Status CheckChosenFolder(const std::string& key, EngineContext& context) {
  const ConfigNode* folder = context.config.FindPath(key);
  if (folder == nullptr || folder->text().empty()) return absl::OkStatus();
  const std::string place = absl::StrCat(folder->location().ToString(), ": config.", key);
  const auto attempt = [&] {
    return Annotate(TryFolder(folder->text(), context.file_system),
                    absl::StrCat(place, " is ", folder->text(), ", which cannot be written"));
  };
  return OnRankZero(attempt, place, context.communicator);
}

}  // namespace ssl
