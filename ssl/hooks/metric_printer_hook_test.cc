// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/metric_printer_hook.h"

#include <ATen/ops/full.h>

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/hooks/testing/fake_step.h"
#include "ssl/hooks/train_logger_hook.h"
#include "ssl/testing/captured_log.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

// What train_logger measures in a step.
void Step(MetricPrinterHook& hook, FakeStep& step, double seconds) {
  step.metrics.set_iteration(++step.state.iteration);
  step.state.samples_seen += step.context.batch_size;
  step.metrics.Add(kStepSeconds, seconds);
  step.metrics.Add(kDataSeconds, seconds / 4.0);
  ASSERT_OK(hook.OnStep(step.context));
}

// detectron2's test_events.py: two steps of one second, with and without a last iteration.
TEST(MetricPrinterHook, TimeLeft_NeedsALastIteration) {
  for (const int64_t max_iterations : {0, 10}) {
    CapturedLog log;
    FakeStep step;
    step.state.max_iterations = max_iterations;
    MetricPrinterHook hook(2);
    step.metrics.Add("[metric]x", 2.5);
    Step(hook, step, 1.0);
    Step(hook, step, 1.0);
    ASSERT_THAT(log.lines, SizeIs(1));
    EXPECT_THAT(log.lines[0], HasSubstr("[metric]x: 2.5"));
    if (max_iterations == 0) {
      EXPECT_THAT(log.lines[0], Not(HasSubstr("eta")));
    } else {
      EXPECT_THAT(log.lines[0], HasSubstr("eta: 0:00:08  iteration: 2/10"));
    }
  }
}

TEST(MetricPrinterHook, Line_HasLiBaisParts) {
  CapturedLog log;
  FakeStep step;
  step.state.max_iterations = 5003;
  step.context.batch_size = 8;
  step.context.batches_per_update = 3;
  step.optimizer.groups()[0].learning_rate = 0.0125;
  MetricPrinterHook hook(3);
  for (const double loss : {5.0, 4.61234567, 1.0}) {
    step.metrics.Add("Training/Loss", at::full({}, loss, at::kDouble));
    step.metrics.Add("Training/grad_norm", loss);
    Step(hook, step, loss == 5.0 ? 10.0 : 1.0);
  }
  ASSERT_THAT(log.lines, SizeIs(1));
  // The median of 10, 1 and 1 seconds for 5000 iterations; their mean is 4.
  EXPECT_THAT(log.lines[0],
              HasSubstr("eta: 1:23:20  iteration: 3/5003  consumed_samples: 24  Training/Loss: 4.612  time: 4.0000 "
                        "s/iter  data_time: 1.0000 s/iter  total_throughput: 6.00 samples/s  lr: 1.25e-02  max_mem: "));
  EXPECT_THAT(log.lines[0], Not(HasSubstr("grad_norm")));
}

TEST(MetricPrinterHook, WithoutTimes_SaysTheRest) {
  CapturedLog log;
  FakeStep step;
  step.state.max_iterations = step.state.iteration = 1;
  MetricPrinterHook hook(20);
  ASSERT_OK(hook.OnStep(step.context));
  ASSERT_THAT(log.lines, SizeIs(1));
  EXPECT_THAT(log.lines[0], AllOf(HasSubstr("iteration: 1/1"), Not(HasSubstr("eta")), Not(HasSubstr("time"))));
}

// detectron2's test_engine.py: 50 iterations and a period of 20 make three lines, the last without time left.
TEST(MetricPrinterHook, Lines_AreEveryPeriodAndAtTheLastIteration) {
  CapturedLog log;
  FakeStep step;
  step.state.max_iterations = 50;
  MetricPrinterHook hook(20);
  for (int i = 0; i < 50; ++i) Step(hook, step, 0.5);
  EXPECT_THAT(log.lines,
              ElementsAre(HasSubstr("eta: 0:00:15  iteration: 20/50"), HasSubstr("eta: 0:00:05  iteration: 40/50"),
                          HasSubstr("eta: 0:00:00  iteration: 50/50")));
}

TEST(MetricPrinterHook, TestPhases_AreNotTold) {
  CapturedLog log;
  FakeStep step;
  step.state.training = false;
  MetricPrinterHook hook(1);
  ASSERT_OK(hook.OnStep(step.context));
  EXPECT_THAT(log.lines, IsEmpty());
}

}  // namespace
}  // namespace ssl
