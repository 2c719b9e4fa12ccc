#!/bin/sh
# Puts nginx, HAProxy and Caddy into the folder $1: those of the PATH, or those of Debian's packages,
# which are unpacked and not installed, because they would start servers.
set -eu
mkdir -p "$1/bin"
into=$(cd "$1" && pwd)

# Unpacks packages of Debian into $into.
unpack() {
    work=$(mktemp -d)
    (
        cd "$work"
        apt-get -q download "$@" || { apt-get -q update && apt-get -q download "$@"; }
        for package in *.deb; do
            dpkg-deb -x "$package" "$into"
        done
    )
    rm -rf "$work"
}

# Makes $into/bin/$1 start the program $2, with the libraries that came with it.
program() {
    lib=$into/usr/lib/$(uname -m)-linux-gnu
    printf '#!/bin/sh\nLD_LIBRARY_PATH=%s exec %s "$@"\n' "'$lib'" "'$into/$2'" >"$into/bin/$1.new"
    chmod +x "$into/bin/$1.new"
    mv "$into/bin/$1.new" "$into/bin/$1"
}

# One program: name, path in its package, packages.
provide() {
    name=$1 path=$2
    shift 2
    if [ -x "$into/bin/$name" ]; then
        return
    fi
    if found=$(PATH=$PATH:/usr/sbin command -v "$name"); then
        ln -sf "$found" "$into/bin/$name"
        return
    fi
    if ! command -v apt-get >/dev/null || ! command -v dpkg-deb >/dev/null; then
        echo "the tests need $name: install it" >&2
        exit 1
    fi
    unpack "$@"
    program "$name" "$path"
}

provide nginx usr/sbin/nginx nginx libpcre2-8-0
provide haproxy usr/sbin/haproxy haproxy liblua5.3-0 libopentracing-c-wrapper0 libopentracing1
provide caddy usr/bin/caddy caddy
