// SPDX-License-Identifier: Apache-2.0
//
// This digest tells one data set from another of as many samples, without reading it: checksums of what its samples
// say of themselves (BatchSource::SampleIdentity).
#ifndef SSL_CORE_SAMPLE_DIGEST_H_
#define SSL_CORE_SAMPLE_DIGEST_H_

#include <cstdint>
#include <string>
#include <vector>

#include "ssl/core/batch_source.h"

namespace ssl {

// A checksum of the identities of samples [begin, end), as far as the source has these; 0 of one that has none. A
// source whose first and last sample have no identity has none: it may be a stream, of more samples than can be asked.
uint32_t ChecksumOfSamples(const BatchSource& source, int64_t begin, int64_t end);

// The same of up to 64 parts of the data set, one behind another and about as long as each other, so that a message can
// say in which part the first difference lies.
struct SampleDigest {
  struct Part {
    uint32_t checksum = 0;
    std::string first;  // identities
    std::string last;
  };
  std::vector<Part> parts;  // none of a source that has no identities

  // The checksums as one text; "" without parts.
  std::string ToString() const;
  // "'c0/000.jpg' to 'c0/004.jpg'": the first part that is not as in `saved`, a text of ToString. "" when none is.
  std::string FirstOther(const std::string& saved) const;
};

// A million files take about a second.
SampleDigest DigestSamples(const BatchSource& source);

}  // namespace ssl

#endif  // SSL_CORE_SAMPLE_DIGEST_H_
