// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/equal_sources.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/core/session.h"
#include "ssl/core/testing/fake_session.h"
#include "ssl/core/testing/fakes.h"
#include "ssl/distributed/agree.h"
#include "ssl/distributed/testing/thread_communicator.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;

using Names = std::vector<std::string>;

class NamedSource : public FakeSource {
 public:
  // other: a sample that is another one than elsewhere; -1: none.
  NamedSource(int64_t samples, Names names, int64_t other = -1)
      : FakeSource(samples, 4, 0, 1), names_(std::move(names)), other_(other) {}
  Names ClassNames() const override { return names_; }
  std::string SampleIdentity(int64_t index) const override {
    return absl::StrCat(index == other_ ? "b/" : "a/", index, ".png");
  }

 private:
  const Names names_;
  const int64_t other_;
};

// Of as many ranks as sources; OK when all returned that.
absl::Status Check(const std::vector<NamedSource>& sources) {
  return ThreadWorld(static_cast<int64_t>(sources.size()), absl::Seconds(60)).Run([&](Communicator& communicator) {
    return CheckEqualSources("config.DATA.TEST", &sources[communicator.rank()], communicator);
  });
}

// Of three ranks, the last of which has `other`.
absl::Status Check(const NamedSource& first, const NamedSource& other) { return Check({first, first, other}); }

TEST(EqualSourcesTest, EqualOnesAreTaken) {
  EXPECT_OK(Check(NamedSource(40, {"ant", "bee"}), NamedSource(40, {"ant", "bee"})));
  EXPECT_OK(Check(NamedSource(40, {}), NamedSource(40, {})));
}

TEST(EqualSourcesTest, AMissingFileIsNamedWithBothRanks) {
  EXPECT_THAT(Check(NamedSource(43, {}), NamedSource(42, {})),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("config.DATA.TEST is not the same data set on all ranks: rank 2 (on "),
                             HasSubstr(") has 42 samples, and rank 0 (on "), HasSubstr(") has 43 samples; "))));
}

TEST(EqualSourcesTest, OtherClassesAreNamed) {
  EXPECT_THAT(Check(NamedSource(40, {"ab", "c"}), NamedSource(40, {"a", "bc"})),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr(") has 'a' as class 0, and rank 0 "), HasSubstr(") has 'ab' as class 0; "))));
}

TEST(EqualSourcesTest, AMissingClassIsNamed) {
  EXPECT_THAT(Check(NamedSource(40, {"ant", "bee"}), NamedSource(40, {"ant"})),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr(") has no class 1, and rank 0 "), HasSubstr(") has 'bee' as class 1; "))));
}

// As many images and classes, but one lies in another folder, or has another name.
TEST(EqualSourcesTest, TheFirstOtherSampleIsNamed) {
  for (const int64_t other : {0, 17, 39}) {
    const std::string as_sample = absl::StrCat(".png' as sample ", other, ", and rank 0 (on ");
    EXPECT_THAT(Check(NamedSource(40, {"a", "b"}), NamedSource(40, {"a", "b"}, other)),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr("rank 2 (on "), HasSubstr(absl::StrCat(") has 'b/", other, as_sample)),
                               HasSubstr(absl::StrCat(") has 'a/", other, ".png'; copy it whole ")))));
  }
}

// Names of files may have any bytes, and a message is a line of a log.
TEST(EqualSourcesTest, NamesThatAreNoText_AreEscaped) {
  EXPECT_THAT(Check(NamedSource(40, {"a\nE rank 7"}), NamedSource(40, {"a\xff"})),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("'a\\xff' as class 0"), HasSubstr("'a\\nE rank 7' as class 0"))));
}

// A stream, of which every sample has the default identity.
class EndlessSource : public FakeSource {
 public:
  EndlessSource() : FakeSource(40, 4, 0, 1) {}
  int64_t dataset_size() const override { return int64_t{1} << 50; }
};

TEST(EqualSourcesTest, AStreamWithoutIdentities_IsNotAskedForEach) {
  const EndlessSource source;
  EXPECT_OK(ThreadWorld(2, absl::Seconds(60)).Run([&](Communicator& communicator) {
    return CheckEqualSources("config.DATA.TRAIN", &source, communicator);
  }));
}

// It takes part in the search as the others do.
TEST(EqualSourcesTest, ARankWithFewerSamplesDoesNotHinderTheSearch) {
  EXPECT_THAT(Check({NamedSource(40, {}), NamedSource(40, {}, 31), NamedSource(8, {})}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("rank 1 (on "), HasSubstr("'b/31.png' as sample 31, "))));
}

TEST(EqualSourcesTest, ASessionDoesNotBeginWithUnequalOnes) {
  std::vector<absl::Status> statuses(2);
  EXPECT_OK(ThreadWorld(2, absl::Seconds(60)).Run([&](Communicator& communicator) {
    SessionOptions options;
    options.communicator = &communicator;
    options.train_source = std::make_unique<FakeSource>(40 + 8 * communicator.rank(), 4, communicator.rank(), 2);
    statuses[communicator.rank()] = MakeSession(FakeConfig(""), std::move(options)).status();
    return absl::OkStatus();
  }));
  for (const absl::Status& status : statuses) {
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("has 48 samples, ")));
  }
  EXPECT_FALSE(IsSaidOnThisHost(statuses[0]));
  EXPECT_TRUE(IsSaidOnThisHost(statuses[1])) << "by rank 0, in the same words";
}

TEST(EqualSourcesTest, ARankWithoutOneOfTheSources_IsNamed) {
  std::vector<absl::Status> statuses(2);
  EXPECT_OK(ThreadWorld(2, absl::Seconds(60)).Run([&](Communicator& communicator) {
    const NamedSource source(40, {"ant"});
    const BatchSource* const test = communicator.rank() == 1 ? &source : nullptr;
    statuses[communicator.rank()] = CheckEqualSources("config.DATA.TEST", test, communicator);
    return absl::OkStatus();
  }));
  EXPECT_THAT(statuses,
              Each(StatusIs(absl::StatusCode::kInvalidArgument,
                            AllOf(HasSubstr("config.DATA.TEST is not the same data set on all ranks: rank 1 "),
                                  HasSubstr("has one, and rank 0 (on "), HasSubstr("has none; ")))));
}

}  // namespace
}  // namespace ssl
