// SPDX-License-Identifier: Apache-2.0
#include "tests/scaling/workload.h"

namespace ssl {
namespace {

constexpr int64_t kLargeCrops = 2;
constexpr int64_t kSmallCrops = 6;
constexpr double kLargeSize = 224.0;
constexpr double kSmallSize = 96.0;

// Adds a convolution and its batch norm. `size`: of the output for a large crop. Times are multiply-adds still.
void AddConvolution(int64_t out, int64_t in, int64_t kernel, double size, std::vector<Part>& parts) {
  const int64_t elements = out * in * kernel * kernel;
  const double of_crop = static_cast<double>(elements) * size * size;
  const double smaller = (kSmallSize / kLargeSize) * (kSmallSize / kLargeSize);
  parts.push_back({elements, kLargeCrops * of_crop, kSmallCrops * of_crop * smaller, out});
  parts.push_back({out});
  parts.push_back({out});
}

// The stride is that of a block's second convolution and of its shortcut (He et al. as torchvision has it).
std::vector<Part> Trunk() {
  std::vector<Part> parts;
  AddConvolution(64, 3, 7, kLargeSize / 2, parts);
  double size = kLargeSize / 4;
  int64_t in = 64;
  int64_t width = 64;
  for (const int blocks : {3, 4, 6, 3}) {
    for (int block = 0; block < blocks; ++block) {
      const double size_before = size;
      if (block == 0 && width > 64) size /= 2;
      AddConvolution(width, in, 1, size_before, parts);
      AddConvolution(width, width, 3, size, parts);
      AddConvolution(4 * width, width, 1, size, parts);
      if (block == 0) AddConvolution(4 * width, in, 1, size, parts);
      in = 4 * width;
    }
    width *= 2;
  }
  return parts;
}

std::vector<Part> Head() {
  const double crops = kLargeCrops + kSmallCrops;
  const auto linear = [&](int64_t out, int64_t in, int64_t channels) {
    const int64_t elements = out * in;
    return Part{elements, crops * static_cast<double>(elements), 0.0, channels};
  };
  return {linear(2048, 2048, 2048), {2048}, {2048}, {2048}, linear(128, 2048, 0), {128}, linear(3000, 128, 0)};
}

double Sum(const std::vector<Part>& parts) {
  double sum = 0.0;
  for (const Part& part : parts) sum += part.large + part.small;
  return sum;
}

void Scale(double factor, std::vector<Part>& parts) {
  for (Part& part : parts) {
    part.large *= factor;
    part.small *= factor;
  }
}

}  // namespace

double Workload::compute() const { return (1.0 + backward) * (Sum(trunk) + Sum(head)); }

Workload SwavResNet50(int64_t images, double seconds_per_image) {
  Workload workload;
  workload.trunk = Trunk();
  workload.head = Head();
  const double seconds = static_cast<double>(images) * seconds_per_image / workload.compute();
  Scale(seconds, workload.trunk);
  Scale(seconds, workload.head);
  return workload;
}

std::vector<int64_t> BucketBytes(const Workload& workload) {
  std::vector<Part> parts = workload.trunk;
  parts.insert(parts.end(), workload.head.begin(), workload.head.end());
  std::vector<int64_t> buckets;
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
    const int64_t limit = buckets.size() <= 1 ? workload.first_bucket_bytes : workload.bucket_bytes;
    if (buckets.empty() || buckets.back() >= limit) buckets.push_back(0);
    buckets.back() += part->elements * 4;
  }
  buckets.back() += static_cast<int64_t>(parts.size()) * 4;  // which ranks have a gradient of each parameter
  return buckets;
}

}  // namespace ssl
