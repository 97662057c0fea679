#!/bin/sh
# Make the environment $1 with the package (editable), all extras and the tools of development.
# Idempotent; uv when it can be had, venv and pip otherwise. Pinned by constraints.txt.
set -eu
venv=$1
python=${PYTHON:-python3}

[ -x "$venv/bin/python" ] || "$python" -m venv "$venv"
"$venv/bin/python" -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "Equipoise needs Python 3.11 or later.")'

"$venv/bin/python" -m pip --version >/dev/null 2>&1 || "$venv/bin/python" -m ensurepip >/dev/null
groups() { "$venv/bin/python" -c 'import tomllib; print("\n".join(tomllib.load(open("pyproject.toml", "rb"))["dependency-groups"]["dev"]))'; }
wanted=$(mktemp)
trap 'rm -f "$wanted"' EXIT
groups | grep -v '^equipoise' > "$wanted"

pip() { "$venv/bin/python" -m pip --quiet --disable-pip-version-check "$@"; }
quick() { UV_SYSTEM_CERTS=1 "$venv/bin/uv" pip install --quiet --python "$venv/bin/python" "$@"; }

pip install -c constraints.txt uv 2>/dev/null || true
quick -c constraints.txt -r "$wanted" -e '.[all]' 2>/dev/null || pip install -c constraints.txt -r "$wanted" -e '.[all]'

# Spark needs Java and the browser checks need Chromium; as root on Debian they can be had, otherwise those tests skip.
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    lacking=""
    command -v java >/dev/null 2>&1 || lacking="$lacking openjdk-17-jre-headless"
    command -v chromium >/dev/null 2>&1 || lacking="$lacking chromium"
    if [ -n "$lacking" ]; then
        # shellcheck disable=SC2086
        { apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends $lacking; } \
            >/dev/null 2>&1 || echo "setup: could not install$lacking; the tests that need them will say so and skip" >&2
    fi
fi
echo "setup: ready ($("$venv/bin/python" -c 'import equipoise; print("equipoise", equipoise.__version__)'))"
