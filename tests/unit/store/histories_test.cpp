// Everything that changes an array, in random order, beside an array in memory that must always agree with it.
//
// TESSERA_HISTORIES (their number) and TESSERA_HISTORIES_SEED draw others, and more of them; what fails is shown with
// the seed of its own history, which repeats it alone.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <tessera/copy_elements.h>
#include <tessera/element.h>
#include <tessera/tessera.h>
#include <tessera/verify.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "temporary_folder.h"

namespace tessera {
namespace {

unsigned from_environment(const char* name, unsigned otherwise) {
    const char* text = std::getenv(name);
    return text == nullptr ? otherwise : static_cast<unsigned>(std::stoul(text));
}

/// A dtype, fills that fit it, and chains of codecs that lose nothing of it.
struct Elements {
    const char* dtype;
    std::vector<Value> fills;
    std::vector<const char*> codecs = {"none", "blosc:lz4", "zlib:1", "zstd:1"};
};

const std::vector<Elements>& all_elements() {
    static const std::vector<Elements> all{
        {"|b1", {false, true}, {"none", "blosc:lz4", "packbits,zlib:1"}},
        {"|u1", {0, 5, 255}, {"none", "delta,zlib:1", "zstd:1"}},
        {"<i2", {0, 5, -2}, {"none", "delta,zlib:1", "shuffle,zlib:1", "blosc:zstd:1"}},
        {">i4", {0, 5, -7}, {"none", "delta,zlib:1", "shuffle,bz2:1", "blosc:lz4", "zstd:1"}},
        {"<i8", {0, 5}, {"none", "delta,lzma:1", "gzip:1"}},
        {">u8", {0, 5}, {"none", "shuffle,zlib:1", "blosc:lz4:5:bitshuffle"}},
        {"<f4", {0.0, 1.5, -0.0, NAN}},
        {">f8", {0.0, 5.0, -0.0, NAN}},
        {"<f8", {0.0, -0.0, NAN, INFINITY}, {"none", "shuffle,zlib:1", "zstd:1,crc32c"}},
        {">c16", {0, 5}},
        {"|S3", {"", "no"}},
        {">U2", {"", "no"}},
        {"<M8[s]", {0, 1577836800, "NaT"}},
        {">m8[D]", {0, 5, "NaT"}},
        {"|V3", {}},
        {R"([["a", "<i2"], ["b", "|S3"]])", {}},
        {"string", {"", "no"}},
        {"bytes", {"", "no"}, {"none", "zlib:1", "zstd:1"}},
    };
    return all;
}

/// What an array should hold.
struct Expected {
    NDArray elements;
    [[nodiscard]] Shape shape() const { return elements.shape(); }
};

/// A view of what a selection picks from a whole array in memory.
MutableArrayView pick(const MutableArrayView& whole, const Selection& s) {
    MutableArrayView v = whole;
    v.shape = s.full_shape();
    for (int d = 0; d < v.shape.rank(); ++d) {
        const Selection::Axis& a = s.axes()[static_cast<std::size_t>(d)];
        if (v.count() > 0) v.data += a.start * whole.strides[d];
        v.strides[d] = whole.strides[d] * a.step;
    }
    return v;
}

class History {
public:
    explicit History(unsigned seed) : random_(seed) {
        while (!array_) create();
        io_.threads = static_cast<int>(draw(1, 2));
        element_ = array_->metadata().fill.bytes.value_or(zero_element(array_->dtype()));
        expected_ = Expected{filled(array_->shape())};
    }

    void run(int steps) {
        for (int step = 0; step < steps && !testing::Test::HasFailure(); ++step) {
            SCOPED_TRACE(fmt::format("step {}: {}", step, said_));
            said_.clear();
            std::int64_t before = array_->stored_size().chunks;
            const bool resized = one_step();
            check();
            // What is undefined where it is absent must never become absent again.
            if (!array_->metadata().fill.bytes && !resized) {
                EXPECT_GE(array_->stored_size().chunks, before) << said_;
            }
        }
        for (const Finding& finding : verify(store_, {.io = io_}).findings) {
            EXPECT_NE(finding.kind, FindingKind::damage) << finding.key << ": " << finding.text;
        }
    }

