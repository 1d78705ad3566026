#include "tiff_format.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <set>
#include <utility>

#include <fmt/format.h>

#include <tessera/error_text.h>
#include <tessera/parallel.h>

#include <tessera/unicode.h>
#include "array_file_row.h"
#include "tiff_text.h"

namespace tessera {

namespace {

constexpr std::size_t block_bytes = 4096;  // read at once for a directory
constexpr std::uint64_t most_text_bytes = 16 << 20;
constexpr std::uint64_t most_numbers = 1 << 20;
constexpr int deepest_directory = 8;

std::uint64_t tiff_type_size(std::uint16_t type) {
    constexpr std::array<std::uint8_t, 19> sizes{0, 1, 1, 2, 4, 8, 1, 1, 2, 4, 8, 4, 8, 4, 0, 0, 8, 8, 8};
    return type < sizes.size() ? sizes[type] : 0;
}

std::uint64_t load_number(const std::byte* p, std::size_t bytes, bool big_endian) {
    std::uint64_t n = 0;
    for (std::size_t i = 0; i < bytes; ++i) n = n << 8 | std::to_integer<unsigned>(p[big_endian ? i : bytes - 1 - i]);
    return n;
}

/// The bytes of an entry's values.
Buffer values_of(const ByteSource& file, const TiffEntry& entry, std::uint64_t most) {
    const std::uint64_t size = tiff_type_size(entry.type);
    if (size == 0) throw corrupt("a tag of the unknown type {}", entry.type);
    if (entry.count > file.size() / size || entry.offset > file.size() - entry.count * size) {
        throw corrupt("a tag's {} values of {} bytes at byte {} lie beyond the end of {} bytes", entry.count, size,
                      entry.offset, file.size());
    }
    if (entry.count > most) throw unsupported("a tag of {} values, of which at most {} are read", entry.count, most);
    return read_range(file, entry.offset, entry.count * size);
}

class TiffParser {
public:
    explicit TiffParser(const ByteSource& file) : file_(file) {}

    TiffFile parse() {
        const std::uint64_t first = header();
        std::set<std::uint64_t> seen;
        std::uint64_t at = first;
        while (at != 0) {
            if (!seen.insert(at).second) throw corrupt("its directory at byte {} follows itself", at);
            at = directory(at, 0);
            main_.push_back(last_);
        }
        if (main_.empty()) throw corrupt("it has no directory");
        collect();
        return std::move(tiff_);
    }

private:
    using Entries = std::map<TiffTag, TiffEntry>;

    std::uint64_t number(std::uint64_t offset, std::size_t bytes) {
        const std::byte* const p = at(offset, bytes);
        return load_number(p, bytes, tiff_.big_endian);
    }

    /// Bytes of the file, from a block that is kept.
    const std::byte* at(std::uint64_t offset, std::size_t bytes) {
        if (offset > file_.size() || bytes > file_.size() - offset) {
            throw corrupt("a directory lies at byte {}, beyond the end of {} bytes", offset, file_.size());
        }
        if (offset < block_start_ || offset + bytes > block_start_ + block_.size()) {
            block_ =
                read_range(file_, offset, std::min<std::uint64_t>(std::max(bytes, block_bytes), file_.size() - offset));
            block_start_ = offset;
        }
        return block_.data() + (offset - block_start_);
    }

    std::uint64_t header() {
        const std::byte* const mark = at(0, 8);
        tiff_.big_endian = mark[0] == std::byte{'M'};
        const std::uint64_t version = number(2, 2);
        if (version == 42) return number(4, 4);
        tiff_.is_big = true;
        if (version != 43 || number(4, 2) != 8 || number(6, 2) != 0) throw corrupt("its version is {}", version);
        return number(8, 8);
    }

    /// The entries of a directory from `place` on, which moves behind them.
    Entries read_entries(std::uint64_t& place, std::uint64_t count) {
        const std::size_t word = tiff_.is_big ? 8 : 4;
        Entries entries;
        for (std::uint64_t i = 0; i < count; ++i, place += word) {
            const auto tag = static_cast<TiffTag>(number(place, 2));
            TiffEntry entry{.type = static_cast<std::uint16_t>(number(place + 2, 2)), .count = number(place + 4, word)};
            const std::uint64_t size = tiff_type_size(entry.type);
            place += 4 + word;
            const bool inside = entry.count <= word && entry.count * size <= word;
            entry.offset = inside ? place : number(place, word);
            entries.emplace(tag, entry);  // the first of two wins
        }
        return entries;
    }

