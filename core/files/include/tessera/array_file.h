// Array files by name: the table of formats, and opening or creating one from a path; CSV and PNG without a path.
// "file.npy", "file.npz::member", "file.ra".
#pragma once

#include <cstdint>
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
#include <tessera/buffer.h>
#include <tessera/byte_io.h>
#include <tessera/error.h>
#include <tessera/memory_account.h>
#include <tessera/view.h>

namespace tessera {

/// A path with an optional member: "a/b.npz::elevation" is {a/b.npz, "elevation"}.
struct ArrayPath {
    std::filesystem::path path;
    std::optional<std::string> member = std::nullopt;
    /// The file, if it is already open (locate()). Readers of the path then read this version of it.
    std::shared_ptr<const ByteSource> opened = nullptr;

    /// `opened`, or else the file opened now. Throws not_found or io.
    [[nodiscard]] std::shared_ptr<const ByteSource> bytes() const { return opened ? opened : open_file(path); }
    /// Whether only `opened` leads to the bytes, because no file of this machine has this name.
    [[nodiscard]] bool is_elsewhere() const;
};
/// A file's name may contain "::": the longest part that exists is the file. If none exists, the first "::" ends it.
[[nodiscard]] ArrayPath split_array_path(std::string_view text);
/// The same with another way to look whether a part exists. It is not called for text without "::". If it finds one,
/// that is the last call.
[[nodiscard]] ArrayPath split_array_path(std::string_view text,
                                         const std::function<bool(const std::filesystem::path&)>& exists);

/// How to write an array file, and for reverse_dims also how to read one.
struct ArrayFileOptions {
    Order order = Order::C;       ///< for .npy and .npz; .ra has one order
    int deflate_level = 0;        ///< for .npz: 0 stores, 1–9 deflates
    bool reverse_dims = false;    ///< for .ra: the shape is the stored lengths in reverse, and the order C instead of F
    bool durable = true;          ///< finish() waits until the file and its name are on the disk
    bool object_strings = false;  ///< for .npy and .npz: variable-length strings as Python objects, not as U n or S n
    /// For formats that keep no dtype (.csv): the dtype of elements; nullopt: detect it.
    std::optional<DType> dtype = std::nullopt;
    /// For .csv: whether the first line is a header; nullopt: detect it.
    std::optional<bool> header = std::nullopt;
    /// For .csv: the number that stands where one is missing; nullopt: NaN, and integers must not be missing.
    std::optional<std::string> missing = std::nullopt;
    /// Attributes of a new array, for formats that keep any; as ArraySource::attribute_values().
    Value attributes = Value::object();
    Shape chunks = {};  ///< for .h5: of a new array; empty: chosen
};

/// A group in a file of several arrays.
struct ArrayFileGroup {
    std::string name;  ///< "" is the file itself, "a/b" a group in a group
    Value attributes = Value::object();
    /// Of netCDF and HDF5: the names of dimensions that may grow, in it and in groups below. New files get them where
    /// the format can.
    std::vector<std::string> unlimited = {};
};

/// An attribute of arrays for new files of netCDF and HDF5: the names of their dimensions that are to be unlimited. It
/// is not written as an attribute.
inline constexpr const char* unlimited_attribute = "_UNLIMITED_DIMENSIONS";

/// A member of a file, by its header alone.
struct ArrayFileMember {
    std::string name;
    ArrayInfo info;              ///< unless there is an error
    std::optional<Error> error;  ///< why it cannot be opened
};

/// Receives findings while a file of several arrays is checked.
class ArrayFileChecker {
public:
    virtual ~ArrayFileChecker() = default;
    /// Runs `body`; records what it throws as damage of that member. Returns whether it threw nothing.
    virtual bool attempt(const std::string& member, const std::function<void()>& body) = 0;
    virtual void damage(std::string text) = 0;  ///< of the file
    virtual void leftover(const std::string& member, std::string text) = 0;
    virtual void note(const std::string& member, std::string text) = 0;
    virtual void read_bytes(const ByteSource& bytes) = 0;  ///< reads all bytes, to check their checksum
    /// Reads all elements of an array.
    virtual void read_array(const std::string& member) = 0;
    /// Counts that many arrays as intact, without read_array().
    virtual void count_arrays(std::int64_t count) = 0;
};

/// An array whose elements lie in a file in plain bytes, or in chunks that Zarr v2 can say.
struct PackedArray {
    std::string name;  ///< of the member
    DType dtype;
    Shape shape;
    std::uint64_t offset = 0;     ///< of the first element
    std::int64_t row_stride = 0;  ///< bytes between indices of the first dimension; 0: rows are packed
    Value attributes = Value::object();

