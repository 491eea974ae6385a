#!/bin/sh
# consumer.sh BUILD SOURCE - installs a build of msim in an empty folder and builds two files against the copy, as a user would:
# with pkg-config and with CMake, against the shared and the static library. Then checks which names the libraries export, and
# that uninstalling leaves nothing behind.
set -eu
build=$1
source=$2
if grep -qE '^MSIM_(ASAN|TSAN|FUZZ):BOOL=ON' "$build/CMakeCache.txt"; then
    echo "skipped: programs outside cannot link a sanitized library"
    exit 77
fi
work=$(mktemp -d)
# An installation of the user's may be on record; uninstalling it must still work afterwards.
manifest=$build/install_manifest.txt
[ ! -f "$manifest" ] || cp "$manifest" "$work/manifest"
restore() {
    if [ -f "$work/manifest" ]; then cp "$work/manifest" "$manifest"; else rm -f "$manifest"; fi
    rm -rf "$work"
}
trap restore EXIT
unset MSIM_DATA

cmake --install "$build" --prefix "$work/usr" >"$work/log" || { cat "$work/log"; exit 1; }
libdir=$(dirname "$(find "$work/usr" -name libmsim.so | head -1)")
PKG_CONFIG_PATH=$libdir/pkgconfig
LD_LIBRARY_PATH=$libdir
export PKG_CONFIG_PATH LD_LIBRARY_PATH

run() { # run WHAT PROGRAM
    MSIM_DATA="$work/usr/share/msim" "$2" >"$work/out" || { echo "$1: failed"; exit 1; }
    printf '%s: %s\n' "$1" "$(cat "$work/out")"
}

# shellcheck disable=SC2046 # words, on purpose
${CC:-cc} -std=c17 -Wall -Wextra -Werror "$source"/*.c $(pkg-config --define-prefix --cflags --libs msim) -lm -o "$work/by_pkg_config"
run "pkg-config, shared" "$work/by_pkg_config"

if [ -f "$libdir/libmsim.a" ]; then
    cmake -S "$source" -B "$work/build" -DCMAKE_PREFIX_PATH="$work/usr" >"$work/log" && cmake --build "$work/build" >>"$work/log" ||
        { cat "$work/log"; exit 1; }
    run "CMake, shared" "$work/build/consumer_shared"
    run "CMake, static" "$work/build/consumer_static"
    foreign=$(nm -g --defined-only "$libdir/libmsim.a" 2>/dev/null | awk 'NF == 3 && $3 !~ /^msim_/ { print $3 }' | head -5)
    [ -z "$foreign" ] || { echo "libmsim.a exports more than msim_*: $foreign"; exit 1; }
fi
foreign=$(nm -D --defined-only "$libdir/libmsim.so" | awk '$3 !~ /^msim_/ && $2 != "A" { print $3 }' | head -5)
[ -z "$foreign" ] || { echo "libmsim.so exports more than msim_*: $foreign"; exit 1; }

# The installed tree alone is enough, and uninstalling removes all of it.
cmake -DMANIFEST="$manifest" -P "$(dirname "$source")/../sim/library/uninstall.cmake" >/dev/null
left=$(find "$work/usr" -type f -o -type l | head -5)
[ -z "$left" ] || { echo "left behind by uninstall: $left"; exit 1; }
