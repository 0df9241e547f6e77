// SPDX-License-Identifier: Apache-2.0
//
// What has to be the same for an update to queue the operations of another one on the same memory, piece by piece, so
// that a message can name the piece that differs.
#ifndef SSL_CORE_UPDATE_KEY_H_
#define SSL_CORE_UPDATE_KEY_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "ssl/core/batch.h"
#include "ssl/core/optimizer.h"

namespace ssl {

class UpdateKey {
 public:
  void Add(std::string what, std::vector<int64_t> values) {
    parts_.push_back({std::move(what), std::move(values), /*is_layout=*/false});
  }

  // Type, sizes and strides of its tensors, and which there are.
  void AddLayout(std::string what, const Batch& batch);

  // What each group decides on the host, weight decay and momentum, and which parameters it has: where they lie, and
  // whether they train.
  void AddGroups(const std::vector<ParameterGroup>& groups);

  // What of the first part that differs; "" when all are equal.
  std::string Difference(const UpdateKey& other) const;

  // Whether nothing but layouts differs: another size of batch, after which the first may come again.
  bool DiffersByLayoutAlone(const UpdateKey& other) const;

 private:
  struct Part {
    std::string what;
    std::vector<int64_t> values;
    bool is_layout = false;
  };

  std::vector<Part> parts_;
};

}  // namespace ssl

#endif  // SSL_CORE_UPDATE_KEY_H_
