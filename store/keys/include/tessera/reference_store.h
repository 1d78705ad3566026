// References as a store: a JSON document that says in which bytes of which files values lie (kerchunk's references,
// version 1), opened for reading like a directory of these values.
#pragma once

#include <filesystem>
#include <memory>

#include <tessera/key_value_store.h>

namespace tessera {

struct ReferenceOptions {
    /// Whether references may lead out of the folder that the document lies in, by absolute paths, "..", or links.
    bool allow_outside = false;
};

/// The store in a document of references. It is read-only, and never changed in place.
///
/// Such a document may come from a stranger, who must not make us read what he could not read himself. Values are text
/// of the document ("base64:…" for bytes), [file], or [file, offset, size]. Paths are relative to the folder of the
/// document; an absolute one has to lie below it. Unless `allow_outside`, a path with a part ".." or through a symbolic
/// link is refused. URLs, templates and generated references are refused always. What a reference names is compared
/// with the file before it is read.
///
/// Throws io, corrupt for what is no such document, unsupported for one that holds what is refused, budget where it
/// takes more memory than the thread's account has left. A reference that leads nowhere throws when its key is opened:
/// a value that is named is never absent.
[[nodiscard]] std::shared_ptr<KeyValueStore> reference_store(const std::filesystem::path& path,
                                                             const ReferenceOptions& options = {});

/// Whether references that a path leads to (find_place, Array::open, open_source) may lead out of their folder: for a
/// program whose user said so. Of the whole process, because paths are opened in any thread; false at first.
void allow_outside_references(bool allow);
[[nodiscard]] bool outside_references_allowed();

}  // namespace tessera
