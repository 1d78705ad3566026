// Tries an edit and thinks better of it: keeps an array as it is, changes it, compares, and puts it back.
//
//     snapshots ARRAY          ARRAY of float32 is as before in the end, and has one snapshot more
#include <tessera/tessera.h>

#include <iostream>

using namespace tessera;

int main(int argc, char** argv) try {
    if (argc != 2) throw invalid_argument("usage: snapshots ARRAY");
    const std::string path = argv[1];

    // Shares its bytes with the array where the file system can; it opens like any array, ARRAY.snapshots/before.
    const SnapshotInfo kept = create_snapshot(path, "before");
    std::cout << "kept " << kept.files << " files in " << kept.path.filename().string() << '\n';

    Array array = Array::open(path);
    array.write("...", 0.5F);
    std::cout << difference(array, Array::open(kept.path, {.read_only = true})).different << " elements differ\n";

    restore_snapshot(path, "before");  // in one step; old handles have to be opened again
    array = Array::open(path);
    std::cout << difference(array, Array::open(kept.path, {.read_only = true})).different << " elements differ\n";
    for (const SnapshotInfo& one : list_snapshots(path)) std::cout << one.name << ", made " << one.made << '\n';
    return 0;
} catch (const Error& e) {
    std::cerr << e.what() << '\n';
    return 2;
}
