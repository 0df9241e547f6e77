// SPDX-License-Identifier: Apache-2.0
//
// Which data a run may go on with (run_identity.h): paths as places, and samples by their names and labels.
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/config/testing/parsed.h"
#include "ssl/core/run_identity.h"
#include "ssl/core/sample_digest.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class DataIdentityTest : public ::testing::Test {
 protected:
  OptionCatalog catalog_;
  std::vector<std::string> changes_;  // what was accepted
};

TEST_F(DataIdentityTest, PathsInAnySpelling_AreTheSame) {
  const auto resume = [this](const std::string& before, const std::string& after) {
    const auto config = [](const std::string& paths) {
      return Parsed(absl::StrCat("DATA: {TRAIN: {DATA_PATHS: ", paths, "}}"));
    };
    const ConfigNode saved = config(before);
    const ConfigNode now = config(after);
    return RunIdentity(now, catalog_, {}).CheckResume(RunIdentity(saved, catalog_, {}).ToJson(), "step_7", &changes_);
  };
  const std::string here = std::filesystem::current_path().string();
  for (const std::string& other :
       {std::string("base/"), std::string("./base"), std::string("x/../base/."), absl::StrCat(here, "/base")}) {
    EXPECT_OK(resume("[base]", absl::StrCat("[", other, "]")));
    EXPECT_OK(resume(absl::StrCat("[", other, ", /b]"), "[base, /b/]"));
  }
  EXPECT_FALSE(resume("[/]", "[/tmp]").ok());
  EXPECT_FALSE(resume("[/tmp, base]", "[base, /tmp]").ok()) << "in another order";
}

// Samples of one part each, as a source of that many tells them.
SampleDigest Samples(const std::vector<std::pair<uint32_t, std::string>>& parts) {
  SampleDigest digest;
  for (const auto& [checksum, name] : parts) digest.parts.push_back({checksum, name, name});
  return digest;
}

TEST_F(DataIdentityTest, OtherSamplesOfTheSameNumber_AreNamed) {
  const ConfigNode config = Parsed("DATA: {TRAIN: {DROP_LAST: True}}");
  RunIdentity saved(config, catalog_, {});
  saved.AddCount("DATA.TRAIN.num_samples", 2);
  const std::string older = saved.ToJson();
  saved.SetSamples(Samples({{1, "a/0.jpg, class 0"}, {2, "b/1.jpg, class 1"}}));
  const auto resume = [&](const std::string& json, int64_t count, uint32_t last, std::vector<std::string> allowed) {
    RunIdentity now(config, catalog_, std::move(allowed));
    now.AddCount("DATA.TRAIN.num_samples", count);
    now.SetSamples(Samples({{1, "a/0.jpg, class 0"}, {last, "b/x.jpg, class 1"}}));
    return now.CheckResume(json, "step_7/config.json", &changes_);
  };
  EXPECT_OK(resume(saved.ToJson(), 2, 2, {}));
  EXPECT_OK(resume(older, 2, 3, {})) << "from before they were recorded";
  EXPECT_THAT(resume(saved.ToJson(), 2, 3, {}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("DATA.TRAIN.samples: other names or labels than in the checkpoint; now the "
                                       "first that differ are in 'b/x.jpg, class 1'\n"),
                             HasSubstr("ALLOW_CHANGES=[DATA.TRAIN.samples]"))));
  EXPECT_OK(resume(saved.ToJson(), 2, 3, {"DATA.TRAIN.samples"}));
  EXPECT_OK(resume(saved.ToJson(), 3, 3, {"DATA.TRAIN.num_samples"})) << "the number says that they are others";
  RunIdentity untold(config, catalog_, {});
  untold.AddCount("DATA.TRAIN.num_samples", 2);
  EXPECT_OK(untold.CheckResume(saved.ToJson(), "step_7/config.json", &changes_)) << "a source that cannot tell";
}

// Another folder with the same names is other data, as long as the first one is there.
TEST_F(DataIdentityTest, FolderThatWasMoved_GoesOnWhereItsSamplesAreTheSame) {
  const std::string there = MakeTempDir("folder");
  const auto resume = [&](const std::string& from, uint32_t checksum, bool is_opened) {
    const ConfigNode before = Parsed(absl::StrCat("DATA: {TRAIN: {DATA_PATHS: [", from, "]}}"));
    const ConfigNode after = Parsed("DATA: {TRAIN: {DATA_PATHS: [/elsewhere]}}");
    RunIdentity saved(before, catalog_, {});
    saved.AddCount("DATA.TRAIN.num_samples", 1);
    saved.SetSamples(Samples({{7, "0.jpg"}}));
    RunIdentity now(after, catalog_, {});
    if (is_opened) now.AddCount("DATA.TRAIN.num_samples", 1);
    if (is_opened) now.SetSamples(Samples({{checksum, "0.jpg"}}));
    return now.CheckResume(saved.ToJson(), "step_7", &changes_);
  };
  EXPECT_OK(resume("/no/such/folder", 7, true));
  EXPECT_OK(resume("/no/such/folder", 7, false)) << "the data will tell";
  EXPECT_FALSE(resume("/no/such/folder", 8, true).ok());
  EXPECT_FALSE(resume(there, 7, true).ok());
  EXPECT_FALSE(resume(there, 7, false).ok());
}

