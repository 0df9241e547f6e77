#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Usage: expect_no_labels.sh TARGET FILE
# Fails when FILE, the result of a query for TARGET's forbidden dependencies, has a line.
set -euo pipefail

readonly target=$1 result=$2
[[ -e $result ]] || { echo "$result: no such file" >&2; exit 2; }
[[ -s $result ]] || exit 0
echo "$target must not depend on these, but does:"
sed 's/^/  /' "$result"
echo "how: bazel query 'somepath($target, $(head -n1 "$result"))'"
exit 1
