// Tiles against windows that are worked out one by one from the whole array.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <tessera/array.h>
#include <tessera/derived_source.h>
#include <tessera/error.h>
#include <tessera/slices.h>
#include <tessera/tile.h>

#include "expect_error.h"

namespace tessera {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

/// All elements of a slice as doubles, by NumPy's rules for casts.
class Reference {
public:
    Reference(const Array& array, const TileSlice& slice)
        : missing_(TileSource(std::make_shared<Array>(array), cache(), "").missing()) {
        NDArray all(native_dtype(array.dtype()), array.shape());
        array.read_into("", all.view());
        const bool complex = all.dtype().kind() == Kind::complex;
        const bool time = all.dtype().kind() == Kind::datetime;
        const DType wide = complex ? DType("c16") : DType::of<double>();
        NDArray numbers(wide, all.shape());
        if (time) {
            const auto* counts = reinterpret_cast<const std::int64_t*>(all.bytes().data());
            for (std::int64_t i = 0; i < all.count(); ++i) {
                numbers.values<double>()[static_cast<std::size_t>(i)] =
                    counts[i] == std::numeric_limits<std::int64_t>::min() ? nan : static_cast<double>(counts[i]);
            }
        } else {
            (void)cast_packed(all.dtype(), all.bytes().data(), wide, numbers.bytes().data(), all.count(), Cast::unsafe);
        }
        rows_ = all.shape()[slice.rows];
        columns_ = all.shape()[slice.columns];
        const Strides strides = contiguous_strides(all.shape(), 1);
        const auto* v = reinterpret_cast<const double*>(numbers.bytes().data());
        for (std::int64_t i = 0; i < rows_; ++i) {
            for (std::int64_t j = 0; j < columns_; ++j) {
                std::int64_t at = i * strides[slice.rows] + j * strides[slice.columns];
                for (int d = 0; d < all.shape().rank(); ++d) {
                    if (d != slice.rows && d != slice.columns && !slice.at.empty()) at += slice.at[d] * strides[d];
                }
                elements_.push_back(complex ? std::hypot(v[2 * at], v[2 * at + 1]) : v[at]);
            }
        }
    }

    static std::shared_ptr<TileCache> cache() { return std::make_shared<TileCache>(1 << 20); }