    /// A chunk that is stored: its number in C order of the grid, and its encoded bytes in the file.
    struct Chunk {
        std::int64_t number = 0;
        std::uint64_t offset = 0, size = 0;
    };
    Shape chunks = {};                               ///< empty: plain bytes, as above
    Value filters = {}, compressor = {}, fill = {};  ///< as in Zarr v2's .zarray; filters may be an empty list
    std::vector<Chunk> stored = {};
    MemoryHold held = MemoryHold();  ///< memory of `stored`
};

/// An array that is to lie in a file, by its facts alone.
struct FileArray {
    std::string name;
    DType dtype;  ///< of fixed size
    Shape shape;
    Value attributes = Value::object();  ///< with _ARRAY_DIMENSIONS, if named
};

/// A file of plain bytes before it exists: its first bytes, and where elements will lie. All others are zeros.
struct FileLayout {
    std::string header;
    std::vector<PackedArray> arrays = {};  ///< without attributes, in the order in which they were planned
    Order order = Order::C;                ///< of the elements
    std::uint64_t size = 0;                ///< of the file
};

/// Several arrays that are to become one file.
struct ArrayBundle {
    std::span<const std::string> names;  ///< of the arrays in the file
    std::function<std::unique_ptr<ArraySource>(const std::string& name)> open;
    std::function<void(const ArraySource& from, ArraySink& to)> copy;  ///< all elements, and finish()
    std::function<void(const std::string& name, const ArrayInfo& info)> made;
    std::optional<Order> order = {};  ///< of the elements; nullopt: each array's own
    // For formats with groups.
    std::vector<ArrayFileGroup> groups = {};
    std::function<Value(const ArraySource& from)> attributes = nullptr;  ///< with _ARRAY_DIMENSIONS, if named
};

/// One row of the table of array file formats.
struct ArrayFileFormat {
    std::string_view name;       ///< "npy"
    std::string_view extension;  ///< ".npy"
    std::string_view also = {};  ///< further extensions, each followed by a space
    std::string_view about;      ///< one line for --help
    bool deflates = false;       ///< uses ArrayFileOptions::deflate_level
    /// Whether open() reads nothing but ranges of path.bytes(), so that the file may lie in any kind of store.
    bool ranged = false;
    bool keeps_attributes = false;  ///< writes ArrayFileOptions::attributes
    /// Whether create() of a member adds it to a file that is there, or replaces this array in it; the old file or the
    /// new one is seen, as always.
    bool adds_members = false;
    /// For formats of one array with others that belong to it, such as overviews: the member that a path without "::"
    /// means, if the file has it.
    std::string_view main = {};
    /// Whether the first bytes of a file are this format's. nullptr if nothing marks them: the extension decides.
    bool (*recognise)(ByteSpan first_bytes);
    /// Members that "::" can name; nullptr for formats of one array.
    std::vector<std::string> (*members)(const ArrayPath& path) = nullptr;
    /// What array_file_members() returns, where that is quicker than to open each member.
    std::vector<ArrayFileMember> (*listed)(const ArrayPath& path) = nullptr;
    /// For formats whose files are groups, even of a single array: the groups, each before those in it. Arrays in them
    /// that cannot be read are left out of a copy, as in any hierarchy.
    std::vector<ArrayFileGroup> (*groups)(const ArrayPath& path) = nullptr;
    /// For such formats: the arrays of plain bytes in C order or of chunks, for references; path.member or all.
    std::vector<PackedArray> (*packed)(const ArrayPath& path) = nullptr;
    /// For formats of chunks: path.member as chunks that Zarr v2 can say; nullopt if it cannot, and open() may.
    std::optional<PackedArray> (*chunked)(const ArrayPath& path) = nullptr;
    std::unique_ptr<ArraySource> (*open)(const ArrayPath& path, const ArrayFileOptions& options);
    std::unique_ptr<ArraySink> (*create)(const ArrayPath& path, const DType& dtype, const Shape& shape,
                                         const ArrayFileOptions& options);
    /// convert_for_array_file for this format; nullptr: converts nothing.
    std::unique_ptr<ArraySource> (*convert)(const ArraySource& source, const ArrayFileOptions& options,
                                            const IoOptions& io) = nullptr;
    /// What a new file of these arrays consists of, for formats of plain bytes; a format of one array takes one. Throws
    /// unsupported for what the format cannot hold.
    FileLayout (*layout)(std::span<const FileArray> arrays, const ArrayFileGroup& root, Order order) = nullptr;
    /// Header facts for `info`: version, order, offsets, members; an object.
    Value (*describe)(const ArrayPath& path);
    // For formats of several arrays; nullptr for the others.
    /// Checks the whole file.
    void (*check)(const ArrayPath& path, ArrayFileChecker& checker) = nullptr;
    /// Writes a new file, which appears when it is complete.
    void (*bundle)(const std::filesystem::path& path, const ArrayBundle& bundle, const ArrayFileOptions& options,
                   const IoOptions& io) = nullptr;

