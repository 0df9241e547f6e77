// SPDX-License-Identifier: Apache-2.0
//
// What normalisation layers do in a forward pass.
#ifndef SSL_MODELS_NORM_MODE_H_
#define SSL_MODELS_NORM_MODE_H_

namespace ssl {

class MomentsRecord;

// A kind, and where a pass that is to run twice keeps what its layers have learnt from other ranks.
class NormMode {
 public:
  enum Kind {
    kEvaluation,  // normalises by the running statistics
    kTraining,    // normalises by the batch's statistics, and moves the running ones
    kRecompute,   // a training pass for the second time: the same outputs, and the running statistics stay
  };

  // record: written in kTraining, read in kRecompute; outlives the pass. Null: the pass runs once only, or its layers
  // share nothing with other ranks.
  constexpr NormMode(Kind kind, MomentsRecord* record = nullptr) : kind_(kind), record_(record) {}

  constexpr operator Kind() const { return kind_; }
  constexpr MomentsRecord* record() const { return record_; }

 private:
  Kind kind_;
  MomentsRecord* record_;
};

inline NormMode NormModeFor(bool training) { return training ? NormMode::kTraining : NormMode::kEvaluation; }

}  // namespace ssl

#endif  // SSL_MODELS_NORM_MODE_H_
