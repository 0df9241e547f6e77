// SPDX-License-Identifier: Apache-2.0
//
// A value as a function of training progress.
#ifndef SSL_CORE_SCHEDULE_H_
#define SSL_CORE_SCHEDULE_H_

namespace ssl {

class Schedule {
 public:
  enum class UpdateInterval { kStep, kEpoch };

  virtual ~Schedule() = default;

  // where: finished fraction of training in [0, 1). Pure and thread-safe.
  virtual double ValueAt(double where) const = 0;

  // How often training asks for a new value: before each step, or at the start of each train phase.
  virtual UpdateInterval update_interval() const = 0;
};

}  // namespace ssl

#endif  // SSL_CORE_SCHEDULE_H_
