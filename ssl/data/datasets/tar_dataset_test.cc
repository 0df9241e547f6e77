// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/datasets/tar_dataset.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/stop_token.h"
#include "ssl/config/node.h"
#include "ssl/config/yaml.h"
#include "ssl/core/registries.h"
#include "ssl/data/dataset.h"
#include "ssl/data/datasets/testing/tar_files.h"
#include "ssl/data/image/byte_buffer.h"
#include "ssl/data/image/image.h"
#include "ssl/data/image/png_encoder.h"
#include "ssl/data/sample.h"
#include "ssl/distributed/communicator.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/io/atomic_file.h"
#include "ssl/io/file_system.h"
#include "ssl/testing/captured_log.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;
constexpr absl::StatusCode kDataLoss = absl::StatusCode::kDataLoss;

// A grey image of one value.
std::string Png(int value) {
  Image image;
  uint8_t* pixels = image.Allocate(2, 3, 1);
  std::fill_n(pixels, 6, static_cast<uint8_t>(value));
  return EncodePng(image).value();
}

std::string WriteTar(const std::string& bytes, const std::string& name = "a.tar", std::string folder = "") {
  if (folder.empty()) folder = MakeTempDir("tar");
  EXPECT_OK(WriteFileAtomically(PosixFileSystem(), folder + "/" + name, bytes));
  return folder + "/" + name;
}

absl::StatusOr<std::unique_ptr<Dataset>> Open(const std::string& path, const std::string& more = "",
                                              const StopToken* stop = nullptr) {
  const ConfigNode config =
      ParseYaml(absl::StrCat("DATA:\n  TRAIN: {DATA_PATHS: ['", path, "']", more, "}"), "run.yaml", nullptr).value();
  const Registries registries;
  const std::unique_ptr<Communicator> communicator = MakeLocalCommunicator();
  return MakeTarShards(*config.FindPath("DATA.TRAIN"),
                       {config, registries, *communicator, 0, "", 0, PosixFileSystem(), stop});
}

// The first pixel of each image.
std::vector<int> PixelsOf(const Dataset& dataset) {
  std::vector<int> pixels;
  Sample sample;
  sample.ResetViews(1);
  for (int64_t i = 0; i < dataset.size(); ++i) {
    EXPECT_OK(dataset.Get(i, &sample));
    EXPECT_EQ(sample.label, dataset.Label(i));
    EXPECT_EQ(sample.fault, ReadFault::kNone);
    pixels.push_back(sample.view(0).image.pixels()[0]);
  }
  return pixels;
}

std::vector<int64_t> LabelsOf(const Dataset& dataset) {
  std::vector<int64_t> labels;
  for (int64_t i = 0; i < dataset.size(); ++i) labels.push_back(dataset.Label(i));
  return labels;
}

TEST(TarShards, Samples_AreReadInAnyOrder) {
  const std::string path = WriteTar(
      TarMember("x/0.png", Png(10)) + TarMember("x/0.cls", "4") + TarMember("x/1.json", "{\"label\": 2, \"w\": 1.5}") +
      TarMember("x/1.png", Png(20)) + TarMember("x/2.PNG", Png(30)) + TarMember("x/2.cls", " 0\n") + TarEnd());
  ASSERT_OK_AND_ASSIGN(const auto dataset, Open(path));
  EXPECT_EQ(dataset->size(), 3);
  EXPECT_TRUE(dataset->has_labels());
  EXPECT_THAT(PixelsOf(*dataset), ElementsAre(10, 20, 30));
  EXPECT_THAT(LabelsOf(*dataset), ElementsAre(4, 2, 0));
  Sample sample;
  sample.ResetViews(1);
  for (const int64_t index : {2, 0, 1, 2}) {
    ASSERT_OK(dataset->Get(index, &sample));
    EXPECT_EQ(sample.view(0).image.pixels()[0], 10 * (index + 1));
  }
  EXPECT_EQ(dataset->SampleName(1), path + "/x/1.png");
  EXPECT_EQ(dataset->description(), path);
}