    [[nodiscard]] const std::string& description() const { return description_; }
    [[nodiscard]] const std::string& kind() const { return kind_; }

private:
    std::int64_t draw(std::int64_t low, std::int64_t high) {
        return std::uniform_int_distribution<std::int64_t>(low, high)(random_);
    }
    template <class List>
    const auto& one_of(const List& list) {
        return list[static_cast<std::size_t>(draw(0, std::ssize(list) - 1))];
    }

    // ---- the array

    void create() {
        const Elements& elements = one_of(all_elements());
        ArrayOptions options;
        options.dtype = DType::parse(elements.dtype);
        const std::vector<const char*> formats{"zmeta", "v1", "v2", "v3", "v3"};
        options.format = one_of(formats);
        const bool sharded = options.format == "v3" && draw(0, 1) == 0;
        const int rank = static_cast<int>(draw(options.format == "v1" || sharded ? 1 : 0, 3));
        for (int d = 0; d < rank; ++d) {
            options.shape.push_back(draw(0, 12));
            options.chunks.push_back(draw(1, sharded ? 4 : 7));
            if (sharded) options.shards.push_back(options.chunks[d] * draw(1, 4));
        }
        options.codec = options.format == "zmeta" ? "blosc:lz4" : one_of(elements.codecs);
        options.order = draw(0, 2) == 0 ? Order::F : Order::C;
        const std::int64_t fill = draw(-1, std::ssize(elements.fills));
        if (fill >= 0) {
            options.fill_value =
                fill < std::ssize(elements.fills) ? elements.fills[static_cast<std::size_t>(fill)] : Value();
        }
        store_ = draw(0, 3) == 0 ? directory_store(folder_.emplace() / "a", {.durability = Durability::none})
                                 : memory_store();
        try {
            array_ = Array::create(store_, options);
        } catch (const Error& e) {
            // Not every format has every fill, codec and order.
            EXPECT_TRUE(e.code() == ErrorCode::unsupported || e.code() == ErrorCode::invalid_argument) << e.what();
            return;
        }
        kind_ = options.format + (sharded ? " sharded" : "");
        description_ = fmt::format("{} {} of chunks {} shards {} codec {} fill {} {}", kind_, elements.dtype,
                                   options.chunks.to_string(), options.shards.to_string(), options.codec,
                                   options.fill_value ? options.fill_value->dump() : "default",
                                   options.order == Order::F ? "F" : "C");
    }

    /// What is absent reads as, as fill_elements() takes it.
    const std::byte* element() {
        if (!array_->dtype().is_variable()) return element_.data();
        slot_ = {reinterpret_cast<const char*>(element_.data()), element_.size()};
        return reinterpret_cast<const std::byte*>(&slot_);
    }

    NDArray filled(const Shape& shape) {
        NDArray elements(array_->dtype(), shape);
        fill_elements(elements.view(), element());
        return elements;
    }

    /// Few distinct values, so that chunks full of the fill occur.
    NDArray drawn(const DType& dtype, const Shape& shape) {
        NDArray elements(dtype, shape);
        fill_elements(elements.view(), array_->dtype(), element());
        if (draw(0, 3) == 0) return elements;
        if (dtype.is_variable()) return texts(std::move(elements));
        const bool narrow = dtype.kind() == Kind::boolean;
        const auto size = static_cast<std::size_t>(dtype.size());
        const bool sparse = draw(0, 1) == 0;
        for (std::size_t i = 0; i < elements.bytes().size(); i += size) {
            if (sparse && draw(0, 3) != 0) continue;
            for (std::size_t k = 0; k < size; ++k) {
                elements.bytes()[i + k] = static_cast<std::byte>(random_() % (narrow ? 2 : 3));
            }
        }
        return elements;
    }

    NDArray texts(NDArray elements) {
        const MutableArrayView view = elements.view();
        auto* slots = reinterpret_cast<VariableSlot*>(view.data);
        for (std::int64_t i = 0; i < view.count(); ++i) {
            static const std::vector<std::string> all{"", "a", "no", std::string(300, 'x')};
            if (draw(0, 2) > 0) slots[i] = view.arena->add(one_of(all));
        }
        return elements;
    }

    DType some_order() {
        const DType dtype = array_->dtype();
        if (dtype.swap_unit() == 1 || draw(0, 2) > 0) return dtype;
        return dtype.with_order(dtype.order() == ByteOrder::big ? ByteOrder::little : ByteOrder::big);
    }