    /// Adds the smaller pages that a page names.
    void sub_directories(const Entries& entries, TiffPage& page, int depth) {
        const TiffEntry* const sub = find(entries, TiffTag::sub_directories);
        if (sub == nullptr) return;
        constexpr std::uint64_t most = 256;
        const Buffer bytes = values_of(file_, *sub, most);
        const std::size_t size = tiff_type_size(sub->type);
        for (std::uint64_t i = 0; i < sub->count; ++i) {
            (void)directory(load_number(bytes.data() + i * size, size, tiff_.big_endian), depth + 1);
            page.smaller.push_back(last_);
        }
    }

    /// Adds a page; returns where the next directory is.
    std::uint64_t directory(std::uint64_t offset, int depth) {
        require_not_stopped();
        const std::size_t word = tiff_.is_big ? 8 : 4;
        const std::size_t entry_bytes = tiff_.is_big ? 20 : 12;
        const std::size_t count_bytes = tiff_.is_big ? 8 : 2;
        const std::uint64_t count = number(offset, count_bytes);
        entries_ += count + 1;
        // Directories that do not overlap cannot have more.
        if (count == 0 || count > UINT16_MAX || entries_ > file_.size() / entry_bytes + 1) {
            throw corrupt("its directory at byte {} is said to have {} entries", offset, count);
        }
        std::uint64_t place = offset + count_bytes;
        const Entries entries = read_entries(place, count);
        const std::uint64_t next = number(place, word);
        constexpr std::uint64_t page_memory = sizeof(TiffPage) + 200;
        tiff_.held.add(page_memory);
        const std::size_t n = tiff_.pages.size();
        tiff_.pages.emplace_back();
        if (n == 0) tiff_.tags = entries;
        TiffPage page{.directory = offset};
        try {
            page_of(entries, page);
        } catch (const Error& e) {
            if (e.code() == ErrorCode::budget || e.code() == ErrorCode::cancelled) throw;
            page.error = e;
        }
        if (depth < deepest_directory) sub_directories(entries, page, depth);
        tiff_.pages[n] = std::move(page);
        last_ = n;
        return next;
    }

    static const TiffEntry* find(const Entries& entries, TiffTag tag) {
        const auto found = entries.find(tag);
        return found == entries.end() ? nullptr : &found->second;
    }

    /// The only value of a tag, or the value of all samples.
    std::uint64_t value(const Entries& entries, TiffTag tag, std::uint64_t otherwise) {
        const TiffEntry* const entry = find(entries, tag);
        if (entry == nullptr || entry->count == 0) return otherwise;
        const std::size_t size = tiff_type_size(entry->type);
        if (size == 0) throw corrupt("its tag {} has the unknown type {}", static_cast<int>(tag), entry->type);
        const std::uint64_t first = number(entry->offset, size);
        const bool of_samples = tag == TiffTag::bits || tag == TiffTag::sample_format;
        if (!of_samples || entry->count == 1) return first;
        constexpr std::uint64_t most = UINT16_MAX;
        const Buffer all = values_of(file_, *entry, most);
        for (std::uint64_t i = 1; i < entry->count; ++i) {
            if (load_number(all.data() + i * size, size, tiff_.big_endian) == first) continue;
            throw unsupported("samples of different types in one image");
        }
        return first;
    }

    std::int64_t length(const Entries& entries, TiffTag tag, std::uint64_t otherwise) {
        const std::uint64_t n = value(entries, tag, otherwise);
        if (n == 0 || n > INT32_MAX) throw corrupt("its tag {} says {}", static_cast<int>(tag), n);
        return static_cast<std::int64_t>(n);
    }

