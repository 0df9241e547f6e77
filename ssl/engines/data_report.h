// SPDX-License-Identifier: Apache-2.0
//
// What the images of a data set are together: broken ones by kind, duplicates, sizes, classes, mean and standard
// deviation; as a table for people and as a tree for programs. Pure functions.
#ifndef SSL_ENGINES_DATA_REPORT_H_
#define SSL_ENGINES_DATA_REPORT_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ssl/base/stop_token.h"
#include "ssl/config/node.h"
#include "ssl/data/inspection/image_survey.h"

namespace ssl {

struct DataReportLimits {
  int64_t tiny_side = 32;          // pixels: an image with a shorter side than this is tiny
  int64_t huge_pixels = 16000000;  // an image with more is huge
  int64_t duplicate_distance = 4;  // bits of the difference hash
};

// What is known of a data set beside its images.
struct DataDescription {
  std::string split;                     // "TRAIN"
  std::string source;                    // "photos"
  std::vector<std::string> names;        // of each image: its path, or "image 17"
  std::vector<int64_t> labels;           // the classes of all images, of some several; empty: there are none
  std::vector<std::string> passed_over;  // Dataset::PassedOver
  std::string of_16_bits;                // what becomes of values of 16 bits, and which key says so
  std::vector<std::string> class_names;  // by label; those beyond its end, or all when it is empty, are numbers
};

// Positions in the data set, ascending, wherever images are meant.
struct DataReport {
  int64_t images = 0;
  int64_t bytes = 0;
  std::vector<std::vector<int64_t>> broken;  // by ReadFault; that of kNone is empty
  std::vector<int64_t> tiny;
  std::vector<int64_t> huge;
  std::vector<int64_t> of_16_bits;
  std::vector<std::vector<int64_t>> exact_duplicates;  // groups of readable images of equal content
  // Groups that look alike: of equal content, the first stands for all.
  std::vector<std::vector<int64_t>> near_duplicates;
  // Of the classes that occur or have a name; empty without labels.
  std::map<int64_t, int64_t> class_sizes;
  // Of all readable images, each of the same weight, as each is drawn as often; one value a channel. Empty when there
  // is none.
  std::vector<double> mean;
  std::vector<double> std;
  // Of readable images: the shorter and the longer side.
  int64_t median_shorter_side = 0;
  int64_t median_longer_side = 0;

  int64_t num_broken() const;
};

// Images that could be left out: all but one of each group.
int64_t NumRepetitions(const std::vector<std::vector<int64_t>>& groups);

// on_progress: called during the search for near duplicates, which takes the longest, with how much of it is done, as a
// number of images; all of them in the end. Cancelled when `stop`, which may be null, is requested during that search.
absl::StatusOr<DataReport> MakeDataReport(const std::vector<SurveyedImage>& images, const DataDescription& description,
                                          const DataReportLimits& limits,
                                          const std::function<void(int64_t done)>& on_progress = {},
                                          const StopToken* stop = nullptr);

// Positions in `second` of readable images whose content is in `first` as well.
std::vector<int64_t> SharedContent(const std::vector<SurveyedImage>& first, const std::vector<SurveyedImage>& second);

// Several lines; of long lists the first few.
std::string FormatDataReport(const DataReport& report, const DataDescription& description,
                             const std::vector<SurveyedImage>& images, const DataReportLimits& limits);

// Everything, with the names of all files that are broken, tiny, huge or duplicates.
ConfigNode DataReportTree(const DataReport& report, const DataDescription& description,
                          const std::vector<SurveyedImage>& images);

}  // namespace ssl

#endif  // SSL_ENGINES_DATA_REPORT_H_
