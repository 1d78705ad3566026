// RawArray .ra: six words and the lengths, then the elements, first index fastest. Every known dialect can be read
// (big-endian, LZ4 of the C library, LEB128 and bits of RawArray.jl). Plain files can be written and mapped.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include <tessera/array_io.h>
#include <tessera/byte_io.h>
#include <tessera/npy.h>

namespace tessera {

/// How the elements of a .ra lie in the file.
enum class RawArrayEncoding : std::uint8_t {
    plain,
    lz4,     ///< one raw LZ4 block (the C library)
    leb128,  ///< each integer in groups of 7 bits, signed ones zigzag (RawArray.jl)
    bits,    ///< Booleans in words of 64, lowest bit first (RawArray.jl)
};
[[nodiscard]] std::string_view to_string(RawArrayEncoding encoding);

/// The header of a .ra: its words unchanged, and the facts derived from them.
struct RawArrayHeader {
    std::uint64_t flags = 0;
    std::uint64_t eltype = 0;
    std::uint64_t elbyte = 0;
    std::uint64_t size = 0;  ///< bytes of the data segment; for leb128, of the decoded data
    Shape dims;              ///< as stored: the first index is the fastest
    std::uint64_t data_offset = 0;
    std::uint64_t trailing = 0;  ///< bytes after the data segment; none for leb128, which goes to the end of the file
    DType dtype;                 ///< of the elements once decoded
    RawArrayEncoding encoding = RawArrayEncoding::plain;
};

/// Reads and checks a header, and that all data are there. Throws corrupt or unsupported, naming what was expected and
/// found.
[[nodiscard]] RawArrayHeader read_raw_array_header(const ByteSource& file);
/// The words of a plain file. `dims` as stored. Throws unsupported for dtypes that .ra cannot express.
[[nodiscard]] std::string raw_array_header_bytes(const DType& dtype, const Shape& dims);

/// The bytes after the data segment, where other programs keep notes.
[[nodiscard]] Buffer read_raw_array_trailing(const ByteSource& file);

struct RawArrayOptions {
    /// If true, the shape is the stored lengths reversed and the order C, as row-major readers of the format show it.
    /// If false, the shape is the stored lengths and the order F. The bytes are the same.
    bool reverse_dims = false;
};

/// A .ra as a source. Compressed elements are decoded into memory as a whole, at the first read.
[[nodiscard]] std::unique_ptr<ArraySource> open_raw_array(std::shared_ptr<const ByteSource> file,
                                                          const RawArrayOptions& options = {});
/// A new plain .ra into `sink`, followed by `trailing`; regions come in any order if the sink is random-access, else in
/// memory order. Elements never written are zero. Booleans get RawArray.jl's element type 5 with one byte.
[[nodiscard]] std::unique_ptr<ArraySink> create_raw_array(std::unique_ptr<ByteSink> sink, const DType& dtype,
                                                          const Shape& shape, const RawArrayOptions& options = {},
                                                          ByteSpan trailing = {});

/// A .ra mapped into memory. Trailing bytes stay as they are.
class MappedRawArray : public MappedArray {
public:
    /// Throws as read_raw_array_header, and unsupported for compressed elements.
    explicit MappedRawArray(const std::filesystem::path& path, Mode mode = Mode::read,
                            const RawArrayOptions& options = {});
    /// A new file of zeros, over any old one.
    [[nodiscard]] static MappedRawArray create(const std::filesystem::path& path, const DType& dtype,
                                               const Shape& shape, const RawArrayOptions& options = {});
    [[nodiscard]] const RawArrayHeader& header() const { return header_; }

private:
    RawArrayHeader header_;
};

}  // namespace tessera
