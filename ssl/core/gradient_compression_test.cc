// SPDX-License-Identifier: Apache-2.0
//
// Gradients that travel in a short type, against the arithmetic written out: every rank rounds its own, divides them by
// the number of ranks, and what is added is rounded again.
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/status_macros.h"
#include "ssl/core/grad_scaler.h"
#include "ssl/core/gradient_reducer.h"
#include "ssl/distributed/testing/counting_communicator.h"
#include "ssl/distributed/testing/process_world.h"
#include "ssl/distributed/testing/thread_communicator.h"
#include "ssl/distributed/virtual_world.h"
#include "ssl/testing/captured_log.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kElements = 37;
constexpr int64_t kParameters = 5;
constexpr at::ScalarType kShortTypes[] = {at::kBFloat16, at::kHalf};

std::vector<NamedParameter> MakeParameters(at::ScalarType type = at::kFloat) {
  std::vector<NamedParameter> parameters;
  for (int64_t i = 0; i < kParameters; ++i) {
    parameters.push_back({absl::StrCat("layer", i), at::full({kElements}, 1, type).requires_grad_(true)});
  }
  return parameters;
}

// Of all magnitudes from 1e-9 to 1e3, on each side of zero.
at::Tensor Gradient(int64_t rank, int64_t parameter, int64_t step = 0) {
  const at::Tensor place = at::arange(kElements, at::kFloat) + static_cast<double>(parameter);
  const at::Tensor sign = (place * 1.7 + static_cast<double>(rank + step)).sin();
  return sign * (place.remainder(13) - 9.0 + 0.1 * static_cast<double>(rank)).mul(2.302585).exp();
}

// Whose gradients are those above; `layers`: those that take part.
at::Tensor Loss(const std::vector<NamedParameter>& parameters, int64_t rank, int64_t step = 0,
                const std::vector<bool>& layers = std::vector<bool>(kParameters, true)) {
  at::Tensor loss = at::zeros({});
  for (int64_t i = 0; i < kParameters; ++i) {
    if (layers[i]) loss = loss + (parameters[i].value.to(at::kFloat) * Gradient(rank, i, step)).sum();
  }
  return loss;
}

template <typename Short>
at::Tensor MeanByLoops(const std::vector<at::Tensor>& ranks) {
  at::Tensor mean = at::empty({kElements}, at::kFloat);
  for (int64_t i = 0; i < kElements; ++i) {
    float sum = 0.0F;
    for (const at::Tensor& gradient : ranks) {
      const auto own = static_cast<Short>(gradient.const_data_ptr<float>()[i]);
      sum += static_cast<Short>(static_cast<float>(own) / static_cast<float>(ranks.size()));
    }
    mean.mutable_data_ptr<float>()[i] = static_cast<Short>(sum);
  }
  return mean;
}

at::Tensor ExpectedMean(at::ScalarType type, int64_t ranks, int64_t parameter, int64_t step = 0) {
  std::vector<at::Tensor> of_ranks;
  for (int64_t rank = 0; rank < ranks; ++rank) of_ranks.push_back(Gradient(rank, parameter, step));
  return type == at::kHalf ? MeanByLoops<c10::Half>(of_ranks) : MeanByLoops<c10::BFloat16>(of_ranks);
}

GradientReducerOptions Compressed(at::ScalarType type, int64_t bucket_bytes = 2 * kElements * 4) {
  return {bucket_bytes, 1, type};
}

absl::Status ReduceInBackward(GradientReducer& reducer, const at::Tensor& loss) {
  SSL_RETURN_IF_ERROR(reducer.StartWithBackward());
  loss.backward();
  return reducer.Reduce();
}

// Buckets of all sizes, started within backward and after it.
absl::Status CheckBitForBit(Communicator& communicator) {
  for (const at::ScalarType type : kShortTypes) {
    for (const int64_t bytes : {int64_t{1}, 2 * kElements * 4, int64_t{1} << 20}) {
      std::vector<NamedParameter> parameters = MakeParameters();
      GradientReducer reducer(parameters, Compressed(type, bytes), communicator);
      for (int64_t step = 0; step < 3; ++step) {
        const at::Tensor loss = Loss(parameters, communicator.rank(), step);
        if (step == 1) {
          loss.backward();
          SSL_RETURN_IF_ERROR(reducer.Reduce());
        } else {
          SSL_RETURN_IF_ERROR(ReduceInBackward(reducer, loss));
        }
        for (int64_t i = 0; i < kParameters; ++i) {
          const at::Tensor& gradient = parameters[i].value.grad();
          EXPECT_TRUE(at::equal(gradient, ExpectedMean(type, communicator.size(), i, step)))
              << at::toString(type) << " " << bytes << " bytes, step " << step << ", parameter " << i;
          // Dropped, or set to zero where it is: both are a new beginning.
          gradient.zero_();
          if (step == 0) parameters[i].value.mutable_grad().reset();
        }
      }
    }
  }
  return absl::OkStatus();
}

