#include "readme_codecs.h"

#include <fmt/format.h>
#include <tessera/value.h>

#include <algorithm>
#include <cstdint>
#include <iterator>

namespace tessera {

namespace {

struct Row {
    std::string_view name;
    std::string_view specification;
    /// Each a module; ctypes for a library in C.
    std::string_view import = {};
    std::string_view function = {};
    /// Empty: no short Python decodes it. "-": nothing has to be done.
    std::string_view line = {};
};

// The functions call a codec's C library, because Python's standard library has no module for these.
constexpr std::string_view blosc_function =
    R"(def blosc(data):  # by the C library c-blosc: libblosc.so.1
    out = ctypes.create_string_buffer(int.from_bytes(data[4:8], "little"))
    library = ctypes.CDLL(ctypes.util.find_library("blosc"))
    assert library.blosc_decompress(data, out, ctypes.c_size_t(len(out))) == len(out)
    return out.raw
)";
constexpr std::string_view zstd_function =
    R"(def zstd(data):  # by the C library zstd: libzstd.so.1; Python 3.14 has compression.zstd.decompress
    library, size = ctypes.CDLL(ctypes.util.find_library("zstd")), ctypes.c_size_t(len(data))
    library.ZSTD_getFrameContentSize.restype = ctypes.c_ulonglong
    out = ctypes.create_string_buffer(library.ZSTD_getFrameContentSize(data, size))
    assert library.ZSTD_decompress(out, ctypes.c_size_t(len(out)), data, size) == len(out)
    return out.raw
)";
constexpr std::string_view lz4_function =
    R"(def lz4(data):  # by the C library lz4: liblz4.so.1
    out = ctypes.create_string_buffer(int.from_bytes(data[:4], "little"))
    library = ctypes.CDLL(ctypes.util.find_library("lz4"))
    assert library.LZ4_decompress_safe(data[4:], out, len(data) - 4, len(out)) == len(out)
    return out.raw
)";
constexpr std::string_view shuffle_function =
    R"(def unshuffle(data, size):  # the first bytes of all elements come first, then the second ones
    count = len(data) // size
    return b"".join(data[i:count * size:count] for i in range(count)) + data[count * size:]
)";

constexpr std::string_view blosc_text = "Blosc chunk format (README_CHUNK_FORMAT.rst of c-blosc 1.21)";
constexpr std::string_view zstd_text = "Zstandard, RFC 8878";
constexpr std::string_view gzip_text = "gzip, RFC 1952";
constexpr std::string_view gzip_line = "data = gzip.decompress(data)";
constexpr std::string_view crc32c_text = "CRC-32C (RFC 3720, appendix B.4), 4 little-endian bytes, not checked here";
constexpr std::string_view sum_line = "{sum}";  // leaves out four bytes

