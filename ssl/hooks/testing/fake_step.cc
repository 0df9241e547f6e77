// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/testing/fake_step.h"

#include <ATen/ops/ones.h>

#include "ssl/distributed/local_communicator.h"

namespace ssl {
namespace {

class RecordingSink : public MetricSink {
 public:
  explicit RecordingSink(SinkRecord* record) : record_(record) {}

  absl::Status Write(const MetricReport& report) override {
    record_->reports.push_back(report);
    return record_->result;
  }
  absl::Status Flush() override {
    ++record_->flushes;
    return record_->result;
  }

 private:
  SinkRecord* record_;
};

}  // namespace

FakeStep::FakeStep()
    : own_communicator_(MakeLocalCommunicator()), context{state,   model, &optimizer, *own_communicator_,
                                                          metrics, stop,  &saver} {
  metrics.AddSink(std::make_unique<RecordingSink>(&sink));
  context.loss = at::ones({});
}

FakeStep::FakeStep(Communicator& communicator)
    : context{state, model, &optimizer, communicator, metrics, stop, &saver} {
  metrics.AddSink(std::make_unique<RecordingSink>(&sink));
  context.loss = at::ones({});
}

}  // namespace ssl
