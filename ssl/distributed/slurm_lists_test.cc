// SPDX-License-Identifier: Apache-2.0
//
// SLURM's short forms, and texts that are none.
#include "ssl/distributed/slurm_lists.h"

#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::HasSubstr;

struct HostCase {
  const char* list;
  const char* first;
};

class FirstHostTest : public ::testing::TestWithParam<HostCase> {};

TEST_P(FirstHostTest, IsFound) {
  ASSERT_OK_AND_ASSIGN(const std::string host, FirstHost(GetParam().list));
  EXPECT_EQ(host, GetParam().first);
}

INSTANTIATE_TEST_SUITE_P(Lists, FirstHostTest,
                         ::testing::Values(HostCase{"gpu1", "gpu1"}, HostCase{"gpu1,gpu2", "gpu1"},
                                           HostCase{"node[003-005,010],gpu1", "node003"},
                                           HostCase{"node[010,003-005]", "node010"}, HostCase{"node[7]", "node7"},
                                           HostCase{"gpu1,node[003-005]", "gpu1"},
                                           HostCase{"rack[1-2]node[01-16,20]", "rack1node01"},
                                           HostCase{"n[1-2]-ib,n3", "n1-ib"},
                                           HostCase{"a.b-c[0-1].example.org", "a.b-c0.example.org"}));

TEST(FirstHostTest, AnotherFormIsNamed) {
  for (const char* list : {"", ",", "node[", "node[]", "node[a-b]", "node[-3]", "node]", "node 1", "[,1]", "a(2)"}) {
    EXPECT_THAT(FirstHost(list), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("expected hosts"))) << list;
  }
}

struct TaskCase {
  const char* counts;
  int64_t node;
  int64_t tasks;
};

class TasksOnNodeTest : public ::testing::TestWithParam<TaskCase> {};

TEST_P(TasksOnNodeTest, AreFound) {
  ASSERT_OK_AND_ASSIGN(const int64_t tasks, TasksOnNode(GetParam().counts, GetParam().node));
  EXPECT_EQ(tasks, GetParam().tasks);
}

INSTANTIATE_TEST_SUITE_P(Counts, TasksOnNodeTest,
                         ::testing::Values(TaskCase{"4", 0, 4}, TaskCase{"2(x3),1", 0, 2}, TaskCase{"2(x3),1", 2, 2},
                                           TaskCase{"2(x3),1", 3, 1}, TaskCase{"1,8(x2)", 2, 8}));

TEST(TasksOnNodeTest, AnotherFormIsNamed) {
  for (const char* counts : {"", "0", "x", "2(x", "2(x)", "2(3)", "-1", "2(x0)", "99999999999999999999"}) {
    EXPECT_THAT(TasksOnNode(counts, 0), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("expected counts")))
        << counts;
  }
}

TEST(CountTasksTest, AddsUpTasksAndNodes) {
  ASSERT_OK_AND_ASSIGN(const TaskCount few, CountTasks("2(x3),1"));
  EXPECT_EQ(few.tasks, 7);
  EXPECT_EQ(few.nodes, 4);
  ASSERT_OK_AND_ASSIGN(const TaskCount many, CountTasks("9223372036854775807(x9223372036854775807)"));
  EXPECT_EQ(many.tasks, kMostCounted);
  EXPECT_EQ(many.nodes, kMostCounted);
  EXPECT_THAT(CountTasks("2(x3),0"), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("expected counts")));
}

struct HostCountCase {
  const char* list;
  int64_t hosts;
};

class CountHostsTest : public ::testing::TestWithParam<HostCountCase> {};

TEST_P(CountHostsTest, CountsThem) {
  ASSERT_OK_AND_ASSIGN(const int64_t hosts, CountHosts(GetParam().list));
  EXPECT_EQ(hosts, GetParam().hosts);
}

INSTANTIATE_TEST_SUITE_P(Lists, CountHostsTest,
                         ::testing::Values(HostCountCase{"gpu1", 1}, HostCountCase{"gpu1,gpu2", 2},
                                           HostCountCase{"node[003-005,010],gpu1", 5},
                                           HostCountCase{"rack[1-2]node[01-16,20]", 34},
                                           HostCountCase{"n[1-2]-ib,n3", 3},
                                           HostCountCase{"node[1-99999999999]", kMostCounted}));

TEST(CountHostsTest, AnotherFormIsNamed) {
  for (const char* list : {"node[", "node[]", "node[a-b]", "node[5-3]", "node[1-]", "node]", "node 1"}) {
    EXPECT_THAT(CountHosts(list), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("expected hosts"))) << list;
  }
}

TEST(TasksOnNodeTest, ANodeThatIsNotThereIsNamed) {
  EXPECT_THAT(TasksOnNode("2(x3),1", 4), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("up to node 4")));
}

}  // namespace
}  // namespace ssl
