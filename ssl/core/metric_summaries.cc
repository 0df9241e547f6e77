// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/metric_summaries.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/aminmax.h>
#include <ATen/ops/bincount.h>
#include <ATen/ops/bucketize.h>
#include <ATen/ops/dot.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/tensor.h>
#include <c10/core/GradMode.h>

#include <tuple>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace ssl {
namespace {

constexpr double kHalfWidthOfOneValue = 0.5;

std::vector<double> EvenEdges(double low, double high) {
  std::vector<double> edges(kHistogramBins + 1);
  const double width = (high - low) / static_cast<double>(kHistogramBins);
  for (int64_t i = 0; i < kHistogramBins; ++i) edges[i] = low + width * static_cast<double>(i);
  edges.back() = high;  // not a rounding error less: that would shut out the maximum
  return edges;
}

// The finite elements in one dimension, as numbers whose sums do not round: half precision has no histogram kernel.
at::Tensor FiniteElements(const at::Tensor& values) {
  const at::Tensor flat = values.detach().reshape({-1}).to(at::kDouble);
  const at::Tensor finite = at::isfinite(flat);
  return finite.all().item<bool>() ? flat : flat.index({finite});
}

}  // namespace

MetricHistogram MakeHistogram(const at::Tensor& values) {
  const c10::NoGradGuard no_gradients;
  MetricHistogram histogram;
  const at::Tensor elements = FiniteElements(values);
  histogram.count = elements.numel();
  if (histogram.count == 0) return histogram;
  const auto [min, max] = at::aminmax(elements);
  histogram.min = min.item<double>();
  histogram.max = max.item<double>();
  histogram.sum = elements.sum().item<double>();
  histogram.sum_of_squares = at::dot(elements, elements).item<double>();
  const double margin = histogram.min == histogram.max ? kHalfWidthOfOneValue : 0.0;
  histogram.edges = EvenEdges(histogram.min - margin, histogram.max + margin);
  // By whole numbers: LibTorch's histogram of floats has no deterministic version on a GPU.
  const at::Tensor inner_edges = at::tensor(histogram.edges).narrow(0, 1, kHistogramBins - 1).to(elements.device());
  const at::Tensor bins = at::bucketize(elements, inner_edges, /*out_int32=*/false, /*right=*/true);
  const at::Tensor counts = at::bincount(bins, {}, kHistogramBins).to(at::kCPU);
  const int64_t* data = counts.const_data_ptr<int64_t>();
  histogram.counts.assign(data, data + kHistogramBins);
  return histogram;
}

absl::StatusOr<MetricImage> MakeImage(const at::Tensor& pixels) {
  if (!pixels.defined() || pixels.dim() != 3 || pixels.size(2) != 3 || pixels.scalar_type() != at::kByte ||
      pixels.numel() == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "an image is ",
        pixels.defined()
            ? absl::StrCat("[", absl::StrJoin(pixels.sizes(), ", "), "] of ", c10::toString(pixels.scalar_type()))
            : "no tensor",
        ", expected [height, width, 3] of Byte, of one pixel or more"));
  }
  const at::Tensor bytes = pixels.to(at::kCPU).contiguous();
  const char* data = reinterpret_cast<const char*>(bytes.const_data_ptr<uint8_t>());
  return MetricImage{pixels.size(0), pixels.size(1), std::string(data, bytes.numel())};
}

}  // namespace ssl
