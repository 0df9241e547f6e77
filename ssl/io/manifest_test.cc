// SPDX-License-Identifier: Apache-2.0

#include "ssl/io/manifest.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/crc32c.h"
#include "ssl/io/atomic_file.h"
#include "ssl/io/file_system.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Manifest MakeManifest() {
  Manifest manifest;
  manifest.iteration = 100;
  manifest.world_size = 2;
  manifest.config_hash = "9f\"quoted\"";
  manifest.files = {{"model.safetensors", int64_t{1} << 40, 0xFFFFFFFF}, {"rank_0.safetensors", 0, 0}};
  return manifest;
}

TEST(ManifestTest, Json_RoundTripsWithEqualBytes) {
  const std::string json = ManifestToJson(MakeManifest());
  ASSERT_OK_AND_ASSIGN(const Manifest parsed, ParseManifest(json, "MANIFEST.json"));
  EXPECT_EQ(parsed.iteration, 100);
  EXPECT_EQ(parsed.world_size, 2);
  EXPECT_EQ(parsed.config_hash, "9f\"quoted\"");
  ASSERT_EQ(parsed.files.size(), 2u);
  EXPECT_EQ(parsed.files[0].file, "model.safetensors");
  EXPECT_EQ(parsed.files[0].size, int64_t{1} << 40);
  EXPECT_EQ(parsed.files[0].crc32c, 0xFFFFFFFF);
  EXPECT_EQ(ManifestToJson(parsed), json);
}

TEST(ManifestTest, EveryTruncation_IsRefused) {
  std::string json = ManifestToJson(MakeManifest());
  json.pop_back();  // the newline
  for (size_t size = 0; size < json.size(); ++size) {
    EXPECT_THAT(ParseManifest(json.substr(0, size), "m"),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr("manifest m: ")));
  }
}

TEST(ManifestTest, EveryFlippedBit_IsRefused) {
  const std::string json = ManifestToJson(MakeManifest());
  for (size_t bit = 0; bit < json.size() * 8; ++bit) {
    std::string flipped = json;
    flipped[bit / 8] ^= static_cast<char>(1 << (bit % 8));
    EXPECT_FALSE(ParseManifest(flipped, "m").ok()) << "bit " << bit << ": " << flipped;
  }
}

TEST(ManifestTest, WithoutItsOwnChecksum_IsReadAsBefore) {
  std::string json = ManifestToJson(MakeManifest());
  const size_t comma = json.rfind(',');
  json.replace(comma, json.size() - comma, "\n}\n");
  ASSERT_OK_AND_ASSIGN(const Manifest parsed, ParseManifest(json, "m"));
  EXPECT_EQ(parsed.iteration, 100);
}

// Text to replace, by what, and what the message names.
struct Damage {
  std::string from;
  std::string to;
  std::string message;
};

TEST(ManifestTest, WrongContent_IsDataLossThatNamesTheKey) {
  const std::vector<Damage> damages = {
      {"\"iteration\": 100", "\"iteration\": -1", "iteration is not a whole number"},
      {"\"iteration\": 100", "\"iteration\": 1.5", "iteration is not a whole number"},
      {"\"iteration\": 100", "\"iteration\": \"100\"", "iteration is not a whole number"},
      {"\"iteration\": 100", "\"iteration\": 18446744073709551615", "iteration is 1844"},
      {"\"iteration\": 100,", "", "iteration is missing"},
      {"\"iteration\"", "\"extra\": 0, \"iteration\"", "keys that do not belong"},
      {"4294967295", "4294967296", "files[0]: crc32c is 4294967296"},
      {"rank_0.safetensors", "model.safetensors", "'model.safetensors' occurs twice"},
      {"rank_0.safetensors", "../secret", "file is '../secret'"},
      {"rank_0.safetensors", "..", "file is '..'"},
      {"rank_0.safetensors", "/etc/passwd", "file is '/etc/passwd'"},
      {"rank_0.safetensors", "", "file is ''"},
      {"rank_0.safetensors", "a\\u0000b", "expected a plain file name"},
  };
  const std::string good = ManifestToJson(MakeManifest());
  for (const Damage& damage : damages) {
    const std::string bad = absl::StrReplaceAll(good, {{damage.from, damage.to}});
    ASSERT_NE(bad, good) << damage.from;
    EXPECT_THAT(ParseManifest(bad, "m"),
                StatusIs(absl::StatusCode::kDataLoss, AllOf(HasSubstr("manifest m: "), HasSubstr(damage.message))));
  }
}

