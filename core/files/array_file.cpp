#include <tessera/array_file.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <tessera/byte_io.h>
#include <tessera/derived_source.h>
#include <tessera/error_text.h>
#include <tessera/outside.h>

#include "hdf5_index.h"

namespace tessera {

// Each is defined at the end of its own file.
extern const ArrayFileFormat npy_format, npz_format, raw_array_format, mldf_format, netcdf_format, hdf5_format,
    safetensors_format, tiff_format, grib_format, csv_format, png_format;

std::span<const ArrayFileFormat> array_file_formats() {
    static const std::array table{npy_format,    npz_format,  raw_array_format,   mldf_format,
                                  netcdf_format, hdf5_format, safetensors_format, tiff_format,
                                  grib_format,   csv_format,  png_format};
    return table;
}

bool ArrayFileFormat::has_extension(std::string_view text) const {
    return text == extension || (!text.empty() && also.find(fmt::format("{} ", text)) != std::string_view::npos);
}

namespace {
std::atomic<bool> may_lead_outside = false;
std::atomic<bool> may_follow_links = false;
}  // namespace

void allow_outside(bool allow) {
    may_lead_outside = allow;
}

bool outside_allowed() {
    return may_lead_outside;
}

void allow_links(bool allow) {
    may_follow_links = allow;
}

bool links_allowed() {
    return may_follow_links;
}

bool ArrayPath::is_elsewhere() const {
    if (opened == nullptr) return false;
    std::error_code ignored;
    return path.native().find("://") != std::string::npos || !std::filesystem::exists(path, ignored);
}

std::vector<std::string> array_members(const ArrayFileFormat& format, const ArrayPath& path) {
    return format.members == nullptr ? std::vector<std::string>{} : format.members(path);
}

std::vector<ArrayFileMember> array_file_members(const ArrayFileFormat& format, const ArrayPath& path) {
    std::vector<ArrayFileMember> members;
    try {
        if (format.listed != nullptr) members = format.listed(path);
    } catch (const Error& e) {
        if (e.code() == ErrorCode::cancelled) throw;  // or one member is to blame, which is then found
    }
    if (members.empty()) {
        for (const std::string& name : array_members(format, path)) {
            ArrayFileMember& member = members.emplace_back(ArrayFileMember{.name = name, .info = {}, .error = {}});
            try {
                member.info = format.open({path.path, name, path.opened}, {})->info();
            } catch (const Error& e) {
                if (e.code() == ErrorCode::cancelled) throw;
                member.error = e;
            }
        }
    }
    std::unordered_set<std::string_view> later;
    for (auto member = members.rbegin(); member != members.rend(); ++member) {
        if (!later.insert(member->name).second) {
            member->error = corrupt("one of two members of this name; only the last can be read");
        }
    }
    return members;
}

namespace {

const ArrayFileFormat* format_by_extension(const std::filesystem::path& path) {
    const std::string extension = path.extension().string();
    const auto formats = array_file_formats();
    const auto f =
        std::ranges::find_if(formats, [&](const ArrayFileFormat& row) { return row.has_extension(extension); });
    return f == formats.end() ? nullptr : &*f;
}

std::string known_extensions(bool written = false) {
    std::vector<std::string_view> names;
    for (const ArrayFileFormat& f : array_file_formats()) {
        if (!written || f.is_written()) names.push_back(f.extension);
    }
    return fmt::format("{}", fmt::join(names, ", "));
}

/// The format for a file to be created.
const ArrayFileFormat& format_to_write(const std::filesystem::path& path) {
    const ArrayFileFormat* format = format_by_extension(path);
    if (format != nullptr && format->is_written()) return *format;
    if (format != nullptr) {
        throw unsupported("{}: {} files are only read; new array files end in one of {}", path.string(),
                          path.extension().string(), known_extensions(true));
    }
    throw unsupported("{}: the name of an array file ends in one of {}", path.string(), known_extensions(true));
}

}  // namespace

ArrayPath split_array_path(std::string_view text) {
    return split_array_path(text, [](const std::filesystem::path& path) {
        std::error_code ignored;
        return std::filesystem::exists(path, ignored);
    });
}

ArrayPath split_array_path(std::string_view text, const std::function<bool(const std::filesystem::path&)>& exists) {
    constexpr std::string_view mark = "::";
    // In "ocfl:ROOT::ID" the first one belongs to the place.
    constexpr std::string_view of_object = "ocfl:";
    const std::size_t inner = text.starts_with(of_object) ? text.find(mark) : std::string_view::npos;
    const std::size_t first = text.find(mark, inner == std::string_view::npos ? 0 : inner + mark.size());
    if (first == std::string_view::npos || exists(text)) return {text};
    for (std::size_t at = text.rfind(mark); at != std::string_view::npos && at > first; at = text.rfind(mark, at - 1)) {
        if (exists(text.substr(0, at))) {
            return {text.substr(0, at), std::string(text.substr(at + mark.size()))};
        }
    }
    return {text.substr(0, first), std::string(text.substr(first + mark.size()))};
}

const ArrayFileFormat* named_array_file_format(std::string_view path) {
    return format_by_extension(split_array_path(path).path);
}

void require_no_other_file(const std::string& path) {
    constexpr std::array others{".bin",     ".dat", ".hdf", ".jpg", ".json", ".mat", ".nrrd",
                                ".parquet", ".pkl", ".raw", ".tsv", ".txt",  ".xls", ".xlsx"};
    const std::filesystem::path place(path);
    std::string extension = place.extension().string();
    std::ranges::transform(extension, extension.begin(),
                           [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    if (std::ranges::count(others, extension) == 0 || std::filesystem::exists(place)) return;
    std::string known;
    for (const ArrayFileFormat& format : array_file_formats()) {
        if (format.is_written()) known += fmt::format("{}, ", format.extension);
    }
    throw invalid_argument(
        "{}: {} files are not written ({}.zip are); another name makes a directory with an array, and so does "
        "{}/",
        path, place.extension().string(), known, path);
}

const ArrayFileFormat* find_array_file_format(const std::filesystem::path& path) {
    std::error_code ignored;
    if (!std::filesystem::exists(path, ignored)) return format_by_extension(path);
    if (std::filesystem::is_directory(path, ignored)) return nullptr;
    return array_file_format_of(*open_file(path));
}

const ArrayFileFormat* array_file_format_of(const ByteSource& file) {
    const Buffer first = read_range(file, 0, std::min<std::uint64_t>(file.size(), 16));
    const auto formats = array_file_formats();
    const auto f = std::ranges::find_if(
        formats, [&](const auto& row) { return row.recognise != nullptr && row.recognise(first); });
    if (f != formats.end()) return &*f;
    const ArrayFileFormat* named = format_by_extension(file.name());
    if (named != nullptr && named->recognise == nullptr) return named;
    // A user block may stand before HDF5's first bytes.
    return find_hdf5(file).value_or(0) != 0 ? format_by_extension("x.h5") : nullptr;
}

namespace {

/// Removes the field of "file.npy::field" and "file.npz::member::field" from the path and returns it; nullopt for other
/// paths.
std::optional<std::string> take_field(const ArrayFileFormat& format, ArrayPath& path) {
    if (!path.member) return std::nullopt;
    if (format.members == nullptr) return std::exchange(path.member, std::nullopt);
    const std::string name = *path.member;
    const std::size_t last = name.rfind("::");
    if (last == std::string::npos) return std::nullopt;
    const std::vector<std::string> members = array_members(format, path);
    if (std::ranges::count(members, name) > 0) return std::nullopt;
    path.member = name.substr(0, last);
    return name.substr(last + 2);
}

}  // namespace

Error no_array_file(const std::filesystem::path& path) {
    if (const ArrayFileFormat* named = format_by_extension(path)) {
        return corrupt("{} is named {} but does not begin as such a file does", path.string(), named->extension);
    }
    if (path.native().find("://") != std::string::npos) {
        return unsupported(
            "{} is neither an array or group nor an array file that is known ({}); what lies below it, and its server "
            "does not list, has to be named",
            path.string(), known_extensions());
    }
    return unsupported("{} is no array file that is known ({})", path.string(), known_extensions());
}

std::unique_ptr<ArraySource> open_array_file(const ArrayPath& path, const ArrayFileOptions& options) {
    ArrayPath array = path;
    array.opened = path.bytes();
    if (const ArrayFileFormat* format = array_file_format_of(*array.opened)) {
        const std::optional<std::string> field = take_field(*format, array);
        std::unique_ptr<ArraySource> source = format->open(array, options);
        return field ? field_source(std::move(source), *field) : std::move(source);
    }
    throw no_array_file(path.path);
}

std::unique_ptr<ArraySink> create_array_file(const ArrayPath& path, const DType& dtype, const Shape& shape,
                                             const ArrayFileOptions& options) {
    return format_to_write(path.path).create(path, dtype, shape, options);
}

std::unique_ptr<ArraySource> convert_for_array_file(const ArrayPath& path, const ArraySource& source,
                                                    const ArrayFileOptions& options, const IoOptions& io) {
    const ArrayFileFormat& format = format_to_write(path.path);
    return format.convert == nullptr ? nullptr : format.convert(source, options, io);
}

}  // namespace tessera
