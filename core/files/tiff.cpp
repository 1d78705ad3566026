// TIFF, BigTIFF, GeoTIFF, COG and OME-TIFF as a format of array files.
#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

#include <fmt/format.h>

#include <tessera/chunk_grid.h>
#include <tessera/copy_elements.h>
#include <tessera/element.h>
#include <tessera/error_text.h>

#include "array_file_row.h"
#include "convert_source.h"
#include "plain_array.h"
#include "tiff_decoder.h"
#include "tiff_format.h"
#include "tiff_tags.h"
#include "tiff_writer.h"

namespace tessera {

namespace {

bool tiff_recognise(ByteSpan first) {
    using namespace std::string_view_literals;
    return starts_with(first, "II*\0"sv) || starts_with(first, "MM\0*"sv) || starts_with(first, "II+\0"sv) ||
           starts_with(first, "MM\0+"sv);
}

class TiffSource final : public ArraySource {
public:
    TiffSource(std::shared_ptr<const ByteSource> file, TiffFile tiff, std::size_t image)
        : file_(std::move(file)),
          tiff_(std::move(tiff)),
          image_(tiff_.images[image]),
          first_(tiff_.pages[image_.pages[0]]),
          name_(image_.name == "image" ? file_->name() : fmt::format("{}::{}", file_->name(), image_.name)),
          decoder_(file_) {
        in_context([&] { return name_; }, [&] { prepare(); });
    }

    ArrayInfo info() const override { return info_; }
    const std::string& name() const override { return name_; }
    Value attribute_values() const override { return attributes_; }

    void read_into(const Region& region, const MutableArrayView& out, const IoOptions& io) const override {
        require_inside(region, info_.shape);
        if (region.empty()) return;
        const Region touched = grid_.overlapping(region);
        in_context([&] { return name_; },
                   [&] {
                       parallel_in_memory(touched.count(), io, [&](std::int64_t n) {
                           const ChunkPart part = chunk_part(grid_, region, touched, n);
                           in_context([&] { return "chunk " + part.chunk.to_string(); },
                                      [&] { read_chunk(part, out.part(part.in_request)); });
                       });
                   });
    }

    [[nodiscard]] Value facts() const {
        Value facts = Value::object();
        facts.set("byte_order", tiff_.big_endian ? "big" : "little");
        facts.set("big", tiff_.is_big);
        facts.set("pages", tiff_.pages.size());
        facts.set("compression", compression_name(first_.compression));
        if (first_.predictor != 1) facts.set("predictor", first_.predictor);
        facts.set(first_.tiled ? "tile" : "strip", Value::Array{first_.chunk_height, first_.chunk_width});
        facts.set("photometric", first_.photometric);
        facts.set("attributes", attributes_);
        return facts;
    }

private:
    static std::string compression_name(int compression) {
        constexpr std::array<std::pair<int, const char*>, 14> names{{{1, "none"},
                                                                     {2, "CCITT RLE"},
                                                                     {3, "CCITT group 3"},
                                                                     {4, "CCITT group 4"},
                                                                     {5, "LZW"},
                                                                     {6, "old JPEG"},
                                                                     {7, "JPEG"},
                                                                     {8, "deflate"},
                                                                     {32773, "PackBits"},
                                                                     {32946, "deflate"},
                                                                     {34887, "LERC"},
                                                                     {34925, "LZMA"},
                                                                     {50000, "zstd"},
                                                                     {50001, "WebP"}}};
        const auto found = std::ranges::find(names, compression, [](const auto& row) { return row.first; });
        return found == names.end() ? std::to_string(compression) : found->second;
    }

    void prepare() {
        if (first_.error) throw *first_.error;
        for (const std::size_t n : image_.pages) {
            if (tiff_.pages[n].error) throw *tiff_.pages[n].error;
            if (tiff_.pages[n].compression != static_cast<int>(TiffCompression::none)) decoder_.require(tiff_.pages[n]);
        }
        const DType& stored = first_.dtype;
        info_ = {.dtype = stored.size() == 1 ? stored : stored.with_order(native_order),
                 .shape = image_.shape,
                 .chunks = image_.chunks};
        try {
            (void)byte_count(info_.shape, info_.dtype.size());
            grid_ = ChunkGrid(info_.shape, info_.chunks);
        } catch (const Error& e) {
            throw corrupt(e.what());
        }
        attributes_ = tiff_attributes(*file_, tiff_, image_);
        fill_ = zero_element(info_.dtype);
        if (const Value* fill = attributes_.find("_FillValue")) {
            fill_ = element_from_value(info_.dtype, *fill, Assign::exact);
        }
    }

