#!/bin/sh
# Makes or mends .venv: everything of requirements-dev.lock, and this checkout as an editable install.
# Called by `make setup`; PYTHON=/path/to/python chooses the interpreter.
set -eu

VENV=.venv
STAMP=$VENV/.installed # holds the place it was made for: scripts in .venv do not survive a move of the checkout
cd "$(dirname "$0")/.."

fail() {
    echo "setup: $*" >&2
    exit 1
}

# Prints the version of interpreter $1, and fails if it does not run or is older than 3.11.
version_of() {
    "$1" -c 'import sys; print("%d.%d.%d" % sys.version_info[:3]); sys.exit(sys.version_info < (3, 11))' 2>/dev/null
}

# Debian keeps ensurepip in a package of its own (python3-venv), so `import venv` alone proves nothing.
has_venv() {
    "$1" -c 'import ensurepip, venv' >/dev/null 2>&1
}

# Sets python, or explains the nearest miss: an interpreter without venv is nearer than an old one.
choose_python() {
    without_venv=
    too_old=
    if [ -n "${PYTHON:-}" ]; then
        set -- "$PYTHON"
    else
        set -- python3.13 python3.12 python3.11 python3
    fi
    for candidate in "$@"; do
        command -v "$candidate" >/dev/null 2>&1 || continue
        if ! version=$(version_of "$candidate"); then
            too_old="${too_old:-$candidate is ${version:-not a working Python}}"
        elif ! has_venv "$candidate"; then
            without_venv="${without_venv:-$candidate ($version)}"
        else
            python=$candidate
            return
        fi
    done
    if [ -n "$without_venv" ]; then
        fail "$without_venv has no venv module; install it (Debian, Ubuntu: apt-get install python3-venv) or name another: make setup PYTHON=/path/to/python3"
    elif [ -n "$too_old" ]; then
        fail "Python 3.11 or newer is needed, but $too_old; install a newer one or name it: make setup PYTHON=/path/to/python3.11"
    elif [ -n "${PYTHON:-}" ]; then
        fail "there is no $PYTHON; PYTHON must name a Python 3.11 or newer"
    else
        fail "found no Python; install 3.11 or newer (Debian, Ubuntu: apt-get install python3 python3-venv) or name it: make setup PYTHON=/path/to/python3"
    fi
}

# An interpreter that was removed, a set-up that was interrupted, another PYTHON or another place: .venv is of no use.
venv_serves() {
    [ "$(version_of "$VENV/bin/python" || true)" = "$version" ] &&
        "$VENV/bin/python" -m pip --version >/dev/null 2>&1 &&
        [ "$(cat "$STAMP" 2>/dev/null || pwd)" = "$(pwd)" ]
}

choose_python
if ! venv_serves; then
    echo "setup: making $VENV with $python ($version)"
    "$python" -m venv --clear "$VENV" || fail "$python -m venv failed; its message is above"
fi

echo "setup: installing from requirements-dev.lock"
"$VENV/bin/python" -m pip install -qq --disable-pip-version-check --require-hashes -r requirements-dev.lock ||
    fail "the installation failed; pip's message is above"
# The build backend is in the lock, so that this step asks no registry.
"$VENV/bin/python" -m pip install -qq --disable-pip-version-check --no-deps --no-build-isolation -e . ||
    fail "the editable installation failed; pip's message is above"
pwd >"$STAMP"
echo "setup: $VENV is ready"