// Training samples of one name, in `paths`.
class DataPlacesTest : public DataIdentityTest {
 protected:
  static RunIdentity IdentityIn(const ConfigNode& config, const OptionCatalog& catalog) {
    RunIdentity identity(config, catalog, {});
    identity.AddCount("DATA.TRAIN.num_samples", 1);
    identity.SetSamples(Samples({{7, "0.jpg"}}));
    return identity;
  }
  static ConfigNode DataIn(const std::vector<std::string>& paths) {
    ConfigNode config = ConfigNode::Map();
    config.SetPath("DATA.TRAIN.DATA_PATHS", ConfigNode::FromStrings(paths));
    return config;
  }
  std::string Saved(const std::vector<std::string>& paths) {
    const ConfigNode config = DataIn(paths);
    return IdentityIn(config, catalog_).ToJson();
  }
  // As older versions have saved it.
  static std::string OlderSaved(const std::string& text) {
    return absl::StrCat(R"({"format_version": 1, "settings": {"DATA.TRAIN.DATA_PATHS": ")", text,
                        R"("}, "counts": {"DATA.TRAIN.num_samples": 1, "DATA.TRAIN.samples": ")",
                        Samples({{7, "0.jpg"}}).ToString(), "\"}}");
  }
  absl::Status Resume(const std::string& json, const std::vector<std::string>& paths) {
    const ConfigNode config = DataIn(paths);
    return IdentityIn(config, catalog_).CheckResume(json, "step_7", &changes_);
  }
  static std::string NewFolder(const std::string& name) {
    return std::filesystem::canonical(MakeTempDir(name)).string();
  }
};

TEST_F(DataPlacesTest, FolderOfAnyName_IsMovedOnlyWhenItIsGone) {
  for (const char* name :
       {"photos, a", "photos [a]", "photos {a}", "a: b", "it's", "\"", "x # y", "a\\n", "gr\xfc", "~"}) {
    const std::string folder = NewFolder("there");
    const std::string there = absl::StrCat(folder, "/", name);
    const std::string copy = folder + "/copy, b";
    std::filesystem::create_directory(there);
    const std::string json = Saved({there});
    EXPECT_OK(Resume(json, {there + "/"})) << name;
    EXPECT_FALSE(Resume(json, {copy}).ok()) << name;
    std::filesystem::remove(there);
    EXPECT_OK(Resume(json, {copy})) << name;
  }
}

// Messages show the ends of long paths alone.
std::string NameIn(const std::string& path) { return path.substr(path.rfind('/')); }

TEST_F(DataPlacesTest, NamesThatAreNoUtf8_AreToldApart) {
  const std::string folder = NewFolder("there");
  for (const char* name : {"/gr\xfc", "/gr\xe4"}) std::filesystem::create_directory(folder + name);
  EXPECT_THAT(Resume(Saved({folder + "/gr\xfc"}), {folder + "/gr\xe4"}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("/gr\\374] in the checkpoint, "), HasSubstr("/gr\\344] now"))));
}

TEST_F(DataPlacesTest, RelativePath_IsThatOfItsWorkingDirectory) {
  const std::filesystem::path began = std::filesystem::current_path();
  const std::string first = NewFolder("first");
  const std::string second = NewFolder("second");
  for (const std::string& folder : {first, second}) std::filesystem::create_directory(folder + "/photos");
  std::filesystem::current_path(first);
  const std::string json = Saved({"photos"});
  for (const std::string& same : {std::string("photos"), std::string("./photos/"), first + "/photos"}) {
    EXPECT_OK(Resume(json, {same}));
  }
  std::filesystem::current_path(second);
  EXPECT_OK(Resume(json, {first + "/photos"}));
  EXPECT_FALSE(Resume(json, {second + "/photos"}).ok());
  EXPECT_THAT(
      Resume(json, {"photos"}),
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(HasSubstr("DATA.TRAIN.DATA_PATHS: "), HasSubstr(NameIn(first) + "/photos] in the checkpoint, "),
                     HasSubstr(NameIn(second) + "/photos] now"), HasSubstr("ALLOW_CHANGES=[DATA.TRAIN.DATA_PATHS]"))));
  std::filesystem::remove(first + "/photos");
  EXPECT_OK(Resume(json, {second + "/photos"}));
  EXPECT_OK(Resume(json, {"photos"}));
  std::filesystem::current_path(began);
}

