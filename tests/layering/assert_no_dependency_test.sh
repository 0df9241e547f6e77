#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Proves that assert_no_dependency can fail: runs its generated test over a target that does
# have the forbidden dependency, two steps away. $1 is the test, $2 its query's result.
set -euo pipefail

readonly check=$1 result=$2
status=0
output=$("$check" //tests/layering:client "$result") || status=$?
[[ $status == 1 ]] || { echo "exit code $status, expected 1"; exit 1; }
grep -qxF "  //tests/layering:forbidden" <<<"$output" || { echo "the label is not named in: $output"; exit 1; }
[[ $(grep -c '^  ' <<<"$output") == 1 ]] || { echo "more than the forbidden one is named in: $output"; exit 1; }
