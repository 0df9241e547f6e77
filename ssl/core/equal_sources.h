// SPDX-License-Identifier: Apache-2.0
//
// Ranks that share one data set have to see the same one: a copy that lacks files would give each rank another length
// of the run and other class numbers, without a word.
#ifndef SSL_CORE_EQUAL_SOURCES_H_
#define SSL_CORE_EQUAL_SOURCES_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "ssl/core/batch_source.h"
#include "ssl/distributed/communicator.h"

namespace ssl {

// The same InvalidArgument on every rank, naming the first rank whose source is other than rank 0's, both hosts and
// what each has, unless all have as many samples, as many batches of an epoch, classes of the same names and the same
// samples in the same order, as far as sources tell these from one another (BatchSource::SampleIdentity): of those the
// first one that differs is named. A source whose first and last sample have no identity has none. Pixels in files are
// not compared. source: null where a rank has none, as all or no ranks have. `what` opens the message:
// "config.DATA.TRAIN". Collective.
absl::Status CheckEqualSources(absl::string_view what, const BatchSource* source, Communicator& communicator);

}  // namespace ssl

#endif  // SSL_CORE_EQUAL_SOURCES_H_
