// Helpers for the rows of the formats in the table of array_file.cpp. Private to core/files.
#pragma once

#include <tessera/array_file.h>
#include <tessera/byte_io.h>
#include <tessera/error.h>

#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

[[nodiscard]] inline bool starts_with(ByteSpan bytes, std::string_view text) {
    return bytes.size() >= text.size() && std::memcmp(bytes.data(), text.data(), text.size()) == 0;
}

/// Throws not_found for "file::member" of a file that holds one array.
void require_no_member(const ArrayPath& path);

/// The member that a path names, or the only one.
[[nodiscard]] std::string chosen_member(const ArrayPath& path, const std::vector<std::string>& members);

// ---- npy.cpp: shared with .npz

[[nodiscard]] Value npy_facts(const ByteSource& file);
/// Objects are written only on request, because not every reader of .npy accepts them.
void require_wanted_strings(const DType& dtype, const ArrayFileOptions& options);
[[nodiscard]] std::unique_ptr<ArraySource> npy_convert(const ArraySource& source, const ArrayFileOptions& options,
                                                       const IoOptions& io);

/// Runs `body`. Errors about the memory budget get the file's name, unless they have it as other errors do.
template <class Body>
decltype(auto) within_memory(const std::string& file, const Body& body) {
    try {
        return body();
    } catch (const Error& e) {
        const bool nameless = e.code() == ErrorCode::budget && !std::string_view(e.what()).starts_with(file);
        throw nameless ? e.within(file) : e;
    }
}

}  // namespace tessera
