#!/bin/sh
# Installs what tests of pages need and pip does not have, Chromium and Node.js, from Debian where this runs as root.
# Elsewhere, or where that fails, one line says that these tests are skipped, and why.
missing=
command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null ||
  missing=chromium
command -v node >/dev/null || missing="$missing nodejs"
[ -n "$missing" ] || exit 0

install() {
  echo "Installing $missing ..."
  export DEBIAN_FRONTEND=noninteractive
  # shellcheck disable=SC2086
  problem=$({ apt-get -q update && apt-get -q install -y $missing; } 2>&1 >/dev/null)
}

if [ "$(id -u)" != 0 ]; then
  why="only root can install"
elif ! command -v apt-get >/dev/null; then
  why="there is no apt-get"
elif install; then
  exit 0
else
  why="apt-get could not install it: ${problem##*
}"
fi
echo "PAGE TESTS ARE SKIPPED: missing is" $missing "and $why; install it and run this again." >&2
