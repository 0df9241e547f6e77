// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/broken_images_hook.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/core/session.h"
#include "ssl/data/image/image.h"
#include "ssl/data/image/png_encoder.h"
#include "ssl/distributed/testing/thread_communicator.h"
#include "ssl/hooks/testing/tiny_run.h"
#include "ssl/io/file_system.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int kImages = 400;
constexpr int kFirst = 201;

void WriteFile(const std::string& path, const std::string& bytes) {
  const std::unique_ptr<WritableFile> file = PosixFileSystem().Create(path).value();
  ASSERT_OK(file->Append(bytes));
  ASSERT_OK(file->Close());
}

// A folder of kImages images, 1 % broken: one cut off, one no image, one too long, one missing. list.txt names them
// all, first.txt and last.txt those before and after number kFirst.
std::string MakeImages() {
  const std::string folder = MakeTempDir("broken");
  std::string list, first;
  for (int i = 0; i < kImages; ++i) {
    if (i == kFirst) first = list;
    const std::string path = absl::StrCat(folder, "/", 1000 + i, ".png");
    absl::StrAppend(&list, path, "\n");
    Image image;
    uint8_t* pixels = image.Allocate(i == 200 ? 1 : 20, i == 200 ? 2000 : 20, 3);
    for (int64_t p = 0; p < image.size_bytes(); ++p) pixels[p] = static_cast<uint8_t>(p * (i + 3));
    const std::string bytes = EncodePng(image).value();
    if (i == 399) continue;
    WriteFile(path, i == 0 ? "no image" : i == 77 ? bytes.substr(0, bytes.size() / 2) : bytes);
  }
  WriteFile(folder + "/list.txt", list);
  WriteFile(folder + "/first.txt", first);
  WriteFile(folder + "/last.txt", list.substr(first.size()));
  return folder;
}

std::string OneSource(const std::string& images) {
  return absl::StrCat("DATA_SOURCES: [disk_filelist], DATA_PATHS: ['", images, "/list.txt']");
}

// The same images. Of the first source alone, the three that are broken were too many.
std::string TwoSources(const std::string& images) {
  return absl::StrCat("DATA_SOURCES: [disk_filelist, disk_filelist], DATA_PATHS: ['", images, "/first.txt', '", images,
                      "/last.txt'], MAX_BROKEN_FRACTION: 0.0145");
}

std::string Overrides(const std::string& sources, const std::string& run, int batch, int workers,
                      const std::string& more = "") {
  return absl::StrCat("CHECKPOINT: {DIR: '", run, "'}\nDATA:\n  NUM_DATALOADER_WORKERS: ", workers, "\n  TRAIN: {",
                      sources, ", DATA_LIMIT: -1, BATCHSIZE_PER_REPLICA: ", batch, more, "}\n");
}

// broken_images.json of a run that stops `stop_after` updates after its start, and then goes on.
std::string Train(const std::string& sources, int workers, int64_t stop_after = -1, const std::string& more = "") {
  const std::string run = MakeTempDir("run");
  const std::string overrides = Overrides(sources, run, 40, workers, more);
  if (stop_after >= 0) {
    const std::unique_ptr<Session> session = OpenTinyRun(overrides).value();
    for (int64_t i = 0; i < stop_after; ++i) EXPECT_OK(session->Step());
    session->RequestStop(15);
    EXPECT_OK(session->Finish());
  }
  EXPECT_OK(OpenTinyRun(overrides).value()->Train());
  const absl::StatusOr<std::string> file = PosixFileSystem().Read(run + "/broken_images.json");
  return file.value_or("");
}

// The same of two ranks.
std::string TrainOnTwoRanks(const std::string& sources) {
  const std::string run = MakeTempDir("run");
  ThreadWorld world(2, absl::Seconds(60));
  EXPECT_OK(world.Run([&](Communicator& communicator) {
    SessionOptions options;
    options.communicator = &communicator;
    auto session = OpenTinyRun(Overrides(sources, run, 20, 1), std::move(options));
    return session.ok() ? (*session)->Train().status() : session.status();
  }));
  return PosixFileSystem().Read(run + "/broken_images.json").value_or("");
}

TEST(BrokenImagesHook, OnePercent_IsCountedByKindAndNamed) {
  const std::string images = MakeImages();
  const std::string file = Train(OneSource(images), 2);
  EXPECT_THAT(file, HasSubstr("\"broken_images\": 4"));
  EXPECT_THAT(file, HasSubstr("\"missing\": 1,\n  \"unreadable\": 0,\n  \"empty\": 0,\n  \"truncated\": 1,\n  "
                              "\"damaged\": 0,\n  \"not an image\": 1,\n  \"unsupported\": 0,\n  "
                              "\"too large\": 1\n"));
  EXPECT_THAT(file, HasSubstr(absl::StrCat("\"index\": 77,\n   \"kind\": \"truncated\",\n   \"name\": \"", images,
                                           "/1077.png\"")));
  EXPECT_THAT(file, HasSubstr(absl::StrCat("\"name\": \"", images, "/1399.png\"")));

  const std::string path = images + "/broken_images.json";
  WriteFile(path, file);
  const std::map<std::string, int64_t> counts = {{"missing", 1},     {"unreadable", 0}, {"empty", 0},
                                                 {"truncated", 1},   {"damaged", 0},    {"not an image", 1},
                                                 {"unsupported", 0}, {"too large", 1}};
  EXPECT_EQ(ReadBrokenImageCounts(PosixFileSystem(), path).value(), counts);
}