absl::Status InThreads(int64_t ranks, const std::function<absl::Status(Communicator&)>& rank_main) {
  return ThreadWorld(ranks, absl::Seconds(30)).Run(rank_main);
}

TEST(GradientCompression, GradientsOfThreads_AreTheMeanOfRoundedOnes) {
  for (const int64_t ranks : {2, 3, 4}) EXPECT_OK(InThreads(ranks, &CheckBitForBit));
}

TEST(GradientCompression, GradientsOfTwoProcesses_AreTheMeanOfRoundedOnes) {
  EXPECT_OK(ProcessWorld(2).Run(&CheckBitForBit));
}

TEST(GradientCompression, GradientsOfVirtualRanks_AreTheMeanOfRoundedOnes) {
  EXPECT_OK(ProcessWorld(2).Run(
      [](Communicator& communicator) { return VirtualWorld(4, communicator).Run(&CheckBitForBit); }));
}

// Gloo rounds each time that it adds the share of another rank.
TEST(GradientCompression, GradientsOfFourProcesses_AreCloseAndEqualOnAll) {
  EXPECT_OK(ProcessWorld(4).Run([](Communicator& communicator) -> absl::Status {
    for (const at::ScalarType type : kShortTypes) {
      std::vector<NamedParameter> parameters = MakeParameters();
      GradientReducer reducer(parameters, Compressed(type), communicator);
      SSL_RETURN_IF_ERROR(ReduceInBackward(reducer, Loss(parameters, communicator.rank())));
      for (int64_t i = 0; i < kParameters; ++i) {
        at::Tensor mean = at::zeros({kElements});
        at::Tensor magnitude = at::zeros({kElements});
        for (int64_t rank = 0; rank < 4; ++rank) {
          mean += Gradient(rank, i) / 4;
          magnitude += Gradient(rank, i).abs() / 4;
        }
        const at::Tensor& gradient = parameters[i].value.grad();
        // A rounding of each share, and of each of three sums: by half of the last of 8 bits, or of 11.
        const double bound = 4 * std::ldexp(1.0, type == at::kHalf ? -11 : -8);
        EXPECT_TRUE(((gradient - mean).abs() <= magnitude * bound + 1e-6).all().item<bool>()) << gradient - mean;
        SSL_ASSIGN_OR_RETURN(const at::Tensor all, communicator.AllGather(gradient));
        EXPECT_TRUE(at::equal(all, gradient.expand_as(all)));
      }
    }
    return absl::OkStatus();
  }));
}

TEST(GradientCompression, HalfOfTheBytesTravel_FromTheSameMemoryInEachUpdate) {
  EXPECT_OK(InThreads(2, [](Communicator& communicator) -> absl::Status {
    CollectiveCounts counts;
    CountingCommunicator counted(communicator, &counts);
    std::vector<NamedParameter> parameters = MakeParameters();
    GradientReducer reducer(parameters, Compressed(at::kBFloat16), counted);
    std::vector<at::Tensor> first;
    for (int64_t step = 0; step < 3; ++step) {
      SSL_RETURN_IF_ERROR(ReduceInBackward(reducer, Loss(parameters, communicator.rank(), step)));
      const std::vector<at::Tensor> reduced = counts.TakeReduced();
      if (step == 0) first = reduced;
      EXPECT_EQ(reduced.size(), first.size());
      size_t bytes = 0;
      for (size_t i = 0; i < reduced.size(); ++i) {
        EXPECT_EQ(reduced[i].scalar_type(), at::kBFloat16);
        EXPECT_EQ(reduced[i].const_data_ptr(), first[i].const_data_ptr());
        bytes += reduced[i].nbytes();
      }
      EXPECT_EQ(bytes, (kParameters * kElements + kParameters) * 2u) << "with who has which gradient";
    }
    return absl::OkStatus();
  }));
}

TEST(GradientCompression, GradientsThatAreNoWider_TravelAsTheyAre) {
  EXPECT_OK(InThreads(2, [](Communicator& communicator) -> absl::Status {
    for (const auto& [type, travels_in] :
         std::vector<std::pair<at::ScalarType, at::ScalarType>>{{at::kDouble, at::kBFloat16},
                                                                {at::kFloat, at::kBFloat16},
                                                                {at::kBFloat16, at::kBFloat16},
                                                                {at::kHalf, at::kHalf}}) {
      CollectiveCounts counts;
      CountingCommunicator counted(communicator, &counts);
      std::vector<NamedParameter> parameters = MakeParameters(type);
      GradientReducer reducer(parameters, Compressed(at::kBFloat16), counted);
      parameters[0].value.mutable_grad() = at::full({kElements}, communicator.rank() + 1, type);
      SSL_RETURN_IF_ERROR(reducer.Reduce());
      EXPECT_TRUE(at::equal(parameters[0].value.grad(), at::full({kElements}, 1.5, type)));
      for (const at::Tensor& reduced : counts.TakeReduced()) EXPECT_EQ(reduced.scalar_type(), travels_in);
    }
    return absl::OkStatus();
  }));
}