// Ranks on several hosts compare it.
TEST(TarShards, SampleIdentity_IsWithoutTheFolderOfTheShard) {
  const std::string png = Png(10);
  for (int host = 0; host < 2; ++host) {
    ASSERT_OK_AND_ASSIGN(const auto dataset, Open(WriteTar(TarMember("x/0.png", png) + TarEnd(), "shard-000.tar")));
    EXPECT_EQ(dataset->SampleIdentity(0), absl::StrCat("shard-000.tar/x/0.png of ", png.size(), " bytes"));
  }
}

TEST(TarShards, FilesOfPythonsTarfile_AreRead) {
  for (const char* name : {"pax.tar", "gnu.tar"}) {
    SCOPED_TRACE(name);
    ASSERT_OK_AND_ASSIGN(const auto dataset,
                         Open(absl::StrCat(std::getenv("TEST_SRCDIR"), "/", std::getenv("TEST_WORKSPACE"),
                                           "/ssl/data/testdata/tar/", name)));
    EXPECT_EQ(PixelsOf(*dataset).size(), 3u);
    EXPECT_THAT(LabelsOf(*dataset), ElementsAre(3, 5, 1));
    EXPECT_THAT(dataset->SampleName(1), HasSubstr("longlonglonglong/0002.webp"));
    EXPECT_THAT(dataset->PassedOver(),
                ElementsAre(HasSubstr("1 samples without an image, 2 members that are neither image nor label, 1 links "
                                      "and the like")));
  }
}

TEST(TarShards, BelowAFolder_ShardsElsewhereAreNotOpened) {
  const std::string folder = MakeTempDir("shards");
  const std::string outside = WriteTar(TarMember("0.png", Png(7)) + TarEnd());
  WriteTar(TarMember("0.png", Png(9)) + TarEnd(), "a.tar", folder);
  const std::string below = absl::StrCat(", PATHS_BELOW: '", folder, "'");
  ASSERT_OK_AND_ASSIGN(const auto inside, Open(folder, below));
  EXPECT_THAT(PixelsOf(*inside), ElementsAre(9));
  EXPECT_THAT(Open(outside, below),
              StatusIs(absl::StatusCode::kPermissionDenied,
                       AllOf(HasSubstr("config.DATA.TRAIN.DATA_PATHS: "), HasSubstr("does not lie below"))));
  ASSERT_EQ(symlink(outside.c_str(), (folder + "/b.tar").c_str()), 0);
  EXPECT_THAT(Open(folder, below), StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("/b.tar: leads out of")));
  EXPECT_OK(Open(folder));
}

TEST(TarShards, AFolderOrAPattern_NamesSeveral) {
  const std::string folder = MakeTempDir("shards");
  for (int shard = 9; shard <= 11; ++shard) {
    WriteTar(TarMember("0.png", Png(shard)) + TarMember("1.png", Png(shard + 100)) + TarEnd(),
             absl::StrCat("t-", shard < 10 ? "0" : "", shard, ".tar"), folder);
  }
  WriteTar("no tar", "README", folder);
  ASSERT_OK_AND_ASSIGN(const auto all, Open(folder));
  EXPECT_THAT(PixelsOf(*all), ElementsAre(9, 109, 10, 110, 11, 111));
  EXPECT_FALSE(all->has_labels());
  EXPECT_EQ(all->Label(0), -1);
  ASSERT_OK_AND_ASSIGN(const auto some, Open(folder + "/t-{09..10}.tar"));
  EXPECT_THAT(PixelsOf(*some), ElementsAre(9, 109, 10, 110));
  EXPECT_THAT(Open(folder + "/t-{10..9}.tar"), StatusIs(kInvalid, HasSubstr("expected two numbers in the braces")));
  EXPECT_THAT(Open(folder + "/t-{11..12}.tar"), StatusIs(absl::StatusCode::kNotFound, HasSubstr("/t-12.tar")));
  EXPECT_THAT(Open(MakeTempDir("empty")), StatusIs(kInvalid, HasSubstr("holds no file that ends in .tar")));
}

