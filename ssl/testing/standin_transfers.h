// SPDX-License-Identifier: Apache-2.0
//
// What passed between host and stand-in device. A GPU makes the host wait for each read, and for the upload of memory
// that is not pinned.
#ifndef SSL_TESTING_STANDIN_TRANSFERS_H_
#define SSL_TESTING_STANDIN_TRANSFERS_H_

#include <cstdint>
#include <map>
#include <string>

namespace ssl {

// By what was transferred: "aten::_local_scalar_dense", "copy to the host of float [2, 3]".
using TransferCounts = std::map<std::string, int64_t>;

// Counts while it lives, for all threads of the process. Thread-safe.
class TransferLog {
 public:
  TransferLog();

  // From device to host: scalars (item()), copies, and operators whose result on the host or whose shape depends on
  // values of the device (equal, nonzero, masked_select).
  TransferCounts reads() const;
  // From host to device: copies. A scalar of the host as an argument is none.
  TransferCounts uploads() const;

 private:
  const TransferCounts reads_before_;
  const TransferCounts uploads_before_;
};

// For the stand-in device itself.
void CountRead(const std::string& what);
void CountUpload(const std::string& what);

}  // namespace ssl

#endif  // SSL_TESTING_STANDIN_TRANSFERS_H_
