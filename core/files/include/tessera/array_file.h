// Array files by name: the table of formats, and opening or creating one from a path.
// "file.npy", "file.npz::member", "file.ra". A new format is a file beside npy.cpp and one row in array_file.cpp.
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

/// How to write an array file, and for reverse_dims also how to read one.
struct ArrayFileOptions {
    Order order = Order::C;       ///< for .npy and .npz; .ra has one order
    int deflate_level = 0;        ///< for .npz: 0 stores, 1–9 deflates
    bool reverse_dims = false;    ///< for .ra: the shape is the stored lengths in reverse, and the order C instead of F
    bool durable = true;          ///< when it is written, it is on the disk, and so is its name
    bool object_strings = false;  ///< for .npy and .npz: variable-length strings as Python objects, not as U n or S n
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
    std::unique_ptr<ArraySource> (*open)(const ArrayPath& path, const ArrayFileOptions& options);
    std::unique_ptr<ArraySink> (*create)(const ArrayPath& path, const DType& dtype, const Shape& shape,
                                         const ArrayFileOptions& options);
    /// convert_for_array_file for this format.
    std::unique_ptr<ArraySource> (*convert)(const ArraySource& source, const ArrayFileOptions& options,
                                            const IoOptions& io);
    /// Header facts for `info`: version, order, offsets, members; an object.
    Value (*describe)(const ArrayPath& path);
};

[[nodiscard]] std::span<const ArrayFileFormat> array_file_formats();
/// By content, or for a path that does not exist by extension; nullptr when none fits.
[[nodiscard]] const ArrayFileFormat* find_array_file_format(const std::filesystem::path& path);

/// Opens an array file by content. A file of several arrays without "::member" is invalid_argument unless it holds
/// exactly one; the message lists the members.
[[nodiscard]] std::unique_ptr<ArraySource> open_array_file(const ArrayPath& path, const ArrayFileOptions& options = {});
/// Creates one by extension, seen from finish() on. Replacing is the caller's decision; a .ra keeps its trailing bytes.
[[nodiscard]] std::unique_ptr<ArraySink> create_array_file(const ArrayPath& path, const DType& dtype,
                                                           const Shape& shape, const ArrayFileOptions& options = {});
/// `source` with a dtype that create_array_file takes where `source` has another: for .npy and .npz, bfloat16 widened
/// to <f4, and variable-length text and bytes as U n and S n of the longest element (found by reading all of it here),
/// unless options.object_strings. nullptr where `source` is good as it is. `source` must outlive the result.
[[nodiscard]] std::unique_ptr<ArraySource> convert_for_array_file(const ArrayPath& path, const ArraySource& source,
                                                                  const ArrayFileOptions& options = {},
                                                                  const IoOptions& io = {});

}  // namespace tessera
