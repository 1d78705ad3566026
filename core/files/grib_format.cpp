#include "grib_format.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include <tessera/error_text.h>

namespace tessera {

namespace {

constexpr std::string_view grib_begin = "GRIB", grib_end = "7777";
constexpr std::size_t last_section = 7, indicator_size = 16;

std::uint64_t number_of(ByteSpan bytes, std::size_t at, std::size_t size) {
    std::uint64_t n = 0;
    for (std::size_t i = 0; i < size; ++i) n = n << 8U | static_cast<std::uint64_t>(bytes[at + i]);
    return n;
}

void put_number(MutableByteSpan bytes, std::size_t at, std::size_t size, std::uint64_t n) {
    for (std::size_t i = size; i-- > 0; n >>= 8U) bytes[at + i] = static_cast<std::byte>(n & 0xFFU);
}

bool is_text(ByteSpan bytes, std::string_view text) {
    return bytes.size() >= text.size() && std::memcmp(bytes.data(), text.data(), text.size()) == 0;
}

/// Bytes of a file, read in pieces that are worth a call.
class GribWindow {
public:
    explicit GribWindow(const ByteSource& file)
        : file_(file), piece_(std::clamp<std::uint64_t>(file.worth_skipping(), 4096, 1U << 20U)) {}

    [[nodiscard]] std::uint64_t size() const { return file_.size(); }
    /// Until the next call. Throws corrupt if they lie beyond the end.
    ByteSpan at(std::uint64_t offset, std::uint64_t length) {
        require_range(file_, offset, length);
        if (offset < begin_ || offset + length > begin_ + bytes_.size()) {
            const std::uint64_t wanted = std::max(length, std::min(piece_, file_.size() - offset));
            bytes_ = read_range(file_, offset, wanted);
            begin_ = offset;
        }
        return ByteSpan(bytes_).subspan(static_cast<std::size_t>(offset - begin_), static_cast<std::size_t>(length));
    }
    /// Where "GRIB" stands next; nullopt: nowhere.
    std::optional<std::uint64_t> find_message(std::uint64_t offset) {
        if (offset + grib_begin.size() <= size() && is_text(at(offset, grib_begin.size()), grib_begin)) return offset;
        while (offset + grib_begin.size() <= size()) {
            const ByteSpan bytes = at(offset, std::min(piece_, size() - offset));
            const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
            const std::size_t found = text.find(grib_begin);
            if (found != std::string_view::npos) return offset + found;
            offset += bytes.size() - (grib_begin.size() - 1);
        }
        return std::nullopt;
    }

private:
    const ByteSource& file_;
    std::uint64_t piece_;
    std::uint64_t begin_ = 0;
    Buffer bytes_;
};

/// Sections of GRIB 1 begin with three bytes of their length.
struct GribSections1 {
    std::uint64_t grid = 0, grid_size = 0;  ///< where it begins in the message; 0: there is none
    std::uint64_t data_size = 0;
};

GribSections1 sections_of_1(GribWindow& file, std::uint64_t begin) {
    constexpr std::uint64_t has_grid = 0x80, has_bitmap = 0x40;
    GribSections1 s;
    std::uint64_t at = 8;
    const auto length = [&] { return number_of(file.at(begin + at, 3), 0, 3); };
    const std::uint64_t flags = number_of(file.at(begin + at + 7, 1), 0, 1);
    at += length();
    if ((flags & has_grid) != 0) {
        s.grid = at;
        s.grid_size = length();
        at += s.grid_size;
    }
    if ((flags & has_bitmap) != 0) at += length();
    s.data_size = length();
    return s;
}

std::uint64_t length_of_1(GribWindow& file, std::uint64_t begin) {
    constexpr std::uint64_t large = 0x800000, unit = 120;
    const std::uint64_t length = number_of(file.at(begin + 4, 3), 0, 3);
    if ((length & large) == 0) return length;
    // ECMWF's way to say more than 8 MiB: the length is in units, and section 4 says what is too much.
    const std::uint64_t rest = sections_of_1(file, begin).data_size;
    return rest < unit ? (length & (large - 1)) * unit - rest + 4 : length;
}

/// The fields of one message of GRIB 2.
class GribSections2 {
public:
    GribSections2(GribWindow& file, GribField message) : file_(file), message_(std::move(message)) {}

    void visit(std::uint64_t end, const std::function<void(GribField)>& each) {
        const std::uint64_t begin = message_.parts.front().begin;
        at_[0] = {begin, begin + indicator_size};
        bool whole = false;
        for (std::uint64_t at = at_[0].end; at + grib_end.size() < end;) {
            const ByteSpan head = file_.at(at, 5);
            const std::uint64_t size = number_of(head, 0, 4), number = number_of(head, 4, 1);
            if (number < 1 || number > last_section || size < 5 || size > end - grib_end.size() - at) {
                throw corrupt("its section {} at byte {} has {} bytes", number, at, size);
            }
            at_[number] = {at, at + size};
            if (number == 6) resolve_bitmap(at, size);
            whole = number == last_section;
            if (whole) each(field());
            at += size;
        }
        if (!whole) throw corrupt("it ends before its values");
    }

private:
    /// A bitmap may be said to be that of an earlier field.
    void resolve_bitmap(std::uint64_t at, std::uint64_t size) {
        constexpr std::uint64_t given = 0, earlier = 254;
        if (size < 6) throw corrupt("its section 6 has {} bytes", size);
        const std::uint64_t indicator = number_of(file_.at(at + 5, 1), 0, 1);
        if (indicator == given) bitmap_ = at_[6];
        if (indicator != earlier) return;
        if (bitmap_.end == 0) throw corrupt("it has the bitmap of an earlier field, and there is none");
        at_[6] = bitmap_;
    }