    [[nodiscard]] double at(std::int64_t i, std::int64_t j) const {
        return elements_[static_cast<std::size_t>(i * columns_ + j)];
    }
    [[nodiscard]] double window(std::int64_t i, std::int64_t j, int row_level, int column_level,
                                Coarsening with) const {
        const std::int64_t top = i << row_level;
        const std::int64_t left = j << column_level;
        if (with == Coarsening::nearest || (row_level == 0 && column_level == 0)) return at(top, left);
        double sum = 0, low = INFINITY, high = -INFINITY;
        std::int64_t n = 0;
        bool any_missing = false;
        for (std::int64_t r = top; r < std::min(rows_, (i + 1) << row_level); ++r) {
            for (std::int64_t c = left; c < std::min(columns_, (j + 1) << column_level); ++c) {
                const double v = at(r, c);
                const bool gap = std::ranges::find(missing_, v) != missing_.end();
                any_missing = any_missing || gap;
                if (gap || v != v) continue;
                sum += v;
                low = std::min(low, v);
                high = std::max(high, v);
                ++n;
            }
        }
        if (n == 0) return any_missing ? missing_.front() : nan;
        return with == Coarsening::min ? low : with == Coarsening::max ? high : sum / static_cast<double>(n);
    }
    [[nodiscard]] std::int64_t rows() const { return rows_; }
    [[nodiscard]] std::int64_t columns() const { return columns_; }

private:
    std::vector<double> missing_;
    std::vector<double> elements_;
    std::int64_t rows_ = 0;
    std::int64_t columns_ = 0;
};

std::vector<double> numbers_of(const Tile& tile) {
    NDArray wide(DType::of<double>(), tile.values.shape());
    (void)cast_packed(tile.values.dtype(), tile.values.bytes().data(), wide.dtype(), wide.bytes().data(), wide.count(),
                      Cast::unsafe);
    const auto values = std::as_const(wide).values<double>();
    return {values.begin(), values.end()};
}

void expect_close(double found, double wanted, bool single, const std::string& where) {
    if (wanted != wanted) {
        EXPECT_TRUE(found != found) << where << ": " << found;
        return;
    }
    EXPECT_NEAR(found, wanted, std::abs(wanted) * (single ? 2e-7 : 1e-12) + (single ? 1e-30 : 1e-300)) << where;
}

/// Every tile of a level.
void expect_tiles(const TileSource& source, const Reference& reference, TileRequest request) {
    const auto tiles = [](std::int64_t length, int level) {
        return ceil_div(ceil_div(length, std::int64_t{1} << level), tile_side);
    };
    for (request.row = 0; request.row < tiles(reference.rows(), request.row_level); ++request.row) {
        for (request.column = 0; request.column < tiles(reference.columns(), request.column_level); ++request.column) {
            const Tile tile = source.tile(request);
            ASSERT_FALSE(tile.sampled);
            ASSERT_EQ(tile.values.dtype(), source.dtype(request.with, request.row_level, request.column_level));
            const bool single = tile.values.dtype() == DType::of<float>();
            const std::vector<double> found = numbers_of(tile);
            const std::int64_t wide = tile.values.shape()[1];
            ASSERT_EQ(
                ceil_div(reference.rows(), std::int64_t{1} << request.row_level) - request.row * tile_side >= tile_side,
                tile.values.shape()[0] == tile_side);
            for (std::int64_t k = 0; k < std::ssize(found); ++k) {
                const std::int64_t i = request.row * tile_side + k / wide;
                const std::int64_t j = request.column * tile_side + k % wide;
                expect_close(found[static_cast<std::size_t>(k)],
                             reference.window(i, j, request.row_level, request.column_level, request.with), single,
                             fmt::format("levels {} {}, {} at {}, {}", request.row_level, request.column_level,
                                         coarsening_name(request.with), i, j));
                if (testing::Test::HasFailure()) return;
            }
        }
    }
}

class Random {
public:
    explicit Random(unsigned seed) : engine_(seed) {}
    std::int64_t operator()(std::int64_t low, std::int64_t high) {
        return std::uniform_int_distribution<std::int64_t>(low, high)(engine_);
    }

private:
    std::mt19937 engine_;
};

/// Numbers with runs of the fill and, where there are any, NaN; some chunks are left out.
NDArray some_elements(Random& random, const DType& dtype, const Shape& shape, double fill) {
    NDArray numbers(DType::of<double>(), shape);
    for (double& v : numbers.values<double>()) {
        const std::int64_t what = random(0, 9);
        v = what == 0                                 ? fill
            : what == 1 && dtype.kind() == Kind::real ? nan
                                                      : static_cast<double>(random(0, 99)) + 0.25;
    }
    NDArray out(native_dtype(dtype), shape);
    if (dtype.kind() == Kind::datetime) {
        auto* counts = reinterpret_cast<std::int64_t*>(out.bytes().data());
        for (std::int64_t i = 0; i < out.count(); ++i) {
            counts[i] = random(0, 9) == 0 ? std::numeric_limits<std::int64_t>::min() : random(-1000, 1000);
        }
        return out;
    }
    (void)cast_packed(numbers.dtype(), numbers.bytes().data(), out.dtype(), out.bytes().data(), out.count(),
                      Cast::unsafe);
    return out;
}

TEST(Tiles, EqualWindowsWorkedOutOneByOne) {
    Random random(20260101);
    const std::vector<std::string> dtypes{"|b1", "|i1", "<u2", ">i4", "<i8",   "<u8",
                                          "<f2", "<f4", ">f8", "<c8", "<M8[s]"};
    for (int round = 0; round < 22; ++round) {
        const DType dtype(dtypes[static_cast<std::size_t>(round) % dtypes.size()]);
        const int rank = static_cast<int>(random(2, 4));
        Shape shape, chunks;
        for (int d = 0; d < rank; ++d) {
            shape.push_back(random(1, rank == 2 ? 300 : 40));
            chunks.push_back(rank == 2 ? random(30, 90) : random(4, 13));  // no more than a tile decodes
        }
        const bool filled =
            dtype.kind() != Kind::boolean && dtype.kind() != Kind::datetime && dtype.kind() != Kind::complex;
        ArrayOptions options{.shape = shape, .chunks = chunks, .dtype = dtype};
        if (filled) options.fill_value = Value(round % 2 == 0 ? 7 : 0);
        options.format = round % 3 == 0 ? "v2" : "v3";
        if (round % 2 == 1) options.codec = "zstd:1";  // whole chunks are decoded
        Array array = Array::create(memory_store(), options);
        // The last rows stay absent.
        Region written = Region::whole(shape);
        written.extent[0] = std::max<std::int64_t>(1, shape[0] * 3 / 4);
        array.write(written, some_elements(random, dtype, written.extent, round % 2 == 0 ? 7 : 0));

        TileRequest request;
        request.slice.rows = static_cast<int>(random(0, rank - 1));
        do request.slice.columns = static_cast<int>(random(0, rank - 1));
        while (request.slice.columns == request.slice.rows);
        for (int d = 0; d < rank; ++d) request.slice.at.push_back(random(0, shape[d] - 1));
        SCOPED_TRACE(fmt::format("round {}: {} {} in {}, dimensions {} {}", round, dtype.to_string(), shape.to_string(),
                                 chunks.to_string(), request.slice.rows, request.slice.columns));
        const Reference reference(array, request.slice);
        // With a cache, in the order of zooming in and out; and with one that holds next to nothing.
        for (const std::uint64_t memory : {std::uint64_t{64} << 20U, std::uint64_t{1000}}) {
            const TileSource source(std::make_shared<Array>(array), std::make_shared<TileCache>(memory), "a");
            for (const Coarsening with : {Coarsening::mean, Coarsening::min, Coarsening::max, Coarsening::nearest}) {
                request.with = with;
                for (const auto& [row, column] :
                     {std::pair(5, 3), {0, 0}, {1, 1}, {2, 2}, {3, 3}, {0, 2}, {9, 9}, {4, 4}}) {
                    request.row_level = row;
                    request.column_level = column;
                    expect_tiles(source, reference, request);
                    if (HasFailure()) return;
                }
            }
        }
    }
}

NDArray counting(const Shape& shape) {
    NDArray elements(DType::of<std::int32_t>(), shape);
    std::int32_t i = 0;
    for (std::int32_t& v : elements.values<std::int32_t>()) v = i++;
    return elements;
}

Array counting_array(const Shape& shape, const Shape& chunks, const Shape& shards = {}) {
    Array array = Array::create(
        memory_store(), {.shape = shape, .chunks = chunks, .dtype = DType("<i4"), .shards = shards, .format = "v3"});
    array.write("", counting(shape).view());
    return array;
}

TEST(Tiles, OfShardsAndOfPlainElements) {
    const Array array = counting_array({100, 150}, {10, 25}, {40, 50});
    const TileSlice slice{.rows = 1, .columns = 0};
    const Reference reference(array, slice);
    const NDArray elements = counting({100, 150});
    const TileSource plain(view_source(elements.view(), "plain"), Reference::cache(), "plain");
    const TileSource sharded(std::make_shared<Array>(array), Reference::cache(), "sharded");
    for (const int level : {0, 1, 4, 12}) {
        expect_tiles(plain, reference, {.slice = slice, .row_level = level, .column_level = level});
        expect_tiles(sharded, reference, {.slice = slice, .row_level = level, .column_level = level});
    }
}

TEST(Tiles, NoChunkIsDecodedTwice) {
    const auto cache = std::make_shared<TileCache>(64 << 20);
    const TileSource source(std::make_shared<Array>(counting_array({1000, 1000}, {100, 100})), cache, "a");
    for (const int level : {2, 1, 0, 3, 5, 10}) {
        const std::int64_t tiles = ceil_div(ceil_div(1000, std::int64_t{1} << level), tile_side);
        for (std::int64_t i = 0; i < tiles; ++i) {
            for (std::int64_t j = 0; j < tiles; ++j) {
                (void)source.tile({.row_level = level, .column_level = level, .row = i, .column = j});
            }
        }
        EXPECT_EQ(cache->chunks_decoded(), 100) << level;
    }
    EXPECT_LE(cache->bytes(), std::uint64_t{64} << 20U);
}

TEST(Tiles, SlicesOfAChunkDecodeItOnce) {
    const Shape shape{21, 90, 70};
    Array array = Array::create(
        memory_store(),
        {.shape = shape, .chunks = {8, 40, 30}, .dtype = DType("<i4"), .codec = "zstd:1", .format = "v3"});
    array.write("", counting(shape).view());
    const auto cache = std::make_shared<TileCache>(64 << 20);
    const TileSource source(std::make_shared<Array>(array), cache, "a");
    const auto look = [&](const TileSlice& slice, int level) {
        expect_tiles(source, Reference(array, slice), {.slice = slice, .row_level = level, .column_level = level});
    };
    for (std::int64_t z = 0; z < 8; ++z) look({.rows = 1, .columns = 2, .at = {z, 0, 0}}, static_cast<int>(z % 4));
    EXPECT_EQ(cache->chunks_decoded(), 9);
    for (const std::int64_t x : {0, 29}) look({.rows = 0, .columns = 1, .at = {0, 0, x}}, 0);
    EXPECT_EQ(cache->chunks_decoded(), 9 + 6);
    look({.rows = 2, .columns = 0, .at = {0, 85, 0}}, 0);  // the last ones, which are cut
    array.write("0, 85:, :", NDArray::copy_of(array.read("1, 85:, :")).view());
    look({.rows = 1, .columns = 2, .at = {0, 0, 0}}, 0);
    EXPECT_GT(cache->chunks_decoded(), 9 + 6);
}

TEST(Tiles, ASmallCacheKeepsWhatIsLookedAt) {
    const auto cache = std::make_shared<TileCache>(300'000);  // the finer cells of all chunks would take twice as much
    const TileSource source(std::make_shared<Array>(counting_array({1000, 1000}, {100, 100})), cache, "a");
    for (const int level : {4, 4, 5, 4}) {
        EXPECT_FALSE(source.tile({.row_level = level, .column_level = level}).sampled);
        EXPECT_EQ(cache->chunks_decoded(), 100) << level;
        EXPECT_LE(cache->bytes(), 300'000U);
    }
}

TEST(Tiles, TheCacheStaysWithinItsBytes) {
    const auto cache = std::make_shared<TileCache>(200'000);
    const TileSource source(std::make_shared<Array>(counting_array({1000, 1000}, {100, 100})), cache, "a");
    for (std::int64_t i = 0; i < 4; ++i) {
        (void)source.tile({.row = i, .column = i});
        EXPECT_LE(cache->bytes(), 200'000U);
    }
    EXPECT_GT(cache->bytes(), 100'000U);
}

TEST(Tiles, TooManyChunksAreSampledAndThenDecodedInTurn) {
    const auto cache = std::make_shared<TileCache>(64 << 20);
    const Array array = counting_array({1000, 1000}, {50, 50});
    const TileSource source(std::make_shared<Array>(array), cache, "a");
    const TileRequest request{.row_level = 2, .column_level = 2};
    const Reference reference(array, {});
    Tile tile = source.tile(request);
    EXPECT_TRUE(tile.sampled);
    EXPECT_EQ(tile.decoded, 128);
    EXPECT_EQ(tile.left, 400 - 128);
    // What stands for chunks that are left is near what they hold.
    const std::vector<double> found = numbers_of(tile);
    for (const std::int64_t k : {0, 30 * 250 + 77, 249 * 250 + 249}) {
        EXPECT_NEAR(found[static_cast<std::size_t>(k)], reference.window(k / 250, k % 250, 2, 2, Coarsening::mean),
                    60'000);
    }
    for (const std::int64_t left : {144, 16, 0}) {
        tile = source.tile(request);
        EXPECT_EQ(tile.left, left);
    }
    EXPECT_FALSE(tile.sampled);
    EXPECT_EQ(cache->chunks_decoded(), 400);
    expect_tiles(source, reference, request);
}

TEST(Tiles, OfHugeSparseArraysTakeWhatIsStored) {
    Array array =
        Array::create(memory_store(),
                      {.shape = {1'000'000, 1'000'000}, .chunks = {1000, 1000}, .dtype = DType("<f4"), .format = "v2"});
    const NDArray ones = NDArray::copy_of(view(std::vector<float>(1'000'000, 1), {1000, 1000}));
    array.write(Region({500'000, 300'000}, {1000, 1000}), ones);
    array.write(Region({999'000, 999'000}, {1000, 1000}), ones);
    const TileSource source(std::make_shared<Array>(array), Reference::cache(), "a");
    const Tile tile = source.tile({.row_level = 12, .column_level = 12, .with = Coarsening::max});
    ASSERT_EQ(tile.values.shape(), (Shape{245, 245}));
    EXPECT_FALSE(tile.sampled);
    EXPECT_EQ(tile.decoded, 2);
    const auto found = numbers_of(tile);
    EXPECT_EQ(found[static_cast<std::size_t>(500'000 / 4096 * 245 + 300'000 / 4096)], 1);
    EXPECT_EQ(found[static_cast<std::size_t>(244 * 245 + 244)], 1);
    EXPECT_EQ(std::ranges::count(found, 0),
              std::ssize(found) - static_cast<std::int64_t>(std::ranges::count(found, 1)));

    const TilePreview preview = source.preview({});
    EXPECT_LE(preview.values.count(), 512);
    EXPECT_EQ(std::ranges::count(preview.values.values<double>(), 1), 2);
}

TEST(Tiles, PreviewsShowEachChunkOnce) {
    const auto cache = std::make_shared<TileCache>(1 << 20);
    const TileSource source(std::make_shared<Array>(counting_array({95, 40}, {10, 20})), cache, "a");
    const TilePreview preview = source.preview({.rows = 1, .columns = 0});
    ASSERT_EQ(preview.values.shape(), (Shape{2, 10}));
    EXPECT_EQ(preview.row_length, 20);
    EXPECT_EQ(preview.column_length, 10);
    // Elements [35:40] of row 30, transposed.
    EXPECT_NEAR(preview.values.values<double>()[10 + 3], 40 * 35 + 30, 5 * 40);
    EXPECT_EQ(cache->chunks_decoded(), 0);
}

TEST(Tiles, ShowNewVersionsOfChunks) {
    const auto store = memory_store();
    Array array = Array::create(store, {.shape = {20, 20}, .chunks = {10, 10}, .dtype = DType("<i4"), .format = "v2"});
    const TileSource source(std::make_shared<Array>(Array::open(store)), Reference::cache(), "a");
    const TileRequest request{.row_level = 1, .column_level = 1, .with = Coarsening::max};
    const Tile empty = source.tile(request);
    array.write(":10, :10", 5);
    const Tile first = source.tile(request);
    array.write("3, 3", 9);
    const Tile second = source.tile(request);
    EXPECT_EQ(numbers_of(empty)[0], 0);
    EXPECT_EQ(numbers_of(first)[0], 5);
    EXPECT_EQ(numbers_of(second)[11], 9);
    EXPECT_NE(empty.version, first.version);
    EXPECT_NE(first.version, second.version);
    EXPECT_EQ(second.version, source.tile(request).version);
}

TEST(Tiles, StopWhenAskedTo) {
    const TileSource source(std::make_shared<Array>(counting_array({300, 300}, {10, 10})), Reference::cache(), "a");
    std::stop_source stop;
    stop.request_stop();
    expect_error(ErrorCode::cancelled, "", [&] { (void)source.tile({}, {.stop = stop.get_token()}); });
    EXPECT_EQ(source.tile({}).values.shape(), (Shape{256, 256}));
}

TEST(Tiles, RefuseWhatIsNotThere) {
    const TileSource source(std::make_shared<Array>(counting_array({30, 30}, {10, 10})), Reference::cache(), "a");
    expect_error(ErrorCode::out_of_bounds, "", [&] { (void)source.tile({.row = 1}); });
    expect_error(ErrorCode::out_of_bounds, "", [&] { (void)source.tile({.column = -1}); });
    expect_error(ErrorCode::invalid_argument, "", [&] { (void)source.tile({.row_level = 41}); });
    expect_error(ErrorCode::invalid_argument, "", [&] { (void)source.tile({.row_level = -1}); });
    expect_error(ErrorCode::invalid_argument, "", [&] { (void)source.tile({.slice = {.rows = 1, .columns = 1}}); });
    expect_error(ErrorCode::invalid_argument, "", [&] { (void)source.tile({.slice = {.rows = 0, .columns = 2}}); });
    expect_error(ErrorCode::invalid_argument, "", [&] { (void)source.tile({.slice = {.at = {1}}}); });
    expect_error(ErrorCode::invalid_argument, "", [&] { (void)source.tile({.with = Coarsening::mode}); });
    const NDArray line = counting({5});
    expect_error(ErrorCode::invalid_argument, "",
                 [&] { (void)TileSource(view_source(line.view(), "line"), Reference::cache(), ""); });
    const NDArray text(DType("<U3"), {2, 2});
    expect_error(ErrorCode::unsupported, "",
                 [&] { (void)TileSource(view_source(text.view(), "text"), Reference::cache(), ""); });
}

}  // namespace
}  // namespace tessera
