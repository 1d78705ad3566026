// Arrays with shards: what is read and written of them, counted; shards that zarr-python wrote, changed here; shards
// larger than the memory budget; several threads at one shard.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <tessera/copy_elements.h>
#include <tessera/npy.h>
#include <tessera/shard.h>
#include <tessera/tessera.h>

#include <atomic>
#include <filesystem>
#include <map>
#include <mutex>
#include <numeric>
#include <random>
#include <thread>

#include "expect_error.h"
#include "forwarding_store.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

/// A store in memory that counts what is read of each value and how often each is replaced.
class CountingStore final : public ForwardingStore {
public:
    CountingStore() : ForwardingStore(memory_store()) {}

    struct Counts {
        int opened = 0;
        int read = 0;
        std::uint64_t read_bytes = 0;
        int written = 0;
        int erased = 0;
    };

    [[nodiscard]] std::unique_ptr<ByteSource> open(std::string_view key) const override {
        auto value = inner().open(key);
        if (!value) return nullptr;
        count(key, [](Counts& c) { ++c.opened; });
        return std::make_unique<Source>(*this, std::string(key), std::move(value));
    }
    void put(std::string_view key, ByteSpan value) override {
        count(key, [](Counts& c) { ++c.written; });
        inner().put(key, value);
    }
    [[nodiscard]] std::unique_ptr<ByteSink> create(std::string_view key) override {
        count(key, [](Counts& c) { ++c.written; });
        return inner().create(key);
    }
    bool erase(std::string_view key) override {
        count(key, [](Counts& c) { ++c.erased; });
        return inner().erase(key);
    }

    /// Since the last call, of values with an "/" in their keys: chunks and shards.
    [[nodiscard]] std::map<std::string, Counts> take() {
        const std::lock_guard lock(mutex_);
        std::erase_if(counts_, [](const auto& entry) { return entry.first.find('/') == std::string::npos; });
        return std::exchange(counts_, {});
    }

private:
    class Source final : public ByteSource {
    public:
        Source(const CountingStore& store, std::string key, std::unique_ptr<ByteSource> inner)
            : store_(store), key_(std::move(key)), inner_(std::move(inner)) {}
        [[nodiscard]] std::uint64_t size() const override { return inner_->size(); }
        void read(std::uint64_t offset, MutableByteSpan out) const override {
            store_.count(key_, [&](Counts& c) {
                ++c.read;
                c.read_bytes += out.size();
            });
            inner_->read(offset, out);
        }
        [[nodiscard]] const std::string& name() const override { return inner_->name(); }

    private:
        const CountingStore& store_;
        std::string key_;
        std::unique_ptr<ByteSource> inner_;
    };

    void count(std::string_view key, const std::function<void(Counts&)>& add) const {
        const std::lock_guard lock(mutex_);
        add(counts_[std::string(key)]);
    }

    mutable std::mutex mutex_;
    mutable std::map<std::string, Counts> counts_;
};

NDArray ramp(const Shape& shape) {
    NDArray a("<i4", shape);
    std::iota(a.values<std::int32_t>().begin(), a.values<std::int32_t>().end(), 1);
    return a;
}

ArrayOptions sharded(const Shape& shape, const Shape& chunks, const Shape& shards, std::string codec = "zstd:1") {
    return {.shape = shape,
            .chunks = chunks,
            .dtype = "<i4",
            .fill_value = 0,
            .shards = shards,
            .codec = std::move(codec),
            .format = "v3"};
}

Buffer value_of(const ReadableStore& store, std::string_view key) {
    Buffer bytes;
    EXPECT_TRUE(store.get(key, bytes)) << key;
    return bytes;
}

/// A shard in a store, as the array's metadata say.
class OpenShard {
public:
    OpenShard(const Array& array, const ReadableStore& store, std::string_view key)
        : pipeline_({array.metadata().dtype, array.metadata().chunks, array.metadata().fill.bytes},
                    array.metadata().codecs),
          shard_(*pipeline_.shard(), store.open(key)) {}
    /// The encoded bytes of an inner chunk; empty where it is absent.
    [[nodiscard]] std::vector<std::byte> bytes(const Index& inner) const {
        const auto& place = shard_.place(inner);
        if (!place.present()) return {};
        const Buffer b = read_range(shard_.bytes(), place.offset, place.size);
        return {b.data(), b.data() + b.size()};
    }
    [[nodiscard]] const ShardCodec& codec() const { return *pipeline_.shard(); }

private:
    CodecPipeline pipeline_;
    Shard shard_;
};