    /// The lists of a few pages are kept.
    std::shared_ptr<const TiffPlaces> places_of(std::size_t page) const {
        {
            const std::lock_guard lock(mutex_);
            if (const auto found = places_.find(page); found != places_.end()) return found->second;
        }
        auto places = std::make_shared<TiffPlaces>(tiff_places(*file_, tiff_, tiff_.pages[page]));
        constexpr std::size_t most_pages = 64;
        const std::lock_guard lock(mutex_);
        if (places_.size() >= most_pages) places_.clear();
        places_[page] = places;
        return places;
    }

    void read_chunk(const ChunkPart& part, const MutableArrayView& out) const {
        // (page…, band if planar, y, x, band if not)
        const bool last_band = !first_.planar && first_.samples > 1;
        const int y = part.chunk.rank() - (last_band ? 3 : 2);
        const int plane_axis = first_.planar ? y - 1 : y;
        std::int64_t place = 0;
        for (int d = 0; d < plane_axis; ++d) place = place * info_.shape[d] + part.chunk[d];
        const std::size_t number = image_.pages[static_cast<std::size_t>(place)];
        const TiffPage& page = tiff_.pages[number];
        const std::int64_t plane = first_.planar ? part.chunk[y - 1] : 0;
        const std::int64_t row = part.chunk[y];
        const std::int64_t n = (plane * page.chunks_down() + row) * page.chunks_across() + part.chunk[y + 1];
        const auto places = places_of(number);
        const std::uint64_t offset = places->offsets[static_cast<std::size_t>(n)];
        const std::uint64_t size = places->sizes[static_cast<std::size_t>(n)];
        if (size == 0) return fill_elements(out, info_.dtype, fill_.data());  // never written
        // As stored: tiles are whole beyond the edge of the page.
        Shape shape = Shape::filled(part.chunk.rank(), 1);
        shape[y] = page.rows_of(row);
        shape[y + 1] = page.chunk_width;
        if (last_band) shape[y + 2] = page.samples;
        const std::int64_t bytes = checked_multiply(page.row_bytes(), shape[y], "the size of a chunk");
        if (offset > file_->size() || size > file_->size() - offset) {
            throw corrupt("its {} bytes at byte {} lie beyond the end of {} bytes", size, offset, file_->size());
        }
        if (page.compression == static_cast<int>(TiffCompression::none)) {
            if (size < static_cast<std::uint64_t>(bytes)) {
                throw corrupt("it has {} bytes, where {} are expected", size, bytes);
            }
            return read_stored(page, offset, static_cast<std::uint64_t>(bytes), shape, part.in_chunk, out);
        }
        const Buffer decoded = decoded_chunk(page, n, size, bytes);
        if (page.bits % 8 != 0) return unpack(page, decoded, shape, part.in_chunk, out);
        const ArrayView elements = view_bytes(decoded.data(), info_.dtype, shape);
        copy_elements(elements.part(part.in_chunk), out);
    }

    /// Of `size` bytes that are stored.
    [[nodiscard]] Buffer decoded_chunk(const TiffPage& page, std::int64_t number, std::uint64_t size,
                                       std::int64_t bytes) const {
        const MemoryHold held(size);  // libtiff's copy of what is stored
        constexpr std::uint64_t best_ratio = 1 << 20;
        if (static_cast<std::uint64_t>(bytes) / best_ratio > size) {
            throw corrupt("its {} bytes cannot hold {}", size, bytes);
        }
        Buffer decoded(static_cast<std::size_t>(bytes));
        decoder_.decode(page, number, decoded.span());
        return decoded;
    }

    /// A part of a chunk that is not compressed.
    void read_stored(const TiffPage& page, std::uint64_t offset, std::uint64_t bytes, const Shape& shape,
                     const Region& part, const MutableArrayView& out) const {
        const PlainLayout layout{.name = name_, .data_offset = offset, .dtype = page.dtype, .shape = shape};
        if (page.bits % 8 == 0) return read_plain(*file_, layout, part, out, {.threads = 1});
        Buffer raw = read_range(*file_, offset, bytes);
        if (page.reversed) reverse_bits(raw.span());
        unpack(page, raw, shape, part, out);
    }

    static void reverse_bits(MutableByteSpan bytes) {
        for (std::byte& b : bytes) {
            auto n = std::to_integer<unsigned>(b);
            n = (n & 0xF0U) >> 4U | (n & 0x0FU) << 4U;
            n = (n & 0xCCU) >> 2U | (n & 0x33U) << 2U;
            n = (n & 0xAAU) >> 1U | (n & 0x55U) << 1U;
            b = static_cast<std::byte>(n);
        }
    }

