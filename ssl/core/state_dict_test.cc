// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/state_dict.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/log.h"
#include "ssl/testing/captured_log.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Inner : Stateful {
  at::Tensor weight = at::full({2, 2}, 1.5);
  int64_t count = 3;
  void VisitState(StateVisitor& visitor) override {
    visitor.Tensor("weight", weight);
    visitor.Int("count", count);
  }
};

struct Outer : Stateful {
  Inner inner;
  double best = 0.1;
  std::vector<int64_t> order = {4, 5};
  std::vector<double> losses = {0.25};
  std::string note = "grün";
  at::Tensor lazy;
  int restored = 0;
  void VisitState(StateVisitor& visitor) override {
    visitor.Scope("inner", inner);
    visitor.Double("best", best);
    visitor.Ints("order", order);
    visitor.Doubles("losses", losses);
    visitor.Text("note", note);
    visitor.OnRestored([this] { ++restored; });
  }
};

Outer Changed() {
  Outer outer;
  outer.inner.weight = at::full({2, 2}, -1.0);
  outer.inner.count = 99;
  outer.best = 7.0;
  outer.order = {1};
  outer.losses = {};
  outer.note = "";
  return outer;
}

struct Measured : Stateful {
  at::Tensor weight = at::full({3}, 1.0);
  at::Tensor loss = at::full({}, 1.0);
  double best = 0.0;
  void VisitState(StateVisitor& visitor) override {
    visitor.Tensor("weight", weight);
    visitor.Tensor("loss", loss);
    visitor.MayBeNonFinite("loss");
    visitor.Double("best", best);
  }
};

TEST(StateDictTest, CollectFiniteState_NamesWhatIsNot) {
  Measured measured;
  measured.loss.fill_(std::numeric_limits<double>::infinity());
  EXPECT_OK(CollectFiniteState(measured));
  measured.weight[1].fill_(std::nan(""));
  measured.best = -std::numeric_limits<double>::infinity();
  EXPECT_THAT(CollectFiniteState(measured),
              StatusIs(absl::StatusCode::kOutOfRange,
                       HasSubstr("is not finite: weight (1 of 3 values), best (1 of 1 values)")));
}

TEST(StateDictTest, RestoreState_RefusesWhatIsNotFinite) {
  Measured saved;
  saved.weight[2].fill_(std::nan(""));
  saved.loss.fill_(std::nan(""));
  ASSERT_OK_AND_ASSIGN(const std::vector<NamedTensor> state, CollectState(saved));
  Measured target;
  EXPECT_THAT(RestoreState(target, state, "step_7"),
              StatusIs(absl::StatusCode::kDataLoss, "step_7: holds infinite values or NaN: weight (1 of 3 values)"));
  EXPECT_EQ(target.loss.item<double>(), 1.0);
  saved.weight[2].fill_(2.0);
  ASSERT_OK_AND_ASSIGN(const std::vector<NamedTensor> mended, CollectState(saved));
  EXPECT_OK(RestoreState(target, mended, "step_7"));
}

TEST(StateDictTest, CollectState_NamesByScope) {
  Outer outer;
  ASSERT_OK_AND_ASSIGN(const std::vector<NamedTensor> state, CollectState(outer));
  std::vector<std::string> names;
  for (const NamedTensor& entry : state) names.push_back(entry.name);
  EXPECT_THAT(names, ElementsAre("inner/weight", "inner/count", "best", "order", "losses", "note"));
}

TEST(StateDictTest, RestoreState_PutsEverythingBack) {
  Outer saved;
  Outer outer = Changed();
  ASSERT_OK(RestoreState(outer, *CollectState(saved), "here"));
  EXPECT_TRUE(at::equal(outer.inner.weight, saved.inner.weight));
  EXPECT_EQ(outer.inner.count, 3);
  EXPECT_EQ(outer.best, 0.1);
  EXPECT_THAT(outer.order, ElementsAre(4, 5));
  EXPECT_THAT(outer.losses, ElementsAre(0.25));
  EXPECT_EQ(outer.note, "grün");
  EXPECT_EQ(outer.restored, 1);
}

TEST(StateDictTest, RestoreState_KeepsTheTensorsStorage) {
  Outer saved;
  Outer outer = Changed();
  const at::Tensor alias = outer.inner.weight;
  ASSERT_OK(RestoreState(outer, *CollectState(saved), "here"));
  EXPECT_TRUE(at::equal(alias, saved.inner.weight));
}

