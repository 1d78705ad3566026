// References: an array or a hierarchy as a JSON document that says in which bytes of which files its chunks lie, which
// other programs open as a Zarr v2 store (kerchunk's references, version 1).
#pragma once

#include <filesystem>

#include <tessera/value.h>

namespace tessera {

/// {"version": 1, "refs": {key: text or [file] or [file, offset, size]}} of what lies at a path: an array or a group in
/// a directory, or a .npy, .ra, .npz or ".npz::member". Files are named by their absolute paths. Elements of array
/// files are cut into chunks that end where the array ends. Throws unsupported, naming it, for what does not lie in
/// plain byte ranges that Zarr v2 can say: deflated members, encoded .ra, what is in a zip store, codecs that v2 lacks.
[[nodiscard]] Value references(const std::filesystem::path& path);

}  // namespace tessera