TEST(BrokenImagesHook, CountsAreThoseOfAnyThreadsStopsRanksAndSources) {
  const std::string images = MakeImages();
  const std::string sources = OneSource(images);
  const std::string expected = Train(sources, 0);
  ASSERT_THAT(expected, HasSubstr("\"broken_images\": 4"));
  EXPECT_EQ(Train(sources, 4), expected);
  EXPECT_EQ(Train(sources, 4, 0, ", BROKEN_IMAGES: skip"), expected);
  // In the first epoch, which the batches after the stop end; and in the last one, which has met some already.
  EXPECT_EQ(Train(sources, 2, 7), expected);
  EXPECT_EQ(Train(sources, 2, 19), expected);
  EXPECT_EQ(TrainOnTwoRanks(sources), expected);
  EXPECT_EQ(Train(TwoSources(images), 4, 7), expected);
  EXPECT_EQ(TrainOnTwoRanks(TwoSources(images)), expected);
}

TEST(BrokenImagesHook, FileOfAnEarlierVersion_IsRead) {
  const std::string path = MakeTempDir("counts") + "/broken_images.json";
  WriteFile(path,
            "{\"by_kind\": {\"damaged\": 3, \"of another format\": 2, \"over a limit\": 1, \"missing\": 5, "
            "\"unreadable\": 4}}");
  const std::map<std::string, int64_t> counts = {{"missing", 5},     {"unreadable", 4}, {"empty", 0},
                                                 {"truncated", 0},   {"damaged", 3},    {"not an image", 0},
                                                 {"unsupported", 2}, {"too large", 1}};
  EXPECT_EQ(ReadBrokenImageCounts(PosixFileSystem(), path).value(), counts);
}

TEST(BrokenImagesHook, FileWithANameThatIsNoUtf8_IsReadBack) {
  const std::string folder = MakeTempDir("images");
  const std::string path = folder + "/broken_images.json";
  std::string list;
  for (int i = 0; i < 40; ++i) list += absl::StrCat(folder, "/\xC3\xA4\xFF", i, ".png\n");
  WriteFile(folder + "/list.txt", list);
  WriteFile(path, Train(absl::StrCat("DATA_SOURCES: [disk_filelist], DATA_PATHS: ['", folder, "/list.txt']"), 0, 0,
                        ", MAX_BROKEN_FRACTION: 1"));
  EXPECT_THAT(PosixFileSystem().Read(path).value(), HasSubstr("/\xC3\xA4\\udcff7.png\""));
  EXPECT_EQ(ReadBrokenImageCounts(PosixFileSystem(), path).value().at("missing"), 40);
}

TEST(BrokenImagesHook, FileOfAnotherProgram_IsRefused) {
  const std::string path = MakeTempDir("counts") + "/broken_images.json";
  EXPECT_THAT(ReadBrokenImageCounts(PosixFileSystem(), path).value(), IsEmpty());
  for (const char* text : {"", "[]", "{\"by_kind\": 3}", "{\"by_kind\": {\"damaged\": -1}}"}) {
    WriteFile(path, text);
    EXPECT_THAT(ReadBrokenImageCounts(PosixFileSystem(), path),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr(path + ": has no number \"missing\" in \"by_kind\"")))
        << text;
  }
}

// All are met in the first epoch, and the second one has nothing new to tell.
TEST(BrokenImagesHook, FileThatIsDamagedInBetween_IsWrittenAgain) {
  const std::string sources = OneSource(MakeImages());
  const std::string expected = Train(sources, 0);
  const std::string run = MakeTempDir("run");
  const std::string file = run + "/broken_images.json";
  ASSERT_OK_AND_ASSIGN(const auto session, OpenTinyRun(Overrides(sources, run, 40, 0)));
  for (int i = 0; i < 12; ++i) ASSERT_OK(session->Step());
  ASSERT_EQ(PosixFileSystem().Read(file).value(), expected);
  WriteFile(file, expected.substr(0, 40));
  ASSERT_OK(session->Train());
  EXPECT_EQ(PosixFileSystem().Read(file).value(), expected);
}

TEST(BrokenImagesHook, WithoutBrokenImages_ThereIsNoFile) {
  const std::string run = MakeTempDir("run");
  ASSERT_OK(OpenTinyRun(absl::StrCat("CHECKPOINT: {DIR: '", run, "'}")).value()->Train());
  EXPECT_FALSE(PosixFileSystem().Exists(run + "/broken_images.json"));
}

}  // namespace
}  // namespace ssl