constexpr Row rows[] = {
    {"bytes", "elements one after another, each as the dtype says"},
    {"transpose", "dimensions in another order: Zarr v3's codec \"transpose\""},
    {"sharding_indexed", "several chunks and an index in one file: Zarr v3's codec \"sharding_indexed\", version 1.0"},
    {"vlen-utf8",
     "a count, then each text as its length and UTF-8; numbers are 4 bytes, little-endian (numcodecs' VLenUTF8)"},
    {"vlen-bytes",
     "a count, then each element as its length and bytes; numbers are 4 bytes, little-endian (numcodecs' VLenBytes)"},
    {"gzip", gzip_text, "gzip", {}, gzip_line},
    {"numcodecs.gzip", gzip_text, "gzip", {}, gzip_line},
    {"numcodecs.zlib", "zlib, RFC 1950", "zlib", {}, "data = zlib.decompress(data)"},
    {"numcodecs.bz2", "bzip2 1.0", "bz2", {}, "data = bz2.decompress(data)"},
    {"numcodecs.lzma", "the .xz file format 1.2 (or LZMA alone)", "lzma", {}, "data = lzma.decompress(data)"},
    {"blosc", blosc_text, "ctypes.util", blosc_function, "data = blosc(data)"},
    {"numcodecs.blosc", blosc_text, "ctypes.util", blosc_function, "data = blosc(data)"},
    {"zstd", zstd_text, "ctypes.util", zstd_function, "data = zstd(data)"},
    {"numcodecs.zstd", zstd_text, "ctypes.util", zstd_function, "data = zstd(data)"},
    {"numcodecs.lz4", "the size as 4 little-endian bytes, then an LZ4 block (lz4_Block_format.md of lz4)",
     "ctypes.util", lz4_function, "data = lz4(data)"},
    {"numcodecs.shuffle",
     "bytes of elements in the order of their significance (numcodecs' Shuffle)",
     {},
     shuffle_function,
     "data = unshuffle(data, {size})"},
    {"crc32c", crc32c_text, {}, {}, sum_line},
    {"numcodecs.crc32c", crc32c_text, {}, {}, sum_line},
    {"numcodecs.crc32", "CRC-32 as in gzip, 4 little-endian bytes, not checked here", {}, {}, sum_line},
    {"numcodecs.adler32", "Adler-32 as in zlib, 4 little-endian bytes, not checked here", {}, {}, sum_line},
    {"numcodecs.fletcher32", "HDF5's Fletcher-32, 4 bytes, not checked here", {}, {}, sum_line},
    {"numcodecs.bitround", "digits were rounded before: nothing to undo (numcodecs' BitRound)", {}, {}, "-"},
};

const Row* row_of(std::string_view name) {
    const auto* const row = std::ranges::find(rows, name, &Row::name);
    return row == std::end(rows) ? nullptr : row;
}

/// As the codec's own default says where the checksum lies.
bool sum_is_first(const CodecConfig& codec) {
    if (const Value* const place = codec.configuration.find("location")) {
        return place->is_string() && place->as_string() == "start";
    }
    return codec.name == "numcodecs.crc32" || codec.name == "numcodecs.adler32";
}

/// Whether a codec is set so that the line is wrong: lzma without a header, which says nothing of its filters, and a
/// shuffle of nothing.
bool is_unusual(const CodecConfig& codec) {
    constexpr std::int64_t raw = 3;
    const Value* const format = codec.configuration.find("format");
    const Value* const size = codec.configuration.find("elementsize");
    return (format != nullptr && *format == Value(raw)) || (size != nullptr && *size == Value(std::int64_t{0}));
}

std::string line_of(const Row& row, const CodecConfig& codec) {
    if (row.line == sum_line) return sum_is_first(codec) ? "data = data[4:]" : "data = data[:-4]";
    if (row.function != shuffle_function) return std::string(row.line);
    constexpr std::int64_t usual = 4;
    const Value* const size = codec.configuration.find("elementsize");
    return fmt::format(fmt::runtime(row.line), fmt::arg("size", size == nullptr ? usual : size->as_int64()));
}

void add_once(std::vector<std::string>& list, std::string_view text) {
    if (!text.empty() && std::ranges::count(list, text) == 0) list.emplace_back(text);
}

}  // namespace

std::optional<PythonDecoder> python_decoder(std::span<const CodecConfig> codecs, std::string& unknown) {
    PythonDecoder decoder;
    for (auto codec = codecs.rbegin(); codec != codecs.rend(); ++codec) {
        const Row* const row = row_of(codec->name);
        if (row == nullptr || row->line.empty() || is_unusual(*codec)) {
            unknown = codec->name;
            return std::nullopt;
        }
        add_once(decoder.imports, row->import);
        add_once(decoder.functions, row->function);
        if (row->line != "-") decoder.lines.push_back(line_of(*row, *codec));
    }
    return decoder;
}

std::string_view codec_specification(std::string_view name) {
    const Row* const row = row_of(name);
    return row == nullptr ? "see the registry of Zarr's extensions, or numcodecs" : row->specification;
}

}  // namespace tessera
