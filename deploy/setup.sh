#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs what Kraft needs on Debian 12 or 13: `setup.sh build` to build and run it, `setup.sh test` for all tests as well.
# Safe to run again: what is there already is left alone. Needs root, or sudo.
set -eu

say() { printf '%s\n' "setup: $*"; }
die() { printf '%s\n' "setup: $*" >&2; exit 1; }

[ $# -eq 1 ] || die "usage: setup.sh build|test"
case $1 in build | test) ;; *) die "usage: setup.sh build|test" ;; esac

[ -r /etc/os-release ] || die "this script knows Debian 12 and 13; elsewhere install the packages that docs/building.md lists"
# shellcheck disable=SC1091
. /etc/os-release
suite=${VERSION_CODENAME:-unknown}
case $suite in
bookworm | trixie) ;;
*) die "this script knows Debian 12 (bookworm) and 13 (trixie), this is '$suite'; install the packages that docs/building.md lists" ;;
esac

packages="build-essential meson ninja-build pkg-config python3 ca-certificates procps
  libuv1-dev liblz4-dev libzstd-dev zlib1g-dev libsnappy-dev libisal-dev libssl-dev libxxhash-dev libjansson-dev libcmocka-dev libraft-dev"
if [ "$1" = test ]; then
    packages="$packages clang libclang-rt-dev kcat zstd e2fsprogs strace valgrind iproute2 python3-venv git default-jdk-headless maven"
    [ "$suite" = bookworm ] && packages=$(printf '%s' "$packages" | sed 's/libclang-rt-dev/libclang-rt-14-dev/')
fi

missing=
for p in $packages; do
    dpkg-query -W -f '${Status}' "$p" 2>/dev/null | grep -q '^install ok installed$' || missing="$missing $p"
done
raft=$(dpkg-query -W -f '${Version}' libraft-dev 2>/dev/null || true)
if [ -n "$raft" ] && dpkg --compare-versions "$raft" lt 0.22.1~; then
    missing="$missing libraft-dev"
fi
[ -n "$missing" ] || exit 0

if [ "$(id -u)" -eq 0 ]; then
    as_root() { "$@"; }
elif command -v sudo >/dev/null 2>&1; then
    as_root() { sudo "$@"; }
else
    die "these packages are missing:$missing. Run this script as root, or install sudo"
fi
apt() { as_root env DEBIAN_FRONTEND=noninteractive apt-get "$@"; }

say "installing:$missing"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
apt update -qq >"$log" 2>&1 || { tail -5 "$log" >&2; die "apt-get update failed (see above); is the Debian mirror reachable?"; }

# Debian 12 keeps libraft 0.22.1 in bookworm-backports only; main has 0.15, which can lose committed entries. The
# mirror is the one that apt uses already, and the pin takes nothing but libraft from there.
if [ "$suite" = bookworm ] && ! apt-cache policy libraft-dev | grep -q '0\.2[2-9]'; then
    mirror=$(apt-get indextargets --format '$(REPO_URI) $(RELEASE)' 'Identifier: Packages' | awk '$2 == "bookworm" { print $1; exit }')
    [ -n "$mirror" ] || die "apt has no bookworm mirror; add one to /etc/apt/sources.list"
    printf 'deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] %s bookworm-backports main\n' "$mirror" |
        as_root tee /etc/apt/sources.list.d/bookworm-backports.list >/dev/null
    apt update -qq >"$log" 2>&1 || { tail -5 "$log" >&2; die "apt-get update failed with bookworm-backports added (see above)"; }
fi
if [ "$suite" = bookworm ]; then
    printf 'Package: src:raft\nPin: release n=bookworm-backports\nPin-Priority: 500\n' |
        as_root tee /etc/apt/preferences.d/libraft >/dev/null
fi
# Java's packages fail on images without manual pages, for want of this folder.
[ -d /usr/share/man/man1 ] || as_root mkdir -p /usr/share/man/man1
# shellcheck disable=SC2086
apt install -y --no-install-recommends $missing >"$log" 2>&1 || { tail -15 "$log" >&2; die "apt-get install failed (see above)"; }
say "done"
