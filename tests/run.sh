#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what the tests need, builds Kraft and runs its tests. Safe to run again.
#
#   tests/run.sh           build, lints, unit tests, simulation, cluster and client tests (some minutes)
#   tests/run.sh --quick   build, lints, quick unit tests and one node with kcat (about a minute)
#   tests/run.sh --all     everything CI does: also the Java client, sanitizers, fuzzing and the format check
set -u
cd "$(dirname "$0")/.." || exit 1
top=$PWD

mode=default
case ${1:-} in
'') ;;
--quick) mode=quick ;;
--all) mode=all ;;
-h | --help)
    sed -n '3,8s/^# \{0,1\}//p' "$0"
    exit 0
    ;;
*)
    echo "tests: unknown option '$1'; see tests/run.sh --help" >&2
    exit 2
    ;;
esac

passed=0 failed=0 failures=()
started=$SECONDS
logs=$top/build/test-logs

say() { printf '== %s (%d s)\n' "$*" $((SECONDS - started)); }
die() {
    echo "tests: $*" >&2
    finish 1
}
finish() {
    for f in "${failures[@]:-}"; do [ -z "$f" ] || echo "failed: $f"; done
    [ "$1" -eq 0 ] || [ "$failed" -gt 0 ] || failed=1
    echo "$passed passed, $failed failed"
    [ "$failed" -eq 0 ] && exit 0
    exit 1
}
count() { # count NAME PASSED FAILED
    passed=$((passed + $2)) failed=$((failed + $3))
    [ "$3" -eq 0 ] || failures+=("$1")
}

# build DIR MESON-OPTIONS...: configures once, then builds.
build() {
    local dir=$1
    shift
    if [ ! -f "$dir/build.ninja" ]; then
        meson setup "$dir" "$@" >"$logs/setup-$(basename "$dir").log" 2>&1 ||
            { tail -20 "$logs/setup-$(basename "$dir").log" >&2; die "meson could not configure $dir (see above)"; }
    fi
    ninja -C "$dir" >"$logs/ninja-$(basename "$dir").log" 2>&1 ||
        { grep -E 'error|warning|FAILED|lint|:[0-9]+: ' -A4 "$logs/ninja-$(basename "$dir").log" | head -60 >&2; die "the build in $dir failed (see above)"; }
}

# unit DIR NAME MESON-TEST-OPTIONS...: runs meson's tests and counts them.
unit() {
    local dir=$1 name=$2 out=$logs/$2.log
    shift 2
    meson test -C "$dir" --no-rebuild --print-errorlogs --num-processes 2 "$@" >"$out" 2>&1
    local ok bad
    ok=$(awk '/^Ok: / { print $2 }' "$out") bad=$(awk '/^(Fail|Timeout|Unexpected Pass): / { n += $NF } END { print n + 0 }' "$out")
    [ -n "$ok" ] || { tail -20 "$out"; ok=0 bad=1; }
    [ "$bad" -eq 0 ] || { grep -vE '^ *[0-9]+/[0-9]+ .* OK ' "$out" | tail -80; }
    echo "$name: $ok passed, $bad failed"
    count "$name" "$ok" "$bad"
}

# py NAME PATH...: runs Python tests and counts them.
py() {
    local name=$1 out=$logs/$1.log
    shift
    KRAFT_BUILD=$top/build "$top/build/test-venv/bin/python" -m pytest -q --no-header -p no:cacheprovider -rfE "$@" 2>&1 | tee "$out" | grep -vE '^\.+ *\[|^$'
    local ok bad
    ok=$(grep -oE '[0-9]+ passed' "$out" | tail -1 | grep -oE '[0-9]+') bad=$(grep -oE '[0-9]+ (failed|error)' "$out" | awk '{ n += $1 } END { print n + 0 }')
    [ -n "$ok" ] || ok=0
    [ "$ok" -gt 0 ] || [ "$bad" -gt 0 ] || bad=1
    count "$name" "$ok" "$bad"
}

