#include "tiff_writer.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <deque>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <tessera/action.h>
#include <tessera/chunk_grid.h>
#include <tessera/copy_elements.h>
#include <tessera/error_text.h>

#include "convert_source.h"
#include "tiff_format.h"
#include "tiff_tags.h"

namespace tessera {

namespace {

constexpr std::uint16_t t_short = 3, t_long = 4, t_long8 = 16;

/// How an array becomes pages of tiles.
struct TiffLayout {
    DType dtype;  ///< little-endian
    Shape shape{}, chunks{};
    int y = 0;  ///< the axis of the rows; the columns follow
    bool planar = false, last_band = false;
    std::int64_t pages = 1, samples = 1, height = 0, width = 0, tile_height = 0, tile_width = 0;

    [[nodiscard]] std::int64_t across() const { return ceil_div(width, tile_width); }
    [[nodiscard]] std::int64_t tiles_of_page() const {
        return across() * ceil_div(height, tile_height) * (planar ? samples : 1);
    }
    [[nodiscard]] std::int64_t tile_bytes() const {
        return tile_height * tile_width * (last_band ? samples : 1) * dtype.size();
    }
};

int sample_format(const std::string& file, const DType& dtype) {
    switch (dtype.kind()) {
        case Kind::boolean:
        case Kind::unsigned_integer:
            return 1;
        case Kind::integer:
            return 2;
        case Kind::real:
            return 3;
        case Kind::complex:
            return 6;
        default:
            throw unsupported("{}: a .tif has no elements of type {}", file, dtype.to_string());
    }
}

std::string dimension_name(const Value& attributes, int rank, int d) {
    const Value* const names = attributes.find("_ARRAY_DIMENSIONS");
    if (names == nullptr || !names->is_array() || std::cmp_not_equal(names->as_array().size(), rank) || d < 0)
        return {};
    const Value& name = names->as_array()[static_cast<std::size_t>(d)];
    return name.is_string() ? name.as_string() : std::string();
}

TiffLayout layout_of(const std::string& file, const DType& dtype, const Shape& shape, const Value& attributes) {
    (void)sample_format(file, dtype);
    TiffLayout layout{.dtype = dtype.size() == 1 ? dtype : dtype.with_order(ByteOrder::little), .shape = shape};
    const int rank = shape.rank();
    const bool named = !dimension_name(attributes, rank, rank - 1).empty();
    const bool colours = rank >= 3 && (shape[rank - 1] == 3 || shape[rank - 1] == 4) &&
                         dtype.kind() == Kind::unsigned_integer && dtype.size() <= 2;
    layout.last_band = rank >= 3 && (named ? dimension_name(attributes, rank, rank - 1) == "band" : colours);
    layout.y = rank - (layout.last_band ? 3 : 2);
    layout.planar = !layout.last_band && rank >= 3 && dimension_name(attributes, rank, layout.y - 1) == "band";
    constexpr std::int64_t most = INT32_MAX;
    if (layout.y < 0 || std::ranges::any_of(shape, [](std::int64_t n) { return n < 1 || n > most; })) {
        throw unsupported("{}: a .tif holds (height, width), with colours behind and pages in front, but not {}", file,
                          shape.to_string())
            .advising(Action::selection, "picks a part");
    }
    layout.height = shape[layout.y];
    layout.width = shape[layout.y + 1];
    layout.samples = layout.last_band ? shape[rank - 1] : layout.planar ? shape[layout.y - 1] : 1;
    if (layout.samples > UINT16_MAX)
        throw unsupported("{}: a .tif has at most 65535 bands, not {}", file, layout.samples);
    for (int d = 0; d < layout.y - (layout.planar ? 1 : 0); ++d) {
        layout.pages = checked_multiply(layout.pages, shape[d], "the number of pages");
    }
    const auto tile_length = [](std::int64_t length) {
        constexpr std::int64_t usual = 512, step = 16;
        return std::min(usual, ceil_div(length, step) * step);
    };
    layout.tile_height = tile_length(layout.height);
    layout.tile_width = tile_length(layout.width);
    constexpr std::int64_t large = 4 << 20, half = 32;
    while (layout.tile_bytes() > large && layout.tile_height >= half) layout.tile_height = layout.tile_height / 32 * 16;
    while (layout.tile_bytes() > large && layout.tile_width >= half) layout.tile_width = layout.tile_width / 32 * 16;
    layout.chunks = Shape::filled(rank, 1);
    layout.chunks[layout.y] = std::min(layout.tile_height, layout.height);
    layout.chunks[layout.y + 1] = std::min(layout.tile_width, layout.width);
    if (layout.last_band) layout.chunks[rank - 1] = layout.samples;
    return layout;
}

/// One array in a new file.
struct TiffPart {
    TiffLayout layout;
    bool reduced = false;
    std::vector<TiffValues> tags;  ///< further ones of the first page
    ChunkGrid grid;
    std::vector<std::uint64_t> offsets, sizes;  ///< of all tiles, page by page
    MemoryHold held;
};

class TiffWriter {
public:
    TiffWriter(const std::filesystem::path& path, bool durable, int deflate_level)
        : file_(create_file(path, durable)), level_(deflate_level) {
        if (!file_->random_access()) throw unsupported("{}: a .tif is written into a regular file", file_->name());
    }