TEST(StateDictTest, AnyDifference_ChangesNothingAndListsAll) {
  Outer saved;
  std::vector<NamedTensor> state = *CollectState(saved);
  state[0].tensor = at::full({3}, 1.0);
  state[2].name = "worst";
  Outer outer = Changed();

  const absl::Status status = RestoreState(outer, state, "step_3");

  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument,
                               HasSubstr("step_3: saved by another model, optimizer or configuration: inner/weight is "
                                         "Float [3], expected Float [2, 2]; best is missing; worst has no place")));
  EXPECT_EQ(outer.inner.count, 99);
  EXPECT_EQ(outer.restored, 0);
}

TEST(StateDictTest, WrongKindOfValue_IsRefused) {
  Outer saved;
  std::vector<NamedTensor> state = *CollectState(saved);
  state[1].tensor = at::full({}, 3.0, at::kDouble);
  Outer outer;
  EXPECT_THAT(RestoreState(outer, state, "x"), StatusIs(absl::StatusCode::kInvalidArgument,
                                                        HasSubstr("inner/count is Double [], expected Long with 0")));
}

TEST(StateDictTest, HashState_DiffersForAnyBit) {
  Outer first, second;
  EXPECT_EQ(*HashState(first), *HashState(second));
  second.inner.weight[0][1] = 1.5000001f;
  EXPECT_NE(*HashState(first), *HashState(second));
  Outer negative_zero, zero;
  zero.best = 0.0;
  negative_zero.best = -0.0;
  EXPECT_NE(*HashState(zero), *HashState(negative_zero));
}

TEST(StateDictTest, ManyDifferences_AreCounted) {
  struct Many : Stateful {
    std::vector<at::Tensor> tensors;
    void VisitState(StateVisitor& visitor) override {
      for (size_t i = 0; i < tensors.size(); ++i) visitor.Tensor("tensor" + std::to_string(i), tensors[i]);
    }
  };
  Many none, many;
  many.tensors.assign(300, at::zeros({2}));
  const std::vector<NamedTensor> state = *CollectState(none);
  const absl::Status status = RestoreState(many, state, "step_3");
  EXPECT_THAT(status.message(), HasSubstr("tensor0 is missing; tensor1 is missing"));
  EXPECT_THAT(status.message(), HasSubstr("; and 294 more differences"));
  EXPECT_LT(status.message().size(), 400u);
}

TEST(StateDictTest, OneNameTwice_IsRefused) {
  struct Twice : Stateful {
    int64_t a = 0;
    void VisitState(StateVisitor& visitor) override {
      visitor.Int("a", a);
      visitor.Int("a", a);
    }
  } twice;
  EXPECT_THAT(CollectState(twice), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("'a' is visited twice")));
}

// Parts that come and go.
struct Parts : Stateful {
  bool has_first = true;
  bool has_second = true;
  bool has_idle = false;
  Inner first;
  Measured second;
  Stateful idle;
  void VisitState(StateVisitor& visitor) override {
    visitor.ScopesMayDiffer();
    if (has_first) visitor.Scope("first", first);
    if (has_second) visitor.Scope("second", second);
    if (has_idle) visitor.Scope("idle", idle);
  }
};

struct WithParts : Stateful {
  Inner inner;
  Parts parts;
  void VisitState(StateVisitor& visitor) override {
    visitor.Scope("inner", inner);
    visitor.Scope("parts", parts);
  }
};

TEST(StateDictTest, ScopesThatMayDiffer_AreNamedAndTheRestIsRestored) {
  InitLogging({/*to_stderr=*/true, "test", "", 0});
  WithParts saved;
  saved.inner.count = 8;
  saved.parts.has_second = false;
  ASSERT_OK_AND_ASSIGN(const std::vector<NamedTensor> state, CollectState(saved));
  WithParts now;
  now.parts.has_first = false;
  now.parts.has_idle = true;
  now.parts.second.best = 0.75;
  const CapturedLog log;

  ASSERT_OK(RestoreState(now, state, "step_4"));

  EXPECT_EQ(now.inner.count, 8);
  EXPECT_EQ(now.parts.second.best, 0.75);
  EXPECT_THAT(log.lines, ElementsAre("step_4: has no state of parts/second, which start anew; the state of parts/first "
                                     "is of no part of this run"));
  WithParts again;
  again.parts.has_second = false;
  ASSERT_OK(RestoreState(again, state, "step_4"));
  EXPECT_EQ(log.lines.size(), 1u) << "nothing differs";
}