// Three ranks, whose thirds add up to less than one.
TEST(GradientCompression, GradientThatSomeRanksLack_IsZeroThereAndNamed) {
  CapturedLog log;
  EXPECT_OK(InThreads(3, [](Communicator& communicator) -> absl::Status {
    for (const at::ScalarType type : kShortTypes) {
      std::vector<NamedParameter> parameters = MakeParameters();
      GradientReducer reducer(parameters, Compressed(type), communicator);
      const bool is_second = communicator.rank() == 1;
      const at::Tensor loss = Loss(parameters, communicator.rank(), 0, {true, false, !is_second, true, is_second});
      SSL_RETURN_IF_ERROR(ReduceInBackward(reducer, loss));
      EXPECT_FALSE(parameters[1].value.grad().defined());
      const auto mean = type == at::kHalf ? MeanByLoops<c10::Half> : MeanByLoops<c10::BFloat16>;
      const at::Tensor none = at::zeros({kElements});
      EXPECT_TRUE(at::equal(parameters[2].value.grad(), mean({Gradient(0, 2), none, Gradient(2, 2)})));
      EXPECT_TRUE(at::equal(parameters[4].value.grad(), mean({none, Gradient(1, 4), none})));
      EXPECT_TRUE(at::equal(parameters[0].value.grad(), ExpectedMean(type, 3, 0)));
    }
    return absl::OkStatus();
  }));
  ASSERT_EQ(log.warnings.size(), 2u) << log.Text();
  EXPECT_THAT(log.warnings[0],
              AllOf(HasSubstr("undefined on some ranks"), HasSubstr("the gradient of layer4, layer2 (")));
}

TEST(GradientCompression, GradientsOfSeveralBatches_AreRoundedOnce) {
  EXPECT_OK(InThreads(2, [](Communicator& communicator) -> absl::Status {
    for (const at::ScalarType type : kShortTypes) {
      CollectiveCounts counts;
      CountingCommunicator counted(communicator, &counts);
      std::vector<NamedParameter> parameters = MakeParameters();
      GradientReducer reducer(parameters, Compressed(type), counted);
      for (int64_t update = 0; update < 2; ++update) {
        for (NamedParameter& parameter : parameters) parameter.value.mutable_grad().reset();
        Loss(parameters, communicator.rank(), 0).backward();
        EXPECT_THAT(counts.TakeReduced(), ElementsAre()) << "with the last batch only";
        SSL_RETURN_IF_ERROR(ReduceInBackward(reducer, Loss(parameters, communicator.rank(), 1)));
        EXPECT_EQ(counts.TakeReduced().size(), 3u);
        for (int64_t i = 0; i < kParameters; ++i) {
          std::vector<at::Tensor> sums;
          for (int64_t rank = 0; rank < 2; ++rank) sums.push_back(Gradient(rank, i, 0) + Gradient(rank, i, 1));
          const at::Tensor expected =
              type == at::kHalf ? MeanByLoops<c10::Half>(sums) : MeanByLoops<c10::BFloat16>(sums);
          EXPECT_TRUE(at::equal(parameters[i].value.grad(), expected));
        }
      }
    }
    return absl::OkStatus();
  }));
}

// 40,000 twice is more than float16 holds, 70,000 once as well: but the mean of the former is not.
TEST(GradientCompression, MeanThatFitsDoesNotOverflow_AndAnOverflowOfOneRankIsSeenByAll) {
  EXPECT_OK(ProcessWorld(2).Run([](Communicator& communicator) -> absl::Status {
    for (const bool overflows : {false, true}) {
      for (const at::ScalarType type : kShortTypes) {
        std::vector<NamedParameter> parameters = MakeParameters();
        GradientReducer reducer(parameters, Compressed(type), communicator);
        for (NamedParameter& parameter : parameters) {
          parameter.value.mutable_grad() = at::full({kElements}, 40000, at::kFloat);
        }
        if (overflows && communicator.rank() == 1) parameters[2].value.grad()[5].fill_(70000);
        SSL_RETURN_IF_ERROR(reducer.Reduce());
        const float gradient = parameters[2].value.grad()[5].item<float>();
        const bool is_lost = overflows && type == at::kHalf;
        EXPECT_EQ(gradient == std::numeric_limits<float>::infinity(), is_lost) << gradient;
        if (!is_lost) {
          EXPECT_NEAR(gradient, overflows ? 55000 : 40000, 200);
        }
        ParameterGroup group;
        for (const NamedParameter& parameter : parameters) group.parameters.push_back(parameter.value);
        std::vector<ParameterGroup> groups = {group};
        GradScaler scaler({/*initial_scale=*/1024.0});
        EXPECT_EQ(scaler.Unscale(groups).item<float>(), is_lost ? 1.0F : 0.0F) << "rank " << communicator.rank();
      }
    }
    return absl::OkStatus();
  }));
}

}  // namespace
}  // namespace ssl
