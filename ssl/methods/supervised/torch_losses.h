// SPDX-License-Identifier: Apache-2.0
//
// Losses of torch.nn that compare one output with labels, under their names there: CrossEntropyLoss, NLLLoss,
// MultiMarginLoss (labels are class numbers [B]; the first takes weights of classes [B, C], too), BCEWithLogitsLoss,
// MultiLabelSoftMarginLoss (0 or 1 for each class), SoftMarginLoss (-1 or 1), KLDivLoss (probabilities; outputs are log
// probabilities), MSELoss, L1Loss, SmoothL1Loss, HuberLoss (numbers of the output's shape; [B] for [B, 1]).
//
// Arguments have torch's names and defaults, but for CrossEntropyLoss.ignore_index, -1 as in VISSL's defaults.
#ifndef SSL_METHODS_SUPERVISED_TORCH_LOSSES_H_
#define SSL_METHODS_SUPERVISED_TORCH_LOSSES_H_

#include <vector>

#include "ssl/methods/supervised/supervised_loss.h"

namespace ssl {

// Each refuses more than one output.
std::vector<SupervisedLossEntry> TorchLosses();

}  // namespace ssl

#endif  // SSL_METHODS_SUPERVISED_TORCH_LOSSES_H_