    // ---- what is done to it

    /// Returns whether the shape was changed, so that chunks may have gone.
    bool one_step() {
        const auto kind = draw(0, 10);
        if (kind == 0) return batch();
        if (kind == 1 || kind == 10) {
            cached();
        } else if (kind == 2) {
            many();
        } else if (kind == 3) {
            said_ += " reopen;";
            array_ = Array::open(store_);
        } else {
            return change(*array_, *expected_);
        }
        return false;
    }

    bool change(Array& array, Expected& expected) {
        const int rank = expected.shape().rank();
        const auto kind = rank == 0 ? 9 : draw(0, 9);
        if (kind <= 2) {
            resize(array, expected);
        } else if (kind == 3) {
            append(array, expected);
        } else {
            write(array, expected);
        }
        return kind <= 2;
    }

    void resize(Array& array, Expected& expected) {
        Shape to = expected.shape();
        for (std::int64_t& n : to) n = std::max<std::int64_t>(0, n + draw(-5, 5));
        said_ += fmt::format(" resize to {};", to.to_string());
        NDArray next = filled(to);
        const Region common = intersection(Region::whole(expected.shape()), Region::whole(to));
        copy_elements(expected.elements.view().part(common), next.view().part(common));
        array.resize(to, io_);
        expected.elements = std::move(next);
    }

    void append(Array& array, Expected& expected) {
        const int rank = expected.shape().rank();
        const int axis = static_cast<int>(draw(0, rank - 1));
        const Shape from = expected.shape();
        Shape more = from;
        more[axis] = draw(0, 5);
        said_ += fmt::format(" append {} along {};", more.to_string(), axis);
        const NDArray block = drawn(some_order(), more);
        Shape to = from;
        to[axis] += more[axis];
        NDArray next = filled(to);
        copy_elements(expected.elements.view(), next.view().part(Region::whole(from)));
        Region place{Index::filled(rank, 0), more};
        place.start[axis] = from[axis];
        copy_elements(block.view(), next.view().part(place));
        EXPECT_EQ(array.append(block.view(), axis - (draw(0, 1) == 0 ? rank : 0), io_), from[axis]);
        expected.elements = std::move(next);
    }

    Selection selection(const Shape& shape) {
        std::vector<Selection::Axis> axes;
        for (const std::int64_t n : shape) {
            std::string text = ":";
            if (n > 0 && draw(0, 4) == 0) {
                text = fmt::format("{}", draw(-n, n - 1));
            } else if (draw(0, 2) > 0) {
                const std::vector<int> steps{1, 1, 1, 2, -3};
                text = fmt::format("{}:{}:{}", draw(-n - 2, n + 2), draw(-n - 2, n + 2), one_of(steps));
            }
            axes.push_back(Selection::parse(text, Shape{n}).axes()[0]);
        }
        return Selection(std::move(axes));
    }

    void write(Array& array, Expected& expected) {
        const Selection s = selection(expected.shape());
        said_ += fmt::format(" write [{}];", s.to_string());
        NDArray block = drawn(some_order(), s.shape());
        array.write(s, block.view(), io_);
        copy_elements(std::move(block).reshaped(s.full_shape()).view(), pick(expected.elements.view(), s));
    }

    Region region() {
        Region r = Region::whole(expected_->shape());
        for (int d = 0; d < r.rank(); ++d) {
            if (r.extent[d] == 0) continue;
            r.start[d] = draw(0, r.extent[d] - 1);
            r.extent[d] = draw(1, r.extent[d] - r.start[d]);
        }
        return r;
    }

    void many() {
        said_ += " write many;";
        std::vector<Region> regions;
        std::vector<NDArray> blocks;
        for (auto n = draw(1, 5); n > 0; --n) {
            regions.push_back(region());
            blocks.push_back(drawn(some_order(), regions.back().extent));
        }
        std::vector<RegionWrite> parts;
        for (std::size_t i = 0; i < regions.size(); ++i) {
            parts.push_back({regions[i], blocks[i].view()});
            copy_elements(blocks[i].view(), expected_->elements.view().part(regions[i]));
        }
        array_->write_many(parts, io_);
    }

