// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/datasets/labelled_dataset.h"

#include "ssl/base/status_macros.h"
#include "ssl/data/sample.h"

namespace ssl {

absl::Status LabelledDataset::Get(int64_t index, Sample* sample) const {
  SSL_RETURN_IF_ERROR(images_->Get(index, sample));
  sample->SetLabel(Label(index));
  sample->label_row = LabelRow(index);
  sample->label_list = LabelList(index);
  return absl::OkStatus();
}

}  // namespace ssl
