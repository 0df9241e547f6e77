// SPDX-License-Identifier: Apache-2.0

#include "ssl/base/crc32c.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#ifdef __x86_64__
#include <nmmintrin.h>
#endif

#include "absl/strings/string_view.h"

namespace ssl {
namespace crc32c_internal {
namespace {

constexpr uint32_t kReflectedPolynomial = 0x82F63B78;
constexpr int kSlices = 8;

// tables[k][b]: the CRC register after byte b and k zero bytes ("slicing by 8", Kounavis and
// Berry, 2005), so that eight bytes cost eight independent look-ups.
using Tables = std::array<std::array<uint32_t, 256>, kSlices>;

constexpr Tables MakeTables() {
  Tables tables = {};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) {
      crc = (crc >> 1) ^ ((crc & 1) != 0 ? kReflectedPolynomial : 0);
    }
    tables[0][byte] = crc;
  }
  for (int slice = 1; slice < kSlices; ++slice) {
    for (uint32_t byte = 0; byte < 256; ++byte) {
      const uint32_t before = tables[slice - 1][byte];
      tables[slice][byte] = (before >> 8) ^ tables[0][before & 0xFF];
    }
  }
  return tables;
}

constexpr Tables kTables = MakeTables();

// The instruction takes three cycles and can start in each of them: three lanes side by side keep it busy.
constexpr size_t kLaneBytes = 4096;  // a power of two

// shift[k][b]: what the register b << 8k becomes over kLaneBytes zero bytes. Advancing is linear over exclusive or, so
// that a register is advanced by four look-ups, and lanes that began at zero are put together: the register after A and
// B is that after A, advanced over the length of B, exclusive or that of B alone.
using ShiftTables = std::array<std::array<uint32_t, 256>, 4>;

// What a register becomes when bit k alone becomes of_bit[k].
using BitImages = std::array<uint32_t, 32>;

constexpr uint32_t Apply(const BitImages& of_bit, uint32_t crc) {
  uint32_t image = 0;
  for (int bit = 0; bit < 32; ++bit) {
    if ((crc >> bit & 1) != 0) image ^= of_bit[bit];
  }
  return image;
}

// Over one zero byte, then over twice as many until it is a lane: few enough steps for any compiler.
constexpr BitImages AdvanceBitsOverLane() {
  BitImages of_bit = {};
  for (int bit = 0; bit < 32; ++bit) {
    const uint32_t crc = uint32_t{1} << bit;
    of_bit[bit] = (crc >> 8) ^ kTables[0][crc & 0xFF];
  }
  for (size_t bytes = 1; bytes < kLaneBytes; bytes *= 2) {
    BitImages twice = {};
    for (int bit = 0; bit < 32; ++bit) twice[bit] = Apply(of_bit, of_bit[bit]);
    of_bit = twice;
  }
  return of_bit;
}

constexpr ShiftTables MakeShiftTables() {
  const BitImages of_bit = AdvanceBitsOverLane();
  ShiftTables tables = {};
  for (int byte = 0; byte < 4; ++byte) {
    for (uint32_t value = 0; value < 256; ++value) {
      for (int bit = 0; bit < 8; ++bit) {
        if ((value >> bit & 1) != 0) tables[byte][value] ^= of_bit[8 * byte + bit];
      }
    }
  }
  return tables;
}

uint8_t ByteAt(const char* data) { return static_cast<uint8_t>(*data); }

}  // namespace

uint32_t ExtendTable(uint32_t crc, absl::string_view bytes) {
  crc = ~crc;
  const char* data = bytes.data();
  const char* const end = data + bytes.size();
  for (; end - data >= kSlices; data += kSlices) {
    uint32_t next = 0;
    for (int i = 0; i < kSlices; ++i) {
      const uint8_t mixed = i < 4 ? ByteAt(data + i) ^ static_cast<uint8_t>(crc >> (8 * i)) : ByteAt(data + i);
      next ^= kTables[kSlices - 1 - i][mixed];
    }
    crc = next;
  }
  for (; data < end; ++data) crc = (crc >> 8) ^ kTables[0][(crc ^ ByteAt(data)) & 0xFF];
  return ~crc;
}

#ifdef __x86_64__
namespace {

constexpr ShiftTables kShift = MakeShiftTables();

uint64_t AdvanceOverLane(uint64_t crc) {
  return kShift[0][crc & 0xFF] ^ kShift[1][crc >> 8 & 0xFF] ^ kShift[2][crc >> 16 & 0xFF] ^ kShift[3][crc >> 24 & 0xFF];
}

uint64_t WordAt(const char* data) {
  uint64_t word;
  std::memcpy(&word, data, sizeof(word));
  return word;
}

}  // namespace

bool HardwareAvailable() { return __builtin_cpu_supports("sse4.2"); }

__attribute__((target("sse4.2"))) uint32_t ExtendHardware(uint32_t crc, absl::string_view bytes) {
  uint64_t state = static_cast<uint32_t>(~crc);
  const char* data = bytes.data();
  const char* const end = data + bytes.size();
  for (; end - data >= static_cast<ptrdiff_t>(3 * kLaneBytes); data += 3 * kLaneBytes) {
    uint64_t second = 0;
    uint64_t third = 0;
    for (const char* word = data; word < data + kLaneBytes; word += 8) {
      state = _mm_crc32_u64(state, WordAt(word));
      second = _mm_crc32_u64(second, WordAt(word + kLaneBytes));
      third = _mm_crc32_u64(third, WordAt(word + 2 * kLaneBytes));
    }
    state = AdvanceOverLane(AdvanceOverLane(state) ^ second) ^ third;
  }
  for (; end - data >= 8; data += 8) state = _mm_crc32_u64(state, WordAt(data));
  uint32_t tail = static_cast<uint32_t>(state);
  for (; data < end; ++data) tail = _mm_crc32_u8(tail, ByteAt(data));
  return ~tail;
}

#else

bool HardwareAvailable() { return false; }

uint32_t ExtendHardware(uint32_t crc, absl::string_view bytes) { return ExtendTable(crc, bytes); }

#endif

}  // namespace crc32c_internal

uint32_t ExtendCrc32c(uint32_t crc, absl::string_view bytes) {
  static const bool hardware = crc32c_internal::HardwareAvailable();
  return hardware ? crc32c_internal::ExtendHardware(crc, bytes) : crc32c_internal::ExtendTable(crc, bytes);
}

uint32_t Crc32c(absl::string_view bytes) { return ExtendCrc32c(0, bytes); }

uint32_t MaskedCrc32c(absl::string_view bytes) {
  const uint32_t crc = Crc32c(bytes);
  return ((crc >> 15) | (crc << 17)) + 0xA282EAD8;
}

}  // namespace ssl
