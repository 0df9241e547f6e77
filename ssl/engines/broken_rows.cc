// SPDX-License-Identifier: Apache-2.0
#include "ssl/engines/broken_rows.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "ssl/base/status_macros.h"
#include "ssl/io/atomic_file.h"

namespace ssl {
namespace {

// kNone for a name that is none.
ReadFault FaultNamed(const nlohmann::json& name) {
  for (const ReadFault fault : kKindsOfBroken) {
    if (name == std::string(ReadFaultName(fault))) return fault;
  }
  return ReadFault::kNone;
}

}  // namespace

std::string BrokenRowsFile(const std::string& directory, const std::string& split) {
  return absl::StrCat(directory, "/", split, "_broken.json");
}

absl::Status WriteBrokenRows(const std::string& directory, const std::string& split,
                             const std::map<int64_t, ReadFault>& images, FileSystem& file_system) {
  std::string json = "[";
  for (const auto& [index, fault] : images) {
    absl::StrAppend(&json, json.size() == 1 ? "\n" : ",\n", " {\"index\": ", index, ", \"kind\": \"",
                    ReadFaultName(fault), "\"}");
  }
  json.append("\n]\n");
  return WriteFileAtomically(file_system, BrokenRowsFile(directory, split), json);
}

absl::StatusOr<std::map<int64_t, ReadFault>> ReadBrokenRows(const std::string& directory, const std::string& split,
                                                            FileSystem& file_system) {
  const std::string path = BrokenRowsFile(directory, split);
  std::map<int64_t, ReadFault> images;
  if (!file_system.Exists(path)) return images;
  SSL_ASSIGN_OR_RETURN(const std::string text, file_system.Read(path));
  const nlohmann::json list = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  bool is_known = list.is_array();
  for (const nlohmann::json& image : list) {
    is_known = is_known && image.is_object() && image.contains("index") && image["index"].is_number_unsigned() &&
               image.contains("kind") && FaultNamed(image["kind"]) != ReadFault::kNone;
    if (is_known) images[image["index"].get<int64_t>()] = FaultNamed(image["kind"]);
  }
  if (is_known) return images;
  return absl::DataLossError(absl::StrCat(path, " holds no list of broken images; extract the features again"));
}

}  // namespace ssl
