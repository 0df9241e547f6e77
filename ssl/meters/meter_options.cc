// SPDX-License-Identifier: Apache-2.0
#include "ssl/meters/meter_options.h"

namespace ssl {
namespace {

// What every meter has for its outputs.
void VisitOutputs(FieldVisitor& visitor, int64_t* num_meters, std::vector<std::string>* meter_names) {
  visitor.Field("num_meters", num_meters, Doc("outputs of the model that are measured, each by itself").AtLeast(1));
  visitor.Field("meter_names", meter_names, Doc("their names; their positions when empty"));
}

}  // namespace

void OutputMaskOptions::VisitFields(FieldVisitor& visitor) {
  visitor.Field("model_output_mask", &model_output_mask,
                Doc("in test phases, scores of classes that the test split lacks count as -inf"));
}

void MetersOptions::VisitFields(FieldVisitor& visitor) {
  visitor.Field("name", &name, Doc("deprecated: one more entry of names"));
  MeasuredOptions::VisitFields(visitor);
  output_mask.VisitFields(visitor);
}

void TopKMeterOptions::VisitFields(FieldVisitor& visitor) {
  VisitOutputs(visitor, &num_meters, &meter_names);
  visitor.Field("topk_values", &topk_values, Doc("numbers of best scores that are looked at").AtLeast(1));
}

void MeanApMeterOptions::VisitFields(FieldVisitor& visitor) {
  VisitOutputs(visitor, &num_meters, &meter_names);
  visitor.Field("num_classes", &num_classes, Doc("classes of the model and of the labels").AtLeast(1));
  visitor.Field("max_cpu_capacity", &max_cpu_capacity,
                Doc("samples that a rank may keep in a phase, -1 for any number; more are an error").AtLeast(-1));
}

}  // namespace ssl