    /// Elements of less than 8, or of 9 to 15 bits: rows begin at bytes, and the highest bits come first.
    void unpack(const TiffPage& page, const Buffer& raw, const Shape& shape, const Region& in_chunk,
                const MutableArrayView& out) const {
        Buffer wide(static_cast<std::size_t>(byte_count(shape, info_.dtype.size())));
        const auto bits = static_cast<std::size_t>(page.bits);
        const auto row_bytes = static_cast<std::size_t>(page.row_bytes());
        const auto rows = raw.size() / row_bytes;
        const std::size_t per_row = static_cast<std::size_t>(element_count(shape)) / rows;
        std::byte* to = wide.data();
        for (std::size_t r = 0; r < rows; ++r) {
            const std::byte* const row = raw.data() + r * row_bytes;
            for (std::size_t i = 0, bit = 0; i < per_row; ++i) {
                unsigned value = 0;
                for (std::size_t b = 0; b < bits; ++b, ++bit) {
                    value = value << 1U | (std::to_integer<unsigned>(row[bit / 8]) >> (7 - bit % 8) & 1U);
                }
                if (info_.dtype.size() == 1) {
                    *to++ = static_cast<std::byte>(value);
                } else {
                    const auto both = static_cast<std::uint16_t>(value);
                    std::memcpy(to, &both, sizeof both);
                    to += sizeof both;
                }
            }
        }
        const ArrayView elements = view_bytes(std::as_const(wide).data(), info_.dtype, shape);
        copy_elements(elements.part(in_chunk), out);
    }