    [[nodiscard]] const std::string& name() const { return file_->name(); }

    /// The first is the main image; the others are its overviews.
    TiffPart& add(const DType& dtype, const Shape& shape, const Value& attributes) {
        TiffLayout layout = layout_of(name(), dtype, shape, attributes);
        const std::int64_t tiles = checked_multiply(layout.tiles_of_page(), layout.pages, "the number of tiles");
        (void)checked_multiply(tiles, layout.tile_bytes(), "the size of the file");
        MemoryHold held(checked_tiles(tiles) * 16);
        const ChunkGrid grid(layout.shape, layout.chunks);
        TiffPart& part = parts_.emplace_back(TiffPart{.layout = std::move(layout),
                                                      .reduced = !parts_.empty(),
                                                      .tags = {},
                                                      .grid = grid,
                                                      .offsets = {},
                                                      .sizes = {},
                                                      .held = std::move(held)});
        part.offsets.resize(static_cast<std::size_t>(tiles));
        part.sizes.resize(static_cast<std::size_t>(tiles));
        if (!part.reduced) part.tags = first_tags(part.layout, attributes);
        return part;
    }

    /// Fixes the kind of file, and how much room the directories take.
    void begin() {
        double total = 0;
        for (const TiffPart& part : parts_) {
            total += static_cast<double>(part.offsets.size()) * static_cast<double>(part.layout.tile_bytes() + 64);
        }
        constexpr double most = 4.2e9;
        is_big_ = total > most;
        end_ = align(directories().size());
        if (!is_big_ && static_cast<double>(end_) + total > most) {
            is_big_ = true;
            end_ = align(directories().size());
        }
    }

    /// Stores the tiles of a region, which ends where tiles end. Any thread.
    void write(TiffPart& part, const Region& region, const ArrayView& in, const IoOptions& io) {
        require_inside(region, part.layout.shape);
        if (region.empty()) return;
        for (int d = 0; d < region.rank(); ++d) {
            const std::int64_t end = region.start[d] + region.extent[d];
            const std::int64_t chunk = part.layout.chunks[d];
            if (region.start[d] % chunk == 0 && (end % chunk == 0 || end == part.layout.shape[d])) continue;
            throw invalid_argument("{}: region {} ends within a tile of {}", name(), region.to_string(),
                                   part.layout.chunks.to_string());
        }
        const Region touched = part.grid.overlapping(region);
        parallel_in_memory(touched.count(), io, [&](std::int64_t n) {
            const ChunkPart chunk = chunk_part(part.grid, region, touched, n);
            write_tile(part, chunk.chunk, in.part(chunk.in_request));
        });
    }

    void finish() {
        const std::string bytes = directories();
        file_->write_at(0, std::as_bytes(std::span(bytes)));
        file_->finish();
    }

private:
    static std::uint64_t align(std::uint64_t n) { return (n + 15) / 16 * 16; }

