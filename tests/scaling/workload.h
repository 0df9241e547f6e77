// SPDX-License-Identifier: Apache-2.0
//
// One update of SwAV with a ResNet-50 as the parts that it computes, each with the time of its passes.
#ifndef SSL_TESTS_SCALING_WORKLOAD_H_
#define SSL_TESTS_SCALING_WORKLOAD_H_

#include <cstdint>
#include <vector>

namespace ssl {

// A parameter and what is computed with it.
struct Part {
  int64_t elements = 0;
  double large = 0.0;    // seconds of the forward pass of the large crops
  double small = 0.0;    // of the small crops
  int64_t channels = 0;  // of a batch norm that follows; 0: none
};

struct Workload {
  std::vector<Part> trunk;  // in the order of forward; the two resolutions go through it one after the other
  std::vector<Part> head;   // all crops in one batch, their time in `large`
  bool sync_batch_norm = false;
  int64_t prototypes = 3000;
  int64_t sinkhorn_iterations = 3;
  double backward = 4.0 / 3.0;  // seconds of a backward pass for one of its forward pass, as seen on an H100
  double update = 0.0;          // seconds of the optimizer
  double noise = 0.0;           // standard deviation of a part's time, of its mean
  // What GradientReducerOptions has.
  int64_t bucket_bytes = int64_t{25} << 20;
  int64_t first_bucket_bytes = int64_t{1} << 20;

  // Seconds of forward and backward.
  double compute() const;
};

// configs/config/pretrain/swav/swav_resnet50_imagenet.yaml: 2 crops of 224 and 6 of 96 pixels, head 2048-2048-128 with
// batch norm, 3,000 prototypes. seconds_per_image: forward and backward of all eight crops.
Workload SwavResNet50(int64_t images, double seconds_per_image);

// Bytes of each bucket in the order of their reductions: what GradientReducer makes of the parameters.
std::vector<int64_t> BucketBytes(const Workload& workload);

}  // namespace ssl

#endif  // SSL_TESTS_SCALING_WORKLOAD_H_
