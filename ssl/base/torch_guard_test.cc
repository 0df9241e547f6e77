// SPDX-License-Identifier: Apache-2.0

#include "ssl/base/torch_guard.h"

#include <ATen/Context.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>
#include <oneapi/dnnl/dnnl_common.hpp>

#include <new>
#include <stdexcept>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/error_detail.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

template <class Error>
absl::Status ThrowC10() {
  return GuardTorch("step 12", []() -> absl::Status {
    throw Error({__func__, __FILE__, static_cast<uint32_t>(__LINE__)}, "batch is wrong");
  });
}

TEST(GuardTorchTest, Status_PassesUnchanged) {
  EXPECT_OK(GuardTorch("step 1", [] { return absl::OkStatus(); }));
  EXPECT_THAT(GuardTorch("step 1", [] { return absl::NotFoundError("gone"); }),
              StatusIs(absl::StatusCode::kNotFound, "gone"));
}

TEST(GuardTorchTest, C10Exceptions_GetTheirCode) {
  const char* message = "step 12: batch is wrong";
  EXPECT_THAT(ThrowC10<c10::OutOfMemoryError>(), StatusIs(absl::StatusCode::kResourceExhausted, message));
  EXPECT_THAT(ThrowC10<c10::ValueError>(), StatusIs(absl::StatusCode::kInvalidArgument, message));
  EXPECT_THAT(ThrowC10<c10::IndexError>(), StatusIs(absl::StatusCode::kInvalidArgument, message));
  EXPECT_THAT(ThrowC10<c10::TypeError>(), StatusIs(absl::StatusCode::kInvalidArgument, message));
  EXPECT_THAT(ThrowC10<c10::NotImplementedError>(), StatusIs(absl::StatusCode::kUnimplemented, message));
  EXPECT_THAT(ThrowC10<c10::DistBackendError>(), StatusIs(absl::StatusCode::kUnavailable, message));
  EXPECT_THAT(ThrowC10<c10::DistNetworkError>(), StatusIs(absl::StatusCode::kUnavailable, message));
  EXPECT_THAT(ThrowC10<c10::Error>(), StatusIs(absl::StatusCode::kInternal, message));
}

TEST(GuardTorchTest, CausesAndTypes_AreKept) {
  EXPECT_EQ(DetailOf(ThrowC10<c10::OutOfMemoryError>(), kDetailCause), kCauseMemory);
  EXPECT_EQ(DetailOf(ThrowC10<c10::DistNetworkError>(), kDetailCause), kCausePeer);
  EXPECT_EQ(DetailOf(ThrowC10<c10::DistNetworkError>(), kDetailException), "c10::DistNetworkError");
  EXPECT_EQ(DetailOf(ThrowC10<c10::ValueError>(), kDetailCause), "");
  EXPECT_EQ(DetailOf(GuardTorch("load", []() -> absl::Status { throw std::bad_alloc(); }), kDetailCause), kCauseMemory);
  EXPECT_EQ(DetailOf(GuardTorch("load", []() -> absl::Status { throw std::runtime_error("a"); }), kDetailException),
            "std::runtime_error");
}

TEST(GuardTorchTest, MemoryOfADevice_IsToldFromTheHosts) {
  EXPECT_EQ(DetailOf(ThrowC10<c10::OutOfMemoryError>(), kDetailMemory), kMemoryOfDevice);
  EXPECT_EQ(DetailOf(ThrowC10<c10::Error>(), kDetailMemory), "");
  EXPECT_EQ(DetailOf(GuardTorch("load", []() -> absl::Status { throw std::bad_alloc(); }), kDetailMemory), "");
  for (const char* message : {"CUDA error: out of memory", "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling it",
                              "cuDNN error: CUDNN_STATUS_ALLOC_FAILED"}) {
    const absl::Status status = GuardTorch("step 1", [&]() -> absl::Status { TORCH_CHECK(false, message); });
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr(message)));
    EXPECT_EQ(DetailOf(status, kDetailCause), kCauseMemory);
    EXPECT_EQ(DetailOf(status, kDetailMemory), kMemoryOfDevice);
  }
}

