// What comes before what, and what is on the disk before what: the promises that only a crash or a power failure would
// show broken. The order of the changes is recorded on their way to the store.
#include <gtest/gtest.h>
#include <tessera/seal.h>
#include <tessera/tessera.h>
#include <tessera/verify.h>

#include <filesystem>
#include <vector>

#include "expect_error.h"
#include "recording_store.h"
#include "temporary_folder.h"

namespace tessera {
namespace {

using Kind = Event::Kind;

struct Layout {
    const char* name;
    const char* format;
    Shape shards = {};
};

void PrintTo(const Layout& layout, std::ostream* out) {
    *out << layout.name;
}

const std::vector<Layout> layouts{
    {"zmeta", "zmeta"}, {"v1", "v1"}, {"v2", "v2"}, {"v3", "v3"}, {"sharded", "v3", {8, 8}}};

const IoOptions one_thread{.threads = 1};

bool is_own(const Event& e) {
    return e.key.starts_with(".tessera");
}
/// An event of the array itself.
bool in_array(const Event& e) {
    return e.kind != Kind::sync && !is_own(e);
}
bool any_change(const Event& e) {
    return e.kind != Kind::sync;
}

/// An array of 10×9 sevens, the last chunks of which are cut, in a directory or in memory.
class Order : public testing::TestWithParam<std::tuple<Layout, bool>> {
protected:
    Order() {
        const auto& [layout, directory] = GetParam();
        inner_ = directory ? directory_store(folder_ / "a", {.durability = Durability::none}) : memory_store();
        store_ = std::make_shared<RecordingStore>(inner_);
        array_ = Array::create(store_, {.shape = {10, 9},
                                        .chunks = {4, 4},
                                        .dtype = "<i4",
                                        .fill_value = -1,
                                        .shards = layout.shards,
                                        .format = layout.format});
        array_->fill(Selection::all({10, 9}), 7, one_thread);
        document_ = array_->dialect().metadata_key;
        metadata_ = [this](const Event& e) { return e.key == document_; };
        chunk_ = [keys = array_->metadata().keys](const Event& e) { return keys.parse(e.key, 2).has_value(); };
        (void)store_->take();
    }

    /// Events of a kind, of chunks.
    [[nodiscard]] Which chunks(Kind kind) const {
        return [kind, chunk = chunk_](const Event& e) { return e.kind == kind && chunk(e); };
    }

    static NDArray block(const Shape& shape, std::int32_t value) {
        NDArray elements(DType::of<std::int32_t>(), shape);
        std::ranges::fill(elements.values<std::int32_t>(), value);
        return elements;
    }

    /// A batch that replaces chunks, erases others, and changes metadata.
    static void change(Array& array, std::int32_t value) {
        array.write(Region{{0, 0}, {5, 5}}, block({5, 5}, value).view(), one_thread);
        array.resize({10, 4}, one_thread);
        array.attributes().set("state", Value(std::int64_t{value}));
    }

    /// What must hold from the first value that is put in place on.
    void expect_applied_in_order(const std::vector<Event>& events) const {
        const Which kept = [](const Event& e) {
            return e.key.starts_with(".tessera/undo/") && e.key != ".tessera/undo/changes" && e.kind != Kind::erase;
        };
        const Which over = [](const Event& e) { return e.key == ".tessera/undo/changes" && e.kind != Kind::erase; };
        EXPECT_TRUE(in_turn(events, kept, in_array, true)) << "an old value is lost by a power failure";
        EXPECT_TRUE(in_turn(events, chunks(Kind::replace), metadata_, false)) << "chunks, then metadata";
        EXPECT_TRUE(in_turn(events, in_array, over, true)) << "the journal goes when all is in place";
        EXPECT_TRUE(then_durable(events, over));
    }

