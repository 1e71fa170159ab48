#!/usr/bin/env bash
# The wheel works outside the repository, in an environment of its own: recipes come with it, and it draws the built-in data.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

python -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir "$folder" .
python -m venv "$folder/environment"
"$folder/environment/bin/python" -m pip install --quiet "$folder"/rnnlab-*.whl
cd "$folder"
export PATH="$folder/environment/bin:$PATH"

rnnlab recipes list > recipes.txt
grep -q '^flickr8k_lstm ' recipes.txt
rnnlab recipes copy shapes mine.toml
rnnlab train mine.toml --epochs 1 --set data.max_train=500 --set model.hidden_dim=32 --no-progress
rnnlab caption runs/mine test --max-images 2
