// SPDX-License-Identifier: Apache-2.0
//
// A first-in-first-out queue between threads that holds at most `capacity` items: producers
// wait when it is full, consumers when it is empty. Close wakes everybody; what was pushed
// before can still be popped. Thread-safe; the owner outlives all waiting threads.
//
//   BoundedQueue<Batch> queue(2);
//   queue.Push(std::move(batch));                    // producer
//   while (std::optional<Batch> batch = queue.Pop()) // consumer, ends after Close

#ifndef SSL_BASE_BOUNDED_QUEUE_H_
#define SSL_BASE_BOUNDED_QUEUE_H_

#include <algorithm>
#include <cstddef>
#include <deque>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace ssl {

template <class T>
class BoundedQueue {
 public:
  // A capacity of 0 counts as 1.
  explicit BoundedQueue(size_t capacity) : capacity_(std::max<size_t>(capacity, 1)) {}
  BoundedQueue(const BoundedQueue&) = delete;
  BoundedQueue& operator=(const BoundedQueue&) = delete;

  // Blocks while the queue is full. Returns false, without the item queued, once closed.
  bool Push(T item) {
    absl::MutexLock lock(&mutex_, absl::Condition(this, &BoundedQueue::CanPush));
    if (closed_) return false;
    items_.push_back(std::move(item));
    return true;
  }

  // Blocks while the queue is empty and open. nullopt means closed and empty.
  std::optional<T> Pop() {
    absl::MutexLock lock(&mutex_, absl::Condition(this, &BoundedQueue::CanPop));
    if (items_.empty()) return std::nullopt;
    std::optional<T> item(std::move(items_.front()));
    items_.pop_front();
    return item;
  }

  // May be called more than once.
  void Close() {
    absl::MutexLock lock(&mutex_);
    closed_ = true;
  }

  size_t size() const {
    absl::MutexLock lock(&mutex_);
    return items_.size();
  }

 private:
  bool CanPush() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return closed_ || items_.size() < capacity_; }
  bool CanPop() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return closed_ || !items_.empty(); }

  const size_t capacity_;
  mutable absl::Mutex mutex_;
  std::deque<T> items_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace ssl

#endif  // SSL_BASE_BOUNDED_QUEUE_H_