    std::shared_ptr<const ByteSource> file_;
    TiffFile tiff_;
    const TiffImage& image_;
    const TiffPage& first_;
    std::string name_;
    ArrayInfo info_;
    ChunkGrid grid_{Shape{}, Shape{}};
    Value attributes_;
    ElementBytes fill_;
    mutable TiffDecoder decoder_;
    mutable std::mutex mutex_;
    mutable std::map<std::size_t, std::shared_ptr<const TiffPlaces>> places_;
};

std::vector<std::string> tiff_list(const ArrayPath& path) {
    std::vector<std::string> names;
    for (TiffImage& image : read_tiff(*path.bytes()).images) names.push_back(std::move(image.name));
    return names.size() == 1 ? std::vector<std::string>{} : names;
}

std::unique_ptr<TiffSource> tiff_source(const ArrayPath& path) {
    return within_memory(path.path.string(), [&] {
        const std::shared_ptr<const ByteSource> file = path.bytes();
        TiffFile tiff = read_tiff(*file);
        std::vector<std::string> names;
        for (const TiffImage& image : tiff.images) names.push_back(image.name);
        const bool main = !path.member && names.front() == tiff_main;
        const std::string name = main ? std::string(tiff_main) : chosen_member(path, names);
        const auto found = std::ranges::find(names, name);
        if (found == names.end()) throw not_found("{} has no image '{}'", path.path.string(), name);
        return std::make_unique<TiffSource>(file, std::move(tiff), static_cast<std::size_t>(found - names.begin()));
    });
}

// ---- references

/// What decompresses the chunks of a page in Zarr; throws unsupported for what it does not have.
Value compressor_of(const TiffPage& page) {
    switch (static_cast<TiffCompression>(page.compression)) {
        case TiffCompression::none:
            return {};
        case TiffCompression::deflate:
        case TiffCompression::old_deflate:
            return {{"id", "zlib"}, {"level", 6}};
        case TiffCompression::zstd:
            return {{"id", "zstd"}, {"level", 9}};
        default:
            throw unsupported("compression {}, which Zarr does not have", page.compression);
    }
}

/// Adds where the chunks of a page lie, numbered from `number` on.
void add_chunks(PackedArray& array, const ByteSource& file, const TiffFile& tiff, const TiffPage& page,
                std::int64_t& number) {
    const auto count = static_cast<std::size_t>(page.chunk_count());
    array.held.add(count * (sizeof(PackedArray::Chunk) + 16));
    const TiffPlaces places = tiff_places(file, tiff, page);
    const auto& [offsets, sizes, kept] = places;
    for (std::size_t i = 0; i < count; ++i, ++number) {
        if (sizes[i] == 0) continue;  // never written: the fill value
        if (offsets[i] > file.size() || sizes[i] > file.size() - offsets[i]) {
            throw corrupt("chunk {} is said to lie at byte {}, beyond the end of {} bytes", i, offsets[i], file.size());
        }
        array.stored.push_back({number, offsets[i], sizes[i]});
    }
}

/// An image as chunks that Zarr v2 can say. Throws unsupported, naming what it cannot.
PackedArray packed_image(const ByteSource& file, const TiffFile& tiff, const TiffImage& image) {
    const TiffPage& first = tiff.pages[image.pages[0]];
    if (first.error) throw *first.error;
    PackedArray array{.name = image.name, .dtype = first.dtype, .shape = image.shape, .offset = 0, .row_stride = 0};
    array.attributes = tiff_attributes(file, tiff, image);
    if (const Value* fill = array.attributes.find("_FillValue")) array.fill = *fill;
    array.chunks = image.chunks;
    const int y = image.shape.rank() - (!first.planar && first.samples > 1 ? 3 : 2);
    array.chunks[y] = first.chunk_height;
    array.chunks[y + 1] = first.chunk_width;
    if (first.bits % 8 != 0) throw unsupported("elements of {} bits", first.bits);
    if (!first.tiled && first.height % first.chunk_height != 0) throw unsupported("its last strip is short");
    array.compressor = compressor_of(first);
    std::int64_t number = 0;
    for (const std::size_t n : image.pages) {
        const TiffPage& page = tiff.pages[n];
        if (page.error) throw *page.error;
        if (page.compression != first.compression) throw unsupported("pages of different compression");
        if (page.predictor != 1) throw unsupported("predictor {}, which Zarr does not have", page.predictor);
        add_chunks(array, file, tiff, page, number);
    }
    const bool missing = std::cmp_less(array.stored.size(), number);
    if (array.fill.is_null() && missing) {
        const ElementBytes zero = zero_element(array.dtype);
        array.fill = element_to_value(array.dtype, zero.data());
    }
    return array;
}

std::vector<PackedArray> tiff_packed(const ArrayPath& path) {
    const auto file = path.bytes();
    const TiffFile tiff = read_tiff(*file);
    std::vector<PackedArray> arrays;
    for (const TiffImage& image : tiff.images) {
        const bool main_only = !path.member && tiff.images.front().name == tiff_main;
        if (main_only ? image.name != tiff_main : path.member && image.name != *path.member) continue;
        in_context([&] { return fmt::format("{}::{}", path.path.string(), image.name); },
                   [&] { arrays.push_back(packed_image(*file, tiff, image)); });
    }
    return arrays;
}

std::optional<PackedArray> tiff_chunked(const ArrayPath& path) {
    try {
        std::vector<PackedArray> arrays = tiff_packed(path);
        if (arrays.size() != 1 || arrays.front().compressor.is_null()) return std::nullopt;
        return std::move(arrays.front());
    } catch (const Error& e) {
        if (e.code() != ErrorCode::unsupported && e.code() != ErrorCode::corrupt) throw;
        return std::nullopt;  // libtiff may read it, or says why not
    }
}

std::unique_ptr<ArraySource> tiff_open(const ArrayPath& path, const ArrayFileOptions& /*options*/) {
    return tiff_source(path);
}

std::unique_ptr<ArraySink> tiff_create(const ArrayPath& path, const DType& dtype, const Shape& shape,
                                       const ArrayFileOptions& options) {
    require_no_member(path);
    return create_tiff(path.path, dtype, shape, options);
}

std::unique_ptr<ArraySource> tiff_convert(const ArraySource& source, const ArrayFileOptions& /*options*/,
                                          const IoOptions& /*io*/) {
    return source.info().dtype.kind() == Kind::bfloat16 ? widened_bfloat16(source) : nullptr;
}

Value tiff_describe(const ArrayPath& path) {
    Value facts = Value::object();
    facts.set("format", "tiff");
    const std::vector<std::string> names = tiff_list(path);
    if (!path.member && !names.empty() && names.front() != tiff_main) return facts;
    const Value of_image = tiff_source(path)->facts();
    for (const auto& [name, value] : of_image.as_object()) facts.set(name, value);
    return facts;
}

void tiff_check(const ArrayPath& path, ArrayFileChecker& checker) {
    for (const TiffImage& image : read_tiff(*path.bytes()).images) checker.read_array(image.name);
}

}  // namespace

extern constinit const ArrayFileFormat tiff_format{
    .name = "tiff",
    .extension = ".tif",
    .also = ".tiff .tf8 .btf ",
    .about = "TIFF, BigTIFF, GeoTIFF, COG and OME-TIFF",
    .deflates = true,
    .ranged = true,
    .keeps_attributes = true,
    .main = tiff_main,
    .recognise = tiff_recognise,
    .members = tiff_list,
    .packed = tiff_packed,
    .chunked = tiff_chunked,
    .open = tiff_open,
    .create = tiff_create,
    .convert = tiff_convert,
    .describe = tiff_describe,
    .check = tiff_check,
    .bundle = bundle_tiff,
};

}  // namespace tessera
