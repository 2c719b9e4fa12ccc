#!/bin/sh
# Makes a Python environment of the tests in the folder $1 from the list $2, unless one made from
# the same list is there. Needs python3 with its venv module.
set -eu
if [ -x "$1/bin/python" ] && cmp -s "$2" "$1/installed.txt"; then
    exit 0
fi
rm -rf "$1"
python3 -m venv "$1"
install() {
    "$1/bin/python" -m pip install --quiet --no-input --disable-pip-version-check --requirement "$2"
}
# A package index that stumbles is asked again; what was loaded before is kept by pip.
install "$1" "$2" || install "$1" "$2" || install "$1" "$2"
cp "$2" "$1/installed.txt"
