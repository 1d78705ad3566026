# Sourced by tools/quickstart and tools/test: the project's root, a way to say what is being done, and the packages.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
export LC_ALL=C.UTF-8
# Compiler output is reused across checkouts.
export CCACHE_BASEDIR=$root CCACHE_NOHASHDIR=1

# say WORDS...: a heading.
say() { printf '\n== %s\n' "$*"; }

# install_packages: what tools/packages.txt lists and is not there yet. Asks the network only when something is missing.
install_packages() {
    local missing=() package
    while read -r package; do
        case $package in '' | '#'*) continue ;; esac
        dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
    done <"$root/tools/packages.txt"
    # Not in the list: another nodejs than Debian's brings its own, which Debian's package would be at odds with.
    command -v npm >/dev/null || missing+=(npm)
    [ ${#missing[@]} -gt 0 ] || return 0
    say "installing ${missing[*]}"
    local sudo=()
    [ "$(id -u)" -eq 0 ] || sudo=(sudo)
    # The package lists may be missing or old; fetch them only when they do not do.
    "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${missing[@]}" </dev/null ||
        { "${sudo[@]}" apt-get update </dev/null &&
            "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${missing[@]}" </dev/null; }
}

# install_zarrita: the npm packages that the cross-tests take, as tests/zarrita/package-lock.json fixes them.
install_zarrita() {
    local folder=$root/tests/zarrita
    [ "$folder/node_modules/.package-lock.json" -nt "$folder/package-lock.json" ] && return 0
    say "installing zarrita"
    npm ci --prefix "$folder" --no-audit --no-fund </dev/null
}
