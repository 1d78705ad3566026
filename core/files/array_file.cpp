#include <tessera/array_file.h>

#include <algorithm>
#include <array>
#include <cstring>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <tessera/byte_io.h>
#include <tessera/error.h>
#include <tessera/mldf.h>
#include <tessera/npy.h>
#include <tessera/npz.h>
#include <tessera/raw_array.h>
#include <tessera/single_array.h>

#include "convert_source.h"

namespace tessera {

namespace {

bool starts_with(ByteSpan bytes, std::string_view text) {
    return bytes.size() >= text.size() && std::memcmp(bytes.data(), text.data(), text.size()) == 0;
}

// ---- npy

void require_no_member(const ArrayPath& path) {
    if (!path.member) return;
    const auto source = open_array_file({path.path, std::nullopt});
    throw not_found(single_array_message(path.path.string(), source->info().dtype, *path.member));
}

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

bool npy_recognise(ByteSpan first) {
    return starts_with(first, "\x93NUMPY");
}

std::vector<std::string> no_members(const std::filesystem::path&) {
    return {};
}

std::unique_ptr<ArraySource> npy_open(const ArrayPath& path, const ArrayFileOptions&) {
    require_no_member(path);
    return open_npy(open_file(path.path));
}

/// Objects are written when asked for only: not every reader of .npy takes them.
void require_wanted_strings(const DType& dtype, const ArrayFileOptions& options) {
    if (!dtype.is_variable() || options.object_strings) return;
    throw unsupported(
        fmt::format("a .npy file cannot hold {} of variable length but as Python objects (object_strings)",
                    dtype.kind() == Kind::variable_text ? "text" : "bytes"));
}

std::unique_ptr<ArraySink> npy_create(const ArrayPath& path, const DType& dtype, const Shape& shape,
                                      const ArrayFileOptions& options) {
    require_no_member(path);
    require_wanted_strings(dtype, options);
    return create_npy(create_file(path.path, options.durable), dtype, shape, options.order);
}

Value npy_describe(const ArrayPath& path) {
    require_no_member(path);
    Value facts = npy_facts(*open_file(path.path));
    facts.set("format", "npy");
    return facts;
}

std::unique_ptr<ArraySource> npy_convert(const ArraySource& source, const ArrayFileOptions& options,
                                         const IoOptions& io) {
    const DType dtype = source.info().dtype;
    if (dtype.kind() == Kind::bfloat16) return widened_bfloat16(source);
    if (dtype.is_variable() && !options.object_strings) return fixed_length_strings(source, io);
    return nullptr;
}

// ---- npz

/// A new archive with one array: both are finished together.
class NpzSink final : public ArraySink {
public:
    NpzSink(const ArrayPath& path, const DType& dtype, const Shape& shape, const ArrayFileOptions& options)
        : zip_(path.path, options.durable),
          array_(create_npy(zip_.add(path.member.value_or("arr_0") + ".npy", options.deflate_level), dtype, shape,
                            options.order)) {}
    ArrayInfo info() const override { return array_->info(); }
    const std::string& name() const override { return array_->name(); }
    void write(const Region& region, const ArrayView& in, const IoOptions& io) override {
        array_->write(region, in, io);
    }
    void finish() override {
        array_->finish();
        zip_.finish();
    }

private:
    ZipWriter zip_;
    std::unique_ptr<ArraySink> array_;
};

bool npz_recognise(ByteSpan first) {
    return starts_with(first, "PK\x03\x04") || starts_with(first, "PK\x05\x06");  // the second: no member at all
}

std::vector<std::string> npz_list(const std::filesystem::path& path) {
    return npz_members(ZipReader(path));
}

/// The member that a path names, or the only one that there is.
std::string chosen_member(const ArrayPath& path, const std::vector<std::string>& members) {
    if (path.member) return *path.member;
    if (members.size() == 1) return members[0];
    throw invalid_argument(members.empty()
                               ? fmt::format("{} holds no array", path.path.string())
                               : fmt::format("{} holds {} arrays; name one as {}::NAME, NAME being one of: {}",
                                             path.path.string(), members.size(), path.path.string(),
                                             fmt::join(members, ", ")));
}

std::unique_ptr<ArraySource> npz_open(const ArrayPath& path, const ArrayFileOptions&) {
    return open_npz_member(path.path,
                           chosen_member(path, path.member ? std::vector<std::string>{} : npz_list(path.path)));
}

std::unique_ptr<ArraySink> npz_create(const ArrayPath& path, const DType& dtype, const Shape& shape,
                                      const ArrayFileOptions& options) {
    require_wanted_strings(dtype, options);
    return std::make_unique<NpzSink>(path, dtype, shape, options);
}

/// All members, or the one that is named; a member that cannot be read says why.
Value npz_describe(const ArrayPath& path) {
    const ZipReader zip(path.path);
    Value members = Value::array();
    for (const ZipMember& m : zip.members()) {
        if (path.member && m.name != *path.member && m.name != *path.member + ".npy") continue;
        Value facts = Value::object();
        facts.set("name", m.name);
        facts.set("method", m.stored ? "stored" : "deflate");
        facts.set("size", m.size);
        facts.set("compressed_size", m.compressed_size);
        if (m.name.ends_with(".npy")) {
            try {
                facts.set("npy", npy_facts(*zip.open(m.name)));
            } catch (const Error& e) {
                facts.set("error", e.what());
            }
        }
        members.push_back(std::move(facts));
    }
    Value facts = Value::object();
    facts.set("format", "npz");
    facts.set("members", std::move(members));
    return facts;
}

// ---- ra

bool ra_recognise(ByteSpan first) {
    return starts_with(first, "rawarray");
}

std::unique_ptr<ArraySource> ra_open(const ArrayPath& path, const ArrayFileOptions& options) {
    require_no_member(path);
    return open_raw_array(open_file(path.path), {options.reverse_dims});
}

/// What stands behind the data of the file that is to be replaced, if that is a .ra: its user put it there.
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
            fmt::format("{}: {} bytes stand behind the data, more than the {} that are kept when it is "
                        "replaced; choose another name",
                        file->name(), size, most));
    }
    return read_raw_array_trailing(*file);
}