TEST(GuardTorchTest, MemoryThatNcclLacks_IsThatOfTheDevice) {
  for (const char* error : {"Cuda failure 2 'out of memory'", "Cuda failure 'out of memory'"}) {
    const absl::Status status = GuardTorch("all-reduce", [&]() -> absl::Status {
      throw c10::DistBackendError(
          {__func__, __FILE__, static_cast<uint32_t>(__LINE__)},
          absl::StrCat("NCCL error in: NCCLUtils.hpp:1, unhandled cuda error\n",
                       "ncclUnhandledCudaError: Call to CUDA function failed.\nLast error:\n", error));
    });
    EXPECT_THAT(status,
                StatusIs(absl::StatusCode::kResourceExhausted,
                         absl::StrCat("all-reduce: NCCL error in: NCCLUtils.hpp:1, unhandled cuda error; ", error)));
    EXPECT_EQ(DetailOf(status, kDetailCause), kCauseMemory);
    EXPECT_EQ(DetailOf(status, kDetailMemory), kMemoryOfDevice);
  }
}

// As on a GPU: put_ has none on the CPU, either.
TEST(GuardTorchTest, OperationWithoutADeterministicVersion_IsNamedWithTheKey) {
  const absl::Status status = GuardTorch("backward", []() -> absl::Status {
    at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/false);
    const at::Tensor places = at::zeros({1}, at::kLong);
    at::zeros({1}).put_(places, at::zeros({1}));
    return absl::OkStatus();
  });
  at::globalContext().setDeterministicAlgorithms(false, /*warn_only=*/false);
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnimplemented,
                               AllOf(StartsWith("backward: put_ has no deterministic version: "),
                                     HasSubstr("config.REPRODUCIBILITY.CUDDN_DETERMINISTIC=False"))));
}

TEST(GuardTorchTest, TensorThatDoesNotFit_IsOutOfMemory) {
  const absl::Status status = GuardTorch("step 1", []() -> absl::Status {
    at::empty({int64_t{1} << 58}, at::kByte);
    return absl::OkStatus();
  });
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("memory")));
  EXPECT_EQ(DetailOf(status, kDetailCause), kCauseMemory);
  EXPECT_EQ(DetailOf(status, kDetailMemory), "");
}

TEST(GuardTorchTest, MemoryThatOneDnnLacks_IsToldFromItsOtherErrors) {
  const char* message = "could not create a primitive";
  const absl::Status status =
      GuardTorch("backward", [&]() -> absl::Status { throw dnnl::error(dnnl_out_of_memory, message); });
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted, "backward: out of memory"));
  EXPECT_EQ(DetailOf(status, kDetailCause), kCauseMemory);
  EXPECT_THAT(GuardTorch("backward", [&]() -> absl::Status { throw dnnl::error(dnnl_unimplemented, message); }),
              StatusIs(absl::StatusCode::kInternal, absl::StrCat("backward: ", message)));
}

TEST(GuardTorchTest, ThreadThatCannotBeStarted_IsOutOfMemory) {
  const absl::Status status = GuardTorch("step 1", []() -> absl::Status {
    throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again));
  });
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted,
                               AllOf(HasSubstr("no thread for step 1"), HasSubstr("ulimit -u"))));
  EXPECT_EQ(DetailOf(status, kDetailCause), kCauseMemory);
}

TEST(GuardTorchTest, TorchCheck_GivesItsFirstLineWithoutTheStack) {
  const absl::Status status =
      GuardTorch("build", []() -> absl::Status { TORCH_CHECK(false, "size is 3\nsecond line"); });
  EXPECT_THAT(status,
              StatusIs(absl::StatusCode::kInternal, AllOf(StartsWith("build: size is 3"), Not(HasSubstr("\n")))));
}

TEST(GuardTorchTest, StandardExceptions_GetTheirCode) {
  EXPECT_THAT(GuardTorch("load", []() -> absl::Status { throw std::bad_alloc(); }),
              StatusIs(absl::StatusCode::kResourceExhausted, "load: out of memory"));
  EXPECT_THAT(GuardTorch("load", []() -> absl::Status { throw std::runtime_error("a\nb"); }),
              StatusIs(absl::StatusCode::kInternal, "load: a"));
  EXPECT_THAT(GuardTorch("load", []() -> absl::Status { throw 3; }),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("unknown type")));
}

}  // namespace
}  // namespace ssl