TEST(Sharded, chunks_are_inner_chunks_and_shards_are_what_is_stored) {
    const auto store = memory_store();
    Array a = Array::create(store, sharded({20, 30}, {2, 5}, {10, 15}));
    EXPECT_EQ(a.chunks(), (Shape{2, 5}));
    EXPECT_EQ(a.shards(), (Shape{10, 15}));
    EXPECT_EQ(a.metadata().chunks, (Shape{10, 15}));
    EXPECT_EQ(a.stored_size().chunks_possible, 4);
    a.write("0:2, 0:20", ramp({2, 20}));
    EXPECT_EQ(a.stored_size().chunks, 2);
    EXPECT_TRUE(a.is_stored({{5, 0}, {5, 30}}));
    EXPECT_FALSE(a.is_stored({{5, 0}, {6, 30}}));
    a.write("0:2, 15:20", NDArray::copy_of(Array::create(memory_store(), sharded({2, 5}, {2, 5}, {2, 5})).read("")));
    EXPECT_EQ(a.stored_size().chunks, 1) << "a shard of nothing but the fill is no shard";
    const NDArray all = ramp({2, 20});
    EXPECT_TRUE(elements_equal(a.read("0:2, 0:15"), all.view().part({{0, 0}, {2, 15}})));

    // A shard that is compressed as a whole is a chunk like any other.
    ArrayMetadata m = a.metadata();
    m.codecs.push_back(parse_codec("gzip"));
    Array b = Array::create(memory_store(), dialect_named("v3"), m);
    EXPECT_EQ(b.chunks(), (Shape{10, 15}));
    EXPECT_TRUE(b.shards().empty());
    b.write("3:7, 4:22", ramp({4, 18}));
    EXPECT_TRUE(elements_equal(b.read("3:7, 4:22"), ramp({4, 18})));
}

TEST(Sharded, a_write_puts_each_touched_shard_anew_once_and_no_other) {
    const auto store = std::make_shared<CountingStore>();
    Array a = Array::create(store, sharded({40, 40}, {2, 2}, {10, 10}));
    const NDArray all = ramp({40, 40});
    a.write("", all);
    auto counts = store->take();
    EXPECT_EQ(counts.size(), 16U);
    for (const auto& [key, c] : counts) {
        EXPECT_EQ(c.written, 1) << key;
        EXPECT_EQ(c.opened, 0) << key << " was replaced as a whole";
    }
    for (const char* selection : {"5:25, 11:12", "3, 3", "::9, 30:", "39:4:-7, 2:8:3"}) {
        const Selection s = Selection::parse(selection, a.shape());
        const Region bounds = s.bounds();
        NDArray model = a.read("");
        std::map<std::string, Buffer> before;
        for (std::int64_t n = 0; n < 16; ++n) {
            const std::string key = fmt::format("c/{}/{}", n / 4, n % 4);
            before[key] = value_of(*store, key);
        }
        (void)store->take();
        NDArray in("<i4", s.shape());
        fill_elements(in, all.bytes().data() + 4 * 77);
        a.write(s, in);
        counts = store->take();
        EXPECT_FALSE(counts.empty());
        for (const auto& [key, c] : counts) {
            EXPECT_EQ(c.written, 1) << selection << ' ' << key;
            EXPECT_EQ(c.opened, 1) << selection << ' ' << key;
        }
        // Every inner chunk from which nothing is picked is the same bytes as before.
        for (const auto& [key, bytes] : before) {
            const Buffer now = value_of(*store, key);
            if (!counts.contains(key)) {
                EXPECT_TRUE(std::ranges::equal(now.span(), bytes.span())) << selection << ' ' << key;
                continue;
            }
            store->put("old/value", bytes);
            const OpenShard was(a, *store, "old/value");
            const OpenShard is(a, *store, key);
            const Index corner{10 * (key[2] - '0'), 10 * (key[4] - '0')};
            for (std::int64_t i = 0; i < 25; ++i) {
                const Index inner = was.codec().grid().index(i);
                const Region box({corner[0] + 2 * inner[0], corner[1] + 2 * inner[1]}, {2, 2});
                if (intersection(box, bounds).empty()) {
                    EXPECT_EQ(was.bytes(inner), is.bytes(inner)) << selection << ' ' << key << inner.to_string();
                }
            }
        }
    }
    (void)store->take();
    a.fill(Selection::parse("0:10, 0:20", a.shape()), 0);
    counts = store->take();
    EXPECT_EQ(counts.size(), 2U);
    for (const auto& [key, c] : counts) EXPECT_EQ(c.written * 10 + c.erased, 1) << key;
}

