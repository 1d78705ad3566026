// References: a JSON document with the file and byte range of every chunk of an array or a hierarchy. Other programs
// open it as a Zarr v2 store (kerchunk's references, version 1).
#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <string>

#include <tessera/error.h>
#include <tessera/value.h>

namespace tessera {

/// {"version": 1, "refs": {key: text or [file] or [file, offset, size]}} for a path: an array or a group in a
/// directory, or an array file. Files are named by their absolute paths or their URLs. Elements of array files are
/// divided into chunks that end at the array's end. Throws unsupported, naming the cause, if chunks are not plain byte
/// ranges that Zarr v2 can express: deflated members, encoded .ra, zip stores, codecs that v2 lacks. With `refused`,
/// arrays in a file or a group of which that is so are left out, and it is called with what the error would have been.
/// Throws invalid_argument for a URL with a query, which may be a secret.
[[nodiscard]] Value references(const std::filesystem::path& path,
                               const std::function<void(const Error&)>& refused = nullptr);

struct JoinedReferences {
    int axis = 0;
    bool new_axis = false;  ///< as numpy.stack; else as numpy.concatenate
    /// The folder that the references will lie in: files below it are named relative to it, without links.
    std::filesystem::path folder = ".";
    /// Whether files outside the folder may be named, by absolute paths; otherwise they throw unsupported.
    bool allow_outside = false;
    Value attributes = Value::object();  ///< beside those of the first file
};

/// References that join the arrays of many files, in place, into one array: .npy, plain .ra, and members of .npz that
/// are not deflated. The chunks are chosen so that, along an existing axis, every file's length but the last is a
/// multiple of the chunk length. Throws invalid_argument, naming the first file whose shape, dtype (byte order
/// included) or order of elements differs from the first one's, and unsupported, naming the file, if its elements are
/// not plain bytes. reference_store() reads the result; so does fsspec if `folder` is the current directory.
[[nodiscard]] Value joined_references(std::span<const std::string> files, const JoinedReferences& options);

}  // namespace tessera
