// SPDX-License-Identifier: Apache-2.0
//
// Features that one evaluation has computed and a later one of the same command wants as well. Used by one thread.
#ifndef SSL_ENGINES_FEATURE_CACHE_H_
#define SSL_ENGINES_FEATURE_CACHE_H_

#include <map>
#include <string>
#include <utility>

#include "ssl/engines/feature_extraction.h"

namespace ssl {

class FeatureCache {
 public:
  struct Features {
    FeatureSet train;
    FeatureSet test;
  };

  // subject: a network by its key in results.json, "trained"; layer: the name of its one tensor, "res4+res5avg".
  void Want(const std::string& subject, const std::string& layer) { wanted_[{subject, layer}]; }

  // Keeps the tensors, which nobody changes any more, where they are wanted.
  void Keep(const std::string& subject, const std::string& layer, const FeatureSet& train, const FeatureSet& test) {
    const auto entry = wanted_.find({subject, layer});
    if (entry != wanted_.end()) entry->second = {train, test};
  }

  // Null where nothing was kept.
  const Features* Find(const std::string& subject, const std::string& layer) const {
    const auto entry = wanted_.find({subject, layer});
    return entry == wanted_.end() || entry->second.train.features.empty() ? nullptr : &entry->second;
  }

 private:
  std::map<std::pair<std::string, std::string>, Features> wanted_;
};

}  // namespace ssl

#endif  // SSL_ENGINES_FEATURE_CACHE_H_
