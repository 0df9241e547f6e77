// SPDX-License-Identifier: Apache-2.0
//
// CRC-32C (Castagnoli, RFC 3720 appendix B.4): polynomial 0x1EDC6F41, reflected, initial and
// final value 0xFFFFFFFF. Uses the SSE4.2 instruction, in three lanes (V. Gopal et al., "Fast
// CRC computation for iSCSI polynomial using CRC32 instruction", Intel, 2011), when the
// processor has it, else tables; both give equal results. Pure, thread-safe.
//
//   uint32_t crc = Crc32c(first);
//   crc = ExtendCrc32c(crc, second);  // == Crc32c(first + second)

#ifndef SSL_BASE_CRC32C_H_
#define SSL_BASE_CRC32C_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace ssl {

uint32_t Crc32c(absl::string_view bytes);

// The CRC of A followed by `bytes`, where `crc` is the CRC of A; 0 is the CRC of nothing.
uint32_t ExtendCrc32c(uint32_t crc, absl::string_view bytes);

// The masked form that TFRecord and TensorBoard event files store: the CRC rotated right by
// 15 bits, plus 0xA282EAD8, so that a CRC of bytes that hold CRCs stays strong.
uint32_t MaskedCrc32c(absl::string_view bytes);

namespace crc32c_internal {

// The two implementations behind ExtendCrc32c, visible to their test. ExtendHardware may be
// called only when HardwareAvailable().
bool HardwareAvailable();
uint32_t ExtendHardware(uint32_t crc, absl::string_view bytes);
uint32_t ExtendTable(uint32_t crc, absl::string_view bytes);

}  // namespace crc32c_internal
}  // namespace ssl

#endif  // SSL_BASE_CRC32C_H_