TEST_F(DataPlacesTest, ShardsOfAPattern_AreMovedWhenNoneIsThere) {
  const std::string folder = NewFolder("shards");
  for (const char* name : {"/train-000.tar", "/val-000.tar"}) std::filesystem::create_directory(folder + name);
  const std::string json = Saved({folder + "/train-{000..009}.tar"});
  EXPECT_OK(Resume(json, {folder + "/./train-{000..009}.tar"}));
  EXPECT_FALSE(Resume(json, {"/elsewhere/train-{000..009}.tar"}).ok());
  std::filesystem::remove(folder + "/train-000.tar");
  EXPECT_OK(Resume(json, {"/elsewhere/train-{000..009}.tar"}));
}

TEST_F(DataPlacesTest, OlderCheckpoint_HasMovedOnlyWhereItsTextTellsThePlace) {
  EXPECT_OK(Resume(OlderSaved("[/no/such/folder, /no/other]"), {"/elsewhere"}));
  for (const char* text :
       {"[no_such]", "[/no/such, a]", "[/no/{000..009}.tar]", "[/no/gr\xEF\xBF\xBD]", "[/no, \\\"\\\"]"}) {
    EXPECT_FALSE(Resume(OlderSaved(text), {"/elsewhere"}).ok()) << text;
  }
  EXPECT_OK(Resume(OlderSaved("[/no/photos, a]"), {"/no/photos, a"})) << "it wrote no quotes";
  EXPECT_OK(Resume(OlderSaved("[/tmp/{0..9}.tar]"), {"/tmp/{0..9}.tar"}));
  EXPECT_OK(Resume(OlderSaved("[photos]"), {"./photos/"}));
}

TEST_F(DataIdentityTest, ClassesOfAnOlderCheckpoint_HadNoQuotes) {
  const ConfigNode config = Parsed("DATA: {TRAIN: {DROP_LAST: True}}");
  const std::string json =
      R"({"format_version": 1, "settings": {"DATA.TRAIN.DROP_LAST": "true"},
          "counts": {"DATA.TRAIN.classes": "[ant, bee, or wasp]"}})";
  RunIdentity now(config, catalog_, {});
  now.SetClasses({"ant", "bee, or wasp"});
  EXPECT_OK(now.CheckResume(json, "step_7", &changes_));
  EXPECT_OK(RunIdentity::CheckClasses({"ant", "bee, or wasp"}, "config.DATA.TRAIN", json, "step_7"));
  EXPECT_FALSE(RunIdentity::CheckClasses({"ant", "wasp"}, "config.DATA.TRAIN", json, "step_7").ok());
}

TEST_F(DataIdentityTest, CheckClasses_ComparesThoseOfATrainedNetwork) {
  const ConfigNode config = Parsed("DATA: {TRAIN: {DROP_LAST: True}}");
  RunIdentity saved(config, catalog_, {});
  EXPECT_OK(RunIdentity::CheckClasses({"ant"}, "config.DATA.TRAIN", saved.ToJson(), "step_7"));
  saved.SetClasses({"ant", "bee"});
  EXPECT_OK(RunIdentity::CheckClasses({"ant", "bee"}, "config.DATA.TRAIN", saved.ToJson(), "step_7"));
  EXPECT_THAT(RunIdentity::CheckClasses({"bee", "zant"}, "config.DATA.TRAIN", saved.ToJson(), "step_7"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("step_7"), HasSubstr("ant, bee"), HasSubstr("config.DATA.TRAIN are"))));
}

// This source has names alone.
class NamedSource : public BatchSource {
 public:
  explicit NamedSource(std::vector<std::string> names) : names_(std::move(names)) {}
  int64_t batches_per_epoch() const override { return 1; }
  int64_t dataset_size() const override { return static_cast<int64_t>(names_.size()); }
  std::string SampleIdentity(int64_t index) const override { return names_[index]; }
  absl::Status StartEpoch(int64_t epoch, int64_t first_batch) override { return absl::OkStatus(); }
  absl::StatusOr<const Batch*> Next() override { return nullptr; }

 private:
  const std::vector<std::string> names_;
};

TEST(DigestSamplesTest, FirstOtherPart_IsNamed) {
  std::vector<std::string> names;
  for (int i = 0; i < 640; ++i) names.push_back(absl::StrCat(i, ".jpg"));
  const std::string saved = DigestSamples(NamedSource(names)).ToString();
  EXPECT_EQ(DigestSamples(NamedSource(names)).ToString(), saved);
  EXPECT_EQ(DigestSamples(NamedSource(names)).FirstOther(saved), "");
  names[25] = "x.jpg";
  names[400] = "y.jpg";
  EXPECT_EQ(DigestSamples(NamedSource(names)).FirstOther(saved), "'20.jpg' to '29.jpg'");
  EXPECT_EQ(DigestSamples(NamedSource({"", "", ""})).ToString(), "") << "a source that cannot tell";
}

}  // namespace
}  // namespace ssl
