// SPDX-License-Identifier: Apache-2.0
//
// What benchmarks of updates and reductions work on.
#ifndef SSL_CORE_TESTING_RESNET50_SHAPES_H_
#define SSL_CORE_TESTING_RESNET50_SHAPES_H_

#include <cstdint>
#include <utility>
#include <vector>

namespace ssl {

// Of the 161 parameters of ResNet-50, in the order of the forward pass: convolutions [out, in, k, k], each with the
// weight and bias of its batch normalisation, and the classifier.
inline std::vector<std::vector<int64_t>> ResNet50Shapes() {
  std::vector<std::vector<int64_t>> shapes;
  const auto add = [&shapes](int64_t out, int64_t in, int64_t kernel) {
    shapes.insert(shapes.end(), {{out, in, kernel, kernel}, {out}, {out}});
  };
  add(64, 3, 7);
  int64_t in = 64;
  for (const auto& [width, blocks] : std::vector<std::pair<int64_t, int>>{{64, 3}, {128, 4}, {256, 6}, {512, 3}}) {
    for (int block = 0; block < blocks; ++block) {
      add(width, in, 1);
      add(width, width, 3);
      add(4 * width, width, 1);
      if (block == 0) add(4 * width, in, 1);
      in = 4 * width;
    }
  }
  shapes.insert(shapes.end(), {{1000, 2048}, {1000}});
  return shapes;
}

}  // namespace ssl

#endif  // SSL_CORE_TESTING_RESNET50_SHAPES_H_
