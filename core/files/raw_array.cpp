#include <tessera/raw_array.h>

#include <lz4.h>

#include <algorithm>
#include <array>
#include <limits>
#include <mutex>
#include <optional>
#include <vector>

#include <tessera/error_text.h>
#include <tessera/little_endian.h>

#include "array_file_row.h"
#include "plain_file.h"

namespace tessera {

namespace {

// offset 0: magic, flags, eltype, elbyte, size, ndims, dims[ndims], data. All words are little-endian u64, whatever the
// order of the data.
constexpr std::uint64_t first_word = 0x7961727261776172;  // "rawarray"
constexpr std::size_t word = 8;
constexpr std::size_t fixed_words = 6;

constexpr std::uint64_t flag_big_endian = 1;
constexpr std::uint64_t flag_compressed = 2;
constexpr std::uint64_t flag_bits = 4;  // RawArray.jl only

constexpr std::array<std::string_view, 6> eltype_names{"user-defined",   "signed integer", "unsigned integer",
                                                       "floating point", "complex",        "brain float"};
enum Eltype : std::uint64_t { user, signed_integer, unsigned_integer, floating, complex, brain_float_or_bool };

void append_word(std::string& out, std::uint64_t n) {
    for (std::size_t i = 0; i < word; ++i) out += static_cast<char>(n >> (8 * i) & 0xFF);
}

bool is_any(std::uint64_t n, std::initializer_list<std::uint64_t> of) {
    return std::find(of.begin(), of.end(), n) != of.end();
}

DType dtype_of(const RawArrayHeader& h) {
    const ByteOrder order = (h.flags & flag_big_endian) != 0 ? ByteOrder::big : ByteOrder::little;
    const auto size = static_cast<std::int64_t>(h.elbyte);
    switch (h.eltype) {
        case user:
            if (size > 0) return DType::raw(size);
            break;
        case signed_integer:
            if (is_any(h.elbyte, {1, 2, 4, 8})) return DType::scalar(Kind::integer, size, order);
            break;
        case unsigned_integer:
            if (is_any(h.elbyte, {1, 2, 4, 8})) return DType::scalar(Kind::unsigned_integer, size, order);
            break;
        case floating:
            if (is_any(h.elbyte, {2, 4, 8})) return DType::scalar(Kind::real, size, order);
            break;
        case complex:
            if (is_any(h.elbyte, {8, 16})) return DType::scalar(Kind::complex, size, order);
            break;
        case brain_float_or_bool:
            if (h.encoding == RawArrayEncoding::bits || h.elbyte == 1) return DType::scalar(Kind::boolean, 1);
            if (h.elbyte == 2) return DType::scalar(Kind::bfloat16, 2, order);
            break;
        default:
            throw corrupt("element type {}; 0 to 5 are known", h.eltype);
    }
    throw unsupported("element type {} ({}) of {} bytes", h.eltype, eltype_names[h.eltype], h.elbyte);
}

/// The eltype of a dtype that a .ra can hold.
std::optional<std::uint64_t> eltype_of(const DType& dtype) {
    switch (dtype.kind()) {
        case Kind::raw:
            return dtype.size() > 0 ? std::optional<std::uint64_t>(user) : std::nullopt;
        case Kind::integer:
            return signed_integer;
        case Kind::unsigned_integer:
            return unsigned_integer;
        case Kind::real:
            return floating;
        case Kind::complex:
            return complex;
        case Kind::bfloat16:
        case Kind::boolean:
            return brain_float_or_bool;
        default:
            return std::nullopt;
    }
}

Shape read_dims(const ByteSource& file, std::uint64_t ndims) {
    const std::uint64_t there = file.size() / word - fixed_words;
    if (ndims > there) {
        throw corrupt("{} dimensions are promised, but the file ends after {} bytes", ndims, file.size());
    }
    if (ndims > static_cast<std::uint64_t>(max_rank)) {
        throw unsupported("{} dimensions; at most {} are read", ndims, max_rank);
    }
    const Buffer words = read_range(file, fixed_words * word, ndims * word);
    Shape dims;
    for (std::uint64_t d = 0; d < ndims; ++d) {
        const std::uint64_t n = load_little<std::uint64_t>(words.data() + d * word);
        if (n > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
            throw corrupt("dimension {} has the length {}", d, n);
        }
        dims.push_back(static_cast<std::int64_t>(n));
    }
    return dims;
}

/// The dialect that the flags mean. Checks that `size` is valid in it.
RawArrayEncoding encoding_of(const RawArrayHeader& h, std::int64_t count) {
    if ((h.flags & flag_bits) != 0) {
        const auto words = static_cast<std::uint64_t>(ceil_div(count, 64));
        if (h.eltype != brain_float_or_bool || (h.flags & flag_big_endian) != 0) {
            throw unsupported(
                "flags {}: single bits of element type {}; they are known for little-endian "
                "Booleans (element type 5) only",
                h.flags, h.eltype);
        }
        if (h.size != words * word) {
            throw corrupt("{} bits need {} bytes in words of 64, but the size is given as {}", count, words * word,
                          h.size);
        }
        return RawArrayEncoding::bits;
    }
    const auto decoded = static_cast<std::uint64_t>(
        checked_multiply(count, static_cast<std::int64_t>(h.elbyte), "the size of the elements"));
    if ((h.flags & flag_compressed) == 0) {
        if (h.size != decoded) {
            throw corrupt("{} elements of {} bytes are {} bytes, but the size is given as {}", count, h.elbyte, decoded,
                          h.size);
        }
        return RawArrayEncoding::plain;
    }
    // The C library gives the compressed length as the size, RawArray.jl the decoded one.
    if (h.size != decoded) return RawArrayEncoding::lz4;
    if (!is_any(h.eltype, {signed_integer, unsigned_integer})) {
        throw unsupported(
            "the flags say compressed, but the size {} is that of the elements as they are: neither the C "
            "library nor RawArray.jl writes this for element type {} ({})",
            h.size, h.eltype, eltype_names[std::min<std::uint64_t>(h.eltype, 5)]);
    }
    return RawArrayEncoding::leb128;
}

/// Throws corrupt unless the file has the bytes that its header tells of. Sets what follows them.
void require_data(RawArrayHeader& h, std::uint64_t there) {
    if (h.encoding == RawArrayEncoding::leb128) {
        const std::int64_t count = element_count(h.dims);
        if (static_cast<std::uint64_t>(count) <= there) return;
        throw corrupt("{} integers take at least a byte each, but only {} bytes follow the header", count, there);
    }
    if (h.size > there) {
        throw corrupt("{} bytes of data are promised, but only {} follow the header", h.size, there);
    }
    h.trailing = there - h.size;
    // A byte of an LZ4 block decodes to at most 255 bytes. Larger claims are refused before anything is allocated.
    const auto decoded = static_cast<std::uint64_t>(byte_count(h.dims, h.dtype.size()));
    if (h.encoding == RawArrayEncoding::lz4 && decoded / 255 > h.size) {
        throw corrupt("an LZ4 block of {} bytes cannot hold the {} bytes of the elements", h.size, decoded);
    }
}

RawArrayHeader read_fixed_part(const ByteSource& file) {
    std::array<std::byte, fixed_words * word> words{};
    if (file.size() < words.size()) {
        throw corrupt("the header has at least {} bytes, but the file has {}", words.size(), file.size());
    }
    file.read(0, words);
    if (load_little<std::uint64_t>(words.data()) != first_word)
        throw corrupt("not a RawArray file: it does not begin with \"rawarray\"");
    RawArrayHeader h;
    h.flags = load_little<std::uint64_t>(words.data() + 1 * word);
    h.eltype = load_little<std::uint64_t>(words.data() + 2 * word);
    h.elbyte = load_little<std::uint64_t>(words.data() + 3 * word);
    h.size = load_little<std::uint64_t>(words.data() + 4 * word);
    if ((h.flags & ~(flag_big_endian | flag_compressed | flag_bits)) != 0) {
        throw unsupported("flags {:#x}; of these only {:#x} are known", h.flags,
                          flag_big_endian | flag_compressed | flag_bits);
    }
    h.dims = read_dims(file, load_little<std::uint64_t>(words.data() + 5 * word));
    h.data_offset = (fixed_words + h.dims.size()) * word;
    if (h.elbyte > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
        throw corrupt("an element is said to have {} bytes", h.elbyte);
    }
    try {
        const std::int64_t count = element_count(h.dims);
        h.encoding = encoding_of(h, count);
        h.dtype = dtype_of(h);
        (void)byte_count(h.dims, h.dtype.size());  // fits
    } catch (const Error& e) {
        // An overflowing product is a caller's mistake elsewhere, but damage in a file.
        throw e.code() == ErrorCode::invalid_argument ? corrupt(e.what()) : e;
    }
    require_data(h, file.size() - h.data_offset);
    return h;
}

// ---- decoding; every function fills all of `out` or throws

void decode_lz4(ByteSpan in, MutableByteSpan out) {
    constexpr std::size_t limit = LZ4_MAX_INPUT_SIZE;  // just below 2 GiB
    if (in.size() > limit || out.size() > limit) {
        throw unsupported("an LZ4 block of {} bytes for {}; LZ4 blocks have at most {}", in.size(), out.size(), limit);
    }
    if (out.empty()) return;
    const int n = LZ4_decompress_safe(reinterpret_cast<const char*>(in.data()), reinterpret_cast<char*>(out.data()),
                                      static_cast<int>(in.size()), static_cast<int>(out.size()));
    if (n < 0) throw corrupt("the LZ4 block of {} bytes is damaged", in.size());
    if (static_cast<std::size_t>(n) != out.size()) {
        throw corrupt("the LZ4 block holds {} bytes; the elements need {}", n, out.size());
    }
}

/// Decodes into little-endian integers.
void decode_leb128(ByteSpan in, MutableByteSpan out, std::size_t item, bool zigzag) {
    std::size_t at = 0;
    const auto bits = static_cast<unsigned>(8 * item);
    for (std::size_t k = 0; k < out.size(); k += item) {
        std::uint64_t n = 0;
        for (unsigned shift = 0;; shift += 7) {
            if (at == in.size()) throw corrupt("the file ends inside integer {}", k / item);
            const auto byte = std::to_integer<std::uint64_t>(in[at++]);
            const std::uint64_t group = byte & 0x7F;
            if (shift >= bits || (shift + 7 > bits && group >> (bits - shift) != 0)) {
                throw corrupt("integer {} does not fit {} bytes", k / item, item);
            }
            n |= group << shift;
            if ((byte & 0x80) == 0) break;
        }
        if (zigzag) n = n >> 1 ^ (0 - (n & 1));
        for (std::size_t i = 0; i < item; ++i) out[k + i] = static_cast<std::byte>(n >> (8 * i));
    }
}

void decode_bits(ByteSpan in, MutableByteSpan out) {
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = in[i / 8] >> (i % 8) & std::byte{1};
}

Buffer decode(const ByteSource& file, const RawArrayHeader& h) {
    const std::uint64_t length = h.encoding == RawArrayEncoding::leb128 ? file.size() - h.data_offset : h.size;
    const auto decoded = static_cast<std::uint64_t>(byte_count(h.dims, h.dtype.size()));
    Buffer read;
    ByteSpan in = file.mapped();
    if (in.empty()) {
        read = read_range(file, h.data_offset, length);
        in = read;
    } else {
        in = in.subspan(h.data_offset, length);
    }
    Buffer out(decoded);
    switch (h.encoding) {
        case RawArrayEncoding::lz4:
            decode_lz4(in, out.span());
            break;
        case RawArrayEncoding::leb128:
            decode_leb128(in, out.span(), h.elbyte, h.eltype == signed_integer);
            break;
        default:
            decode_bits(in, out.span());
    }
    return out;
}

Shape reversed_if(bool reverse, Shape dims) {
    if (reverse) std::reverse(dims.begin(), dims.end());
    return dims;
}

Order order_of(const RawArrayOptions& options) {
    return options.reverse_dims ? Order::C : Order::F;
}

/// Where the elements are, and how a caller sees them.
PlainLayout layout_of(const std::string& name, const RawArrayHeader& h, const RawArrayOptions& options) {
    return {name, h.data_offset, h.dtype, reversed_if(options.reverse_dims, h.dims), order_of(options)};
}

/// Compressed elements, decoded once, at the first read.
class DecodedSource final : public ArraySource {
public:
    DecodedSource(std::shared_ptr<const ByteSource> file, RawArrayHeader header, const RawArrayOptions& options)
        : file_(std::move(file)), header_(std::move(header)), layout_(layout_of(file_->name(), header_, options)) {
        layout_.data_offset = 0;
    }
    ArrayInfo info() const override { return {layout_.dtype, layout_.shape, {}, layout_.order, Access::any}; }
    const std::string& name() const override { return file_->name(); }
    void read_into(const Region& region, const MutableArrayView& out, const IoOptions& io) const override {
        std::call_once(once_, [&] {
            elements_ =
                memory_source(in_context([&] { return name(); }, [&] { return decode(*file_, header_); }), name());
        });
        read_plain(*elements_, layout_, region, out, io);
    }

private:
    std::shared_ptr<const ByteSource> file_;
    RawArrayHeader header_;
    PlainLayout layout_;
    mutable std::once_flag once_;
    mutable std::unique_ptr<ByteSource> elements_;
};

}  // namespace

std::string_view to_string(RawArrayEncoding encoding) {
    constexpr std::array<std::string_view, 4> names{"plain", "lz4", "leb128", "bits"};
    return names[static_cast<std::size_t>(encoding)];
}

RawArrayHeader read_raw_array_header(const ByteSource& file) {
    return in_context([&] { return file.name(); }, [&] { return read_fixed_part(file); });
}

std::string raw_array_header_bytes(const DType& dtype, const Shape& dims) {
    const auto eltype = eltype_of(dtype);
    if (!eltype) {
        throw unsupported("a .ra file cannot hold {}: it has integers, f2 f4 f8, c8 c16, bfloat16, bool and V n",
                          dtype.to_string());
    }
    std::string bytes;
    append_word(bytes, first_word);
    append_word(bytes, dtype.order() == ByteOrder::big ? flag_big_endian : 0);
    append_word(bytes, *eltype);
    append_word(bytes, static_cast<std::uint64_t>(dtype.size()));
    append_word(bytes, static_cast<std::uint64_t>(byte_count(dims, dtype.size())));
    append_word(bytes, dims.size());
    for (const std::int64_t n : dims) append_word(bytes, static_cast<std::uint64_t>(n));
    return bytes;
}

Buffer read_raw_array_trailing(const ByteSource& file) {
    const RawArrayHeader h = read_raw_array_header(file);
    return read_range(file, file.size() - h.trailing, h.trailing);
}

std::unique_ptr<ArraySource> open_raw_array(std::shared_ptr<const ByteSource> file, const RawArrayOptions& options) {
    RawArrayHeader header = read_raw_array_header(*file);
    if (header.encoding != RawArrayEncoding::plain) {
        return std::make_unique<DecodedSource>(std::move(file), std::move(header), options);
    }
    PlainLayout layout = layout_of(file->name(), header, options);
    return plain_source(std::move(file), std::move(layout));
}

std::unique_ptr<ArraySink> create_raw_array(std::unique_ptr<ByteSink> sink, const DType& dtype, const Shape& shape,
                                            const RawArrayOptions& options, ByteSpan trailing) {
    const std::string header = raw_array_header_bytes(dtype, reversed_if(options.reverse_dims, shape));
    return plain_sink(std::move(sink), header, dtype, shape, order_of(options), trailing);
}

MappedRawArray::MappedRawArray(const std::filesystem::path& path, Mode mode, const RawArrayOptions& options)
    : MappedArray(path, mode), header_(read_raw_array_header(file())) {
    if (header_.encoding != RawArrayEncoding::plain) {
        throw unsupported("{}: the elements are compressed ({}) and cannot be mapped; read them instead", file().name(),
                          to_string(header_.encoding));
    }
    set_layout(layout_of(file().name(), header_, options));
}

MappedRawArray MappedRawArray::create(const std::filesystem::path& path, const DType& dtype, const Shape& shape,
                                      const RawArrayOptions& options) {
    create_raw_array(create_file(path), dtype, shape, options)->finish();
    return MappedRawArray(path, Mode::read_write, options);
}

// ---- as a format of array files

namespace {

bool ra_recognise(ByteSpan first) {
    return starts_with(first, "rawarray");
}

std::unique_ptr<ArraySource> ra_open(const ArrayPath& path, const ArrayFileOptions& options) {
    require_no_member(path);
    return open_raw_array(path.bytes(), {options.reverse_dims});
}

/// The trailing bytes of the file to be replaced, if that is a .ra: its user put them there.
Buffer ra_trailing(const std::filesystem::path& path) {
    constexpr std::uint64_t most = std::uint64_t{64} << 20;
    if (!std::filesystem::is_regular_file(path)) return {};
    const auto file = open_file(path);
    std::uint64_t size = 0;
    try {
        size = read_raw_array_header(*file).trailing;
    } catch (const Error&) {
        return {};  // something else, or damaged
    }
    if (size > most) {
        throw unsupported(
            "{}: {} bytes stand behind the data, more than the {} that are kept when it is "
            "replaced; choose another name",
            file->name(), size, most);
    }
    return read_raw_array_trailing(*file);
}

std::unique_ptr<ArraySink> ra_create(const ArrayPath& path, const DType& dtype, const Shape& shape,
                                     const ArrayFileOptions& options) {
    require_no_member(path);
    const Buffer trailing = ra_trailing(path.path);
    return create_raw_array(create_file(path.path, options.durable), dtype, shape, {options.reverse_dims}, trailing);
}

Value ra_describe(const ArrayPath& path) {
    require_no_member(path);
    const RawArrayHeader h = read_raw_array_header(*path.bytes());
    Value facts = Value::object();
    facts.set("format", "ra");
    facts.set("flags", h.flags);
    facts.set("eltype", h.eltype);
    facts.set("elbyte", h.elbyte);
    facts.set("size", h.size);
    facts.set("dims", Value::Array(h.dims.begin(), h.dims.end()));
    facts.set("data_offset", h.data_offset);
    facts.set("trailing_bytes", h.trailing);
    facts.set("encoding", to_string(h.encoding));
    facts.set("dtype", h.dtype.to_string());
    return facts;
}

}  // namespace

extern constinit const ArrayFileFormat raw_array_format{
    .name = "ra",
    .extension = ".ra",
    .about = "RawArray, all dialects read, plain ones written",
    .ranged = true,
    .recognise = ra_recognise,
    .open = ra_open,
    .create = ra_create,
    .describe = ra_describe,
};

}  // namespace tessera
