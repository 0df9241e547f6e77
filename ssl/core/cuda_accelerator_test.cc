// SPDX-License-Identifier: Apache-2.0
//
// Of a build with CUDA, on any machine: this program's own functions stand where the runtime's would ask the driver.
#include <ATen/ops/rand.h>
#include <cuda_runtime_api.h>

#include <cstdlib>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/core/accelerator.h"
#include "ssl/core/generator_scope.h"
#include "ssl/testing/status_matchers.h"

namespace {

// What the driver would say.
struct Driver {
  cudaError_t error = cudaSuccess;
  int version = 13000;
  int count = 1;
  int architecture = 90;
  int questions = 0;
};

Driver& TheDriver() {
  static auto& driver = *new Driver;
  return driver;
}

}  // namespace

// The dynamic linker gives those of the program to LibTorch as well.
extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  ++TheDriver().questions;
  *count = TheDriver().error == cudaSuccess ? TheDriver().count : 0;
  return TheDriver().error;
}

cudaError_t cudaDriverGetVersion(int* version) {
  ++TheDriver().questions;
  *version = TheDriver().version;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  const int architecture = TheDriver().architecture;
  *value = attribute == cudaDevAttrComputeCapabilityMajor ? architecture / 10 : architecture % 10;
  return TheDriver().error;
}

}  // extern "C"

namespace ssl {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class CudaAcceleratorTest : public testing::Test {
 protected:
  CudaAcceleratorTest() { TheDriver() = Driver(); }

  static auto Refused(absl::StatusCode code, const std::string& why) {
    return StatusIs(code, AllOf(HasSubstr(why), HasSubstr("config.MACHINE.DEVICE=cpu")));
  }
};

// First: LibTorch asks once in a process.
TEST_F(CudaAcceleratorTest, RandomNumbersOfTheCpu_DoNotAskTheDriver) {
  {
    const GeneratorScope scope;
    SeedForBatch(1, 0, 0, 0);
    EXPECT_EQ(at::rand({4}).numel(), 4);
    EXPECT_OK(CheckAcceleratorIsBuilt());
  }
  EXPECT_EQ(TheDriver().questions, 0);
}

TEST_F(CudaAcceleratorTest, IsTheGpuOfTheIndex) {
  TheDriver().count = 4;
  EXPECT_EQ(Accelerator(3).value(), c10::Device(c10::kCUDA, 3));
  EXPECT_THAT(Accelerator(4), StatusIs(absl::StatusCode::kNotFound,
                                       AllOf(HasSubstr("process 4 of this host"), HasSubstr("there are 4"))));
}

TEST_F(CudaAcceleratorTest, DriverThatIsMissingOrTooOld_IsRefusedWithItsVersion) {
  TheDriver().error = cudaErrorInsufficientDriver;
  TheDriver().version = 12040;
  EXPECT_THAT(Accelerator(0), Refused(absl::StatusCode::kNotFound, "CUDA up to 12.4, and this program needs 13.0"));
  TheDriver().version = 0;
  EXPECT_THAT(Accelerator(0), Refused(absl::StatusCode::kNotFound, "driver is not installed or not loaded"));
  TheDriver().error = cudaErrorSystemDriverMismatch;
  EXPECT_THAT(Accelerator(0), Refused(absl::StatusCode::kNotFound, "cudaErrorSystemDriverMismatch ("));
}

TEST_F(CudaAcceleratorTest, NoGpu_NamesWhatHidesIt) {
  TheDriver().error = cudaErrorNoDevice;
  unsetenv("CUDA_VISIBLE_DEVICES");
  EXPECT_THAT(Accelerator(0), Refused(absl::StatusCode::kNotFound, "driver finds none on this machine"));
  setenv("CUDA_VISIBLE_DEVICES", "7", 1);
  EXPECT_THAT(Accelerator(0), Refused(absl::StatusCode::kNotFound, "CUDA_VISIBLE_DEVICES is '7'"));
  unsetenv("CUDA_VISIBLE_DEVICES");
}

TEST_F(CudaAcceleratorTest, GpuThatThisProgramHasNoCodeFor_IsRefused) {
  for (const int known : {80, 86, 90, 100, 120}) {
    TheDriver().architecture = known;
    EXPECT_OK(Accelerator(0)) << known;
  }
  TheDriver().architecture = 75;
  EXPECT_THAT(Accelerator(0), Refused(absl::StatusCode::kUnimplemented, "architecture sm_75, and this program has"));
}

}  // namespace
}  // namespace ssl