    std::uint64_t checked_tiles(std::int64_t tiles) const {
        if (tiles > UINT32_MAX) throw unsupported("{}: a .tif has at most 2^32 tiles, not {}", name(), tiles);
        return static_cast<std::uint64_t>(tiles);
    }

    static std::vector<TiffValues> first_tags(const TiffLayout& layout, const Value& attributes) {
        std::vector<TiffValues> tags =
            tags_of_attributes(attributes, layout.dtype, layout.height, layout.width, layout.pages, layout.samples);
        const bool described = std::ranges::count(tags, TiffTag::description, &TiffValues::tag) > 0;
        const int in_front = layout.y - (layout.planar ? 1 : 0);
        if (in_front > 1 && !described) {
            // As tifffile does: TIFF itself has no more than a list of pages.
            tags.push_back(
                text_tag(TiffTag::description, fmt::format("{{\"shape\": [{}]}}", fmt::join(layout.shape, ", "))));
        }
        return tags;
    }

    void write_tile(TiffPart& part, const Index& chunk, const ArrayView& in) {
        const TiffLayout& layout = part.layout;
        Shape shape = Shape::filled(chunk.rank(), 1);
        shape[layout.y] = layout.tile_height;
        shape[layout.y + 1] = layout.tile_width;
        if (layout.last_band) shape[layout.y + 2] = layout.samples;
        Buffer tile(static_cast<std::size_t>(layout.tile_bytes()));
        const MutableArrayView all = view_bytes(tile.data(), layout.dtype, shape);
        if (in.shape != shape) std::ranges::fill(tile.span(), std::byte{0});
        copy_elements(in, all.part(Region::whole(in.shape)));
        Buffer deflated;
        ByteSpan stored = std::as_const(tile);
        if (level_ > 0) {
            uLongf size = compressBound(static_cast<uLong>(tile.size()));
            deflated.reset(size);
            if (compress2(reinterpret_cast<Bytef*>(deflated.data()), &size, reinterpret_cast<const Bytef*>(tile.data()),
                          static_cast<uLong>(tile.size()), level_) != Z_OK) {
                throw std::bad_alloc();
            }
            stored = ByteSpan(deflated).first(size);
        }
        std::int64_t page = 0;
        for (int d = 0; d < layout.y - (layout.planar ? 1 : 0); ++d) page = page * layout.shape[d] + chunk[d];
        const std::int64_t plane = layout.planar ? chunk[layout.y - 1] : 0;
        const std::int64_t down = ceil_div(layout.height, layout.tile_height);
        const std::int64_t n =
            page * layout.tiles_of_page() + (plane * down + chunk[layout.y]) * layout.across() + chunk[layout.y + 1];
        const std::uint64_t at = end_.fetch_add(align(stored.size()));
        file_->write_at(at, stored);
        part.offsets[static_cast<std::size_t>(n)] = at;
        part.sizes[static_cast<std::size_t>(n)] = stored.size();
    }

    // ---- directories

    void put(std::string& out, std::uint64_t n, int size) const {
        for (int i = 0; i < size; ++i) out += static_cast<char>(n >> (8 * i) & 0xFF);
    }

    /// Of a list for the tiles of all pages, those of one page.
    static std::vector<std::uint64_t> of_page(const std::vector<std::uint64_t>& list, const TiffLayout& layout,
                                              std::int64_t page) {
        const auto first = list.begin() + page * layout.tiles_of_page();
        return {first, first + layout.tiles_of_page()};
    }

