// SPDX-License-Identifier: Apache-2.0
//
// Mixup (Zhang et al., "mixup: Beyond Empirical Risk Minimization", arXiv:1710.09412) and CutMix (Yun et al., "CutMix:
// Regularization Strategy to Train Strong Classifiers with Localizable Features", arXiv:1905.04899): how much of
// another sample a row of a batch takes, and taking it. The rules are those of timm's Mixup, which VISSL's
// cutmixup_collator uses; the draws are our own.
#ifndef SSL_DATA_COLLATORS_CUTMIX_H_
#define SSL_DATA_COLLATORS_CUTMIX_H_

#include <vector>

#include "absl/types/span.h"
#include "ssl/base/random.h"
#include "ssl/data/collator.h"
#include "ssl/data/image/crop_box.h"

namespace ssl {

// At least one of mixup_alpha and cutmix_alpha is above 0.
struct CutMixRule {
  double mixup_alpha = 1.0;         // of the beta distribution; 0: no mixup
  double cutmix_alpha = 0.0;        // 0: no CutMix
  std::vector<double> min_max;      // sides of CutMix's box, shares of the image's; empty: they follow from the share
  double probability = 1.0;         // of mixing at all
  double switch_probability = 0.5;  // of CutMix, where both are on
  bool correct_share = true;        // the share is that of the pixels in the image, not of the drawn box
};

// What a row becomes.
struct Mixture {
  double own_share = 1.0;  // of the label; 1 without a box: nothing is mixed
  bool cut = false;        // CutMix: the pixels of `box` are the other row's. Else all are weighted by the shares.
  CropBox box;
};

Mixture DrawMixture(const CutMixRule& rule, int height, int width, CounterRandom& random);

// Mixes each row of `view` with the row at its place from the end, both from what they were. mixtures: of each row, an
// even number.
void MixWithFlipped(const BatchRows::View& view, absl::Span<const Mixture> mixtures);

}  // namespace ssl

#endif  // SSL_DATA_COLLATORS_CUTMIX_H_
