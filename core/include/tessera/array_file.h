// Array files by name: the table of formats, and opening or creating one from a path.
// "file.npy", "file.npz::member". A new format is a file beside npy.cpp and one row in array_file.cpp.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tessera/array_io.h>

namespace tessera {

/// A path with an optional member: "a/b.npz::elevation" is {a/b.npz, "elevation"}.
struct ArrayPath {
    std::filesystem::path path;
    std::optional<std::string> member = std::nullopt;
};
[[nodiscard]] ArrayPath split_array_path(std::string_view text);

/// How to write an array file.
struct ArrayFileOptions {
    Order order = Order::C;
    int deflate_level = 0;  ///< for .npz: 0 stores, 1–9 deflates
};

/// One row of the table of array file formats.
struct ArrayFileFormat {
    std::string_view name;       ///< "npy"
    std::string_view extension;  ///< ".npy"
    std::string_view about;      ///< one line for --help
    /// Whether the first bytes of a file are this format's.
    bool (*recognise)(ByteSpan first_bytes);
    /// Members that "::" can name; empty for formats that hold one array.
    std::vector<std::string> (*members)(const std::filesystem::path& path);
    std::unique_ptr<ArraySource> (*open)(const ArrayPath& path);
    std::unique_ptr<ArraySink> (*create)(const ArrayPath& path, const DType& dtype, const Shape& shape,
                                         const ArrayFileOptions& options);
    /// Header facts for `info`: version, order, offsets, members; an object.
    Value (*describe)(const ArrayPath& path);
};

[[nodiscard]] std::span<const ArrayFileFormat> array_file_formats();
/// By content, or for a path that does not exist by extension; nullptr when none fits.
[[nodiscard]] const ArrayFileFormat* find_array_file_format(const std::filesystem::path& path);

/// Opens an array file by content. A file of several arrays without "::member" is invalid_argument unless it holds
/// exactly one; the message lists the members.
[[nodiscard]] std::unique_ptr<ArraySource> open_array_file(const ArrayPath& path);
/// Creates one by extension; nothing appears under the name before finish(). Replacing a file is the caller's decision.
[[nodiscard]] std::unique_ptr<ArraySink> create_array_file(const ArrayPath& path, const DType& dtype,
                                                           const Shape& shape, const ArrayFileOptions& options = {});

}  // namespace tessera
