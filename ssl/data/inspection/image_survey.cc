// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/inspection/image_survey.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <thread>

#include "absl/hash/hash.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "ssl/base/crc32c.h"
#include "ssl/base/start_thread.h"
#include "ssl/base/status_macros.h"
#include "ssl/base/status_util.h"
#include "ssl/base/torch_guard.h"
#include "ssl/base/utf8.h"
#include "ssl/data/datasets/broken_images.h"
#include "ssl/data/get_image.h"
#include "ssl/data/image/byte_buffer.h"
#include "ssl/data/image/decode_image.h"
#include "ssl/data/image/decode_png.h"
#include "ssl/data/image/resample.h"
#include "ssl/data/sample.h"

namespace ssl {
namespace {

ContentKey KeyOf(absl::string_view bytes) {
  return {static_cast<int64_t>(bytes.size()), absl::HashOf(bytes), Crc32c(bytes)};
}

// Sums are of integers, so that they are exact.
void AddMoments(const Image& image, SurveyedImage* result) {
  const int channels = image.channels();
  std::array<uint64_t, 3> sum = {};
  std::array<uint64_t, 3> sum_of_squares = {};
  uint32_t brightest = 0;
  const uint8_t* pixels = image.pixels();
  for (int64_t i = 0; i < image.size_bytes(); i += channels) {
    for (int channel = 0; channel < channels; ++channel) {
      const uint32_t value = pixels[i + channel];
      brightest = std::max(brightest, value);
      sum[channel] += value;
      sum_of_squares[channel] += value * value;
    }
  }
  result->brightest = static_cast<int>(brightest);
  const double count = static_cast<double>(image.height()) * image.width();
  for (int channel = 0; channel < channels; ++channel) {
    result->mean[channel] = static_cast<double>(sum[channel]) / (255.0 * count);
    result->mean_square[channel] = static_cast<double>(sum_of_squares[channel]) / (255.0 * 255.0 * count);
  }
}

// Of one thread.
class Surveyor {
 public:
  Surveyor(const Dataset& dataset, const SurveyOptions& options) : dataset_(dataset), options_(options) {}

  absl::Status Survey(int64_t index, SurveyedImage* result) {
    const absl::Status status = LookAt(index, result);
    if (status.ok()) {
      Describe(sample_.view(0).image, result);
    } else if (IsErrorOfProcess(status)) {
      return status;
    } else {
      result->fault = ReadFaultOf(bytes_.view(), status);
      result->reason = EscapeForMessage(status.message());
    }
    return absl::OkStatus();
  }

 private:
  absl::Status LookAt(int64_t index, SurveyedImage* result) {
    bytes_.Allocate(0);
    sample_.ResetViews(1);
    const absl::StatusOr<bool> is_encoded = dataset_.ReadEncoded(index, &bytes_);
    if (!is_encoded.ok()) {
      bytes_.Allocate(0);
      return AsReadError(is_encoded.status());
    }
    Image& image = sample_.view(0).image;
    if (*is_encoded) {
      result->content = KeyOf(bytes_.view());
      const absl::Status status = DecodeImage(bytes_.view(), options_.limits, &image, options_.grey16);
      return status.ok() ? status : Annotate(status, dataset_.SampleName(index));
    }
    if (const absl::Status status = GetImage(dataset_, index, &sample_); !status.ok()) return AsReadError(status);
    result->content = KeyOf({reinterpret_cast<const char*>(image.pixels()), static_cast<size_t>(image.size_bytes())});
    return absl::OkStatus();
  }

  void Describe(const Image& image, SurveyedImage* result) {
    result->height = image.height();
    result->width = image.width();
    result->channels = image.channels();
    result->has_16_bits = IsPngOf16Bits(bytes_.view());
    result->difference_hash = ComputeDifferenceHash(image, &resampler_);
    AddMoments(image, result);
  }

  const Dataset& dataset_;
  const SurveyOptions& options_;
  ByteBuffer bytes_;
  Sample sample_;
  Resampler resampler_;
};

// Threads take the next image from a counter.
class ParallelSurvey {
 public:
  ParallelSurvey(const Dataset& dataset, const SurveyOptions& options)
      : dataset_(dataset), options_(options), results_(dataset.size()) {}

  absl::StatusOr<std::vector<SurveyedImage>> Run() {
    std::vector<std::thread> others(std::max<int64_t>(options_.threads, 1) - 1);
    for (std::thread& thread : others) {
      // Without further threads the work takes longer, and that is all.
      if (!StartThread(
               "reading images", [this] { Work(/*reports=*/false); }, &thread)
               .ok())
        break;
    }
    Work(/*reports=*/true);
    for (std::thread& thread : others) {
      if (thread.joinable()) thread.join();
    }
    SSL_RETURN_IF_ERROR(error_);
    return std::move(results_);
  }

 private:
  // A data set of a host may throw, and memory may run out.
  void Work(bool reports) {
    const absl::Status status = GuardTorch("reading images", [&] { return WorkOnImages(reports); });
    if (!status.ok()) End(status);
  }

  absl::Status WorkOnImages(bool reports) {
    Surveyor surveyor(dataset_, options_);
    while (!ended_) {
      const int64_t index = next_++;
      if (index >= dataset_.size()) break;
      if (options_.stop != nullptr && options_.stop->requested()) {
        return absl::CancelledError("reading images: stopped");
      }
      SSL_RETURN_IF_ERROR(surveyor.Survey(index, &results_[index]));
      const int64_t done = ++done_;
      if (reports && options_.on_progress) options_.on_progress(done);
    }
    return absl::OkStatus();
  }

  void End(const absl::Status& status) {
    const std::lock_guard<std::mutex> lock(mutex_);
    error_.Update(status);  // the first one stays
    ended_ = true;
  }

  const Dataset& dataset_;
  const SurveyOptions& options_;
  std::vector<SurveyedImage> results_;
  std::atomic<int64_t> next_{0};
  std::atomic<int64_t> done_{0};
  std::atomic<bool> ended_{false};
  std::mutex mutex_;
  absl::Status error_;  // guarded by mutex_
};

}  // namespace

absl::StatusOr<std::vector<SurveyedImage>> SurveyImages(const Dataset& dataset, const SurveyOptions& options) {
  return ParallelSurvey(dataset, options).Run();
}

}  // namespace ssl
