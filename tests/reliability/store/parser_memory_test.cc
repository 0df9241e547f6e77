// SPDX-License-Identifier: Apache-2.0
//
// F23: each allocation through operator new fails once while something that comes from a file is parsed, and the
// outcome is an error or success.
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <new>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "ssl/base/torch_guard.h"
#include "ssl/config/node.h"
#include "ssl/config/option_catalog.h"
#include "ssl/core/run_identity.h"
#include "ssl/io/manifest.h"
#include "ssl/io/safetensors_header.h"
#include "ssl/io/testing/zip_builder.h"
#include "ssl/io/zip_reader.h"

namespace {

int64_t allocations_until_failure = -1;  // below 0: none fails

void* Allocate(std::size_t size) {
  if (allocations_until_failure >= 0 && allocations_until_failure-- == 0) throw std::bad_alloc();
  void* memory = std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(std::size_t size) { return Allocate(size); }
void* operator new[](std::size_t size) { return Allocate(size); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }

namespace ssl {
namespace {

// Runs `parse` with its first allocation failing, its second, and so on until it makes fewer; returns how many.
template <class Parse>
int64_t FailEachAllocation(const Parse& parse) {
  for (int64_t allocation = 0;; ++allocation) {
    allocations_until_failure = allocation;
    const absl::Status status = GuardTorch("parsing", parse);
    const bool failed = allocations_until_failure < 0;
    allocations_until_failure = -1;
    EXPECT_EQ(status.code(), failed ? absl::StatusCode::kResourceExhausted : absl::StatusCode::kOk)
        << "allocation " << allocation << ": " << status;
    if (!failed || ::testing::Test::HasFailure()) return allocation;
  }
}

TEST(ParserMemoryTest, SafetensorsHeader) {
  SafetensorsTable table;
  for (int64_t i = 0; i < 20; ++i) {
    table.entries.push_back({"a tensor with a long name " + std::to_string(i), "F32", {2, 3}, 24 * i, 24 * i + 24});
  }
  const std::string header = FormatSafetensorsHeader(table).value();
  const absl::string_view text = absl::string_view(header).substr(kSafetensorsLengthBytes);
  const int64_t allocations = FailEachAllocation([&] { return ParseSafetensorsHeader(text, 480).status(); });
  EXPECT_GT(allocations, 40);
  std::cout << "F23: safetensors header, " << allocations << " failing allocations\n";
}

TEST(ParserMemoryTest, ZipDirectory) {
  std::vector<ZipItem> items;
  for (int i = 0; i < 20; ++i) items.push_back({"an entry with a long name " + std::to_string(i), "content"});
  const std::string file = BuildZip(items);
  const int64_t allocations = FailEachAllocation([&] { return ReadZipDirectory(file).status(); });
  EXPECT_GT(allocations, 20);
  std::cout << "F23: zip directory, " << allocations << " failing allocations\n";
}

TEST(ParserMemoryTest, Manifest) {
  Manifest manifest;
  for (int i = 0; i < 20; ++i) manifest.files.push_back({"a file with a long name " + std::to_string(i), 100, 7});
  const std::string json = ManifestToJson(manifest);
  const int64_t allocations = FailEachAllocation([&] { return ParseManifest(json, "MANIFEST.json").status(); });
  EXPECT_GT(allocations, 40);
  std::cout << "F23: manifest, " << allocations << " failing allocations\n";
}

TEST(ParserMemoryTest, IdentityOfARun) {
  ConfigNode config = ConfigNode::Map();
  for (int i = 0; i < 20; ++i)
    config.Set("A_LONG_NAME_" + std::to_string(i), ConfigNode::Scalar("a long value of text"));
  const OptionCatalog catalog;
  const RunIdentity identity(config, catalog, {});
  const std::string json = identity.ToJson();
  const auto resume = [&] {
    std::vector<std::string> changes;
    return identity.CheckResume(json, "config.json", &changes);
  };
  const int64_t allocations = FailEachAllocation(resume);
  EXPECT_GT(allocations, 40);
  std::cout << "F23: identity of a run, " << allocations << " failing allocations\n";
}

}  // namespace
}  // namespace ssl