    /// The same of the whole of a batch.
    void expect_batch_in_order(const std::vector<Event>& events) const {
        const Which journal = [](const Event& e) { return e.key == ".tessera/batch/journal"; };
        const Which staged = [&](const Event& e) {
            return e.key.starts_with(".tessera/batch/") && !journal(e) && e.kind != Kind::erase;
        };
        // Old values may be kept before: nothing knows of them yet.
        const Which after = [](const Event& e) {
            return in_array(e) || (e.key == ".tessera/undo/changes" && e.kind != Kind::erase);
        };
        EXPECT_TRUE(in_turn(events, staged, journal, true)) << "a journal of values that a power failure takes";
        EXPECT_TRUE(in_turn(events, journal, after, true)) << "changes before they are recorded";
        expect_applied_in_order(events);
    }

    TemporaryFolder folder_;
    std::shared_ptr<KeyValueStore> inner_;
    std::shared_ptr<RecordingStore> store_;
    std::optional<Array> array_;
    std::string document_;
    Which metadata_;
    Which chunk_;
};

TEST_P(Order, writes_are_durable_when_they_return) {
    const auto written = [&](const char* what, const auto& write) {
        write();
        const auto events = store_->take();
        EXPECT_TRUE(then_durable(events, chunk_)) << what;
        EXPECT_TRUE(std::ranges::none_of(events, metadata_)) << what;
    };
    const NDArray five = block({5, 5}, 5);
    const Region region{{3, 3}, {5, 5}};
    written("a region", [&] { array_->write(region, five.view(), one_thread); });
    written("a selection", [&] { array_->write(Selection::parse("::2, ::2", {10, 9}), five.view(), one_thread); });
    written("slices as text", [&] { array_->write("5:, :5", five.view(), one_thread); });
    written("one value", [&] { array_->fill(Selection::all({10, 9}), 3, one_thread); });
    written("the fill", [&] { array_->fill(Selection::all({10, 9}), -1, one_thread); });
    written("many regions", [&] {
        const std::vector<RegionWrite> parts{{region, five.view()}};
        array_->write_many(parts, one_thread);
    });
    written("points", [&] {
        const std::vector<Index> points{{1, 1}, {9, 8}};
        array_->write_points(points, block({2}, 4).view(), one_thread);
    });
    written("a cache", [&] {
        CachedArray cached(*array_);
        cached.write(region, five.view(), one_thread);
        cached.flush(one_thread);
    });
    if (array_->shards().empty()) return;
    written("a shard", [&] {
        const auto shard = array_->open_shard(Region{{0, 0}, {8, 8}});
        shard->write(Region{{0, 0}, {8, 8}}, block({8, 8}, 6).view(), one_thread);
        shard->finish();
        array_->finish();
    });
}

TEST_P(Order, growing_writes_the_metadata_last) {
    array_->resize({13, 11}, one_thread);
    const auto events = store_->take();
    EXPECT_TRUE(in_turn(events, chunk_, metadata_, true));
    EXPECT_TRUE(then_durable(events, metadata_));
}

TEST_P(Order, shrinking_writes_the_metadata_first) {
    array_->resize({3, 9}, one_thread);
    const auto events = store_->take();
    EXPECT_TRUE(in_turn(events, metadata_, chunks(Kind::erase), true));
    EXPECT_TRUE(then_durable(events, chunk_));
}

TEST_P(Order, growing_one_way_and_shrinking_the_other_does_both) {
    array_->resize({13, 3}, one_thread);
    const auto events = store_->take();
    EXPECT_TRUE(in_turn(events, chunks(Kind::put), metadata_, true));
    EXPECT_TRUE(in_turn(events, metadata_, chunks(Kind::erase), true));
    EXPECT_TRUE(then_durable(events, chunk_));
}

TEST_P(Order, appending_writes_the_metadata_last) {
    for (const int axis : {0, 1}) {
        Shape more = array_->shape();
        more[axis] = 6;
        array_->append(block(more, 5).view(), axis, one_thread);
        const auto events = store_->take();
        EXPECT_TRUE(in_turn(events, chunk_, metadata_, true));
        EXPECT_TRUE(then_durable(events, metadata_));
    }
}

TEST_P(Order, attributes_are_durable_when_they_are_set) {
    array_->attributes().set("units", Value("m"));
    EXPECT_TRUE(then_durable(store_->take(), in_array));
    array_->attributes().erase("units");
    EXPECT_TRUE(then_durable(store_->take(), in_array));
}

TEST_P(Order, batches_are_recorded_kept_and_applied) {
    for (const std::int32_t value : {1, 2}) {
        Edit edit(*array_);
        edit->resize({10, 9}, one_thread);
        change(edit.array(), value);
        edit.commit();
        expect_batch_in_order(store_->take());
        array_->refresh();
    }
    undo(*array_);
    const auto events = store_->take();
    expect_batch_in_order(events);
    // What the journal of the batch before says is wrong from the first change on.
    EXPECT_TRUE(in_turn(
        events, [](const Event& e) { return e.kind == Kind::erase && e.key == ".tessera/undo/changes"; }, in_array,
        true));
}

TEST_P(Order, batches_write_metadata_after_chunks_and_erase_last) {
    Edit edit(*array_);
    change(edit.array(), 3);
    edit.commit();
    const auto events = store_->take();
    EXPECT_TRUE(in_turn(events, chunks(Kind::replace), metadata_, false));
    EXPECT_TRUE(in_turn(events, metadata_, chunks(Kind::erase), false));
}

TEST_P(Order, batches_whose_old_values_are_not_kept_are_recorded_first_too) {
    Edit edit(*array_, {.keep_old = false});
    change(edit.array(), 3);
    edit.commit();
    const auto events = store_->take();
    const Which journal = [](const Event& e) { return e.kind != Kind::erase && e.key == ".tessera/batch/journal"; };
    const Which done = [](const Event& e) { return e.kind == Kind::erase && e.key == ".tessera/batch/journal"; };
    EXPECT_TRUE(in_turn(events, journal, in_array, true));
    EXPECT_TRUE(in_turn(events, in_array, done, true));
}

TEST_P(Order, batches_that_others_finish_are_applied_likewise) {
    {
        Edit edit(*array_);
        change(edit.array(), 4);
        store_->refuse(in_array);
        EXPECT_THROW(edit.commit(), Error);
    }
    const auto next = std::make_shared<RecordingStore>(inner_);
    EXPECT_EQ(Array::open(next).read("0, 0").values<std::int32_t>()[0], 4);
    auto events = next->take();
    // The old values may have been kept before, but not durably.
    if (std::ranges::none_of(events, [](const Event& e) { return e.kind == Kind::put || e.kind == Kind::link; })) {
        events.insert(events.begin(), {Kind::link, ".tessera/undo/kept.before", "x"});
    }
    expect_applied_in_order(events);
}

TEST_P(Order, new_arrays_are_durable_when_they_are_made) {
    const auto store = std::make_shared<RecordingStore>(memory_store());
    ArrayOptions options{.shape = {4}, .chunks = {2}, .dtype = "<i4"};
    options.format = std::get<0>(GetParam()).format;
    options.attributes.set("units", "m");
    (void)Array::create(store, options);
    const auto events = store->take();
    EXPECT_TRUE(then_durable(events, metadata_));
    EXPECT_TRUE(then_durable(events, any_change));
}

TEST_P(Order, what_repair_and_seal_write_is_durable) {
    const std::string damaged = array_->metadata().keys.key({0, 0});
    Buffer bytes;
    ASSERT_TRUE(inner_->get(damaged, bytes));
    bytes.data()[0] ^= std::byte{0xff};
    inner_->put(damaged, bytes.span());
    EXPECT_EQ(repair(store_, {.io = one_thread}).done, 1);
    const auto mended = store_->take();
    const Which aside = [](const Event& e) { return e.key.starts_with(".tessera/damaged/"); };
    EXPECT_TRUE(then_durable(mended, any_change));
    EXPECT_TRUE(std::ranges::any_of(mended, aside));
    if (!array_->shards().empty()) {
        EXPECT_TRUE(in_turn(mended, aside, chunks(Kind::put), false)) << "the old shard is kept before it is replaced";
    }
    (void)seal(*store_, {.io = one_thread});
    EXPECT_TRUE(then_durable(store_->take(), any_change));
}

INSTANTIATE_TEST_SUITE_P(Layouts, Order, testing::Combine(testing::ValuesIn(layouts), testing::Bool()),
                         [](const auto& p) {
                             return std::string(std::get<0>(p.param).name) +
                                    (std::get<1>(p.param) ? "_directory" : "_memory");
                         });

class GroupOrder : public testing::TestWithParam<const char*> {
protected:
    GroupOrder() {
        Array array = group_.create_array("below/a", {.shape = {8}, .chunks = {4}, .dtype = "<i4"});
        array.fill(Selection::all({8}), 3);
        (void)group_.create_array("below/deep/b", {.shape = {8}, .chunks = {4}, .dtype = "<i4"});
        (void)store_->take();
    }
    static bool is_document(const Event& e) {
        const std::string name = e.key.substr(e.key.rfind('/') + 1);
        return name == "zarr.json" || name == ".zarray" || name == ".zgroup";
    }

