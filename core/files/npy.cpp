#include <tessera/npy.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>

#include <fmt/format.h>

#include <tessera/error_text.h>
#include <tessera/memory_account.h>

#include <tessera/unicode.h>
#include "array_file_row.h"
#include "convert_source.h"
#include "object_array.h"
#include "plain_file.h"
#include "python_literal.h"

namespace tessera {

namespace {

constexpr std::string_view npy_magic = "\x93NUMPY";
constexpr std::size_t alignment = 64;  // of the data

/// Bytes before the header's text: magic, version, and a length of 2 bytes in version 1, of 4 later.
constexpr std::uint64_t prefix_size(int major) {
    return npy_magic.size() + 2 + (major == 1 ? 2 : 4);
}

/// Whether `test` holds for this dtype or for that of any field, at any depth.
bool any_part(const DType& dtype, bool (*test)(const DType&)) {
    const auto fields = dtype.fields();
    return test(dtype) ||
           std::any_of(fields.begin(), fields.end(), [&](const Field& f) { return any_part(f.dtype, test); });
}

bool holds_objects(const DType& dtype) {
    return any_part(dtype, [](const DType& d) { return d.kind() == Kind::object; });
}

bool unknown_to_numpy(const DType& dtype) {
    return any_part(dtype, [](const DType& d) { return d.is_variable() || d.kind() == Kind::bfloat16; });
}

/// The same dtype with every field under its own name. In a .npy, "" means padding, so a field that is spelt ""
/// elsewhere and shown as f1 gets the name f1.
DType all_named(const DType& dtype) {
    if (dtype.kind() != Kind::structure) return dtype;
    std::vector<Field> fields(dtype.fields().begin(), dtype.fields().end());
    for (Field& f : fields) {
        f.dtype = all_named(f.dtype);
        f.unnamed = false;
    }
    return DType::structure(std::move(fields), dtype.size());
}

Shape shape_of(const PythonLiteral& literal) {
    if (literal.kind != PythonLiteral::Kind::tuple) throw corrupt("'shape' is not a tuple");
    std::vector<std::int64_t> shape;
    for (const PythonLiteral& item : literal.items) {
        if (item.kind != PythonLiteral::Kind::scalar || !item.scalar.is_integer() || item.scalar.as_int64() < 0) {
            throw corrupt("'shape' is {}, not a tuple of numbers from 0 on", literal.to_value().dump());
        }
        shape.push_back(item.scalar.as_int64());
    }
    return shape;
}

/// Parses the header's text.
void parse_header(std::string_view text, NpyHeader& header) {
    const PythonLiteral literal = parse_python_literal(text);
    if (literal.kind != PythonLiteral::Kind::dict) throw corrupt("the header is not a dictionary");
    std::array<const PythonLiteral*, 3> found{};
    constexpr std::array<std::string_view, 3> keys{"descr", "fortran_order", "shape"};
    for (const auto& [key, value] : literal.members) {
        const auto k = std::find(keys.begin(), keys.end(), key);
        if (k == keys.end()) throw corrupt("the header has a key '{}' that .npy does not know", key);
        found[static_cast<std::size_t>(k - keys.begin())] = &value;
    }
    for (std::size_t k = 0; k < keys.size(); ++k) {
        if (found[k] == nullptr) throw corrupt("the header has no '{}'", keys[k]);
    }
    const auto& [descr, fortran_order, shape] = found;
    if (!fortran_order->scalar.is_bool()) throw corrupt("'fortran_order' is neither True nor False");
    header.order = fortran_order->scalar.as_bool() ? Order::F : Order::C;
    header.dtype = DType::from_descr(descr->to_value(), DType::Padding::skip);
    if (unknown_to_numpy(header.dtype)) {
        throw corrupt("'descr' is {}, which is no NumPy dtype", header.dtype.to_string());
    }
    header.shape = shape_of(*shape);
}

std::uint64_t little_endian(ByteSpan bytes) {
    std::uint64_t n = 0;
    for (std::size_t i = bytes.size(); i-- > 0;) n = n << 8 | std::to_integer<std::uint64_t>(bytes[i]);
    return n;
}

/// Throws corrupt unless the file has the bytes of all elements.
void require_elements(const ByteSource& file, const NpyHeader& header) {
    if (holds_objects(header.dtype)) return;
    const auto promised = static_cast<std::uint64_t>(byte_count(header.shape, header.dtype.size()));
    const std::uint64_t there = file.size() - header.data_offset;
    if (promised > there) {
        throw corrupt("shape {} of {} needs {} bytes of data, but only {} follow the header", header.shape.to_string(),
                      header.dtype.to_string(), promised, there);
    }
}

NpyHeader read_header(const ByteSource& file) {
    std::array<std::byte, prefix_size(2)> prefix{};
    const std::size_t got = static_cast<std::size_t>(std::min<std::uint64_t>(prefix.size(), file.size()));
    file.read(0, std::span(prefix).first(got));
    if (got < prefix_size(1) ||
        std::string_view(reinterpret_cast<const char*>(prefix.data()), npy_magic.size()) != npy_magic) {
        throw corrupt("not a .npy file: it does not begin with \\x93NUMPY and a version");
    }
    NpyHeader header;
    header.major = std::to_integer<int>(prefix[6]);
    header.minor = std::to_integer<int>(prefix[7]);
    if (header.major < 1 || header.major > 3 || header.minor != 0) {
        throw unsupported("version {}.{} of .npy; 1.0, 2.0 and 3.0 are known", header.major, header.minor);
    }
    const std::uint64_t begin = prefix_size(header.major);
    if (got < begin) throw corrupt("the file ends inside the header, after {} bytes", got);
    const std::uint64_t length = little_endian(std::span(prefix).first(begin).subspan(8));
    if (length > npy_header_limit) {
        throw unsupported("the header is said to have {} bytes; at most {} are read", length, npy_header_limit);
    }
    if (length > file.size() - begin) {
        throw corrupt("the header is said to have {} bytes, but only {} follow", length, file.size() - begin);
    }
    header.data_offset = begin + length;
    const Buffer bytes = read_range(file, begin, length);
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    const MemoryHold held(literal_memory(text));
    if (header.major == 3 && !from_utf8(text)) throw corrupt("the header of version 3.0 is not UTF-8");
    try {
        parse_header(header.major == 3 ? std::string(text) : latin1_to_utf8(text), header);
        require_elements(file, header);
    } catch (const Error& e) {
        // A bad dtype or an overflowing shape is a caller's mistake elsewhere, but damage in a file.
        throw e.code() == ErrorCode::invalid_argument ? corrupt(e.what()) : e;
    }
    return header;
}

PlainLayout layout_of(const std::string& name, const NpyHeader& header) {
    return {name, header.data_offset, header.dtype, header.shape, header.order};
}

}  // namespace

NpyHeader read_npy_header(const ByteSource& file) {
    return in_context([&] { return file.name(); }, [&] { return read_header(file); });
}

std::string npy_header_bytes(const DType& dtype, const Shape& shape, Order order) {
    if (unknown_to_numpy(dtype) || (holds_objects(dtype) && dtype.kind() != Kind::object)) {
        throw unsupported("a .npy file cannot hold {}", dtype.to_string());
    }
    const bool fortran_order = order == Order::F && !order_is_moot(shape);
    const std::string descr =
        dtype.kind() == Kind::structure ? all_named(dtype).to_string() : fmt::format("'{}'", dtype.str());
    std::string text = fmt::format("{{'descr': {}, 'fortran_order': {}, 'shape': {}, }}", descr,
                                   fortran_order ? "True" : "False", shape.to_string());
    // Room for the length to grow when data are appended, up to 21 digits.
    if (!shape.empty()) {
        const std::string length = std::to_string(fortran_order ? shape.back() : shape[0]);
        text.append(21 - length.size(), ' ');
    }
    int major = 3;
    if (const auto latin1 = utf8_to_latin1(text)) {
        text = *latin1;
        major = 1;
    }
    // NumPy always pads: at least one space before the newline, and the newline last.
    const auto padding = [&] { return alignment - (prefix_size(major) + text.size() + 1) % alignment; };
    if (major == 1 && text.size() + padding() + 1 > 0xFFFF) major = 2;
    text.append(padding(), ' ');
    text += '\n';

    std::string bytes(npy_magic);
    bytes += static_cast<char>(major);
    bytes += '\0';
    for (std::size_t i = 0, n = text.size(); bytes.size() < prefix_size(major); ++i) {
        bytes += static_cast<char>(n >> (8 * i) & 0xFF);
    }
    return bytes + text;
}

std::unique_ptr<ArraySource> open_npy(std::shared_ptr<const ByteSource> file) {
    const NpyHeader header = read_npy_header(*file);
    if (holds_objects(header.dtype)) {
        return open_object_array(std::move(file), {header.dtype, header.shape, {}, header.order, Access::any},
                                 header.data_offset);
    }
    PlainLayout layout = layout_of(file->name(), header);
    return plain_source(std::move(file), std::move(layout));
}

std::unique_ptr<ArraySink> create_npy(std::unique_ptr<ByteSink> sink, const DType& dtype, const Shape& shape,
                                      Order order) {
    if (dtype.is_variable()) {
        return create_object_array(std::move(sink), npy_header_bytes("O", shape, order), dtype, shape, order);
    }
    if (dtype.kind() == Kind::object) throw unsupported("Python objects other than str and bytes cannot be written");
    return plain_sink(std::move(sink), npy_header_bytes(dtype, shape, order), dtype, shape, order);
}

NDArray load_npy(const std::filesystem::path& path) {
    const auto source = open_npy(open_file(path));
    const ArrayInfo info = source->info();
    NDArray array(info.dtype, info.shape, info.order);
    source->read_into(Region::whole(info.shape), array.view(), {});
    return array;
}

void save_npy(const std::filesystem::path& path, const ArrayView& array) {
    const Order order = array.contiguous(Order::F) && !array.contiguous(Order::C) ? Order::F : Order::C;
    const auto sink = create_npy(create_file(path), array.dtype, array.shape, order);
    sink->write(Region::whole(array.shape), array, {});
    sink->finish();
}

MappedNpy::MappedNpy(const std::filesystem::path& path, Mode mode)
    : MappedArray(path, mode), header_(read_npy_header(file())) {
    if (holds_objects(header_.dtype)) {
        throw unsupported("{}: Python objects cannot be mapped; read them instead", file().name());
    }
    set_layout(layout_of(file().name(), header_));
}

MappedNpy MappedNpy::create(const std::filesystem::path& path, const DType& dtype, const Shape& shape, Order order) {
    create_npy(create_file(path), dtype, shape, order)->finish();
    return MappedNpy(path, Mode::read_write);
}

// ---- as a format of array files

Value npy_facts(const ByteSource& file) {
    const NpyHeader h = read_npy_header(file);
    Value facts = Value::object();
    facts.set("version", fmt::format("{}.{}", h.major, h.minor));
    facts.set("header_length", h.data_offset - (h.major == 1 ? 10 : 12));
    facts.set("data_offset", h.data_offset);
    facts.set("order", h.order == Order::C ? "C" : "F");
    facts.set("dtype", h.dtype.to_string());
    facts.set("shape", Value::Array(h.shape.begin(), h.shape.end()));
    return facts;
}

void require_wanted_strings(const DType& dtype, const ArrayFileOptions& options) {
    if (!dtype.is_variable() || options.object_strings) return;
    throw unsupported("a .npy file cannot hold {} of variable length but as Python objects (object_strings)",
                      dtype.kind() == Kind::variable_text ? "text" : "bytes");
}

std::unique_ptr<ArraySource> npy_convert(const ArraySource& source, const ArrayFileOptions& options,
                                         const IoOptions& io) {
    const DType dtype = source.info().dtype;
    if (dtype.kind() == Kind::bfloat16) return widened_bfloat16(source);
    if (dtype.is_variable() && !options.object_strings) return fixed_length_strings(source, io);
    return nullptr;
}

namespace {

bool npy_recognise(ByteSpan first) {
    return starts_with(first, "\x93NUMPY");
}

std::unique_ptr<ArraySource> npy_open(const ArrayPath& path, const ArrayFileOptions&) {
    require_no_member(path);
    return open_npy(path.bytes());
}

std::unique_ptr<ArraySink> npy_create(const ArrayPath& path, const DType& dtype, const Shape& shape,
                                      const ArrayFileOptions& options) {
    require_no_member(path);
    require_wanted_strings(dtype, options);
    return create_npy(create_file(path.path, options.durable), dtype, shape, options.order);
}

FileLayout npy_layout(std::span<const FileArray> arrays, const ArrayFileGroup& /*root*/, Order order) {
    const FileArray& array = arrays.front();
    FileLayout layout{.header = npy_header_bytes(array.dtype, array.shape, order), .order = order};
    layout.arrays.push_back(
        {.name = array.name, .dtype = array.dtype, .shape = array.shape, .offset = layout.header.size()});
    const std::int64_t bytes = byte_count(array.shape, array.dtype.size());
    layout.size = layout.header.size() + static_cast<std::uint64_t>(bytes);
    return layout;
}

Value npy_describe(const ArrayPath& path) {
    require_no_member(path);
    Value facts = npy_facts(*path.bytes());
    facts.set("format", "npy");
    return facts;
}

}  // namespace

extern constinit const ArrayFileFormat npy_format{
    .name = "npy",
    .extension = ".npy",
    .about = "NumPy array, versions 1.0 to 3.0",
    .ranged = true,
    .recognise = npy_recognise,
    .open = npy_open,
    .create = npy_create,
    .convert = npy_convert,
    .layout = npy_layout,
    .describe = npy_describe,
};

}  // namespace tessera
