// SPDX-License-Identifier: Apache-2.0
//
// What the SwAV golden tests share: the names of VISSL's settings and buffers, and a step context without a trainer.
#ifndef SSL_TESTS_GOLDEN_SWAV_CASE_H_
#define SSL_TESTS_GOLDEN_SWAV_CASE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "ssl/base/stop_token.h"
#include "ssl/core/metrics.h"
#include "ssl/core/model.h"
#include "ssl/core/step_context.h"
#include "ssl/core/train_state.h"
#include "ssl/distributed/communicator.h"
#include "ssl/methods/swav/swav_method.h"
#include "ssl/methods/swav/swav_options.h"
#include "tests/golden/golden.h"

namespace ssl::golden {

SwavOptions SwavOptionsOf(const Case& golden_case);

// Owns what a StepContext refers to. The model is the caller's.
class SwavRun {
 public:
  SwavRun(Model* model, int64_t batch_size);
  // As a rank; the communicator is the caller's.
  SwavRun(Model* model, int64_t batch_size, Communicator& communicator);
  ~SwavRun();

  StepContext& context() { return *context_; }

 private:
  TrainState state_;
  std::unique_ptr<Communicator> own_communicator_;
  MetricStore metrics_;
  StopToken stop_;
  std::unique_ptr<StepContext> context_;
};

// Puts the case's initial queue, if it has one, into the prepared method.
void LoadQueue(const Case& golden_case, SwavMethod* method);

// Compares a buffer of VISSL's loss ("num_iteration", "use_queue", "local_emb_queue", "local_queue0") with the
// method's state. A name of no buffer is a test failure.
void CheckSwavState(SwavMethod& method, const std::string& buffer, const Output& expected);

}  // namespace ssl::golden

#endif  // SSL_TESTS_GOLDEN_SWAV_CASE_H_