TEST(TarShards, TheSameFileTwice_IsRefused) {
  const std::string folder = MakeTempDir("shards");
  const std::string path = WriteTar(TarMember("0.png", Png(1)) + TarEnd(), "a.tar", folder);
  ASSERT_EQ(symlink(path.c_str(), (folder + "/b.tar").c_str()), 0);
  EXPECT_THAT(Open(folder), StatusIs(kInvalid, AllOf(HasSubstr("run.yaml:2: config.DATA.TRAIN.DATA_PATHS: "),
                                                     HasSubstr("/b.tar and "), HasSubstr("are the same file"))));
}

TEST(TarShards, CopyUnderAnotherName_IsTold) {
  const std::string folder = MakeTempDir("shards");
  const std::string samples = TarMember("0.png", Png(1)) + TarMember("1.png", Png(2)) + TarEnd();
  WriteTar(samples, "a.tar", folder);
  WriteTar(TarMember("0.png", Png(1)) + TarMember("2.png", Png(2)) + TarEnd(), "b.tar", folder);
  CapturedLog other;
  ASSERT_OK(Open(folder));
  EXPECT_THAT(other.warnings, IsEmpty());
  WriteTar(samples, "c.tar", folder);
  CapturedLog log;
  ASSERT_OK(Open(folder));
  EXPECT_THAT(log.warnings,
              ElementsAre(AllOf(HasSubstr("/c.tar and "), HasSubstr("/a.tar hold 2 images of the same"))));
}

TEST(TarShards, CutOffFiles_AreRefusedAtAnyByte) {
  const std::string whole =
      TarMember("0.png", Png(1)) + TarMember("0.txt", "1") + TarMember("1.png", Png(2)) + TarEnd();
  for (size_t size = 0; size + 512 < whole.size(); size += 256) {
    EXPECT_THAT(Open(WriteTar(whole.substr(0, size))),
                StatusIs(kDataLoss, AllOf(HasSubstr("a.tar: byte "), HasSubstr("cut off, write it anew"))))
        << size;
  }
  EXPECT_OK(Open(WriteTar(whole.substr(0, whole.size() - 512)))) << "one empty block says that nothing follows";
  EXPECT_OK(Open(WriteTar(whole + std::string(9216, '\0') + "x")));
  EXPECT_THAT(Open(WriteTar(whole + std::string(9216, '\0') + whole)),
              StatusIs(kInvalid, HasSubstr("a.tar: another tar file follows its end mark")));
}

TEST(TarShards, DamagedHeaders_AreNamedWithTheirPlace) {
  std::string damaged = TarMember("0.png", Png(1)) + TarMember("1.png", Png(2)) + TarEnd();
  const size_t second = TarMember("0.png", Png(1)).size();
  damaged[second + 3] ^= 1;
  EXPECT_THAT(Open(WriteTar(damaged)),
              StatusIs(kDataLoss, HasSubstr(absl::StrCat("byte ", second, ": a header has a wrong checksum"))));
  EXPECT_THAT(Open(WriteTar(std::string(2048, 'x'))), StatusIs(kDataLoss, HasSubstr("not a tar file")));
  EXPECT_THAT(Open(WriteTar("\x1F\x8B\x08" + std::string(2048, 'x'))),
              StatusIs(kDataLoss, HasSubstr("a gzip file, expected a tar file: gunzip it")));
  EXPECT_THAT(Open(WriteTar(TarMember("l", "7 path", 'x') + TarEnd())),
              StatusIs(kDataLoss, HasSubstr("an extended header is damaged")));
  EXPECT_THAT(Open(WriteTar(TarMember("l", "16 size=9999999\n", 'x') + TarMember("0.png", Png(1)) + TarEnd())),
              StatusIs(kDataLoss, HasSubstr("member '0.png' has 9999999 bytes, but the file ends")));
}

TEST(TarShards, ASampleInTwoPieces_IsRefused) {
  EXPECT_THAT(
      Open(WriteTar(TarMember("0.png", Png(1)) + TarMember("1.png", Png(2)) + TarMember("0.cls", "1") + TarEnd())),
      StatusIs(kInvalid, HasSubstr("the members of sample '0' do not follow one another")));
}

