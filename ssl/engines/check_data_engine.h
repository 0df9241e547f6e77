// SPDX-License-Identifier: Apache-2.0
//
// engine_name=check_data: reads every image of DATA.TRAIN and DATA.TEST, whichever are configured, once, with
// DATA.NUM_DATALOADER_WORKERS threads (of DATA.TEST.DATA_PATHS alone as evaluations read them: evaluation_plan.h), and
// says what a training would meet: broken files by kind, tiny and huge images, exact duplicates (by content) and near
// ones (difference_hash.h), images of TEST that are in TRAIN, sizes of classes, and mean and standard deviation as an
// entry of TRANSFORMS. No network, no transforms.
//
//   <run directory>/data_check.json   all of it, with every file's name
//   results: {"check_data": {"train": {"images", "broken", "tiny", "huge", "exact_duplicates", "near_duplicates"},
//             "test": ...}}
//
// DataLoss after the report when more images are broken than MAX_BROKEN_FRACTION and BROKEN_IMAGES let a training meet.
#ifndef SSL_ENGINES_CHECK_DATA_ENGINE_H_
#define SSL_ENGINES_CHECK_DATA_ENGINE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "ssl/config/fields.h"
#include "ssl/engines/data_report.h"
#include "ssl/engines/engine.h"

namespace ssl {

// The section CHECK_DATA. Ours.
struct CheckDataOptions : Options {
  DataReportLimits limits;
  void VisitFields(FieldVisitor& visitor) override;
};

absl::StatusOr<std::unique_ptr<Engine>> MakeCheckDataEngine(const ConfigNode& config, const BuildContext& context);

}  // namespace ssl

#endif  // SSL_ENGINES_CHECK_DATA_ENGINE_H_