TEST(Sharded, one_inner_chunk_of_a_large_shard_is_read_alone) {
    const auto store = std::make_shared<CountingStore>();
    // 1 GiB in chunks of 1 MiB; what is never written takes no room.
    Array a = Array::create(store, sharded({16384, 16384}, {512, 512}, {16384, 16384}, "none"));
    a.write("1024:1536, 512:1024", ramp({512, 512}));
    a.write("9000, 9000", ramp({}));
    (void)store->take();
    NDArray part("<i4", {512, 512});
    for (const int threads : {1, 2}) {
        a.read_into(Region({1024, 512}, {512, 512}), part, {.threads = threads});
        EXPECT_TRUE(elements_equal(part, ramp({512, 512})));
        const auto counts = store->take();
        ASSERT_EQ(counts.size(), 1U);
        const auto& c = counts.at("c/0/0");
        EXPECT_EQ(c.opened, 1);
        EXPECT_EQ(c.read, 2);
        EXPECT_LT(c.read_bytes, (1024U + 64) << 10);
    }
    EXPECT_EQ(a.read("9000, 8999:9002").values<std::int32_t>()[1], 1);
}

TEST(Sharded, neighbours_are_read_together_and_many_regions_open_a_shard_once) {
    const auto store = std::make_shared<CountingStore>();
    Array a = Array::create(store, sharded({64, 64}, {8, 8}, {32, 64}));
    const NDArray all = ramp({64, 64});
    a.write(Region::whole({64, 64}), all.view());
    (void)store->take();
    for (const int threads : {1, 2}) {
        EXPECT_TRUE(elements_equal(a.read(Region::whole({64, 64}), {.threads = threads}), all));
        for (const auto& [key, c] : store->take()) {
            EXPECT_EQ(c.opened, 1) << key;
            EXPECT_EQ(c.read, 2) << key;  // the index, and all inner chunks, which lie one behind the other
        }
        // Two rows of inner chunks with two between them, and one element.
        const std::vector<Region> regions{{{0, 0}, {8, 64}}, {{24, 0}, {7, 64}}, {{1, 1}, {1, 1}}};
        std::vector<NDArray> out;
        std::vector<RegionRead> parts;
        for (const Region& region : regions) out.emplace_back("<i4", region.extent);
        for (std::size_t i = 0; i < out.size(); ++i) parts.push_back({regions[i], out[i].view()});
        a.read_many(parts, {.threads = threads});
        for (std::size_t i = 0; i < out.size(); ++i)
            EXPECT_TRUE(elements_equal(out[i], all.view().part(regions[i]))) << i;
        const auto counts = store->take();
        ASSERT_EQ(counts.size(), 1U);
        EXPECT_EQ(counts.at("c/0/0").opened, 1);
        EXPECT_EQ(counts.at("c/0/0").read, 3);
    }
}

TEST(Sharded, the_bytes_do_not_depend_on_the_number_of_threads) {
    std::vector<Buffer> shards;
    for (const int threads : {1, 2, 0}) {
        const auto store = memory_store();
        Array a = Array::create(store, sharded({100, 90}, {10, 9}, {100, 90}));
        a.write("", ramp({100, 90}), {.threads = threads});
        a.write("7:60, 20:70", ramp({53, 50}), {.threads = threads});
        shards.push_back(value_of(*store, "c/0/0"));
    }
    EXPECT_TRUE(std::ranges::equal(shards[0].span(), shards[1].span()));
    EXPECT_TRUE(std::ranges::equal(shards[0].span(), shards[2].span()));
}

