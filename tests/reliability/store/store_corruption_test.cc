// SPDX-License-Identifier: Apache-2.0
//
// F5 and F6: 5,000 single flipped bits, every truncation, files that are swapped, missing or of another step: found in
// all cases, named, and the previous checkpoint is used.
#include <algorithm>
#include <iostream>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/testing/status_matchers.h"
#include "tests/reliability/store/store_run.h"

namespace ssl {
namespace {

using ::testing::HasSubstr;

constexpr int kFlips = 5000;
constexpr int64_t kValues = 16'384;
constexpr size_t kCut = 4096;

class StoreCorruptionTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const int64_t iteration : {5, 10, 15}) ASSERT_OK(Run().GoTo(iteration));
    ASSERT_OK_AND_ASSIGN(const std::vector<std::string> names, files_.List(Run().StepDirectory(15)));
    for (const std::string& name : names) contents_[name] = *files_.Read(Path(15, name));
  }
  StoreRun Run() { return StoreRun(directory_, files_, kValues); }
  std::string Path(int64_t iteration, const std::string& name) {
    return absl::StrCat(Run().StepDirectory(iteration), "/", name);
  }
  void Write(const std::string& path, absl::string_view bytes) {
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<WritableFile> file, files_.Create(path));
    ASSERT_OK(file->Append(bytes));
    ASSERT_OK(file->Close());
  }
  // The damage to `name` in step_15 is found and named, and step_10 is what counts.
  void ExpectFound(const std::string& name, const std::string& what) {
    StoreRun run = Run();
    const CheckpointStore store = run.Store();
    const absl::Status status = store.Verify(15).status();
    ASSERT_FALSE(status.ok()) << what;
    ASSERT_THAT(std::string(status.message()), HasSubstr(name)) << what;
    ASSERT_EQ(store.FindNewestValid().value_or(-1), 10) << what;
  }

  FileSystem& files_ = PosixFileSystem();
  const HarnessDirectory harness_;
  const std::string& directory_ = harness_.path();
  std::map<std::string, std::string> contents_;  // of step_15
};

TEST_F(StoreCorruptionTest, EveryFlippedBitIsFound) {
  std::mt19937_64 random(HarnessSeed(7));
  ASSERT_EQ(contents_.size(), 5u);
  for (int flip = 0; flip < kFlips; ++flip) {
    // Each file as often as the others, so that small ones, the manifest most of all, are covered bit by bit.
    const auto file = std::next(contents_.begin(), flip % contents_.size());
    std::string bytes = file->second;
    const size_t bit = random() % (bytes.size() * 8);
    bytes[bit / 8] ^= static_cast<char>(1 << (bit % 8));
    Write(Path(15, file->first), bytes);
    ExpectFound(file->first, absl::StrCat("bit ", bit, " of ", file->first));
    Write(Path(15, file->first), file->second);
  }
  ASSERT_EQ(*Run().Store().FindNewestValid(), 15);
  std::cout << "F5: " << kFlips << " of " << kFlips << " flipped bits found\n";
}

TEST_F(StoreCorruptionTest, EveryTruncationIsFound) {
  int cuts = 0;
  for (const auto& [name, bytes] : contents_) {
    std::vector<size_t> sizes = {0, bytes.size() - 1};
    for (size_t size = kCut; size < bytes.size(); size += kCut) sizes.push_back(size);
    for (const size_t size : sizes) {
      Write(Path(15, name), absl::string_view(bytes).substr(0, size));
      ExpectFound(name, absl::StrCat(name, " cut to ", size));
      ++cuts;
    }
    Write(Path(15, name), bytes + "x");
    ExpectFound(name, name + " with one byte more");
    Write(Path(15, name), bytes);
  }
  std::cout << "F5: " << cuts << " truncations found\n";
}

TEST_F(StoreCorruptionTest, EveryMissingOrForeignFileIsFound) {
  for (const auto& [name, bytes] : contents_) {
    ASSERT_OK(files_.RemoveFile(Path(15, name)));
    ExpectFound(name, name + " missing");
    // The settings are the same in all steps, and so may be the files.
    if (name != kConfigFile) {
      Write(Path(15, name), *files_.Read(Path(10, name)));
      ExpectFound(name, name + " of step_10");
    }
    Write(Path(15, name), bytes);
  }
  Write(Path(15, "model.safetensors"), contents_["optimizer.safetensors"]);
  ExpectFound("model.safetensors", "swapped");
}

// What lies there, and what the next start does.
struct Fallback {
  std::string what;
  std::vector<int64_t> damaged;
  std::vector<int64_t> missing;
  int64_t expected;  // the iteration it goes on from; 0: from the beginning; -1: it refuses to start
};

TEST(StoreFallbackTest, TwelveCases) {
  const std::vector<Fallback> cases = {
      {"all good", {}, {}, 15},
      {"newest bad", {15}, {}, 10},
      {"previous bad", {10}, {}, 15},
      {"oldest bad", {5}, {}, 15},
      {"two newest bad", {10, 15}, {}, 5},
      {"newest and oldest bad", {5, 15}, {}, 10},
      {"all bad", {5, 10, 15}, {}, -1},
      {"newest gone", {}, {15}, 10},
      {"newest gone, previous bad", {10}, {15}, 5},
      {"only a bad one left", {15}, {5, 10}, -1},
      {"only the oldest left", {}, {10, 15}, 5},
      {"nothing left", {}, {5, 10, 15}, 0},
  };
  for (const Fallback& fallback : cases) {
    const HarnessDirectory harness;
    const std::string& directory = harness.path();
    // KEEP_LAST is 2: the third is put back by hand.
    ASSERT_OK(StoreRun(directory, PosixFileSystem()).GoTo(5));
    ASSERT_OK(PosixFileSystem().Rename(directory + "/checkpoints/step_5", directory + "/step_5"));
    for (const int64_t iteration : {10, 15}) ASSERT_OK(StoreRun(directory, PosixFileSystem()).GoTo(iteration));
    ASSERT_OK(PosixFileSystem().Rename(directory + "/step_5", directory + "/checkpoints/step_5"));
    StoreRun run(directory, PosixFileSystem());
    for (const int64_t iteration : fallback.damaged) {
      ASSERT_OK(PosixFileSystem().RemoveFile(run.StepDirectory(iteration) + "/model.safetensors"));
    }
    for (const int64_t iteration : fallback.missing)
      ASSERT_OK(PosixFileSystem().RemoveAll(run.StepDirectory(iteration)));

    const absl::Status status = run.Look();

    if (fallback.expected < 0) {
      EXPECT_THAT(status, StatusIs(absl::StatusCode::kDataLoss, HasSubstr("no checkpoint is intact"))) << fallback.what;
      continue;
    }
    EXPECT_OK(status) << fallback.what;
    EXPECT_EQ(run.iteration(), fallback.expected) << fallback.what;
    EXPECT_TRUE(run.IsWhole()) << fallback.what;
  }
}

}  // namespace
}  // namespace ssl