std::unique_ptr<ArraySink> ra_create(const ArrayPath& path, const DType& dtype, const Shape& shape,
                                     const ArrayFileOptions& options) {
    require_no_member(path);
    const Buffer trailing = ra_trailing(path.path);
    return create_raw_array(create_file(path.path, options.durable), dtype, shape, {options.reverse_dims}, trailing);
}

std::unique_ptr<ArraySource> no_conversion(const ArraySource&, const ArrayFileOptions&, const IoOptions&) {
    return nullptr;
}

Value ra_describe(const ArrayPath& path) {
    require_no_member(path);
    const RawArrayHeader h = read_raw_array_header(*open_file(path.path));
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

// ---- mldf

bool mldf_recognise(ByteSpan first) {
    return starts_with(first, "\x89MLDF");  // the rest of the magic shows damage, which the reader names
}

std::vector<std::string> mldf_list(const std::filesystem::path& path) {
    return MldfReader(open_file(path)).arrays();
}

std::unique_ptr<ArraySource> mldf_open(const ArrayPath& path, const ArrayFileOptions&) {
    const MldfReader reader(open_file(path.path));
    return reader.open(chosen_member(path, reader.arrays()));
}

std::unique_ptr<ArraySink> mldf_create(const ArrayPath& path, const DType& dtype, const Shape& shape,
                                       const ArrayFileOptions& options) {
    return create_mldf(path.path, path.member.value_or("data"), dtype, shape, {.durable = options.durable});
}

/// The header's facts, and what is wrong as far as it shows without reading the data.
Value mldf_describe(const ArrayPath& path) {
    Value facts = mldf_summary(MldfReader(open_file(path.path)));
    const MldfReport report = validate_mldf(path.path, {.payloads = false, .limit = 20});
    facts.set("format", "mldf");
    facts.set("problem_count", report.finding_count);
    facts.set("problems", Value::Array(report.findings.begin(), report.findings.end()));
    return facts;
}

constexpr std::array formats{
    ArrayFileFormat{"npy", ".npy", "NumPy array, versions 1.0 to 3.0", npy_recognise, no_members, npy_open, npy_create,
                    npy_convert, npy_describe},
    ArrayFileFormat{"npz", ".npz", "NumPy zip of named arrays, stored or deflated", npz_recognise, npz_list, npz_open,
                    npz_create, npy_convert, npz_describe},
    ArrayFileFormat{"ra", ".ra", "RawArray, all dialects read, plain ones written", ra_recognise, no_members, ra_open,
                    ra_create, no_conversion, ra_describe},
    ArrayFileFormat{"mldf", ".mldf", "MLDF data set, one array for each field", mldf_recognise, mldf_list, mldf_open,
                    mldf_create, no_conversion, mldf_describe},
};

const ArrayFileFormat* format_by_extension(const std::filesystem::path& path) {
    const std::string extension = path.extension().string();
    const auto f =
        std::find_if(formats.begin(), formats.end(), [&](const auto& row) { return row.extension == extension; });
    return f == formats.end() ? nullptr : &*f;
}

std::string known_extensions() {
    std::vector<std::string_view> names;
    for (const ArrayFileFormat& f : formats) names.push_back(f.extension);
    return fmt::format("{}", fmt::join(names, ", "));
}

/// For a file to be made.
const ArrayFileFormat& format_to_write(const std::filesystem::path& path) {
    if (const ArrayFileFormat* format = format_by_extension(path)) return *format;
    throw unsupported(
        fmt::format("{}: the name of an array file ends in one of {}", path.string(), known_extensions()));
}

}  // namespace