    /// Whether files of this format are made for several arrays, even if they hold one.
    [[nodiscard]] bool holds_several() const { return (bundle != nullptr || !is_written()) && main.empty(); }
    /// Whether new files can be made.
    [[nodiscard]] bool is_written() const { return create != nullptr; }
    /// Whether a path without "::" means one array in a file of this format with these members.
    [[nodiscard]] bool is_one(const std::vector<std::string>& of_file) const {
        return of_file.empty() ? !holds_several() : !main.empty() && of_file.front() == main;
    }
    /// Whether files with this extension (".npy") are of this format.
    [[nodiscard]] bool has_extension(std::string_view text) const;
};

[[nodiscard]] std::span<const ArrayFileFormat> array_file_formats();
/// The members that "::" can name; empty for a format of one array. Ignores path.member.
[[nodiscard]] std::vector<std::string> array_members(const ArrayFileFormat& format, const ArrayPath& path);
/// The same members, in this order, with what open() would say of each; of two of one name only the last can be read.
/// Throws if the file cannot be read, or on a request to stop.
[[nodiscard]] std::vector<ArrayFileMember> array_file_members(const ArrayFileFormat& format, const ArrayPath& path);
/// By the extension of a path's name, without access to the file; nullptr if none fits. A "::member" may follow.
[[nodiscard]] const ArrayFileFormat* named_array_file_format(std::string_view path);
/// Throws invalid_argument if a path where a directory would be made has the extension of a file format that is not
/// written ("grid.tif"), because a file was meant. Not if something is there, or if the path ends in '/'.
void require_no_other_file(const std::string& path);
/// By content, or by extension if the path does not exist or the format has no mark; nullptr if none fits.
[[nodiscard]] const ArrayFileFormat* find_array_file_format(const std::filesystem::path& path);

/// The same for an open file whose name() is its path.
[[nodiscard]] const ArrayFileFormat* array_file_format_of(const ByteSource& file);

/// The error for a file that is no array file. It names the format that the extension promises, or lists all formats.
[[nodiscard]] Error no_array_file(const std::filesystem::path& path);

/// Opens an array file by content. A file of several arrays needs "::member", unless it holds exactly one; otherwise
/// throws invalid_argument, listing the members. "file.npy::field" and "file.npz::member::field" are a field of
/// structures (field_source).
[[nodiscard]] std::unique_ptr<ArraySource> open_array_file(const ArrayPath& path, const ArrayFileOptions& options = {});
/// Creates an array file by extension; it appears at finish(). The caller decides whether to replace a file. A .ra
/// keeps its trailing bytes.
[[nodiscard]] std::unique_ptr<ArraySink> create_array_file(const ArrayPath& path, const DType& dtype,
                                                           const Shape& shape, const ArrayFileOptions& options = {});
/// Converts `source` to a dtype that create_array_file takes; nullptr if that is not necessary. For .npy and .npz,
/// bfloat16 is widened to <f4. Variable-length text and bytes become U n and S n of the longest element (found by
/// reading all of it now), unless options.object_strings. `source` must outlive the result.
[[nodiscard]] std::unique_ptr<ArraySource> convert_for_array_file(const ArrayPath& path, const ArraySource& source,
                                                                  const ArrayFileOptions& options = {},
                                                                  const IoOptions& io = {});

// Tables as comma-separated text (RFC 4180), from arrays of one or two dimensions or of structures.
//
// A row is a line; an array of one dimension is one column. Structures have a header with a column for each field (a.b
// for nested fields, a[0] for sub-arrays); other arrays have none. Numbers are written with the fewest digits that read
// back bit for bit (NaNs as nan), Booleans as true and false, times as ISO 8601, m8 as counts, S as latin-1 text, and V
// as 0x and hex digits.

struct CsvOptions {
    /// The dtype of elements. nullopt: i8, u8, f8, b1, M8 (dates of ISO 8601) or U n, found by reading all once. With a
    /// header, or with columns of several kinds, it is a structure with a field for each column.
    std::optional<DType> dtype = std::nullopt;
    /// Whether the first line is a header. nullopt: it is one if nothing in it is a number or a Boolean.
    std::optional<bool> header = std::nullopt;
    /// What stands where a number is missing, because the field is empty or NA, N/A, null or None. nullopt: NaN;
    /// integers and Booleans must not be missing then. Times are NaT.
    std::optional<std::string> missing = std::nullopt;
};

/// Reads the whole file once, for its shape. Throws corrupt, naming line and column, for rows of other lengths and
/// for fields that do not fit the dtype. Memory stays within a few MiB, whatever the file's size.
[[nodiscard]] std::unique_ptr<ArraySource> open_csv(std::shared_ptr<const ByteSource> file,
                                                    const CsvOptions& options = {});
/// Accepts elements in C order. Throws unsupported for a rank or dtype that CSV cannot express.
[[nodiscard]] std::unique_ptr<ArraySink> create_csv(std::unique_ptr<ByteSink> sink, const DType& dtype,
                                                    const Shape& shape);

/// The bytes of a PNG file of u1 or u2 pixels, for pictures that need not be files: (height, width), or
/// (height, width, 2 to 4) with alpha and colours. Messages call it `name`. Throws unsupported for other elements and
/// shapes, and in a build without libpng.
[[nodiscard]] Buffer encode_png(const ArrayView& pixels, const std::string& name);

}  // namespace tessera