// The first image would get the last label.
TEST(TarShards, AnEndingTwiceInASample_IsRefused) {
  const std::string sample = TarMember("cat.png", Png(1)) + TarMember("cat.cls", "1");
  EXPECT_THAT(
      Open(WriteTar(sample + TarMember("cat.png", Png(2)) + TarMember("cat.cls", "2") + TarEnd())),
      StatusIs(kInvalid, AllOf(HasSubstr("a.tar: sample 'cat' has 'cat.png' at byte 512 and 'cat.png' at byte "),
                               HasSubstr("give each a name of its own"))));
  for (const char* name : {"cat.cls", "cat.CLS"}) {
    EXPECT_THAT(Open(WriteTar(sample + TarMember(name, "1") + TarEnd())),
                StatusIs(kInvalid, AllOf(HasSubstr("'cat.cls' at byte "), HasSubstr(absl::StrCat("'", name, "' at")))));
  }
}

TEST(TarShards, SeveralImagesInASample_AreReadByTheirEndingInAnyOrder) {
  const std::string png = TarMember("0.png", Png(1)), jpeg = TarMember("0.JPEG", Png(2));
  for (const std::string& images : {png + jpeg, jpeg + png}) {
    ASSERT_OK_AND_ASSIGN(const auto dataset, Open(WriteTar(images + TarEnd())));
    EXPECT_THAT(PixelsOf(*dataset), ElementsAre(2));
    EXPECT_THAT(dataset->PassedOver(), ElementsAre(AllOf(HasSubstr("1 further images of samples that have one"),
                                                         HasSubstr("'0.png' beside '0.JPEG'"))));
  }
}

TEST(TarShards, LabelsOfASampleThatDiffer_AreRefusedInAnyOrder) {
  const std::string png = TarMember("0.png", Png(1)), cls = TarMember("0.cls", "0");
  const auto json = [](const std::string& text) { return TarMember("0.json", text); };
  EXPECT_THAT(Open(WriteTar(png + cls + json("{\"label\": 7}") + TarEnd())),
              StatusIs(kInvalid, HasSubstr("a.tar: member '0.json' holds the label 7, but '0.cls' of the same sample "
                                           "holds 0, expected one label")));
  EXPECT_THAT(
      Open(WriteTar(png + json("{\"label\": 7}") + cls + TarEnd())),
      StatusIs(kInvalid, HasSubstr("member '0.cls' holds the label 0, but '0.json' of the same sample holds 7")));
  EXPECT_THAT(Open(WriteTar(png + json("{\"label\": 7, \"cls\": 3}") + TarEnd())),
              StatusIs(kInvalid, HasSubstr("holds the label 3, but '0.json'")));
  for (const char* equal :
       {"{\"label\": 0}", "{\"label\": \"0\", \"cls\": \"cat\"}", "{\"cls\": 0, \"label\": null}"}) {
    ASSERT_OK_AND_ASSIGN(const auto dataset, Open(WriteTar(png + cls + json(equal) + TarEnd())));
    EXPECT_THAT(LabelsOf(*dataset), ElementsAre(0)) << equal;
  }
}

TEST(TarShards, Labels_AreOfAllOrNoneAndClasses) {
  EXPECT_THAT(
      Open(WriteTar(TarMember("0.png", Png(1)) + TarMember("0.cls", "1") + TarMember("1.png", Png(2)) + TarEnd())),
      StatusIs(kInvalid, HasSubstr("a.tar: '1.png' has no label, but others have")));
  EXPECT_THAT(Open(WriteTar(TarMember("0.png", Png(1)) + TarMember("0.cls", "dog") + TarEnd())),
              StatusIs(kInvalid, HasSubstr("member '0.cls' holds the label 'dog', expected a class from 0 on")));
  EXPECT_THAT(Open(WriteTar(TarMember("0.txt", "a") + TarEnd())),
              StatusIs(kInvalid, HasSubstr("no member of 1 tar files")));
}