    void page_of(const Entries& entries, TiffPage& page) {
        page.subfile = static_cast<std::uint32_t>(value(entries, TiffTag::subfile, 0));
        page.width = length(entries, TiffTag::width, 0);
        page.height = length(entries, TiffTag::height, 0);
        page.samples = length(entries, TiffTag::samples, 1);
        page.bits = static_cast<int>(length(entries, TiffTag::bits, 1));
        page.compression = static_cast<int>(length(entries, TiffTag::compression, 1));
        page.photometric = static_cast<int>(value(entries, TiffTag::photometric, 0));
        page.predictor = static_cast<int>(value(entries, TiffTag::predictor, 1));
        const std::uint64_t planar = value(entries, TiffTag::planar, 1);
        if (planar != 1 && planar != 2) {
            throw unsupported("its tag 284 (PlanarConfiguration) says {}, where 1 and 2 are known", planar);
        }
        page.planar = planar == 2 && page.samples > 1;
        page.reversed = value(entries, TiffTag::fill_order, 1) == 2;
        const TiffEntry* const tiles = find(entries, TiffTag::tile_offsets);
        page.tiled = tiles != nullptr;
        page.chunk_width = page.tiled ? length(entries, TiffTag::tile_width, 0) : page.width;
        page.chunk_height =
            page.tiled
                ? length(entries, TiffTag::tile_height, 0)
                : static_cast<std::int64_t>(std::clamp<std::uint64_t>(
                      value(entries, TiffTag::rows_per_strip, UINT32_MAX), 1, static_cast<std::uint64_t>(page.height)));
        const TiffEntry* const offsets = page.tiled ? tiles : find(entries, TiffTag::strip_offsets);
        const TiffEntry* const sizes = find(entries, page.tiled ? TiffTag::tile_sizes : TiffTag::strip_sizes);
        if (offsets == nullptr || sizes == nullptr) throw corrupt("it does not say where its elements lie");
        page.offsets = *offsets;
        page.sizes = *sizes;
        page.dtype = dtype(page, static_cast<int>(value(entries, TiffTag::sample_format, 1)));
        if (page.photometric == tiff_ycbcr && page.compression == static_cast<int>(TiffCompression::none)) {
            throw unsupported("YCbCr that is not compressed by JPEG");
        }
        (void)checked_multiply(page.row_bytes(), page.chunk_height, "the size of a tile");
        (void)checked_multiply(checked_multiply(page.width, page.height, "the size"), page.samples * 16, "the size");
        const auto wanted = static_cast<std::uint64_t>(page.chunk_count());
        if (page.offsets.count < wanted || page.sizes.count < wanted) {
            throw corrupt("it places {} of its {} {}", std::min(page.offsets.count, page.sizes.count), wanted,
                          page.tiled ? "tiles" : "strips");
        }
    }

    [[nodiscard]] DType dtype(const TiffPage& page, int format) const {
        const ByteOrder order = tiff_.big_endian ? ByteOrder::big : ByteOrder::little;
        const int bits = page.bits;
        constexpr int is_unsigned = 1, is_signed = 2, is_real = 3, untyped = 4, complex_integers = 5, complex_reals = 6;
        const bool whole = bits == 8 || bits == 16 || bits == 32 || bits == 64;
        const std::int64_t size = bits / 8;
        const auto scalar = [&](Kind kind) { return DType::scalar(kind, size, size == 1 ? ByteOrder::none : order); };
        if (format == complex_reals && (bits == 64 || bits == 128)) return scalar(Kind::complex);
        if (format == is_real && whole && bits > 8) return scalar(Kind::real);
        if (format == is_signed && whole) return scalar(Kind::integer);
        if ((format == is_unsigned || format == untyped) && whole) return scalar(Kind::unsigned_integer);
        if (format == is_unsigned || format == untyped) {
            if (bits == 1) return DType::scalar(Kind::boolean, 1);
            if (bits < 8) return DType::scalar(Kind::unsigned_integer, 1);
            if (bits < 16) return DType::scalar(Kind::unsigned_integer, 2, order);
        }
        if (format == complex_integers) throw unsupported("complex integers");
        throw unsupported("elements of {} bits in sample format {}", bits, format);
    }

    /// ImageJ gives a stack beyond 4 GiB one directory: the other images follow the first.
    void add_imagej_pages() {
        const TiffEntry* const text = find(tiff_.tags, TiffTag::description);
        const TiffPage first = tiff_.pages[main_[0]];
        if (main_.size() != 1 || text == nullptr || text->count > most_text_bytes || first.error || first.tiled ||
            first.planar || first.compression != static_cast<int>(TiffCompression::none)) {
            return;
        }
        const auto bytes = static_cast<std::uint64_t>(checked_multiply(first.row_bytes(), first.height, "a page"));
        const std::int64_t images = imagej_images(tiff_text(file_, *text));
        const TiffPlaces places = tiff_places(file_, tiff_, first);
        std::uint64_t end = places.offsets[0];
        for (std::size_t i = 0; std::cmp_less(i, first.chunk_count()); end += places.sizes[i++]) {
            if (places.offsets[i] != end) return;  // the strips do not follow each other
        }
        const std::uint64_t behind = end > file_.size() ? 0 : (file_.size() - end) / bytes;
        if (images < 2 || end != places.offsets[0] + bytes || std::cmp_less(behind, images - 1)) return;
        constexpr std::uint64_t page_memory = sizeof(TiffPage) + 200;
        tiff_.held.add(page_memory * static_cast<std::uint64_t>(images));
        for (std::int64_t n = 1; n < images; ++n) {
            TiffPage page = first;
            page.moved = bytes * static_cast<std::uint64_t>(n);
            main_.push_back(tiff_.pages.size());
            tiff_.pages.push_back(std::move(page));
        }
    }