TEST(Sharded, threads_at_one_shard_lose_nothing) {
    const fs::path dir = fs::path(testing::TempDir()) / "tessera_sharded_threads";
    fs::remove_all(dir);
    const NDArray all = ramp({64, 32});
    Array::create(dir, sharded({64, 32}, {4, 4}, {32, 32}));
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&, t] {
            Array mine = Array::open(dir);
            for (std::int64_t row = t; row < 64; row += 4) {
                const Region r({row, 0}, {1, 32});
                mine.write(r, all.view().part(r));
            }
        });
    }
    for (std::thread& t : threads) t.join();
    EXPECT_TRUE(elements_equal(Array::open(dir).read(""), all));
    fs::remove_all(dir);
}

/// Everything below a prefix of one store, put into another.
void copy_values(const ReadableStore& from, const PlaceRef& place) {
    const Listing below = from.list(place.prefix);
    for (const std::string& name : below.keys) place.store.put(place.key(name), value_of(from, place.key(name)));
    for (const std::string& name : below.prefixes) copy_values(from, {place.store, place.key(name)});
}

TEST(Sharded, what_zarr_python_wrote_is_read_in_parts_and_changed) {
    std::mt19937 random(12);
    const auto draw = [&](std::int64_t low, std::int64_t high) {
        return std::uniform_int_distribution<std::int64_t>(low, high)(random);
    };
    for (const char* name : {"shard_end", "shard_start", "shard_index_no_crc_be", "shard_inner_pipeline",
                             "shard_missing_inner", "shard_missing_shard", "shard_nested", "shard_raw_inner",
                             "shard_rewritten", "shard_then_outer_gzip", "sharded_z308", "sharded_z316"}) {
        SCOPED_TRACE(name);
        const fs::path golden = fs::path(TESSERA_GOLDEN) / "zarr3";
        const auto store = memory_store();
        copy_values(*directory_store(golden / name, {.read_only = true}), *store);
        Array array = Array::open(store);
        const auto npy = open_npy(open_file(golden / fmt::format("{}.expected.npy", name)));
        NDArray expected(array.dtype(), array.shape());
        npy->read_into(Region::whole(array.shape()), expected.view(), {});
        const Shape shape = array.shape();
        EXPECT_TRUE(elements_equal(array.read(""), expected));
        for (int n = 0; n < 30; ++n) {
            Region r = Region::whole(shape);
            for (int d = 0; d < shape.rank(); ++d) {
                r.start[d] = draw(0, shape[d] - 1);
                r.extent[d] = draw(1, shape[d] - r.start[d]);
            }
            EXPECT_TRUE(elements_equal(array.read(r), expected.view().part(r)));
            NDArray in(array.dtype(), r.extent);
            for (std::byte& b : in.bytes()) b = static_cast<std::byte>(draw(0, 2));
            array.write(r, in);
            copy_elements(in, expected.view().part(r));
            EXPECT_TRUE(elements_equal(Array::open(store).read(""), expected));
        }
    }
}

TEST(Sharded, nested_shards_with_the_index_at_either_end) {
    std::mt19937 random(13);
    for (const char* location : {"start", "end"}) {
        ArrayMetadata m = make_metadata(sharded({30, 50}, {4, 6}, {12, 18}));
        m.codecs = {sharding_codec({4, 6}, {sharding_codec({2, 3}, {{"bytes"}, parse_codec("lz4")})})};
        m.codecs[0].configuration.set("index_location", location);
        Array a = Array::create(memory_store(), dialect_named("v3"), m);
        EXPECT_EQ(a.chunks(), (Shape{2, 3}));
        EXPECT_EQ(a.shards(), (Shape{12, 18}));
        NDArray model("<i4", {30, 50});
        fill_elements(model, ElementBytes(4).data());
        for (int n = 0; n < 40; ++n) {
            Region r({static_cast<std::int64_t>(random() % 30), static_cast<std::int64_t>(random() % 50)}, {1, 1});
            r.extent = {1 + static_cast<std::int64_t>(random() % static_cast<unsigned>(30 - r.start[0])),
                        1 + static_cast<std::int64_t>(random() % static_cast<unsigned>(50 - r.start[1]))};
            NDArray in("<i4", r.extent);
            for (std::int32_t& v : in.values<std::int32_t>()) v = static_cast<std::int32_t>(random() % 2);
            a.write(r, in);
            copy_elements(in, model.view().part(r));
            ASSERT_TRUE(elements_equal(a.read(""), model));
            ASSERT_TRUE(elements_equal(a.read(r), in));
        }
    }
}

