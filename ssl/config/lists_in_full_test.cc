// SPDX-License-Identifier: Apache-2.0
#include "ssl/config/lists_in_full.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "ssl/config/help.h"
#include "ssl/config/node.h"
#include "ssl/config/testing/parsed.h"

namespace ssl {
namespace {

struct NamesOptions : public Options {
  std::vector<std::string> names;
  std::vector<std::string> strict;

  void VisitFields(FieldVisitor& visitor) override {
    visitor.Field("names", &names, Doc("of whom").MayBeOne());
    visitor.Field("strict", &strict, Doc("of whom"));
  }
};

struct OuterOptions : public Options {
  NamesOptions inner;

  void VisitFields(FieldVisitor& visitor) override { visitor.Section("inner", &inner, Doc("of it")); }
};

std::string InFull(const std::string& yaml) {
  ConfigNode map = Parsed(yaml);
  OuterOptions options;
  WriteListsInFull(options, &map);
  return FormatValue(map);
}

TEST(WriteListsInFullTest, OneString_IsTheListOfIt_WhereTheDeclarationSaysSo) {
  EXPECT_EQ(InFull("inner: {names: a, strict: b}"), "{inner: {names: [a], strict: b}}");
  EXPECT_EQ(InFull("inner: {names: [a, b]}\nnames: c"), "{inner: {names: [a, b]}, names: c}");
}

TEST(WriteListsInFullTest, WhatIsWrong_StaysForItsReader) {
  for (const std::string yaml : {"{inner: {names: ''}}", "{inner: {names: {a: 1}}}", "{inner: 3}", "3"}) {
    EXPECT_EQ(FormatValue(Parsed(yaml)), InFull(yaml));
  }
}

TEST(WriteListsInFullTest, TheList_StandsWhereTheStringDid) {
  ConfigNode map = Parsed("strict: [a]\nnames: b");
  NamesOptions options;
  WriteListsInFull(options, &map);
  EXPECT_EQ(map.Find("names")->location().ToString(), "f.yaml:2");
}

}  // namespace
}  // namespace ssl
