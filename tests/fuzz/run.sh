#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds one fuzz target and runs it: tests/fuzz/run.sh TARGET [EXECUTIONS] [LIBFUZZER_OPTION...]
#
# Each input may take a second (SECONDS_PER_INPUT: more on a machine with other work, where a second of the clock is
# none of the processor) and 512 MiB. New inputs are kept in runs/fuzz/TARGET (RUNS names another place), from where the
# next run goes on; an input that breaks something lies there as crash-*, and belongs into tests/fuzz/findings/TARGET
# with the change that mends it. Needs the Debian package clang-14. BINARIES and SKIP_BUILD: programs built before.
set -euo pipefail

target=${1:?a target: the NAME of NAME_fuzz.cc}
executions=${2:-1000000}
shift $(($# < 2 ? $# : 2))
cd "$(dirname "$0")/../.."

if [[ -z ${SKIP_BUILD:-} ]]; then
  ./bazelw build --config=fuzz "//tests/fuzz:${target}_fuzz" "//tests/fuzz:${target}_seeds"
fi
binaries=${BINARIES:-bazel-bin/tests/fuzz}
folder=${RUNS:-runs/fuzz}/$target
corpus=$folder/corpus
mkdir -p "$corpus"
"$binaries/${target}_seeds" "$corpus"

export ASAN_OPTIONS=quarantine_size_mb=16:detect_leaks=1:${ASAN_OPTIONS:-}
exec "$binaries/${target}_fuzz" -runs="$executions" -timeout="${SECONDS_PER_INPUT:-1}" -rss_limit_mb=512 -max_len=8192 \
  -artifact_prefix="$folder/" -print_final_stats=1 -verbosity=1 "$@" "$corpus"