    [[nodiscard]] std::vector<TiffValues> page_tags(const TiffPart& part, std::int64_t page) const {
        const TiffLayout& layout = part.layout;
        const auto samples = static_cast<std::size_t>(layout.samples);
        const auto number = [](std::int64_t n) { return std::vector<std::uint64_t>{static_cast<std::uint64_t>(n)}; };
        std::vector<TiffValues> tags;
        const auto add = [&](TiffTag tag, std::uint16_t type, const std::vector<std::uint64_t>& numbers) {
            tags.push_back(integer_tag(tag, type, numbers));
        };
        const bool colours = layout.last_band && (samples == 3 || samples == 4) &&
                             layout.dtype.kind() == Kind::unsigned_integer && layout.dtype.size() <= 2;
        const std::size_t extra = colours ? samples - 3 : samples - 1;
        const bool palette = std::ranges::count(part.tags, TiffTag::color_map, &TiffValues::tag) > 0;
        constexpr int black_is_zero = 1, rgb = 2, indices = 3, deflate = 8;
        if (part.reduced) add(TiffTag::subfile, t_long, {1});
        add(TiffTag::width, t_long, number(layout.width));
        add(TiffTag::height, t_long, number(layout.height));
        add(TiffTag::bits, t_short,
            std::vector<std::uint64_t>(samples, static_cast<std::uint64_t>(layout.dtype.size()) * 8));
        add(TiffTag::compression, t_short, number(level_ > 0 ? deflate : 1));
        add(TiffTag::photometric, t_short, number(colours ? rgb : palette && page == 0 ? indices : black_is_zero));
        add(TiffTag::samples, t_short, number(layout.samples));
        add(TiffTag::planar, t_short, number(layout.planar ? 2 : 1));
        add(TiffTag::tile_width, t_long, number(layout.tile_width));
        add(TiffTag::tile_height, t_long, number(layout.tile_height));
        add(TiffTag::tile_offsets, is_big_ ? t_long8 : t_long, of_page(part.offsets, layout, page));
        add(TiffTag::tile_sizes, t_long, of_page(part.sizes, layout, page));
        if (extra > 0) {
            constexpr std::uint64_t unassociated_alpha = 2;
            std::vector<std::uint64_t> kinds(extra, 0);
            if (colours) kinds[0] = unassociated_alpha;
            add(TiffTag::extra_samples, t_short, kinds);
        }
        add(TiffTag::sample_format, t_short,
            std::vector<std::uint64_t>(samples, static_cast<std::uint64_t>(sample_format(name(), layout.dtype))));
        if (page == 0) tags.insert(tags.end(), part.tags.begin(), part.tags.end());
        std::ranges::sort(tags, {}, &TiffValues::tag);
        return tags;
    }

    /// The header and all directories, from the start of the file. As long as it will be, whatever the offsets are.
    [[nodiscard]] std::string directories() const {
        const int word = is_big_ ? 8 : 4;
        std::string out = "II";
        put(out, is_big_ ? 43 : 42, 2);
        if (is_big_) put(out, 8, 4);
        std::size_t link = out.size();  // where the offset of the next directory goes
        put(out, 0, word);
        for (const TiffPart& part : parts_) {
            for (std::int64_t page = 0; page < part.layout.pages; ++page) {
                const std::vector<TiffValues> tags = page_tags(part, page);
                out.resize(align(out.size()));
                std::string offset;
                put(offset, out.size(), word);
                out.replace(link, offset.size(), offset);
                std::uint64_t behind = out.size() + (is_big_ ? 8 : 2) + tags.size() * (is_big_ ? 20 : 12) +
                                       static_cast<std::uint64_t>(word);
                put(out, tags.size(), is_big_ ? 8 : 2);
                std::string values;
                for (const TiffValues& tag : tags) {
                    put(out, static_cast<std::uint64_t>(tag.tag), 2);
                    put(out, tag.type, 2);
                    put(out, tag.count, word);
                    if (std::cmp_less_equal(tag.bytes.size(), word)) {
                        out += tag.bytes;
                        out.append(static_cast<std::size_t>(word) - tag.bytes.size(), '\0');
                        continue;
                    }
                    values.append((8 - (behind + values.size()) % 8) % 8, '\0');
                    put(out, behind + values.size(), word);
                    values += tag.bytes;
                }
                link = out.size();
                put(out, 0, word);
                out += values;
            }
        }
        return out;
    }

