# Sourced by run and test: a virtual environment in the checkout with the project and the extras named in $1 (empty: none).
# It is made once; a change of pyproject.toml or of the pins installs anew.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

die() { echo "$*" >&2; exit 2; }

find_python() {
  local name
  for name in ${PYTHON:-} python3 python3.13 python3.12 python3.11 python; do
    if "$name" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null; then
      echo "$name"; return
    fi
  done
  die "Python 3.11, 3.12 or 3.13 is needed; set PYTHON to one"
}

prepare() {
  local extras="$1" stamp
  if [ ! -x .venv/bin/python ]; then
    "$(find_python)" -m venv .venv || die "no virtual environment could be made; on Debian: apt-get install python3-venv"
  fi
  stamp="$extras $(cat pyproject.toml constraints.txt | cksum)"
  case "$(cat .venv/installed 2>/dev/null || true)" in
    "$stamp" | "test ${stamp#* }") return ;;
  esac
  echo "installing into .venv ..." >&2
  .venv/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".${extras:+[$extras]}" >&2
  # The search's inner loops are compiled once and kept; better here than before the first plan.
  .venv/bin/planner plan instances/quickstart.yaml --engine fast --work-limit 1 --quiet >&2
  echo "$stamp" > .venv/installed
}