# simulate NAME PROGRAM ARGUMENT...: one program that runs seeds; its end is shown where it fails.
simulate() {
    local name=$1 out=$logs/$1.log
    shift
    if timeout 300 "$@" >"$out" 2>&1; then
        count "$name" 1 0
    else
        tail -30 "$out"
        count "$name" 0 1
    fi
}

venv() {
    local want=$top/tests/requirements.txt at=$top/build/test-venv
    if ! cmp -s "$want" "$at/requirements.txt" 2>/dev/null; then
        /usr/bin/python3 -m venv "$at" && "$at/bin/pip" install -q --disable-pip-version-check -r "$want" ||
            die "could not install the Python packages of tests/requirements.txt; is the package index reachable?"
        cp "$want" "$at/requirements.txt"
    fi
}

deploy/setup.sh test || exit 1
mkdir -p "$logs"

say "build and lints"
build build
say "unit tests"
unit build unit-quick --suite quick
say "Python packages"
venv
say "one node with kcat"
py smoke tests/clients/test_smoke.py
[ "$mode" = quick ] && finish 0

say "long unit tests and simulation"
unit build unit-long --suite long --timeout-multiplier 4
say "simulation, fresh seeds"
seed=${KRAFT_SEED:-$((RANDOM * 32768 + RANDOM + 100000))}
echo "seeds from $seed on (KRAFT_SEED repeats them)"
simulate raft-fresh build/tests/unit/raft/test_raft_random all "$seed" 20
for i in $(seq 0 19); do KRAFT_SEED=$((seed + i)) simulate "nodes-fresh-$((seed + i))" build/tests/unit/core/server/test_server_nodes_random; done
say "cluster tests"
py cluster tests/cluster
say "client tests"
py clients tests/clients --ignore tests/clients/test_smoke.py
[ "$mode" = default ] && finish 0

say "format"
build/test-venv/bin/clang-format --dry-run -Werror $(git ls-files '*.c' '*.h') >"$logs/format.log" 2>&1
bad=$?
[ "$bad" -eq 0 ] || grep -E 'error:' "$logs/format.log" | cut -d: -f1 | sort | uniq -c | head -20
count format $((bad == 0)) $((bad != 0))

say "cost of a produce request"
python3 tests/bench/guard.py | tee "$logs/guard.log"
count guard "$(grep -c '^ok' "$logs/guard.log")" "$(grep -c '^OVER' "$logs/guard.log")"

say "address and undefined behaviour sanitizers"
build build-asan -Db_sanitize=address,undefined -Db_lundef=false -Dwerror=false --optimization=1
ASAN_OPTIONS=detect_leaks=1:abort_on_error=1 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 unit build-asan asan --suite quick --timeout-multiplier 6
say "thread sanitizer"
build build-tsan -Db_sanitize=thread -Db_lundef=false -Dwerror=false --optimization=1
TSAN_OPTIONS=halt_on_error=1 unit build-tsan tsan --suite threads --timeout-multiplier 6

say "fuzzing, half a minute a parser"
CC=clang build build-fuzz -Dfuzzing=true -Db_lundef=false -Db_sanitize=address,undefined -Dwerror=false --optimization=1
for f in build-fuzz/tests/fuzz/fuzz_*; do
    [ -x "$f" ] && [ -f "$f" ] || continue
    name=$(basename "$f")
    seeds=build-fuzz/tests/fuzz/corpus/${name#fuzz_}
    mkdir -p "build-fuzz/corpus/$name" "$seeds"
    if "$f" -max_total_time=30 -rss_limit_mb=1024 -timeout=10 -print_final_stats=1 -artifact_prefix="$logs/$name-" "build-fuzz/corpus/$name" "$seeds" >"$logs/$name.log" 2>&1; then
        echo "$name: $(awk -F: '/number_of_executed_units/ { print $4 }' "$logs/$name.log" | tr -d ' ') runs"
        count "$name" 1 0
    else
        tail -30 "$logs/$name.log"
        count "$name" 0 1
    fi
done
finish 0
