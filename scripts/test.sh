#!/bin/sh
# Runs all tests in three processes at once: most of their time is waiting for streams in real time.
# (gevent's patched threads rule out pytest-xdist.) With arguments, a path or -k …, it is one plain pytest.
set -u
pytest=.venv/bin/pytest
if [ $# -gt 0 ]; then
    exec "$pytest" "$@"
fi

# What drives whole processes and waits for them, in two groups of about the same length; then the rest.
group1="tests/swarm tests/security tests/docs"
group2="tests/workers tests/load tests/commands tests/chaos"
rest=""
for folder in tests/*/; do
    folder=${folder%/}
    case " $group1 $group2 tests/peers tests/__pycache__ " in
        *" $folder "*) ;;
        *) rest="$rest $folder" ;;
    esac
done

reports=$(mktemp -d)
trap 'rm -rf "$reports"' EXIT
# shellcheck disable=SC2086 # lists of folders
"$pytest" -q -p no:cacheprovider $group1 >"$reports/1" 2>&1 &
first=$!
# shellcheck disable=SC2086
"$pytest" -q -p no:cacheprovider $group2 >"$reports/2" 2>&1 &
second=$!
failed=0
# shellcheck disable=SC2086
"$pytest" -q $rest || failed=1
wait "$first" || failed=1
wait "$second" || failed=1
cat "$reports/1" "$reports/2"
exit "$failed"
