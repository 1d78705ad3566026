# Sourced by tools/quickstart and tools/test: the project's root, a way to say what is being done, and the packages.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# LANG changes nothing beside LC_ALL, but ccache takes it for a part of what it compiles.
export LC_ALL=C.UTF-8 LANG=C.UTF-8
# Compiler output is reused across checkouts.
export CCACHE_BASEDIR=$root CCACHE_NOHASHDIR=1 CCACHE_SLOPPINESS=pch_defines,time_macros

# say WORDS...: a heading.
say() { printf '\n== %s\n' "$*"; }

# installed PACKAGE: whether Debian's package is there.
installed() { dpkg-query -W -f='${Status}' "$1" 2>/dev/null | grep -q 'ok installed'; }

# as_root COMMAND...: runs it as root, by sudo where that takes no questions or there is somebody to answer them.
as_root() {
    if [ "$(id -u)" -eq 0 ]; then "$@"; elif [ -t 0 ]; then sudo "$@"; else sudo -n "$@"; fi
}

# may_install: whether packages can be installed here at all.
may_install() {
    [ "$(id -u)" -eq 0 ] || { command -v sudo >/dev/null && { [ -t 0 ] || sudo -n true 2>/dev/null; }; }
}

# install_packages yes|no FILE...: the packages that the files list and that are missing; "no" only names them. Where
# they cannot be installed it says how an administrator does, and what goes on without them.
install_packages() {
    local install=$1 missing=() remarks=() package remark
    shift
    while read -r package remark; do
        case $package in '' | '#'*) continue ;; esac
        installed "$package" && continue
        # Another nodejs than Debian's brings its own npm; Debian's packages would be at odds with it.
        [ "$package" != nodejs ] || { command -v npm >/dev/null && continue; }
        [ "$package" != nodejs ] || missing+=(npm)
        missing+=("$package")
        case $remark in *without:*) remarks+=("without $package:${remark#*without:}") ;; esac
    done < <(cat "$@")
    # Asks the network only when something is missing.
    [ ${#missing[@]} -gt 0 ] || return 0
    if [ "$install" = yes ] && may_install; then
        say "installing ${missing[*]}"
        local apt=(env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${missing[@]}")
        # The package lists may be missing or old; fetch them only when they do not do.
        apt-get install -s --no-install-recommends "${missing[@]}" >/dev/null 2>&1 || as_root apt-get update </dev/null || true
        apt-get install --assume-no --no-install-recommends "${missing[@]}" 2>/dev/null </dev/null |
            grep -E '^(Need to get|After this operation)' || true
        as_root "${apt[@]}" </dev/null && return
        as_root apt-get update </dev/null && as_root "${apt[@]}" </dev/null && return
        say "some packages could not be installed"
    else
        say "these packages are missing; as an administrator: apt-get install ${missing[*]}"
    fi
    [ ${#remarks[@]} -eq 0 ] || printf '%s\n' "${remarks[@]}"
}

# build PRESET [OPTIONS OF cmake --build]: configures as the preset says now, and compiles. It shows one line that moves,
# or nothing where no terminal is; what was printed is in build/PRESET/build.log, whose end is shown when it fails.
build() {
    local preset=$1 log=$root/build/$1/build.log status=0
    mkdir -p "${log%/*}"
    {
        cmake --preset "$preset" && cmake --build --preset "$@"
    } 2>&1 | tee "$log" | one_line || status=1
    [ $status -eq 0 ] || { tail -n 40 "$log"; printf 'the build failed; all that it printed: %s\n' "$log"; }
    return $status
}

# one_line: shows the steps that ninja prints, each in place of the one before.
one_line() {
    [ -t 1 ] || exec cat >/dev/null
    local line width=${COLUMNS:-$(tput cols 2>/dev/null || echo 80)}
    while IFS= read -r line; do
        case $line in '['[0-9]*) printf '\r\033[K%s' "${line:0:width-1}" ;; esac
    done
    printf '\r\033[K'
}

# install_npm NAME: the npm packages that tests take, as tests/NAME/package-lock.json fixes them.
install_npm() {
    local folder=$root/tests/$1
    [ "$folder/node_modules/.package-lock.json" -nt "$folder/package-lock.json" ] && return 0
    command -v npm >/dev/null || return 1
    say "installing the npm packages of tests/$1"
    # npm itself would try a registry that is out of reach for more than a minute.
    npm ci --prefix "$folder" --no-audit --no-fund --fetch-retries 1 --fetch-retry-mintimeout 1000 \
        --fetch-retry-maxtimeout 5000 </dev/null
}
