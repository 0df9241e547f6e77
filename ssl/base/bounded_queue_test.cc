// SPDX-License-Identifier: Apache-2.0

#include "ssl/base/bounded_queue.h"

#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace ssl {
namespace {

TEST(BoundedQueueTest, Pop_ReturnsItemsInTheOrderOfPush) {
  BoundedQueue<int> queue(3);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(queue.Push(i));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(queue.Pop(), i);
}

TEST(BoundedQueueTest, Close_LetsWhatIsQueuedBePoppedThenEnds) {
  BoundedQueue<int> queue(2);
  queue.Push(7);
  queue.Close();
  queue.Close();
  EXPECT_FALSE(queue.Push(8));
  EXPECT_EQ(queue.Pop(), 7);
  EXPECT_EQ(queue.Pop(), std::nullopt);
}

TEST(BoundedQueueTest, Close_WakesABlockedConsumer) {
  BoundedQueue<int> queue(1);
  std::optional<int> popped = 1;
  std::thread consumer([&] { popped = queue.Pop(); });
  queue.Close();
  consumer.join();
  EXPECT_EQ(popped, std::nullopt);
}

TEST(BoundedQueueTest, Close_WakesABlockedProducer) {
  BoundedQueue<int> queue(1);
  queue.Push(1);
  bool pushed = true;
  std::thread producer([&] { pushed = queue.Push(2); });
  queue.Close();
  producer.join();
  EXPECT_FALSE(pushed);
}

TEST(BoundedQueueTest, Push_NeverHoldsMoreThanTheCapacity) {
  constexpr int kItems = 2000;
  BoundedQueue<int> queue(2);
  std::thread producer([&] {
    for (int i = 0; i < kItems; ++i) queue.Push(i);
    queue.Close();
  });
  int expected = 0;
  size_t largest = 0;
  while (std::optional<int> item = queue.Pop()) {
    EXPECT_EQ(*item, expected++);
    largest = std::max(largest, queue.size());
  }
  producer.join();
  EXPECT_EQ(expected, kItems);
  EXPECT_LE(largest, 2u);
}

TEST(BoundedQueueTest, ManyThreads_EachItemArrivesOnce) {
  constexpr int kProducers = 3;
  constexpr int kConsumers = 3;
  constexpr int kItemsEach = 500;
  BoundedQueue<int> queue(4);
  std::vector<std::thread> producers;
  for (int p = 0; p < kProducers; ++p) {
    producers.emplace_back([&queue, p] {
      for (int i = 0; i < kItemsEach; ++i) queue.Push(p * kItemsEach + i);
    });
  }
  std::vector<std::vector<int>> received(kConsumers);
  std::vector<std::thread> consumers;
  for (int c = 0; c < kConsumers; ++c) {
    consumers.emplace_back([&queue, &received, c] {
      while (std::optional<int> item = queue.Pop()) received[c].push_back(*item);
    });
  }
  for (std::thread& thread : producers) thread.join();
  queue.Close();
  for (std::thread& thread : consumers) thread.join();

  std::vector<int> counts(kProducers * kItemsEach);
  for (const std::vector<int>& items : received) {
    for (int item : items) ++counts[item];
  }
  EXPECT_EQ(counts, std::vector<int>(kProducers * kItemsEach, 1));
}

TEST(BoundedQueueTest, MoveOnlyItems_PassThrough) {
  BoundedQueue<std::unique_ptr<int>> queue(0);
  EXPECT_TRUE(queue.Push(std::make_unique<int>(5)));
  EXPECT_EQ(**queue.Pop(), 5);
}

}  // namespace
}  // namespace ssl
