#include <tessera/array.h>
#include <tessera/copy.h>
#include <tessera/derived_source.h>
#include <tessera/error_text.h>

#include "file_chunks.h"

namespace tessera {

std::unique_ptr<ArraySource> open_source(std::string_view path, const ArrayFileOptions& options) {
    return at_located(path, [&](const Located& at) { return open_source(at, options); });
}

std::unique_ptr<ArraySource> open_source(const Located& at, const ArrayFileOptions& options) {
    const std::optional<std::string>& part = at.file.member;
    if (at.kind == PathKind::nothing && !at.place) {
        throw not_found("{}: no such file or directory", at.file.path.string());
    }
    if (!at.place) return open_file_source(at.file, options);
    if (part && at.kind != PathKind::part) {
        throw invalid_argument("{}: \"::\" names a member of a file such as .npz; this is a store: write {}/{}",
                               at.path, at.file.path.string(), *part);
    }
    std::unique_ptr<ArraySource> array = std::make_unique<Array>(at.array());
    if (part) return field_source(std::move(array), *part);
    return array;
}

}  // namespace tessera