ArrayPath split_array_path(std::string_view text) {
    // A "::" may be part of a file's name: the longest part that exists is the file. Where nothing exists yet, the
    // first "::" ends the name.
    constexpr std::string_view mark = "::";
    const std::size_t first = text.find(mark);
    std::error_code ignored;
    if (first == std::string_view::npos || std::filesystem::exists(text, ignored)) return {text};
    for (std::size_t at = text.rfind(mark); at != std::string_view::npos && at > first; at = text.rfind(mark, at - 1)) {
        if (std::filesystem::exists(text.substr(0, at), ignored)) {
            return {text.substr(0, at), std::string(text.substr(at + mark.size()))};
        }
    }
    return {text.substr(0, first), std::string(text.substr(first + mark.size()))};
}

std::span<const ArrayFileFormat> array_file_formats() {
    return formats;
}

const ArrayFileFormat* find_array_file_format(const std::filesystem::path& path) {
    std::error_code ignored;
    if (!std::filesystem::exists(path, ignored)) return format_by_extension(path);
    if (std::filesystem::is_directory(path, ignored)) return nullptr;
    const auto file = open_file(path);
    const Buffer first = read_range(*file, 0, std::min<std::uint64_t>(file->size(), 16));
    const auto f = std::find_if(formats.begin(), formats.end(), [&](const auto& row) { return row.recognise(first); });
    return f == formats.end() ? nullptr : &*f;
}

std::unique_ptr<ArraySource> open_array_file(const ArrayPath& path, const ArrayFileOptions& options) {
    (void)open_file(path.path);  // what is wrong with the path itself, opening says best
    if (const ArrayFileFormat* format = find_array_file_format(path.path)) return format->open(path, options);
    if (const ArrayFileFormat* named = format_by_extension(path.path)) {
        throw corrupt(
            fmt::format("{} is named {} but does not begin as such a file does", path.path.string(), named->extension));
    }
    throw unsupported(fmt::format("{} is no array file that is known ({})", path.path.string(), known_extensions()));
}

std::unique_ptr<ArraySink> create_array_file(const ArrayPath& path, const DType& dtype, const Shape& shape,
                                             const ArrayFileOptions& options) {
    return format_to_write(path.path).create(path, dtype, shape, options);
}

std::unique_ptr<ArraySource> convert_for_array_file(const ArrayPath& path, const ArraySource& source,
                                                    const ArrayFileOptions& options, const IoOptions& io) {
    return format_to_write(path.path).convert(source, options, io);
}

}  // namespace tessera
