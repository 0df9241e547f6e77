// SPDX-License-Identifier: Apache-2.0
//
// A data set and the transforms that its samples go through. Immutable and shared by the worker threads; each brings
// its own PipelineScratch, in which nothing is allocated once the buffers have grown to their size. Those that a huge
// image has left go when many small ones have followed.
//
//   PipelineScratch scratch;
//   SSL_RETURN_IF_ERROR(pipeline.Read(epoch, index, &scratch));  // result: scratch.sample
#ifndef SSL_DATA_LOADER_PIPELINE_H_
#define SSL_DATA_LOADER_PIPELINE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ssl/data/dataset.h"
#include "ssl/data/loader/buffer_use.h"
#include "ssl/data/sample.h"
#include "ssl/data/transform.h"
#include "ssl/kernels/view_plan.h"

namespace ssl {

enum class LabelType {
  kStandard,     // of the data set
  kSampleIndex,  // the sample's index
  kZero,         // always 0
};

// What takes the place of a sample whose image cannot be read: of the following ones, the first whose image can. They
// are those of the pipeline's data set, whatever that is a part of.
enum class Replacement {
  kNone,    // nothing: the image that the data set puts there
  kImage,   // its image, under the label and the index of the broken one
  kSample,  // all of it
};

struct PipelineScratch {
  Sample sample;
  std::vector<ViewPlan> plans;  // of Plan
  TransformScratch transform;
  BufferUse use;
};

class Pipeline {
 public:
  // dataset: not empty.
  Pipeline(std::unique_ptr<Dataset> dataset, std::vector<std::unique_ptr<Transform>> transforms, LabelType label_type,
           uint64_t seed);

  // Of a sample that is replaced, its fault remains.
  void set_replacement(Replacement replacement) { replacement_ = replacement; }

  // Dataset::KeepInMemory. Before the first Read.
  void KeepInMemory(const DatasetCache& cache) { dataset_->KeepInMemory(cache); }

  const Dataset& dataset() const { return *dataset_; }
  bool has_labels() const { return GivesLabels() || dataset_->has_labels(); }
  uint64_t seed() const { return seed_; }

  // Whether the tables of the first sample's views are those of all samples, and say all about their floats.
  bool tables_say_all() const;

  // The classes that its samples have, in ascending order, without reading an image: see BatchSource::Classes.
  absl::StatusOr<std::vector<int64_t>> Classes() const;

  // By class; empty where classes are numbers only, as those are that LABEL_TYPE makes.
  std::vector<std::string> ClassNames() const;

  // See BatchSource::SampleIdentity. Labels that LABEL_TYPE makes are no part of it.
  std::string SampleIdentity(int64_t index) const;

  // Reads the sample at `index` in [0, dataset().size()) and applies the transforms. An error names the sample, the
  // data set and the transform.
  absl::Status Read(int64_t epoch, int64_t index, PipelineScratch* scratch) const;

  // The same, but for the transforms: the sample keeps its image, and scratch->plans is what they would do to each view
  // (ViewPlanner), which begins with the first byte of that image. For a pipeline that can.
  absl::Status Plan(int64_t epoch, int64_t index, PipelineScratch* scratch) const;

  // The place of the first transform that has no plans; the number of transforms: all have.
  size_t first_without_plan() const;

  // InvalidArgument when it cannot plan: a transform has no plans, stands where it cannot be planned, or may take more
  // steps than a plan holds. Reads the first sample.
  absl::Status CheckPlans(PipelineScratch* scratch) const;

 private:
  // The sample with its label, before the transforms.
  absl::Status ReadImage(int64_t epoch, int64_t index, PipelineScratch* scratch) const;
  // `status` with the sample and transform i.
  absl::Status OfTransform(const absl::Status& status, int64_t index, size_t i) const;
  // The sample at `index`, before the transforms; of its image what the first of them that looks at it needs.
  absl::Status Load(const TransformContext& first, int64_t index, Sample* sample) const;
  absl::Status LoadOrReplace(const TransformContext& first, int64_t index, Sample* sample) const;
  NeededPixels Needs(const TransformContext& first, int height, int width) const;

  // Whether labels come from LABEL_TYPE or from a transform, and not from the data set.
  bool GivesLabels() const { return label_type_ != LabelType::kStandard || made_classes_ > 0; }

  std::unique_ptr<Dataset> dataset_;
  std::vector<std::unique_ptr<Transform>> transforms_;
  size_t first_reader_ = 0;  // of the transforms; those before it only copy the image, into
  int copies_ = 1;           // so many views
  LabelType label_type_;
  int64_t made_classes_ = 0;  // of the labels that transforms give; 0: they give none
  uint64_t seed_;
  Replacement replacement_ = Replacement::kNone;
};

}  // namespace ssl

#endif  // SSL_DATA_LOADER_PIPELINE_H_