    /// The images, the whole ones first.
    void collect() {
        add_imagej_pages();
        std::vector<std::vector<std::size_t>> whole, reduced, masks;
        const auto add = [&](std::vector<std::vector<std::size_t>>& lists, std::size_t n) {
            const auto same = std::ranges::find_if(
                lists, [&](const auto& list) { return tiff_.pages[list[0]].same_layout(tiff_.pages[n]); });
            same == lists.end() ? lists.push_back({n}) : same->push_back(n);
        };
        for (const std::size_t n : main_) {
            const TiffPage& page = tiff_.pages[n];
            if ((page.subfile & 5U) == 5) continue;  // the mask of an overview
            add((page.subfile & 4U) != 0 ? masks : (page.subfile & 1U) != 0 ? reduced : whole, n);
            for (const std::size_t small : page.smaller) add(reduced, small);
        }
        if (whole.empty()) std::swap(whole, reduced);
        std::ranges::stable_sort(reduced, std::greater(), [&](const auto& list) {
            return tiff_.pages[list[0]].width * tiff_.pages[list[0]].height;
        });
        for (std::size_t i = 0; i < whole.size(); ++i) {
            add_image(whole.size() == 1 ? "image" : fmt::format("series/{}", i + 1), std::move(whole[i]), i == 0);
        }
        for (std::size_t i = 0; i < reduced.size(); ++i) {
            add_image(fmt::format("overview/{}", i + 1), std::move(reduced[i]), false);
        }
        for (std::size_t i = 0; i < masks.size(); ++i) {
            add_image(i == 0 ? "mask" : fmt::format("mask/{}", i + 1), std::move(masks[i]), false);
        }
    }

    /// Those of the pages of an image: as its description says, or as the first image has them.
    TiffAxes axes_of_pages(const TiffPage& page, std::int64_t count, bool is_first) {
        TiffAxes axes;
        if (is_first) {
            const TiffEntry* const text = find(tiff_.tags, TiffTag::description);
            if (text != nullptr && text->count <= most_text_bytes) {
                axes = tiff_axes(tiff_text(file_, *text), count, page.height, page.width);
            }
        } else if (!tiff_.images.empty() && std::cmp_equal(tiff_.images[0].pages.size(), count)) {
            const TiffImage& first = tiff_.images[0];
            for (int d = 0; d < first.shape.rank() - 2 - (tiff_.pages[first.pages[0]].samples > 1 ? 1 : 0); ++d) {
                axes.lengths.push_back(first.shape[d]);
                axes.names.push_back(first.dimensions[static_cast<std::size_t>(d)]);
            }
        }
        std::int64_t product = 1;
        for (const std::int64_t n : axes.lengths) product *= n;
        if (!axes.lengths.empty() && product == count) return axes;
        return count > 1 ? TiffAxes{.lengths = {count}, .names = {"page"}, .pages = {}} : TiffAxes();
    }

    void add_image(std::string name, std::vector<std::size_t> numbers, bool is_first) {
        const TiffPage& page = tiff_.pages[numbers[0]];
        TiffImage image{.name = std::move(name)};
        const auto count = std::ssize(numbers);
        const TiffAxes axes = axes_of_pages(page, count, is_first);
        for (std::size_t i = 0; i < axes.lengths.size(); ++i) {
            image.shape.push_back(axes.lengths[i]);
            image.chunks.push_back(1);
            image.dimensions.push_back(axes.names[i]);
        }
        const auto dimension = [&](std::string_view called, std::int64_t length, std::int64_t chunk) {
            image.shape.push_back(length);
            image.chunks.push_back(std::clamp<std::int64_t>(chunk, 1, std::max<std::int64_t>(length, 1)));
            image.dimensions.emplace_back(called);
        };
        if (page.planar) dimension("band", page.samples, 1);
        dimension("y", page.height, page.chunk_height);
        dimension("x", page.width, page.chunk_width);
        if (!page.planar && page.samples > 1) dimension("band", page.samples, page.samples);
        for (std::size_t i = 0; i < numbers.size(); ++i) {
            image.pages.push_back(axes.pages.empty() ? numbers[i] : numbers[axes.pages[i]]);
        }
        tiff_.images.push_back(std::move(image));
    }