// Python's json module writes NaN.
TEST(TarShards, JsonThatCannotBeRead_GivesNoLabel) {
  for (const std::string json : {"[1", "[1]", "{\"similarity\": NaN}", ""}) {
    const std::string bytes = TarMember("0.png", Png(1)) + TarMember("0.json", json);
    ASSERT_OK_AND_ASSIGN(const auto dataset, Open(WriteTar(bytes + TarEnd())));
    EXPECT_FALSE(dataset->has_labels());
    EXPECT_THAT(dataset->PassedOver(), ElementsAre(AllOf(HasSubstr("1 .json members, which give no label"),
                                                         HasSubstr("member '0.json' is no JSON map"))));
    EXPECT_THAT(Open(WriteTar(bytes + TarMember("1.png", Png(2)) + TarMember("1.cls", "3") + TarEnd())),
                StatusIs(kInvalid, AllOf(HasSubstr("'0.png' has no label, but others have"),
                                         HasSubstr("member '0.json' is no JSON map"))));
  }
}

TEST(TarShards, NamesWithSeveralDots_AreExplained) {
  EXPECT_THAT(Open(WriteTar(TarMember("0.view1.jpg", Png(1)) + TarMember("0.cls", "1") + TarEnd())),
              StatusIs(kInvalid, AllOf(HasSubstr("behind its name"), HasSubstr("the first dot"),
                                       HasSubstr("'0.view1.jpg' is none"))));
  ASSERT_OK_AND_ASSIGN(const auto dataset,
                       Open(WriteTar(TarMember("0.png", Png(1)) + TarMember("IMG.2020.01.PNG", Png(1)) + TarEnd())));
  EXPECT_THAT(dataset->PassedOver(), ElementsAre(HasSubstr("'IMG.2020.01.PNG' is none")));
}

TEST(TarShards, NamesThatAreNoText_AreTheirBytes) {
  ASSERT_OK_AND_ASSIGN(const auto dataset,
                       Open(WriteTar(TarMember("\xFF\xFE/\xC0.png", Png(5)) + TarMember("x/._0.png", "of macOS") +
                                     TarMember("Makefile", "") + TarEnd())));
  EXPECT_THAT(PixelsOf(*dataset), ElementsAre(5));
  EXPECT_THAT(dataset->ImagePath(0), HasSubstr("a.tar/\xFF\xFE/\xC0.png"));
}

TEST(TarShards, BrokenImages_AreReplacedAndCounted) {
  const std::string path = WriteTar(TarMember("0.png", "no image") + TarMember("1.png", Png(2)) + TarEnd());
  ASSERT_OK_AND_ASSIGN(const auto dataset, Open(path, ", MAX_BROKEN_FRACTION: 1"));
  Sample sample;
  sample.ResetViews(1);
  ASSERT_OK(dataset->Get(0, &sample));
  EXPECT_EQ(sample.fault, ReadFault::kNotAnImage);
  ASSERT_OK_AND_ASSIGN(const auto strict, Open(path, ", BROKEN_IMAGES: error"));
  EXPECT_THAT(strict->Get(0, &sample), StatusIs(absl::StatusCode::kDataLoss, HasSubstr(path + "/0.png: image is")));
}

// Its images lie elsewhere now, or are other ones under the old labels.
TEST(TarShards, AShardThatIsWrittenAnew_IsNotReadByTheOldIndex) {
  const std::string folder = MakeTempDir("tar");
  for (const char* below : {"", ", PATHS_BELOW: "}) {
    const std::string path = WriteTar(TarMember("0.png", Png(1)) + TarEnd(), "a.tar", folder);
    const std::string more = *below == '\0' ? "" : absl::StrCat(below, folder);
    ASSERT_OK_AND_ASSIGN(const auto dataset, Open(path, absl::StrCat(more, ", BROKEN_IMAGES: error")));
    EXPECT_THAT(PixelsOf(*dataset), ElementsAre(1));
    WriteTar(TarMember("0.png", Png(2)) + TarMember("1.png", Png(3)) + TarEnd(), "a.tar", folder);
    Sample sample;
    sample.ResetViews(1);
    EXPECT_THAT(
        dataset->Get(0, &sample),
        StatusIs(kDataLoss, AllOf(HasSubstr(path + "/0.png"), HasSubstr("its file has changed since it was indexed"))));
    ByteBuffer bytes;
    EXPECT_THAT(dataset->ReadEncoded(0, &bytes).status(),
                StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("has changed since")));
    ASSERT_OK_AND_ASSIGN(const auto again, Open(path));
    EXPECT_THAT(PixelsOf(*again), ElementsAre(2, 3));
  }
}

