// SPDX-License-Identifier: Apache-2.0
//
// Threads that work on one thing together, as the templates of this package see them:
//
//   team.index(), team.size()   which of the threads this is
//   team.Wait()                 until all are here; what they wrote before it, all of them see behind it
//   team.Sum(x), team.Max(x)    of the x of all threads, for each of them; floats or 64-bit integers. All take part
//   team.lane(), team.lanes()   which of `lanes` neighbours this is, that go side by side
//   team.LaneSum(x)             of the x of these neighbours, for each of them, without a wait of the others
//
// and teams of equal size that share a device:
//
//   teams.index(), teams.size()
//   teams.Wait()                as above, for the threads of all teams
//
// Here is a team of one thread, which is the loop that a test compares with; ThreadTeam (testing/thread_team.h) is one
// of several host threads, BlockTeam (block_team.cuh) one of a kernel's block.
#ifndef SSL_KERNELS_TEAM_H_
#define SSL_KERNELS_TEAM_H_

namespace ssl {

class OneThread {
 public:
  int index() const { return 0; }
  int size() const { return 1; }
  void Wait() const {}
  int lane() const { return 0; }
  int lanes() const { return 1; }
  template <typename T>
  T LaneSum(T value) const {
    return value;
  }
  template <typename T>
  T Sum(T value) const {
    return value;
  }
  template <typename T>
  T Max(T value) const {
    return value;
  }
};

}  // namespace ssl

#endif  // SSL_KERNELS_TEAM_H_