// One part whose own parts come and go, as the metrics of a hook do, and a count after them.
struct PartOfParts : Stateful {
  Parts parts;
  int64_t count = 0;
  void VisitState(StateVisitor& visitor) override {
    visitor.Scope("parts", parts);
    visitor.Int("count", count);
  }
};

struct Nested : Stateful {
  bool has_part = true;
  PartOfParts part;
  Inner other;
  void VisitState(StateVisitor& visitor) override {
    visitor.ScopesMayDiffer();
    if (has_part) visitor.Scope("part", part);
    visitor.Scope("other", other);
  }
};

TEST(StateDictTest, ScopesThatMayDiffer_MayLieInOneAnother) {
  InitLogging({/*to_stderr=*/true, "test", "", 0});
  Nested saved;
  saved.part.parts.has_second = false;
  saved.part.count = 8;
  ASSERT_OK_AND_ASSIGN(const std::vector<NamedTensor> state, CollectState(saved));
  Nested removed;
  removed.part.parts.has_first = false;
  removed.part.parts.has_second = false;
  Nested replaced;
  replaced.part.parts.has_first = false;
  const CapturedLog log;

  ASSERT_OK(RestoreState(removed, state, "step_4"));
  ASSERT_OK(RestoreState(replaced, state, "step_4"));

  EXPECT_EQ(removed.part.count, 8);
  EXPECT_EQ(replaced.part.count, 8);
  const std::string gone = "the state of part/parts/first is of no part of this run";
  EXPECT_THAT(log.lines,
              ElementsAre("step_4: " + gone, "step_4: has no state of part/parts/second, which start anew; " + gone));
}

TEST(StateDictTest, NewPart_MayHaveStateAfterPartsOfItsOwn) {
  InitLogging({/*to_stderr=*/true, "test", "", 0});
  Nested saved;
  saved.has_part = false;
  ASSERT_OK_AND_ASSIGN(const std::vector<NamedTensor> state, CollectState(saved));
  Nested now;
  now.part.count = 3;
  const CapturedLog log;

  ASSERT_OK(RestoreState(now, state, "step_4"));

  EXPECT_EQ(now.part.count, 3);
  EXPECT_THAT(log.lines, ElementsAre("step_4: has no state of part, which start anew"));
}

TEST(StateDictTest, PartThatHasNoStateAnyMore_TakesNone) {
  InitLogging({/*to_stderr=*/true, "test", "", 0});
  WithParts saved;
  ASSERT_OK_AND_ASSIGN(std::vector<NamedTensor> state, CollectState(saved));
  state.push_back({"parts/idle/count", at::zeros({}, at::kLong)});
  WithParts now;
  now.parts.has_idle = true;
  const CapturedLog log;

  ASSERT_OK(RestoreState(now, state, "step_4"));

  EXPECT_THAT(log.lines, ElementsAre("step_4: the state of parts/idle is of no part of this run"));
}

TEST(StateDictTest, ScopesThatMayDiffer_StillMatchInside) {
  WithParts saved;
  ASSERT_OK_AND_ASSIGN(std::vector<NamedTensor> state, CollectState(saved));
  state.push_back({"parts/first/extra", at::zeros({1})});
  state.push_back({"parts/loose", at::zeros({1})});
  WithParts now;
  EXPECT_THAT(RestoreState(now, state, "step_4"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("parts/first/extra has no place"), HasSubstr("parts/loose has no place"))));
  state = *CollectState(saved);
  state.erase(state.begin() + 2);  // parts/first/weight
  EXPECT_THAT(RestoreState(now, state, "step_4"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("parts/first/weight is missing")));
}

TEST(StateDictTest, InfiniteStateOfAPartThatIsGone_DoesNotMatter) {
  WithParts saved;
  saved.parts.second.loss.fill_(std::numeric_limits<double>::infinity());
  ASSERT_OK_AND_ASSIGN(const std::vector<NamedTensor> state, CollectFiniteState(saved));
  WithParts now;
  now.parts.has_second = false;
  EXPECT_OK(RestoreState(now, state, "step_4"));
}

}  // namespace
}  // namespace ssl
