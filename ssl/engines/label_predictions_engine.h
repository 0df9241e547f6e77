// SPDX-License-Identifier: Apache-2.0
//
// engine_name=extract_label_predictions: what the model's heads predict for DATA.TRAIN and DATA.TEST, whichever are
// configured, in evaluation mode, both with DATA.TEST's transforms. Files in the run directory, under VISSL's names:
//
//   rank{r}_{train|test}_{layer}_predictions.npy   [N, k] int64, the most probable class first
//   rank{r}_{train|test}_{layer}_conf_scores.npy   [N, k] float32, their softmax probabilities
//   rank{r}_{train|test}_{layer}_targets.npy       [N, 1] int64, or [N, classes]; class numbers are DATA.TRAIN's
//   rank{r}_{train|test}_{layer}_inds.npy          [N] int64: positions in the data set
//
// A stopped run writes none. k is the largest of METERS.accuracy_list_meter.topk_values, at most the number of classes.
// Layers are that meter's meter_names, or those of LINEAR_EVAL_FEAT_POOL_OPS_MAP, where there is one for each head;
// else "heads", "heads_1"... Results: {"extract_label_predictions": {"test": {"heads": top-1}}}, fractions, where
// labels are class numbers.
#ifndef SSL_ENGINES_LABEL_PREDICTIONS_ENGINE_H_
#define SSL_ENGINES_LABEL_PREDICTIONS_ENGINE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "ssl/engines/engine.h"

namespace ssl {

absl::StatusOr<std::unique_ptr<Engine>> MakeLabelPredictionsEngine(const ConfigNode& config,
                                                                   const BuildContext& context);

}  // namespace ssl

#endif  // SSL_ENGINES_LABEL_PREDICTIONS_ENGINE_H_
