// References as a store: a JSON document with the file and byte range of each value (kerchunk's references, version 1),
// opened for reading like a directory of these values.
#pragma once

#include <filesystem>
#include <memory>

#include <tessera/key_value_store.h>

namespace tessera {

struct ReferenceOptions {
    /// Whether references may lead out of the folder that the document lies in, by absolute paths, "..", links,
    /// or URLs of kinds of stores that there are (store_kind.h).
    bool allow_outside = false;
};

/// The store in a document of references. It is read-only; the document is never changed in place.
///
/// Such a document may come from a stranger, who must not gain access to files that he could not read himself. A value
/// is text in the document ("base64:…" for bytes), [file], or [file, offset, size]. Paths are relative to the folder of
/// the document; an absolute one has to lie below it. Without `allow_outside`, a path with a part ".." or through a
/// symbolic link is refused, and so are URLs. Templates and generated references are always refused. Each byte range is
/// checked against the file before it is read.
///
/// Throws io; corrupt if the file is not such a document; unsupported if it holds anything that is refused; and budget
/// if it takes more memory than the thread's account has left. Opening the key of a dangling reference throws: a value
/// that the document names never counts as absent.
[[nodiscard]] std::shared_ptr<KeyValueStore> reference_store(const std::filesystem::path& path,
                                                             const ReferenceOptions& options = {});

}  // namespace tessera
