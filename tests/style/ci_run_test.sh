#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tests of .ci/run with a fake ./bazelw whose output and exit code are given.
set -euo pipefail

readonly CI_RUN="$PWD/.ci/run"
failures=0

# $1 case, $2 exit code of `bazelw test`, $3 exit code of the examples, $4 of the kernels; Bazel's output on stdin.
# Sets STATUS, LAST (the last line) and TREE.
run_ci() {
  CASE=$1
  TREE=$(mktemp -d "$TEST_TMPDIR/tree.XXXXXX")
  mkdir -p "$TREE/.ci" "$TREE/examples/embed"
  cp "$CI_RUN" "$TREE/.ci/run"
  cat >"$TREE/output"
  cat >"$TREE/bazelw" <<FAKE
#!/usr/bin/env bash
echo "\$(basename "\$PWD"): \$*" >>"$TREE/calls"
[[ \$1 == run ]] && exit $3
[[ \$1 == build ]] && exit $4
[[ \$1 == query ]] && echo //ssl:kernel && exit 0
[[ \$1 == aquery ]] && printf '2 total actions.\\n\\nMnemonics:\\n  CppCompile: 2\\n' && exit 0
cat "$TREE/output"
exit $2
FAKE
  chmod +x "$TREE/bazelw" "$TREE/.ci/run"
  set +e
  (cd / && "$TREE/.ci/run") >"$TREE/log" 2>&1
  STATUS=$?
  set -e
  LAST=$(tail -n1 "$TREE/log")
}

expect() {
  [[ $STATUS == "$1" && $LAST == "$2" ]] && return
  echo "FAILED: $CASE: exit code $STATUS and '$LAST', expected $1 and '$2'"
  failures=$((failures + 1))
}

run_ci "fresh, cached and timed results are counted" 0 0 0 <<'OUT'
INFO: Build completed successfully, 9 total actions
//ssl/base:log_test                                             (cached) PASSED in 0.1s
//ssl/base:clock_test                                                    PASSED in 12.0s
  Stats over 2 runs: max = 0.3s, min = 0.2s, avg = 0.3s, dev = 0.0s
OUT
expect 0 "5 passed, 0 failed"
here=$(basename "$TREE")
calls="$here: test //..."$'\n'"$here: query --noshow_progress kind(cuda_library, //ssl/...)"$'\n'
calls+="$here: build --config=cuda //ssl:kernel"$'\n'"embed: run //:embed"$'\n'"embed: run //:own_train_step"
for target in //ssl/tools:ssl_main //...; do
  calls+=$'\n'"$here: aquery --noshow_progress --output=summary mnemonic('^CppCompile\$', deps($target))"
done
grep -q "^C++ files of ssl_main: 2, of everything: 2; minutes: 0 for the tests, 0 in all$" "$TREE/log" || {
  echo "FAILED: the log does not say what was compiled: $(tail -n2 "$TREE/log")"
  failures=$((failures + 1))
}
[[ $(<"$TREE/calls") == "$calls" ]] || {
  echo "FAILED: the calls are $(<"$TREE/calls")"
  failures=$((failures + 1))
}

run_ci "every other state is a failure" 3 0 0 <<'OUT'
//a:passed_test                                                          PASSED in 0.1s
//a:broken_test                                                          FAILED in 1.0s
//a:flaky_test                                                            FLAKY, failed in 1 out of 2 in 1.0s
//a:slow_test                                                           TIMEOUT in 60.0s
//a:compile_test                                                FAILED TO BUILD
//a:skipped_test                                                      NO STATUS
OUT
expect 1 "4 passed, 5 failed"

run_ci "coloured output is read as well" 0 0 0 < <(printf '//a:b_test   \033[32mPASSED\033[0m in 0.1s\n')
expect 0 "4 passed, 0 failed"

run_ci "a library that does not build is a failure" 1 0 0 <<'OUT'
//a:b_test                                                      (cached) PASSED in 0.1s
All tests passed but there were other errors during the build.
OUT
expect 1 "4 passed, 1 failed"

run_ci "no test at all is a failure" 0 0 0 </dev/null
expect 1 "3 passed, 0 failed"

run_ci "an example that fails is a failure" 0 1 0 <<'OUT'
//a:b_test                                                               PASSED in 0.1s
OUT
expect 1 "2 passed, 2 failed"

run_ci "a kernel that does not compile is a failure" 0 0 1 <<'OUT'
//a:b_test                                                               PASSED in 0.1s
OUT
expect 1 "3 passed, 1 failed"

[[ $failures == 0 ]] && echo "all cases passed"
