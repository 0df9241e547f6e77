// SPDX-License-Identifier: Apache-2.0
//
// Evaluation mode while it lives, then that of the phase: for hooks that run the model beside training.
#ifndef SSL_HOOKS_EVALUATION_MODE_H_
#define SSL_HOOKS_EVALUATION_MODE_H_

#include "ssl/core/model.h"

namespace ssl {

class EvaluationMode {
 public:
  // training: the mode of the phase in progress.
  EvaluationMode(Model& model, bool training) : model_(model), training_(training) { model_.SetTraining(false); }
  ~EvaluationMode() { model_.SetTraining(training_); }
  EvaluationMode(const EvaluationMode&) = delete;
  EvaluationMode& operator=(const EvaluationMode&) = delete;

 private:
  Model& model_;
  const bool training_;
};

}  // namespace ssl

#endif  // SSL_HOOKS_EVALUATION_MODE_H_