    std::unique_ptr<ByteSink> file_;
    int level_ = 0;
    bool is_big_ = false;
    std::deque<TiffPart> parts_;
    std::atomic<std::uint64_t> end_ = 0;  ///< of what is taken
};

/// One array of a writer.
class TiffSink final : public ArraySink {
public:
    TiffSink(std::shared_ptr<TiffWriter> writer, TiffPart& part, bool finishes)
        : writer_(std::move(writer)), part_(part), finishes_(finishes) {
        info_ = {.dtype = part.layout.dtype, .shape = part.layout.shape, .chunks = part.layout.chunks};
    }
    [[nodiscard]] ArrayInfo info() const override { return info_; }
    [[nodiscard]] const std::string& name() const override { return writer_->name(); }
    void write(const Region& region, const ArrayView& in, const IoOptions& io) override {
        writer_->write(part_, region, in, io);
    }
    void finish() override {
        if (finishes_) writer_->finish();
    }

private:
    std::shared_ptr<TiffWriter> writer_;
    TiffPart& part_;
    bool finishes_;
    ArrayInfo info_;
};

/// The names of the levels of a pyramid by OME-NGFF's or GeoZarr's "multiscales", the largest first.
std::vector<std::string> levels_of(const ArrayBundle& bundle) {
    const auto root = std::ranges::find(bundle.groups, "", &ArrayFileGroup::name);
    std::vector<std::string> levels;
    if (root == bundle.groups.end()) return levels;
    try {
        const Value* const pyramid = root->attributes.find("multiscales");
        if (pyramid != nullptr && pyramid->is_object()) {
            for (const Value& level : pyramid->at("layout").as_array()) levels.push_back(level.at("asset").as_string());
            return levels;
        }
        const Value* const ome = root->attributes.find("ome");
        const Value& attributes = ome != nullptr ? *ome : root->attributes;
        for (const Value& level : attributes.at("multiscales").as_array().at(0).at("datasets").as_array()) {
            levels.push_back(level.at("path").as_string());
        }
    } catch (const std::exception&) {
        levels.clear();
    }
    return levels;
}

}  // namespace

std::unique_ptr<ArraySink> create_tiff(const std::filesystem::path& path, const DType& dtype, const Shape& shape,
                                       const ArrayFileOptions& options) {
    auto writer = std::make_shared<TiffWriter>(path, options.durable, options.deflate_level);
    TiffPart& part = writer->add(dtype, shape, options.attributes);
    writer->begin();
    return std::make_unique<TiffSink>(writer, part, true);
}

void bundle_tiff(const std::filesystem::path& path, const ArrayBundle& bundle, const ArrayFileOptions& options,
                 const IoOptions& /*io*/) {
    const std::vector<std::string> levels = levels_of(bundle);
    std::vector<std::string> names(bundle.names.begin(), bundle.names.end());
    std::vector<std::string> expected = levels;
    std::ranges::sort(names);
    std::ranges::sort(expected);
    if (names != expected) {
        throw unsupported("{}: a .tif holds one array, or the levels of a pyramid; these are {}", path.string(),
                          fmt::join(bundle.names, ", "));
    }
    auto writer = std::make_shared<TiffWriter>(path, options.durable, options.deflate_level);
    struct Level {
        std::unique_ptr<ArraySource> stored, converted;
        TiffPart* part;
    };
    std::vector<Level> open;
    for (const std::string& name : levels) {
        Level level{.stored = bundle.open(name), .converted = nullptr, .part = nullptr};
        if (level.stored->info().dtype.kind() == Kind::bfloat16) level.converted = widened_bfloat16(*level.stored);
        const ArrayInfo info = (level.converted ? *level.converted : *level.stored).info();
        if (!open.empty() && info.dtype != open.front().stored->info().dtype) {
            throw unsupported("{}: level {} has elements of type {}, the first has {}", path.string(), name,
                              info.dtype.to_string(), open.front().stored->info().dtype.to_string());
        }
        level.part =
            &writer->add(info.dtype, info.shape,
                         bundle.attributes ? bundle.attributes(*level.stored) : level.stored->attribute_values());
        open.push_back(std::move(level));
    }
    writer->begin();
    // The smallest lies first, as readers over a network like it.
    for (std::size_t i = levels.size(); i-- > 0;) {
        const ArraySource& source = open[i].converted ? *open[i].converted : *open[i].stored;
        TiffSink sink(writer, *open[i].part, false);
        bundle.copy(source, sink);
        bundle.made(levels[i], source.info());
    }
    writer->finish();
}

}  // namespace tessera
