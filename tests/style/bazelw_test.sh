#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tests of bazelw on a machine of fakes: PATH holds only scripts that record their calls and
# links to a few harmless tools. $INSTALLED lists what the fake dpkg-query says is installed;
# a successful fake `apt-get install` adds to it.
set -euo pipefail

readonly BAZELW="$PWD/bazelw"
readonly ALL="bazel-bootstrap bazel-rules-java bazel-rules-proto bazel-platforms g++ binutils python3 python3-pip unzip"
failures=0

fake() {
  { echo "#!$(command -v bash)"; cat; } >"$ROOT/bin/$1"
  chmod +x "$ROOT/bin/$1"
}

# A fresh machine: $1 user id, $2 packages that are installed, $3 whether apt's lists are filled.
machine() {
  ROOT=$(mktemp -d "$TEST_TMPDIR/machine.XXXXXX")
  export ROOT
  mkdir "$ROOT/bin"
  touch "$ROOT/calls"
  tr ' ' '\n' <<<"$2" >"$ROOT/installed"
  echo "$1" >"$ROOT/uid"
  [[ $3 == lists ]] && touch "$ROOT/lists"
  for tool in bash cat cut env grep paste sed touch; do ln -s "$(command -v "$tool")" "$ROOT/bin/$tool"; done
  # shellcheck disable=SC2016
  fake id <<<'cat "$ROOT/uid"'
  fake dpkg-query <<'FAKE'
for word in "$@"; do grep -qxF -- "$word" "$ROOT/installed" && echo "installed $word"; done
[[ $# == $(cat "$ROOT/installed" | grep -c .) ]]
FAKE
  fake apt-get <<'FAKE'
echo "apt-get $*" >>"$ROOT/calls"
echo "output of apt-get"
case "$*" in
  update*) [[ -e $ROOT/offline ]] && exit 100; touch "$ROOT/lists" ;;
  *install*)
    [[ -e $ROOT/lists ]] || { echo "E: Unable to locate package" >&2; exit 100; }
    [[ $1 == --simulate ]] && exit 0
    for word in "$@"; do [[ $word == -* || $word == install ]] || echo "$word" >>"$ROOT/installed"; done ;;
esac
FAKE
  fake bazel-4 <<'FAKE'
printf 'bazel' >>"$ROOT/calls"; printf ' [%s]' "$@" >>"$ROOT/calls"; echo >>"$ROOT/calls"
echo "output of bazel"
FAKE
}

# shellcheck disable=SC2016
with_sudo() { fake sudo <<<'echo "sudo $*" >>"$ROOT/calls"; exec "$@"'; }

run_bazelw() {
  set +e
  PATH="$ROOT/bin" "$BASH" "$BAZELW" "$@" >"$ROOT/stdout" 2>"$ROOT/stderr"
  STATUS=$?
  set -e
}

fail() {
  echo "FAILED: $CASE: $*"
  sed 's/^/  call: /' "$ROOT/calls"
  sed 's/^/  stderr: /' "$ROOT/stderr"
  failures=$((failures + 1))
}

expect_status() { [[ $STATUS == "$1" ]] || fail "exit code $STATUS, expected $1"; }
expect_in() { grep -qF -- "$2" "$ROOT/$1" || fail "'$2' is not in $1"; }
expect_calls() { [[ $(cat "$ROOT/calls") == "$1" ]] || fail "calls differ from: $1"; }

CASE="nothing missing: Bazel gets the arguments as they are, apt is not called"
machine 1000 "$ALL" lists
run_bazelw run //a:b -- "two words" ""
expect_status 0
expect_calls "bazel [run] [//a:b] [--] [two words] []"
[[ ! -s $ROOT/stderr ]] || fail "something was said"

CASE="Bazel's exit code is ours"
machine 1000 "$ALL" lists
fake bazel-4 <<<'exit 3'
run_bazelw test
expect_status 3

CASE="missing, root: only the missing ones are installed, without an update, with the reason"
machine 0 "${ALL/ unzip/}" lists
run_bazelw test
expect_status 0
expect_calls "apt-get --simulate -qq install --yes --no-install-recommends unzip
apt-get install --yes --no-install-recommends unzip
bazel [test]"
expect_in stderr "unzip: unpacks the wheels"
[[ $(cat "$ROOT/stdout") == "output of bazel" ]] || fail "stdout has more than Bazel's"

CASE="missing, root, empty lists: one update, then the installation"
machine 0 "" nolists
run_bazelw test
expect_status 0
packages="bazel-bootstrap bazel-rules-java bazel-rules-proto bazel-platforms g++ binutils python3 python3-pip unzip"
expect_calls "apt-get --simulate -qq install --yes --no-install-recommends $packages
apt-get update
apt-get install --yes --no-install-recommends $packages
bazel [test]"

CASE="missing, not root: through sudo"
machine 1000 "${ALL/ python3-pip/}" lists
with_sudo
run_bazelw test
expect_status 0
expect_in calls "sudo env DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends python3-pip"
expect_in calls "bazel [test]"

CASE="missing, neither root nor sudo: the command to type, no Bazel"
machine 1000 "${ALL/ g++/}" lists
run_bazelw test
expect_status 3
expect_in stderr "not root, and there is no sudo"
expect_in stderr "apt-get update && apt-get install --yes --no-install-recommends g++"
expect_calls ""

CASE="installation impossible: the command to type, no Bazel"
machine 0 "${ALL/ g++/}" nolists
touch "$ROOT/offline"
run_bazelw test
expect_status 3
expect_in stderr "Unable to locate package"
expect_in stderr "apt-get install --yes --no-install-recommends g++"
grep -q '^bazel' "$ROOT/calls" && fail "Bazel ran"

CASE="not a Debian system: says so"
machine 0 "$ALL" lists
rm "$ROOT/bin/dpkg-query"
run_bazelw test
expect_status 3
expect_in stderr "dpkg-query: not found. Build on Debian 12"

[[ $failures == 0 ]] && echo "all cases passed"
