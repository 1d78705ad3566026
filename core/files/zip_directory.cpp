#include "zip_directory.h"

#include <tessera/buffer.h>
#include <tessera/error_text.h>
#include <tessera/little_endian.h>

#include <algorithm>
#include <array>
#include <utility>

namespace tessera {

namespace {

constexpr std::size_t end_size = 22, locator_size = 20, end64_size = 56, entry_size = 46, header_size = 30;
constexpr std::uint32_t elsewhere32 = 0xFFFFFFFF;  ///< the number is among the large ones

std::string_view text_of(ByteSpan bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

template <class T>
T number(ByteSpan bytes, std::size_t at) {
    return load_little<T>(bytes.data() + at);
}

/// The large numbers of ZIP64 among the additional fields of an entry or a header; empty if there are none.
ByteSpan large_numbers(ByteSpan fields) {
    while (fields.size() >= 4) {
        const std::size_t length = std::min<std::size_t>(number<std::uint16_t>(fields, 2), fields.size() - 4);
        if (number<std::uint16_t>(fields, 0) == 1) return fields.subspan(4, length);
        fields = fields.subspan(4 + length);
    }
    return {};
}

/// A number of 32 bits, or the next of the large ones if it did not fit.
std::uint64_t in_full(std::uint32_t small, ByteSpan& large) {
    if (small != elsewhere32 || large.size() < sizeof(std::uint64_t)) return small;
    const auto value = number<std::uint64_t>(large, 0);
    large = large.subspan(sizeof value);
    return value;
}

/// Reads short ranges, one after another, in larger pieces.
class Pieces {
public:
    Pieces(const ZipRead& read, std::uint64_t end) : read_(read), end_(end) {}
    /// Empty if they are not there.
    ByteSpan at(std::uint64_t offset, std::size_t size) {
        if (offset > end_ || size > end_ - offset) return {};
        if (offset < begin_ || offset + size > begin_ + piece_.size()) {
            piece_.resize(static_cast<std::size_t>(std::min<std::uint64_t>(std::max(size, least), end_ - offset)));
            begin_ = offset;
            if (!read_(piece_.span(), offset)) return {};
        }
        return std::as_const(piece_).span().subspan(static_cast<std::size_t>(offset - begin_), size);
    }

private:
    static constexpr std::size_t least = std::size_t{64} << 10U;
    const ZipRead& read_;
    std::uint64_t end_;
    Buffer piece_;
    std::uint64_t begin_ = 0;
};

}  // namespace

std::optional<ZipEnd> zip_end(std::uint64_t file_size, const ZipRead& read) {
    Buffer tail(static_cast<std::size_t>(std::min<std::uint64_t>(file_size, 0xFFFF + end_size + locator_size)));
    if (!read(tail.span(), file_size - tail.size())) return std::nullopt;
    const ByteSpan bytes = std::as_const(tail).span();
    const std::string_view text = text_of(bytes);
    // The last one whose comment ends with the file, because a comment may look like one.
    constexpr std::string_view mark = "PK\x05\x06";
    const std::size_t last = text.size() < end_size ? std::string_view::npos : text.rfind(mark, text.size() - end_size);
    std::size_t at = last;
    while (at != std::string_view::npos &&
           at + end_size + number<std::uint16_t>(bytes, at + end_size - 2) != text.size()) {
        at = at == 0 ? std::string_view::npos : text.rfind(mark, at - 1);
    }
    if (at == std::string_view::npos) at = last;  // something follows the archive
    if (at == std::string_view::npos) return std::nullopt;
    ZipEnd end{.members = number<std::uint16_t>(bytes, at + 10),
               .bytes = number<std::uint32_t>(bytes, at + 12),
               .offset = number<std::uint32_t>(bytes, at + 16)};
    if (at >= locator_size && text.substr(at - locator_size, 4) == "PK\x06\x07") {
        std::array<std::byte, end64_size> large{};
        if (!read(large, number<std::uint64_t>(bytes, at - locator_size + 8))) return std::nullopt;
        end = {.members = number<std::uint64_t>(large, 32),
               .bytes = number<std::uint64_t>(large, 40),
               .offset = number<std::uint64_t>(large, 48)};
    }
    if (end.bytes > file_size || end.offset > file_size - end.bytes || end.members > end.bytes) return std::nullopt;
    return end;
}

ZipDirectory::ZipDirectory(const std::string& archive, const ZipEnd& end, const ZipRead& read) {
    Pieces pieces(read, end.offset + end.bytes);
    offsets_.reserve(static_cast<std::size_t>(end.members));
    std::uint64_t at = end.offset;
    for (std::uint64_t i = 0; i < end.members; ++i) {
        const auto fail = [&] {
            return corrupt("{}: entry {} of its directory is not where it should be", archive, i);
        };
        const ByteSpan fixed = pieces.at(at, entry_size);
        if (fixed.empty() || text_of(fixed).substr(0, 4) != "PK\x01\x02") throw fail();
        const std::size_t name = number<std::uint16_t>(fixed, 28);
        const std::size_t fields = number<std::uint16_t>(fixed, 30);
        const std::size_t size = entry_size + name + fields + number<std::uint16_t>(fixed, 32);
        const ByteSpan entry = pieces.at(at, size);
        if (entry.empty()) throw fail();
        ByteSpan large = large_numbers(entry.subspan(entry_size + name, fields));
        for (const std::size_t before : {24, 20}) (void)in_full(number<std::uint32_t>(entry, before), large);
        offsets_.push_back(in_full(number<std::uint32_t>(entry, 42), large));
        at += size;
    }
    sorted_ = offsets_;
    sorted_.push_back(end.offset);
    std::ranges::sort(sorted_);
}

namespace {

/// Throws corrupt where a member's own header, up to its name, says something else than the directory. `large` are its
/// large numbers.
void require_same(ByteSpan header, ByteSpan large, const ZipEntry& entry, const std::string& name) {
    const auto compare = [&](std::string_view what, const auto& said, const auto& found) {
        if (found == said) return;
        throw corrupt("{}: the archive's directory gives it the {} {}, and the header of the member itself {}", name,
                      what, said, found);
    };
    // Values unknown to the header's writer are 0 there and stand behind the bytes.
    const bool later = (number<std::uint16_t>(header, 6) & 8U) != 0;
    const auto compare_known = [&](std::string_view what, std::uint64_t said, std::uint64_t found) {
        if (!later || (found != 0 && found != elsewhere32)) compare(what, said, found);
    };
    compare("method", entry.method, number<std::uint16_t>(header, 8));
    const auto size = number<std::uint32_t>(header, 22);
    if (large.size() >= 16 && size != elsewhere32) large = large.subspan(8);  // it has both
    compare_known("size", entry.size, in_full(size, large));
    compare_known("compressed size", entry.compressed, in_full(number<std::uint32_t>(header, 18), large));
    compare_known("CRC-32", entry.crc, number<std::uint32_t>(header, 14));
}

}  // namespace

std::uint64_t ZipDirectory::data_offset(std::size_t index, const ZipEntry& entry, const std::string& name,
                                        const ZipRead& read) const {
    const std::uint64_t at = offsets_[index];
    const auto after = std::ranges::upper_bound(sorted_, at);
    Buffer header(header_size);
    const ByteSpan bytes = std::as_const(header).span();
    if (after == sorted_.end() || !read(header.span(), at) || text_of(bytes).substr(0, 4) != "PK\x03\x04") {
        throw corrupt("{}: no header of a member is at byte {}, where the directory has it", name, at);
    }
    const std::size_t name_size = number<std::uint16_t>(bytes, 26);
    const std::uint64_t begin = at + header_size + name_size + number<std::uint16_t>(bytes, 28);
    if (begin > *after || entry.compressed > *after - begin) {
        throw corrupt("{}: its {} bytes from byte {} on reach into what begins at byte {}", name, entry.compressed,
                      begin, *after);
    }
    Buffer more(static_cast<std::size_t>(begin - at - header_size));
    if (!read(more.span(), at + header_size)) throw corrupt("{}: its header is cut off", name);
    const std::string_view found = text_of(std::as_const(more).span()).substr(0, name_size);
    if (found != entry.name) {
        throw corrupt("{}: the archive's directory gives it the name {}, and the header of the member itself {}", name,
                      entry.name, found);
    }
    require_same(bytes, large_numbers(std::as_const(more).span().subspan(name_size)), entry, name);
    return begin;
}

}  // namespace tessera
