// SPDX-License-Identifier: Apache-2.0
//
// Prints checksums of what LibTorch computes with several threads: by libgomp, or by our runtime where SSL_OWN_OPENMP
// is defined. The first line names the file that GOMP_parallel is found in.
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/batch_norm.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/zeros.h>
#include <c10/util/accumulate.h>
#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <tuple>

#ifdef SSL_OWN_OPENMP
#include "ssl/openmp/openmp_runtime.h"
#endif

namespace ssl {
namespace {

// FNV-1a.
void Print(const char* name, const at::Tensor& tensor) {
  const at::Tensor values = tensor.detach().contiguous();
  const auto* const bytes = static_cast<const uint8_t*>(values.data_ptr());
  uint64_t sum = 14695981039346656037u;
  for (size_t i = 0; i < values.nbytes(); ++i) sum = (sum ^ bytes[i]) * 1099511628211u;
  std::printf("%s %016lx\n", name, sum);
}

at::Tensor Numbers(at::IntArrayRef shape) {
  return at::arange(c10::multiply_integers(shape), at::kDouble).mul(0.37).sin().to(at::kFloat).view(shape);
}

void PrintAll() {
  const at::Tensor input = Numbers({32, 24, 20, 20}).requires_grad_();
  const at::Tensor weight = Numbers({40, 24, 3, 3}).requires_grad_();
  const at::Tensor maps = at::conv2d(input, weight, {}, /*stride=*/1, /*padding=*/1);
  const at::Tensor mean = at::zeros({40});
  const at::Tensor variance = at::ones({40});
  const at::Tensor normalised =
      at::batch_norm(maps, {}, {}, mean, variance, /*training=*/true, /*momentum=*/0.1, /*eps=*/1e-5, false);
  const at::Tensor rows = normalised.flatten(1).slice(1, 0, 4096);
  const at::Tensor scores = at::softmax(at::layer_norm(rows, {4096}).matmul(rows.t()), 0);
  const at::Tensor loss = scores.square().sum().add(maps.mean());
  loss.backward();
  Print("convolution", maps);
  Print("batch norm", variance);
  Print("scores", scores);
  Print("loss", loss);
  Print("gradient of the input", input.grad());
  Print("gradient of the weight", weight.grad());
  Print("order", std::get<1>(maps.flatten().sort()));
  Print("sum", maps.sum());
}

}  // namespace
}  // namespace ssl

int main() {
#ifdef SSL_OWN_OPENMP
  ssl::UseOwnOpenMp();
#endif
  Dl_info info = {};
  if (dladdr(dlsym(RTLD_DEFAULT, "GOMP_parallel"), &info) == 0) return 1;
  std::printf("%s\n", info.dli_fname);
  for (int i = 0; i < 3; ++i) ssl::PrintAll();
  return 0;
}
