// SPDX-License-Identifier: Apache-2.0
#include "ssl/distributed/process_number.h"

#include <ATen/ops/tensor.h>

#include <functional>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "ssl/base/status_macros.h"
#include "ssl/distributed/process_identity.h"

namespace ssl {

absl::StatusOr<int64_t> ProcessNumberOnHost(absl::string_view sees, Communicator& communicator) {
  const ProcessIdentity identity = ProcessIdentity::OfThisProcess();
  // Of one program, on all ranks the same number for the same text.
  const auto scope = static_cast<int64_t>(std::hash<std::string>()(absl::StrCat(identity.scope, "\n", sees)));
  const at::Tensor own = at::tensor({scope, identity.pid}, at::kLong);
  SSL_ASSIGN_OR_RETURN(const at::Tensor gathered, communicator.AllGather(own));
  const at::Tensor all = gathered.contiguous();  // [ranks, 2]
  const int64_t* const entry = all.const_data_ptr<int64_t>();
  std::set<int64_t> before;
  for (int64_t rank = 0; rank < all.size(0); ++rank) {
    if (entry[2 * rank] != scope) continue;
    if (entry[2 * rank + 1] == identity.pid) break;
    before.insert(entry[2 * rank + 1]);
  }
  return static_cast<int64_t>(before.size());
}

}  // namespace ssl
