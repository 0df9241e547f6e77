// SPDX-License-Identifier: Apache-2.0
//
// Buffers that a worker thread keeps between samples. What a transform needs it asks for by type, so that a new kind of
// buffer concerns that transform alone:
//
//   context.scratch.Get<Resampler>().CropAndResize(...);
//
// Not thread-safe: each worker has one.
#ifndef SSL_DATA_TRANSFORM_SCRATCH_H_
#define SSL_DATA_TRANSFORM_SCRATCH_H_

#include <map>
#include <memory>
#include <typeindex>
#include <typeinfo>

#include "ssl/data/image/image.h"

namespace ssl {

class TransformScratch {
 public:
  TransformScratch() = default;
  TransformScratch(TransformScratch&&) = default;
  TransformScratch& operator=(TransformScratch&&) = default;

  Image image;  // for the time of one Apply

  // The only object of type T here; made, by its default constructor, when it is first asked for. It holds what the
  // last call left: a type that several transforms share is for the time of one Apply, one's own type for longer.
  template <typename T>
  T& Get() {
    std::shared_ptr<void>& object = objects_[std::type_index(typeid(T))];
    if (object == nullptr) object = std::make_shared<T>();
    return *static_cast<T*>(object.get());
  }

 private:
  std::map<std::type_index, std::shared_ptr<void>> objects_;
};

}  // namespace ssl

#endif  // SSL_DATA_TRANSFORM_SCRATCH_H_