    const ByteSource& file_;
    TiffFile tiff_;
    Buffer block_;
    std::uint64_t block_start_ = 0, entries_ = 0;
    std::size_t last_ = 0;           ///< the page that directory() added
    std::vector<std::size_t> main_;  ///< the pages that are not named by SubIFDs
};

}  // namespace

std::int64_t TiffPage::rows_of(std::int64_t row) const {
    return tiled ? chunk_height : std::min(chunk_height, height - row * chunk_height);
}

std::int64_t TiffPage::row_bytes() const {
    const std::int64_t per_pixel = (planar ? 1 : samples) * bits;
    return ceil_div(checked_multiply(chunk_width, per_pixel, "the size of a row"), std::int64_t{8});
}

bool TiffPage::same_layout(const TiffPage& o) const {
    return width == o.width && height == o.height && samples == o.samples && planar == o.planar && bits == o.bits &&
           dtype == o.dtype && chunk_width == o.chunk_width && chunk_height == o.chunk_height &&
           error.has_value() == o.error.has_value();
}

TiffFile read_tiff(const ByteSource& file) {
    return in_context([&] { return file.name(); }, [&] { return TiffParser(file).parse(); });
}

std::vector<std::uint64_t> tiff_integers(const ByteSource& file, const TiffFile& tiff, const TiffEntry& entry) {
    const Buffer bytes = values_of(file, entry, UINT64_MAX);
    const std::size_t size = tiff_type_size(entry.type);
    std::vector<std::uint64_t> numbers(entry.count);
    for (std::size_t i = 0; i < numbers.size(); ++i) {
        numbers[i] = load_number(bytes.data() + i * size, size, tiff.big_endian);
    }
    return numbers;
}

TiffPlaces tiff_places(const ByteSource& file, const TiffFile& tiff, const TiffPage& page) {
    TiffPlaces places;
    places.held.add(16 * static_cast<std::uint64_t>(page.chunk_count()));
    places.offsets = tiff_integers(file, tiff, page.offsets);
    places.sizes = tiff_integers(file, tiff, page.sizes);
    std::uint64_t& first = places.offsets[0];
    for (std::size_t i = 0; page.moved != 0 && i < places.offsets.size(); ++i) places.offsets[i] += page.moved;
    // As libtiff reads a single strip of which the size was never written.
    if (page.tiled || page.chunk_count() != 1 || places.sizes[0] != 0 || first == 0 || first >= file.size()) {
        return places;
    }
    const std::uint64_t left = file.size() - first;
    const bool plain = page.compression == static_cast<int>(TiffCompression::none);
    const std::int64_t bytes = checked_multiply(page.row_bytes(), page.height, "the size of a strip");
    places.sizes[0] = plain ? std::min(left, static_cast<std::uint64_t>(bytes)) : left;
    return places;
}

std::vector<double> tiff_doubles(const ByteSource& file, const TiffFile& tiff, const TiffEntry& entry) {
    const Buffer bytes = values_of(file, entry, most_numbers);
    const std::size_t size = tiff_type_size(entry.type);
    std::vector<double> numbers;
    for (std::uint64_t i = 0; i < entry.count; ++i) {
        const std::byte* const p = bytes.data() + i * size;
        const std::uint64_t n = load_number(p, size, tiff.big_endian);
        switch (entry.type) {
            case 5: {
                const auto above = static_cast<double>(load_number(p, 4, tiff.big_endian));
                numbers.push_back(above / static_cast<double>(load_number(p + 4, 4, tiff.big_endian)));
                break;
            }
            case 11:
                numbers.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(n)));
                break;
            case 12:
                numbers.push_back(std::bit_cast<double>(n));
                break;
            default:
                numbers.push_back(static_cast<double>(n));
        }
    }
    return numbers;
}

std::string tiff_text(const ByteSource& file, const TiffEntry& entry) {
    const Buffer bytes = values_of(file, entry, most_text_bytes);
    std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    while (text.ends_with('\0')) text.pop_back();
    return count_utf8(text) ? text : latin1_to_utf8(text);
}

}  // namespace tessera