    void cached() {
        said_ += " through a cache;";
        const Shape chunks = array_->chunks();
        const auto room =
            static_cast<std::uint64_t>(byte_count(chunks, array_->dtype().size()) + element_count(chunks));
        CachedArray cache(*array_, std::max<std::uint64_t>(1, room) * static_cast<std::uint64_t>(draw(1, 4)));
        for (auto n = draw(1, 6); n > 0; --n) {
            const Region r = region();
            if (draw(0, 3) == 0) {
                EXPECT_TRUE(elements_equal(cache.read(r, io_).view(), expected_->elements.view().part(r)));
                continue;
            }
            const NDArray block = drawn(some_order(), r.extent);
            cache.write(r, block.view(), io_);
            copy_elements(block.view(), expected_->elements.view().part(r));
        }
        cache.flush(io_);
    }

    bool batch() {
        said_ += " batch:";
        Expected after{NDArray::copy_of(expected_->elements.view())};
        const auto parts = draw(1, 4);
        const bool commits = draw(0, 3) > 0;
        Edit edit(*array_);
        for (auto n = parts; n > 0; --n) change(edit.array(), after);
        if (!commits) {
            said_ += " dropped;";
            return false;
        }
        const bool changes = edit.commit() > 0;
        said_ += " committed;";
        std::swap(*expected_, after);
        array_->refresh();
        for (bool again = true; changes && again && draw(0, 2) == 0; again = draw(0, 1) == 0) {
            check();
            said_ += " undo;";
            undo(*array_);
            std::swap(*expected_, after);
            array_->refresh();
        }
        return true;
    }

    // ---- what must hold

    void check() {
        ASSERT_EQ(array_->shape(), expected_->shape()) << said_;
        ASSERT_TRUE(elements_equal(array_->read("", io_).view(), expected_->elements.view())) << said_;
        // Into memory of either byte order, absent chunks and all.
        NDArray other(some_order(), expected_->shape());
        array_->read_into(Region::whole(expected_->shape()), other.view(), io_);
        ASSERT_TRUE(elements_equal(other.view(), expected_->elements.view()))
            << said_ << " read as " << other.dtype().str();
        const Array again = Array::open(store_);
        ASSERT_TRUE(elements_equal(again.read("", io_).view(), expected_->elements.view())) << said_;
        // Every chunk that differs from the fill is stored, and nothing outside the grid.
        const ArrayMetadata metadata = array_->metadata();
        const ChunkGrid grid(metadata.shape, metadata.chunks);
        std::int64_t wanted = 0;
        for (std::int64_t n = 0; n < grid.chunk_count(); ++n) {
            const Region r = grid.chunk_region(grid.index(n));
            wanted += all_elements_equal(expected_->elements.view().part(r), element()) ? 0 : 1;
        }
        const StoredSize stored = array_->stored_size();
        ASSERT_LE(wanted, stored.chunks) << said_;
        ASSERT_EQ(stored.strays, 0) << said_;
    }

    std::mt19937 random_;
    IoOptions io_;
    std::optional<TemporaryFolder> folder_;
    std::shared_ptr<KeyValueStore> store_;
    std::optional<Array> array_;
    ElementBytes element_;  ///< what is absent reads as: its content
    VariableSlot slot_;
    std::optional<Expected> expected_;
    std::string kind_;
    std::string description_;
    std::string said_;  ///< of the present step
};

TEST(Histories, agree_with_an_array_in_memory) {
    const unsigned first = from_environment("TESSERA_HISTORIES_SEED", 1);
    const unsigned count = from_environment("TESSERA_HISTORIES", 300);
    std::map<std::string, int> kinds;
    for (unsigned seed = first; seed < first + count && !HasFailure(); ++seed) {
        History history(seed);
        SCOPED_TRACE(fmt::format("TESSERA_HISTORIES=1 TESSERA_HISTORIES_SEED={}: {}", seed, history.description()));
        try {
            history.run(14);
        } catch (const Error& e) {
            ADD_FAILURE() << e.what();
        }
        ++kinds[history.kind()];
    }
    if (count < 100) return;
    for (const char* kind : {"zmeta", "v1", "v2", "v3", "v3 sharded"}) EXPECT_GT(kinds[kind], count / 25) << kind;
}

}  // namespace
}  // namespace tessera