TEST(TarShards, AShardThatIsWrittenAnew_DoesNotReachTheCache) {
  const std::string folder = MakeTempDir("tar");
  const std::string path = WriteTar(TarMember("0.png", Png(1)) + TarEnd(), "a.tar", folder);
  ASSERT_OK_AND_ASSIGN(const auto dataset, Open(path, ", MAX_BROKEN_FRACTION: 1"));
  dataset->KeepInMemory({CacheContent::kDecoded, 1 << 20});
  WriteTar(TarMember("0.png", Png(2)) + TarMember("1.png", Png(3)) + TarEnd(), "a.tar", folder);
  Sample sample;
  for (int epoch = 0; epoch < 2; ++epoch) {
    sample.ResetViews(1);
    sample.fault = ReadFault::kNone;
    ASSERT_OK(dataset->Get(0, &sample));
    EXPECT_NE(sample.fault, ReadFault::kNone);
    EXPECT_EQ(sample.view(0).image.pixels()[0], 128) << "grey";
  }
}

// As img2dataset and others write it: escapes of JSON that YAML does not have, and no label.
TEST(TarShards, DescriptionsInJson_NeedNoLabel) {
  const std::string json =
      "{\"caption\": \"50 \\u20ac \\/ day: \\ud83d\\ude00 \\\"best\\\"\", \"url\": \"http:\\/\\/a.b\\/c?d=e#f\",\n"
      "\t\"error\": null, \"similarity\": 0.25, \"exif\": \"{\\\"Make\\\": 1}\", \"tags\": []}";
  ASSERT_OK_AND_ASSIGN(const auto dataset,
                       Open(WriteTar(TarMember("0.jpg", Png(1)) + TarMember("0.json", json) + TarEnd())));
  EXPECT_FALSE(dataset->has_labels());
}

TEST(TarShards, LabelsInJson_AreNumbersOrTheirText) {
  const auto with_json = [](const std::string& json) {
    return Open(WriteTar(TarMember("0.png", Png(1)) + TarMember("0.json", json) + TarEnd()));
  };
  for (const char* json : {"{\"label\": 7}", "{\"cls\": \"7\"}"}) {
    ASSERT_OK_AND_ASSIGN(const auto dataset, with_json(json));
    EXPECT_THAT(LabelsOf(*dataset), ElementsAre(7)) << json;
  }
  for (const char* label : {"\"cat\"", "-1", "1.5", "[1]", "{}", "true", "99999999999999999999"}) {
    EXPECT_THAT(with_json(absl::StrCat("{\"label\": ", label, "}")),
                StatusIs(kInvalid, AllOf(HasSubstr("member '0.json' holds the label"), HasSubstr("from 0 on"))))
        << label;
  }
  ASSERT_OK_AND_ASSIGN(const auto unknown, with_json("{\"label\": null}"));
  EXPECT_FALSE(unknown->has_labels());
}

// Some writers give a link the size of what it leads to; no bytes follow its header.
TEST(TarShards, LinksWithASize_HaveNoContent) {
  for (const char type : {'1', '2', '5'}) {
    ASSERT_OK_AND_ASSIGN(const auto dataset,
                         Open(WriteTar(TarMember("0.png", Png(1)) + TarHeader("link.png", 5000, type) +
                                       TarMember("1.png", Png(2)) + TarEnd())));
    EXPECT_THAT(PixelsOf(*dataset), ElementsAre(1, 2)) << type;
  }
}

TEST(TarShards, AStop_EndsTheScan) {
  StopToken stop;
  stop.Request(kStopTerminate);
  EXPECT_THAT(Open(WriteTar(TarMember("0.png", Png(1)) + TarEnd()), "", &stop),
              StatusIs(absl::StatusCode::kCancelled, HasSubstr("was stopped")));
}

}  // namespace
}  // namespace ssl
