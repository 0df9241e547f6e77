// SPDX-License-Identifier: Apache-2.0
//
// MANIFEST.json of a checkpoint directory: which files belong to it, with size and CRC-32C,
// so that missing, torn, swapped and rotten files are found before anything is loaded.
// Plain values; the functions are thread-safe.
//
//   {"format_version": 1, "iteration": 100, "world_size": 2, "config_hash": "9f...",
//    "files": [{"file": "model.safetensors", "size": 1024, "crc32c": 305419896}, ...],
//    "manifest_crc32c": 2271560481}
//
// The last member is the checksum of the same text without it, so that no bit of the manifest itself can change
// unnoticed. Manifests from before it was added lack it, and are read.

#ifndef SSL_IO_MANIFEST_H_
#define SSL_IO_MANIFEST_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ssl/io/file_system.h"

namespace ssl {

inline constexpr int64_t kManifestFormatVersion = 1;

struct ManifestEntry {
  std::string file;     // plain name inside the directory
  int64_t size = 0;     // bytes
  uint32_t crc32c = 0;  // of the whole file
};

struct Manifest {
  int64_t format_version = kManifestFormatVersion;
  int64_t iteration = 0;
  int64_t world_size = 0;
  std::string config_hash;
  std::vector<ManifestEntry> files;
};

// Indented JSON, keys and files in the order above; equal manifests give equal bytes.
std::string ManifestToJson(const Manifest& manifest);

// `name` (a path) stands in messages. kDataLoss for text that is no manifest: bad JSON, a
// missing or unknown key, a wrong type or range, a file named twice or with '/' or "..", another checksum;
// kUnimplemented for another format version. Texts above 16 MiB are refused.
absl::StatusOr<Manifest> ParseManifest(absl::string_view json, absl::string_view name);

// Reads every file once, in pieces of 1 MiB. The first file that is missing (kNotFound) or
// differs (kDataLoss) is named with what was found and what was expected. Files that the
// manifest does not list are not looked at.
absl::Status VerifyManifest(FileSystem& file_system, const std::string& directory, const Manifest& manifest);

// The same with the manifest that `read` gives; anew when that is another one after a failure: a run has put another
// directory in the place of this one meanwhile.
absl::StatusOr<Manifest> VerifyDirectory(FileSystem& file_system, const std::string& directory,
                                         absl::FunctionRef<absl::StatusOr<Manifest>()> read);

}  // namespace ssl

#endif  // SSL_IO_MANIFEST_H_