TEST(Sharded, damage_is_found_and_named) {
    const auto store = memory_store();
    Array a = Array::create(store, sharded({8, 8}, {2, 2}, {4, 4}));
    a.write("", ramp({8, 8}));
    const Buffer whole = value_of(*store, "c/1/0");
    for (const std::size_t size : {std::size_t{0}, std::size_t{10}, whole.size() - 1}) {
        store->put("c/1/0", whole.span().first(size));
        expect_error(ErrorCode::corrupt, "c/1/0", [&] { (void)a.read(""); });
        expect_error(ErrorCode::corrupt, "c/1/0", [&] { a.write("5, 1", ramp({})); });
        const NDArray all = ramp({8, 8});
        EXPECT_TRUE(elements_equal(a.read("0:4"), all.view().part({{0, 0}, {4, 8}})));
    }
    Buffer bent(whole.span());
    bent.data()[3] ^= std::byte{0xff};  // in the first inner chunk
    store->put("c/1/0", bent);
    expect_error(ErrorCode::corrupt, "inner chunk (0, 0)", [&] { (void)a.read("4, 1"); });
    EXPECT_EQ(a.read("6, 2").values<std::int32_t>()[0], 51) << "the others are still there";
    a.write("4:, :4", ramp({4, 4}));  // nothing of the old one is needed
    EXPECT_TRUE(elements_equal(a.read("4:, :4"), ramp({4, 4})));
}

/// A source of any size without any memory: the sum of the indices.
class IndexSource final : public ArraySource {
public:
    IndexSource(Shape shape, Shape chunks) : shape_(shape), chunks_(chunks) {}
    [[nodiscard]] ArrayInfo info() const override { return {.dtype = "<i4", .shape = shape_, .chunks = chunks_}; }
    void read_into(const Region& region, const MutableArrayView& out, const IoOptions&) const override {
        largest = std::max<std::int64_t>(largest, region.count());
        const auto v = out.typed<std::int32_t>();
        for (std::int64_t i = 0; i < region.extent[0]; ++i) {
            for (std::int64_t k = 0; k < region.extent[1]; ++k) {
                v(i, k) = static_cast<std::int32_t>((region.start[0] + i) * shape_[1] + region.start[1] + k);
            }
        }
    }
    [[nodiscard]] const std::string& name() const override { return name_; }
    mutable std::atomic<std::int64_t> largest = 0;

private:
    Shape shape_;
    Shape chunks_;
    std::string name_ = "indices";
};