    GribField field() {
        GribField field = message_;
        field.parts.clear();
        for (std::size_t i = 0; i <= last_section; ++i) {
            if (at_[i].end == 0 && i != 2) throw corrupt("it has no section {}", i);
            if (at_[i].end != 0) field.parts.push_back(at_[i]);
        }
        return field;
    }

    GribWindow& file_;
    GribField message_;
    std::array<ByteSource::Extent, last_section + 1> at_{};
    ByteSource::Extent bitmap_;
};

std::uint64_t length_of(const ByteSource::Extent& part) {
    return part.end - part.begin;
}

/// Reads one message; returns its end.
std::uint64_t visit_message(GribWindow& file, std::int64_t number, std::uint64_t begin,
                            const std::function<void(GribField)>& each) {
    GribField message{.message = number, .edition = 0, .parts = {{begin, begin}}};
    try {
        message.edition = static_cast<int>(number_of(file.at(begin + 7, 1), 0, 1));
        if (message.edition != 1 && message.edition != 2) {
            throw unsupported("edition {} of GRIB; 1 and 2 can be read", message.edition);
        }
        const std::uint64_t length =
            message.edition == 1 ? length_of_1(file, begin) : number_of(file.at(begin + 8, 8), 0, 8);
        constexpr std::uint64_t least = 8 + 8 + grib_end.size();
        if (length < least || length > file.size() - begin) {
            throw corrupt("it says that it has {} bytes, where the file has {} more", length, file.size() - begin);
        }
        const std::uint64_t end = begin + length;
        if (message.edition == 2) GribSections2(file, message).visit(end, each);
        if (!is_text(file.at(end - grib_end.size(), grib_end.size()), grib_end)) {
            throw corrupt("it does not end as it says: '{}' is expected after {} bytes", grib_end, length);
        }
        if (message.edition == 1) {
            message.parts.front().end = end;
            each(message);
        }
        return end;
    } catch (const Error& e) {
        throw e.within(message.what());
    }
}

/// The bytes of some parts, one after another.
void read_parts(const ByteSource& file, const std::vector<ByteSource::Extent>& parts, MutableByteSpan out) {
    for (std::size_t i = 0; i < parts.size();) {
        ByteSource::Extent run = parts[i];
        for (++i; i < parts.size() && parts[i].begin == run.end; ++i) run.end = parts[i].end;
        const auto size = static_cast<std::size_t>(length_of(run));
        file.read(run.begin, out.first(size));
        out = out.subspan(size);
    }
}

/// Sections of GRIB 2 as a message.
void read_message_2(const ByteSource& file, const std::vector<ByteSource::Extent>& parts, std::string_view rest,
                    MutableByteSpan out) {
    read_parts(file, parts, out.first(out.size() - rest.size()));
    std::memcpy(out.data() + (out.size() - rest.size()), rest.data(), rest.size());
    put_number(out, 8, 8, out.size());
}

Buffer header_of_2(const ByteSource& file, const GribField& field) {
    using namespace std::string_view_literals;
    constexpr std::string_view no_values =
        "\0\0\0\6\6\xff\0\0\0\5\7"
        "7777"sv;
    constexpr std::uint64_t most = 64 << 20;
    const std::vector<ByteSource::Extent> parts(field.parts.begin(), field.parts.end() - 2);
    std::uint64_t size = no_values.size();
    for (const ByteSource::Extent& part : parts) size += length_of(part);
    if (size > most) throw unsupported("{}: {} bytes before its values", field.what(), size);
    Buffer message(static_cast<std::size_t>(size));
    read_message_2(file, parts, no_values, message.span());
    return message;
}

}  // namespace

std::uint64_t GribField::size() const {
    std::uint64_t size = edition == 1 ? 0 : grib_end.size();
    for (const ByteSource::Extent& part : parts) size += length_of(part);
    return size;
}

std::string GribField::what() const {
    return fmt::format("message {} (at byte {})", message, offset());
}

std::string grib_grid(const ByteSource& file, const GribField& field) {
    ByteSource::Extent grid;
    if (field.edition == 2) {
        grid = field.parts[field.parts.size() - 5];
    } else {
        GribWindow window(file);
        const GribSections1 s = sections_of_1(window, field.offset());
        grid = {field.offset() + s.grid, field.offset() + s.grid + s.grid_size};
    }
    constexpr std::uint64_t most = 16 << 20;
    if (length_of(grid) > most) throw unsupported("{}: a grid of {} bytes", field.what(), length_of(grid));
    const Buffer bytes = read_range(file, grid.begin, length_of(grid));
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void grib_message(const ByteSource& file, const GribField& field, MutableByteSpan out) {
    field.edition == 1 ? read_parts(file, field.parts, out) : read_message_2(file, field.parts, grib_end, out);
}

Buffer grib_header(const ByteSource& file, const GribField& field) {
    try {
        // ecCodes counts the points of some grids of GRIB 1 by the length of the values.
        return field.edition == 1 ? read_range(file, field.offset(), field.size()) : header_of_2(file, field);
    } catch (const Error& e) {
        throw e.within(field.what());
    }
}

void visit_grib(const ByteSource& file, const std::function<void(GribField)>& each) {
    GribWindow window(file);
    std::int64_t number = 0;
    for (std::uint64_t at = 0;;) {
        const auto begin = window.find_message(at);
        if (!begin) return;
        at = visit_message(window, ++number, *begin, each);
    }
}

}  // namespace tessera
