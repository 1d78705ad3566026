#!/usr/bin/env bash
# The main job on real data, step by step: an elevation model comes in from NumPy, lives as a chunked, compressed array,
# is edited in place, and goes back out; NumPy then proves that nothing but the edit changed.
#
#   elevation.sh PROGRAM [FOLDER]      FOLDER (default: a new temporary one) keeps what is made
set -euo pipefail
program=$1
here=$(cd "$(dirname "$0")" && pwd)
if [ $# -ge 2 ]; then
    folder=$2
    mkdir -p "$folder"
else
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
fi
cp "$here/jacksboro_fault_dem.npz" "$folder"
cd "$folder"
PATH=$(dirname "$program"):$PATH

# run WORDS...: shows a command as one would type it, and runs it.
run() {
    printf '\n$'
    printf ' %s' "${@@Q}" | sed "s/'\([A-Za-z0-9_.,/:=-]*\)'/\1/g"
    printf '\n'
    "$@"
}

echo "The elevation model of the Jacksboro fault in Tennessee, int16 metres, as NumPy saved it:"
run tessera info jacksboro_fault_dem.npz::elevation
echo
echo "Into a chunked, compressed array:"
run tessera import jacksboro_fault_dem.npz::elevation dem.zarr --chunks 64,64 --overwrite
run tessera attrs dem.zarr set units '"m"'
run tessera attrs dem.zarr set title '"Jacksboro fault, 3 arc-seconds"'
echo
echo "A lake of 250 m in the middle; only the chunks that it touches are read and written:"
run tessera set dem.zarr '100:180, 150:300' 250
run tessera get dem.zarr '98:103, 148:153'
run tessera info dem.zarr
echo
echo "And back to NumPy:"
run tessera export dem.zarr dem.npy --overwrite
if ! /usr/bin/python3 -c 'import numpy' 2>/dev/null; then
    printf '\nNumPy is not installed: it does not check the result.\n'
    exit
fi
/usr/bin/python3 - <<'PYTHON'
import numpy
original = numpy.load("jacksboro_fault_dem.npz")["elevation"]
edited = original.copy()
edited[100:180, 150:300] = 250
exported = numpy.load("dem.npy")
assert exported.dtype == original.dtype, exported.dtype
assert numpy.array_equal(exported, edited), "the export differs from the original with the edit"
print("\nNumPy agrees: the export equals the original but for the edited region,", f"{(exported != original).sum()} elements.")
PYTHON
