#!/bin/sh
# Puts Debian's `prometheus` and `promtool` into a folder (default /usr/local/bin) without installing the package: that would
# start a service on port 9090. The tests in tests/prometheus/ need both on the PATH.
set -eu

TO=${1:-/usr/local/bin}
if command -v prometheus >/dev/null && command -v promtool >/dev/null; then
    exit 0
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work" # apt drops its rights before it downloads
cd "$work"
apt-get download -qq prometheus 2>/dev/null || {
    apt-get update -qq
    apt-get download -qq prometheus
}
dpkg-deb -x prometheus_*.deb unpacked
mkdir -p "$TO"
install -m 755 unpacked/usr/bin/prometheus unpacked/usr/bin/promtool "$TO"
echo "prometheus: $("$TO/prometheus" --version 2>&1 | head -n 1), in $TO"
