// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/equal_sources.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "ssl/base/crc32c.h"
#include "ssl/base/host_name.h"
#include "ssl/base/status_macros.h"
#include "ssl/base/utf8.h"
#include "ssl/core/sample_digest.h"
#include "ssl/distributed/agree.h"

namespace ssl {
namespace {

using Names = std::vector<std::string>;

constexpr absl::string_view kEndOfName("\0", 1);  // no file has it in its name

enum Number : int64_t { kSources, kSamples, kBatches, kClasses, kIdentities, kNumbers };

// [numbers]; of the classes' names and the samples checksums
at::Tensor NumbersOf(const BatchSource* source) {
  at::Tensor numbers = at::zeros({kNumbers}, at::kLong);
  if (source == nullptr) return numbers;
  int64_t* values = numbers.mutable_data_ptr<int64_t>();
  values[kSources] = 1;
  values[kSamples] = source->dataset_size();
  values[kBatches] = source->batches_per_epoch();
  values[kClasses] = Crc32c(absl::StrJoin(source->ClassNames(), kEndOfName));
  values[kIdentities] = ChecksumOfSamples(*source, 0, source->dataset_size());
  return numbers;
}

struct Description {
  const int64_t* numbers;
  Names names;
  std::string sample;  // the first one that differs, when nothing else does
};

// What of `own` is other than in `others`.
std::string Told(const Description& own, const Description& others) {
  if (own.numbers[kSources] != others.numbers[kSources]) return own.numbers[kSources] == 0 ? "none" : "one";
  std::vector<std::string> told;
  if (own.numbers[kSamples] != others.numbers[kSamples]) {
    told.push_back(absl::StrCat(own.numbers[kSamples], " samples"));
  }
  if (own.numbers[kBatches] != others.numbers[kBatches]) {
    told.push_back(absl::StrCat(own.numbers[kBatches], " batches in an epoch"));
  }
  const size_t equal =
      std::mismatch(own.names.begin(), own.names.end(), others.names.begin(), others.names.end()).first -
      own.names.begin();
  if (equal < own.names.size()) {
    told.push_back(absl::StrCat("'", EscapeForMessage(own.names[equal]), "' as class ", equal));
  } else if (equal < others.names.size()) {
    told.push_back(absl::StrCat("no class ", equal));
  }
  if (own.sample != others.sample) told.push_back(absl::StrCat("'", EscapeForMessage(own.sample), "'"));
  return absl::StrJoin(told, ", ");
}

// The first sample that is another one on `rank` than on rank 0, where both have as many: found by halves. Collective.
absl::StatusOr<int64_t> FirstOtherSample(const BatchSource* source, int64_t rank, int64_t samples,
                                         Communicator& communicator) {
  int64_t begin = 0;
  int64_t end = samples;
  while (end - begin > 1) {
    const int64_t middle = begin + (end - begin) / 2;
    const int64_t identities = source == nullptr ? 0 : ChecksumOfSamples(*source, begin, middle);
    const at::Tensor own = at::full({1}, identities, at::kLong);
    SSL_ASSIGN_OR_RETURN(const at::Tensor all, communicator.AllGather(own));  // [ranks, 1]
    const bool differ = all[rank].item<int64_t>() != all[0].item<int64_t>();
    (differ ? end : begin) = middle;
  }
  return begin;
}

// The same text on all ranks: that of `rank`, which knows itself what it has. Collective.
absl::Status Difference(absl::string_view what, const BatchSource* source, int64_t rank, const int64_t* own,
                        const int64_t* firsts, Communicator& communicator) {
  const std::string host = HostName("unknown");
  const Names names = source == nullptr ? Names() : source->ClassNames();
  std::string first_host = host;
  std::string first_names = absl::StrJoin(names, kEndOfName);
  std::string sample;
  std::string place;
  if (std::equal(own, own + kIdentities, firsts)) {
    SSL_ASSIGN_OR_RETURN(const int64_t index, FirstOtherSample(source, rank, firsts[kSamples], communicator));
    if (source != nullptr && index < source->dataset_size()) sample = source->SampleIdentity(index);
    place = absl::StrCat(" as sample ", index);
  }
  std::string first_sample = sample;
  for (std::string* text : {&first_host, &first_names, &first_sample}) {
    SSL_RETURN_IF_ERROR(BroadcastText(0, text, communicator));
  }
  const Description here = {own, names, sample};
  const Description first = {firsts, first_names.empty() ? Names() : Names(absl::StrSplit(first_names, kEndOfName)),
                             first_sample};
  std::string message =
      absl::StrCat(what, " is not the same data set on all ranks: rank ", rank, " (on ", host, ") has ",
                   Told(here, first), place, ", and rank 0 (on ", first_host, ") has ", Told(first, here),
                   "; copy it whole to every host, or read it from a shared file system");
  SSL_RETURN_IF_ERROR(BroadcastText(rank, &message, communicator));
  return AgreeOnStatus(absl::InvalidArgumentError(message), "comparing the data", communicator);  // one says it
}

}  // namespace

absl::Status CheckEqualSources(absl::string_view what, const BatchSource* source, Communicator& communicator) {
  if (communicator.size() == 1) return absl::OkStatus();  // a large data set takes a second
  SSL_ASSIGN_OR_RETURN(const at::Tensor gathered, communicator.AllGather(NumbersOf(source)));  // [ranks, numbers]
  const at::Tensor all = gathered.contiguous();
  const int64_t* firsts = all.const_data_ptr<int64_t>();
  for (int64_t rank = 1; rank < communicator.size(); ++rank) {
    const int64_t* numbers = firsts + rank * kNumbers;
    if (std::equal(firsts, firsts + kNumbers, numbers)) continue;
    return Difference(what, source, rank, numbers, firsts, communicator);
  }
  return absl::OkStatus();
}

}  // namespace ssl
