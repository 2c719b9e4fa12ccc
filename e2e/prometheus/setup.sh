#!/bin/sh
# Puts Prometheus' `promtool` into the folder $1: the one of the PATH, or that of Debian's package,
# which is unpacked and not installed, because it would start a server.
set -eu
mkdir -p "$1"
into=$(cd "$1" && pwd)
if [ -x "$into/promtool" ]; then
    exit 0
fi
if found=$(command -v promtool); then
    ln -sf "$found" "$into/promtool"
    exit 0
fi
if ! command -v apt-get >/dev/null || ! command -v dpkg-deb >/dev/null; then
    echo "the tests need promtool of Prometheus: install it" >&2
    exit 1
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
apt-get -q download prometheus || { apt-get -q update && apt-get -q download prometheus; }
dpkg-deb -x prometheus_*.deb unpacked
mv unpacked/usr/bin/promtool "$into/promtool"