    std::shared_ptr<RecordingStore> store_ = std::make_shared<RecordingStore>(memory_store());
    Group group_ = Group::create(store_, dialect_named(GetParam()));
};

TEST_P(GroupOrder, removing_erases_what_says_that_there_is_something_first) {
    group_.remove("below", {.recursive = true});
    const auto events = store_->take();
    EXPECT_EQ(std::ranges::count_if(events, is_document), 4);
    EXPECT_TRUE(in_turn(
        events, is_document, [](const Event& e) { return any_change(e) && !is_document(e); }, true));
    EXPECT_TRUE(then_durable(events, any_change));
    EXPECT_TRUE(store_->list("below").prefixes.empty());
}

TEST_P(GroupOrder, whatever_changes_it_is_durable) {
    const auto changed = [&](const char* what, const auto& change) {
        change();
        EXPECT_TRUE(then_durable(store_->take(), any_change)) << what;
    };
    changed("a group", [&] { (void)group_.create_group("other/one"); });
    changed("an array", [&] { (void)group_.create_array("more/c", {.shape = {8}, .chunks = {4}, .dtype = "<i4"}); });
    changed("a move", [&] { group_.move("below/a", "elsewhere/a"); });
    changed("attributes", [&] { group_.attributes().set("units", Value("m")); });
    changed("consolidated metadata", [&] { group_.consolidate(); });
}

INSTANTIATE_TEST_SUITE_P(Formats, GroupOrder, testing::Values("v2", "v3"));

// v1 may say that there is an array without dimensions, but has no key for its chunk.
TEST(OrderTest, writes_are_refused_where_chunks_have_no_key) {
    const auto store = memory_store();
    const auto made = Array::create(store, {.shape = {4}, .chunks = {2}, .dtype = "<i4", .format = "v1"});
    Buffer document;
    ASSERT_TRUE(store->get("meta", document));
    Value meta = Value::parse({reinterpret_cast<const char*>(document.data()), document.size()});
    meta.set("shape", Value::array());
    meta.set("chunks", Value::array());
    const std::string text = meta.dump();
    store->put("meta", std::as_bytes(std::span(text)));
    Array array = Array::open(store);
    ASSERT_TRUE(array.shape().empty());
    const std::vector<std::int32_t> one{5};
    const auto refused = [&](const auto& write) {
        expect_error(ErrorCode::unsupported, "v1", write);
        EXPECT_TRUE(store->list("").prefixes.empty());
        EXPECT_EQ(store->list("").keys.size(), 2U) << "meta and attrs";
    };
    refused([&] { array.write(Region{}, view(one, Shape{})); });
    refused([&] { array.write(Selection::all({}), view(one, Shape{})); });
    refused([&] {
        const std::vector<RegionWrite> parts{{Region{}, view(one, Shape{})}};
        array.write_many(parts);
    });
}

}  // namespace
}  // namespace tessera