TEST(ManifestTest, AnotherVersion_IsUnimplemented) {
  const std::string json =
      absl::StrReplaceAll(ManifestToJson(MakeManifest()), {{"\"format_version\": 1", "\"format_version\": 2"}});
  EXPECT_THAT(ParseManifest(json, "m"), StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("format_version is 2")));
}

TEST(ManifestTest, DeepAndHugeTexts_AreRefusedWithoutHarm) {
  constexpr int kDepth = 500'000;
  const std::string nested = std::string(kDepth, '[') + std::string(kDepth, ']');
  EXPECT_THAT(ParseManifest(nested, "m"), StatusIs(absl::StatusCode::kDataLoss));
  const std::string inside =
      absl::StrReplaceAll(ManifestToJson(MakeManifest()), {{"\"files\": [", "\"files\": [" + nested + ","}});
  EXPECT_THAT(ParseManifest(inside, "m"),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("is deeper than")));
  EXPECT_THAT(ParseManifest(std::string(17 << 20, ' '), "m"),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("expected at most")));
}

class VerifyManifestTest : public ::testing::Test {
 protected:
  void SetUp() override {
    // Longer than one piece, so that pieces are joined.
    Write("model", std::string((1 << 20) + 17, 'm'));
    Write("state", "state");
    Write("empty", "");
  }

  void Write(const std::string& name, const std::string& bytes) {
    ASSERT_OK(WriteFileAtomically(PosixFileSystem(), absl::StrCat(dir_, "/", name), bytes));
    for (ManifestEntry& entry : manifest_.files) {
      if (entry.file == name) return;  // later writes damage the file
    }
    manifest_.files.push_back({name, static_cast<int64_t>(bytes.size()), Crc32c(bytes)});
  }

  absl::Status Verify() { return VerifyManifest(PosixFileSystem(), dir_, manifest_); }

  const std::string dir_ = MakeTempDir("manifest");
  Manifest manifest_;
};

TEST_F(VerifyManifestTest, IntactFiles_AreOkAlsoBesideUnlistedOnes) {
  EXPECT_OK(Verify());
  ASSERT_OK(WriteFileAtomically(PosixFileSystem(), dir_ + "/notes", "x"));
  EXPECT_OK(Verify());
}

TEST_F(VerifyManifestTest, FlippedBit_IsDataLossWithBothChecksums) {
  Write("state", "stbte");
  EXPECT_THAT(Verify(), StatusIs(absl::StatusCode::kDataLoss,
                                 AllOf(HasSubstr(dir_ + "/state: CRC32C is "), HasSubstr("expected"))));
}

TEST_F(VerifyManifestTest, TruncatedFile_IsDataLossWithBothSizes) {
  Write("state", "stat");
  EXPECT_THAT(Verify(), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("state: size is 4 bytes, expected 5")));
}

TEST_F(VerifyManifestTest, MissingFile_IsNotFoundThatNamesIt) {
  ASSERT_OK(PosixFileSystem().RemoveFile(dir_ + "/empty"));
  EXPECT_THAT(Verify(), StatusIs(absl::StatusCode::kNotFound, HasSubstr(dir_ + "/empty")));
}

TEST_F(VerifyManifestTest, NameThatLeadsOut_IsRefused) {
  manifest_.files.push_back({"../state", 5, Crc32c("state")});
  EXPECT_THAT(Verify(), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("'../state'")));
}

}  // namespace
}  // namespace ssl
