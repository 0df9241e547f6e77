// SPDX-License-Identifier: Apache-2.0
//
// What a meter may say of itself before it has data: by which names it will measure. Options that choose a metric are
// then compared with these before the first step. A meter that does not say it may measure whatever begins with its
// name. Const use is safe from any thread.
//
//   class MyMeter : public Meter, public NamesValues { ...
#ifndef SSL_CORE_VALUE_NAMES_H_
#define SSL_CORE_VALUE_NAMES_H_

#include <string>
#include <vector>

namespace ssl {

// As in MeterValue.
struct ValueName {
  std::string metric;
  std::string output;
};

class NamesValues {
 public:
  virtual ~NamesValues() = default;

  // Of all values of every phase; a name that several of them share stands there several times.
  virtual std::vector<ValueName> ValueNames() const = 0;
};

}  // namespace ssl

#endif  // SSL_CORE_VALUE_NAMES_H_
