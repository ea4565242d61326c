#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# From a fresh Debian 12 or 13 to a running Kraft with lines going through it.
#
#   deploy/quickstart.sh                install, build, format, start one node, send a text through it, leave it running
#   deploy/quickstart.sh --stop         stop that node (its data stays)
#
#   --data DIR    where the node keeps its data and log        (./data)
#   --port N      client port; the controller takes N + 1      (9092)
#   --topic T     topic that the lines go through              (quickstart)
#   --file F      text whose lines are sent                    (LICENSE of this tree)
#
# Safe to run again: what is installed, built, formatted or running already is used as it is.
set -eu
cd "$(dirname "$0")/.."
top=$PWD
data=$top/data port=9092 topic=quickstart file=$top/LICENSE stop=

say() { printf '%s\n' "$*"; }
die() {
    printf 'quickstart: %s\n' "$*" >&2
    exit 1
}
usage() {
    sed -n '3,13s/^# \{0,1\}//p' "$0"
    exit "$1"
}

while [ $# -gt 0 ]; do
    case $1 in
    --stop) stop=yes ;;
    -h | --help) usage 0 ;;
    --data | --port | --topic | --file)
        [ $# -ge 2 ] || die "$1 needs a value; see --help"
        case $1 in
        --data) mkdir -p "$2" && data=$(cd "$2" && pwd) || die "cannot make the directory $2" ;;
        --port) port=$2 ;;
        --topic) topic=$2 ;;
        --file) file=$(realpath -- "$2") ;;
        esac
        shift
        ;;
    *) die "unknown option '$1'; see --help" ;;
    esac
    shift
done
case $port in '' | *[!0-9]*) die "--port $port is not a number" ;; esac
[ "$port" -ge 1 ] && [ "$port" -le 65534 ] || die "--port must be from 1 to 65534"
[ -r "$file" ] || die "cannot read $file; give a text with --file"

pid_file=$data/kraft.pid config=$data/server.properties log=$data/kraft.log
alive() { # does the process run? One that nobody has collected yet does not
    grep -qs '^State:[[:space:]]*[A-WYa-wy]' "/proc/$1/status"
}
running() { # the pid of our node, if it runs
    [ -r "$pid_file" ] || return 1
    local pid
    pid=$(cat "$pid_file")
    [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = kraft-server ] && alive "$pid" && printf '%s' "$pid"
}

if [ -n "$stop" ]; then
    pid=$(running) || die "no node of $data is running"
    kill "$pid"
    for _ in $(seq 300); do
        alive "$pid" || { rm -f "$pid_file"; say "Stopped. The data stays in $data; run deploy/quickstart.sh to go on."; exit 0; }
        sleep 0.1
    done
    die "the node (pid $pid) did not stop within 30 s; its log is $log"
fi

say "1. Packages"
deploy/setup.sh build
say "2. Build"
mkdir -p build
if [ ! -f build/build.ninja ]; then
    meson setup build >build/setup.log 2>&1 || { tail -20 build/setup.log >&2; die "meson failed (see above)"; }
fi
ninja -C build >build/ninja.log 2>&1 || { grep -E 'error|FAILED' -A4 build/ninja.log | head -40 >&2; die "the build failed (see above; all of it is in build/ninja.log)"; }
bin=$top/build/tools

say "3. Node"
mkdir -p "$data"
if pid=$(running); then
    port=$(sed -n 's/^listeners=PLAINTEXT:\/\/127\.0\.0\.1:\([0-9]*\),.*/\1/p' "$config")
    say "   is running already (pid $pid, port $port)"
else
    cat >"$config" <<EOF
# One combined node, for trying Kraft. docs/configuration.md has every key.
process.roles=broker,controller
node.id=1
listeners=PLAINTEXT://127.0.0.1:$port,CONTROLLER://127.0.0.1:$((port + 1))
controller.listener.names=CONTROLLER
controller.quorum.bootstrap.servers=127.0.0.1:$((port + 1))
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs=$data/logs
EOF
    if [ ! -f "$data/logs/meta.properties" ]; then
        "$bin/kraft-format" format --standalone --cluster-id "$("$bin/kraft-format" random-uuid)" --config "$config"
    fi
    setsid "$bin/kraft-server" "$config" >>"$log" 2>&1 </dev/null &
    pid=$!
    printf '%s\n' "$pid" >"$pid_file"
    tries=0
    until "$bin/kraft-admin" cluster --bootstrap-server "127.0.0.1:$port" >/dev/null 2>&1; do
        if ! alive "$pid"; then
            tail -5 "$log" >&2
            rm -f "$pid_file"
            die "the node did not start (see above). Is port $port taken? Try --port"
        fi
        tries=$((tries + 1))
        [ "$tries" -lt 200 ] || die "the node does not answer; its log is $log"
        sleep 0.1
    done
    say "   started (pid $pid)"
fi
at="127.0.0.1:$port"

say "4. Topic $topic"
if ! "$bin/kraft-admin" topics describe --topic "$topic" --bootstrap-server "$at" >/dev/null 2>&1; then
    tries=0 # a broker that has just started may not be live yet
    until said=$("$bin/kraft-admin" topics create --topic "$topic" --partitions 1 --bootstrap-server "$at" 2>&1); do
        tries=$((tries + 1))
        [ "$tries" -lt 50 ] || die "$said"
        sleep 0.1
    done
    say "   $said"
fi

lines=$(wc -l <"$file")
say "5. $lines lines of $file through it"
before=$("$bin/kraft-admin" topics offsets --topic "$topic" --bootstrap-server "$at" --output json | sed -n 's/.*"end_offset": *\([0-9]*\).*/\1/p' | head -1)
"$bin/kraft-admin" produce --topic "$topic" --file "$file" --bootstrap-server "$at"
"$bin/kraft-admin" consume --topic "$topic" --partition 0 --offset "${before:-0}" --exit-eof --bootstrap-server "$at" >"$data/received.txt"
say "   and back:"
grep -v '^ *$' "$data/received.txt" | head -5 | sed 's/^/   | /'
say "   ..."
cmp -s "$file" "$data/received.txt" || die "what came back differs from $file; compare it with $data/received.txt"
say "   all $lines lines came back equal."
cat <<EOF

Kraft runs on $at (pid $pid, data in $data, log $log). What next:

  kcat -b $at -L                                                    what the cluster looks like
  echo hello | kcat -b $at -t $topic -P                             send a record
  build/tools/kraft-admin topics list --bootstrap-server $at
  build/tools/kraft-admin consume --topic $topic --from-beginning --bootstrap-server $at
  build/tools/kraft-admin quorum describe --bootstrap-server $at
  deploy/quickstart.sh --stop$([ "$data" = "$top/data" ] || printf ' --data %s' "$data")
EOF