TEST(Sharded, shards_above_the_memory_budget_are_copied_block_by_block) {
    const auto store = std::make_shared<CountingStore>();
    // Two rows of shards of 4 MiB, the last ones cut at the edge.
    Array a = Array::create(store, sharded({1500, 1800}, {64, 64}, {1024, 1024}));
    const IndexSource source({1500, 1800}, {});
    copy_array(source, a, {.io = {.max_memory = std::uint64_t{2} << 20}});
    EXPECT_LT(source.largest * 4, 2 << 20);
    auto counts = store->take();
    EXPECT_EQ(counts.size(), 4U);
    for (const auto& [key, c] : counts) EXPECT_EQ(c.written, 1) << key;
    NDArray expected("<i4", {1500, 1800});
    source.read_into(Region::whole({1500, 1800}), expected, {});
    EXPECT_TRUE(elements_equal(a.read(""), expected));

    // From there into chunks of another shape, and a selection with a dropped dimension into other shards.
    Array b =
        Array::create(memory_store(), {.shape = {1500, 1800}, .chunks = {100, 700}, .dtype = "<i4", .format = "v3"});
    copy_array(a, b, {.io = {.max_memory = std::uint64_t{2} << 20}});
    EXPECT_TRUE(elements_equal(b.read(""), expected));
    const IndexSource rows({3, 1'500'000}, {});
    Array row = Array::create(memory_store(), sharded({1'500'000}, {10'000}, {1'000'000}));
    const Selection backwards = Selection::parse("1, ::-1", rows.info().shape);
    copy_array(rows, row, {.io = {.max_memory = std::uint64_t{2} << 20}, .selection = backwards});
    EXPECT_TRUE(elements_equal(row.read(""), read_selection(rows, backwards)));

    // An append that begins within a shard, and within an inner chunk.
    (void)store->take();
    const IndexSource more({700, 1800}, {});
    a.append(more, 0, {.max_memory = std::uint64_t{2} << 20});
    counts = store->take();
    EXPECT_EQ(counts.size(), 4U);
    for (const auto& [key, c] : counts) EXPECT_EQ(c.written, 1) << key;
    EXPECT_TRUE(elements_equal(a.read(":1500"), expected));
    NDArray appended("<i4", {700, 1800});
    more.read_into(Region::whole({700, 1800}), appended, {});
    EXPECT_TRUE(elements_equal(a.read("1500:"), appended));
    Array c = Array::create(memory_store(), sharded({2200, 1800}, {64, 64}, {1024, 1024}));
    expect_error(ErrorCode::budget, "a memory budget of 1000 bytes is too small",
                 [&] { copy_array(a, c, {.io = {.max_memory = 1000}}); });
}

TEST(Sharded, a_shard_as_a_sink_appears_when_it_is_finished) {
    const auto store = memory_store();
    Array a = Array::create(store, sharded({8, 8}, {2, 2}, {4, 4}));
    EXPECT_EQ(Array::create(memory_store(), {.shape = {4}, .chunks = {2}, .dtype = "<i4"}).shards(), Shape());
    expect_error(ErrorCode::invalid_argument, "does not lie in one shard", [&] {
        (void)a.open_shard({{2, 2}, {4, 2}});
    });
    {
        const auto dropped = a.open_shard({{4, 0}, {4, 4}});
        dropped->write({{0, 0}, {4, 4}}, ramp({4, 4}), {});
    }
    EXPECT_EQ(a.stored_size().chunks, 0);
    const auto shard = a.open_shard({{4, 0}, {4, 4}});
    EXPECT_EQ(shard->info().chunks, (Shape{2, 2}));
    shard->write({{2, 0}, {2, 4}}, ramp({2, 4}), {});
    shard->write({{0, 2}, {2, 2}}, ramp({2, 2}), {});
    EXPECT_EQ(a.stored_size().chunks, 0);
    shard->finish();
    EXPECT_TRUE(elements_equal(a.read("6:8, 0:4"), ramp({2, 4})));
    EXPECT_TRUE(elements_equal(a.read("4:6, 2:4"), ramp({2, 2})));
    EXPECT_EQ(a.read("4, 1").values<std::int32_t>()[0], 0);
}

TEST(Sharded, what_a_resize_uncovers_is_the_fill) {
    const auto store = std::make_shared<CountingStore>();
    Array a = Array::create(store, sharded({10}, {2}, {8}));
    a.write("", ramp({10}));
    a.resize({3});
    EXPECT_EQ(a.stored_size().chunks, 1);
    (void)store->take();
    a.resize({16});
    const auto counts = store->take();
    EXPECT_EQ(counts.at("c/0").written, 1);
    const NDArray all = a.read("");
    for (std::size_t i = 0; i < 16; ++i) {
        EXPECT_EQ(all.values<std::int32_t>()[i], i < 3 ? static_cast<std::int32_t>(i) + 1 : 0) << i;
    }
    const OpenShard shard(a, *store, "c/0");
    EXPECT_FALSE(shard.bytes({1}).empty());
    EXPECT_TRUE(shard.bytes({2}).empty()) << "inner chunks of nothing but the fill are left out";
    // What is complete already is not written again.
    a.resize({8});
    (void)store->take();
    a.resize({12});
    EXPECT_EQ(store->take()["c/0"].written, 0);
}

}  // namespace
}  // namespace tessera
