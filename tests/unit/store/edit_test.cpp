// Batches of edits: all or nothing, whatever fails, and taken back again.
#include <tessera/edit.h>

#include <gtest/gtest.h>
#include <tessera/error.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <numeric>
#include <vector>

#include "dying_store.h"
#include "expect_error.h"
#include "journal.h"
#include "temporary_folder.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

struct Kind {
    const char* format;
    Shape shards;
};

void PrintTo(const Kind& kind, std::ostream* out) {
    *out << kind.format << (kind.shards.empty() ? "" : " sharded");
}

const std::vector<Kind> kinds{{"zmeta", {}}, {"v1", {}}, {"v2", {}}, {"v3", {}}, {"v3", {8, 8}}};

Array make(const std::shared_ptr<KeyValueStore>& store, const Kind& kind) {
    Array array = Array::create(store, {.shape = {20, 12},
                                        .chunks = {4, 4},
                                        .dtype = DType::parse("<i4"),
                                        .fill_value = Value(-1),
                                        .shards = kind.shards,
                                        .format = kind.format});
    std::vector<std::int32_t> values(160);
    std::iota(values.begin(), values.end(), 0);
    array.write(Region{{0, 0}, {16, 10}}, view(values, {16, 10}));
    array.attributes().set("state", Value("old"));
    return array;
}

/// What a batch of every kind of change makes of it.
void change(Array& array) {
    const std::vector<std::int32_t> values(70, 1000);
    array.write(Region{{3, 2}, {10, 7}}, view(values, {10, 7}));
    array.fill(Selection::parse("0:4, 0:4", array.shape()), Value(-1));
    array.resize({18, 12});
    const std::vector<std::int32_t> more(36, 7);
    array.append(view(more, {3, 12}), 0);
    array.attributes().set("state", Value("new"));
}

struct Content {
    Shape shape;
    std::vector<std::int32_t> values;
    Value attributes;
    friend bool operator==(const Content&, const Content&) = default;
};

Content content(const Array& array) {
    const NDArray all = array.read();
    const auto values = all.values<std::int32_t>();
    return {array.shape(), {values.begin(), values.end()}, array.attributes().all()};
}

/// Before and after the batch, found without one.
std::pair<Content, Content> old_and_new(const Kind& kind) {
    Array array = make(memory_store(), kind);
    const Content before = content(array);
    change(array);
    return {before, content(array)};
}

class Edits : public testing::TestWithParam<Kind> {};

TEST_P(Edits, TakeEffectTogetherAtTheCommit) {
    const auto [before, after] = old_and_new(GetParam());
    const TemporaryFolder folder;
    for (const auto& store : {directory_store(folder / "a", {.durability = Durability::none}), memory_store()}) {
        Array array = make(store, GetParam());
        Edit edit(array);
        change(edit.array());
        EXPECT_EQ(content(edit.array()), after);
        EXPECT_EQ(content(Array::open(store)), before);
        EXPECT_GT(edit.commit(), 5);
        EXPECT_EQ(content(Array::open(store)), after);
        EXPECT_TRUE(store->list(".tessera/batch").keys.empty());
        array.refresh();
        EXPECT_EQ(content(array), after);
    }
}

TEST_P(Edits, LeaveNothingWithoutACommit) {
    const auto [before, after] = old_and_new(GetParam());
    const TemporaryFolder folder;
    const auto store = directory_store(folder / "a");
    const Array array = make(store, GetParam());
    {
        Edit edit(array);
        change(edit.array());
    }
    EXPECT_EQ(content(Array::open(store)), before);
    EXPECT_TRUE(store->list(".tessera/batch").keys.empty());
}

TEST_P(Edits, AreAllThereOrNoneWhereverTheProgramDies) {
    const auto [before, after] = old_and_new(GetParam());
    bool finished = false;
    int with_old = 0;
    int with_new = 0;
    for (std::int64_t lives = 0; !finished; ++lives) {
        SCOPED_TRACE(lives);
        const TemporaryFolder folder;
        const StoreOptions quick{.durability = Durability::none};
        make(directory_store(folder / "a", quick), GetParam());
        const auto dying = std::make_shared<DyingStore>(directory_store(folder / "a", quick), lives);
        try {
            Edit edit(Array::open(dying));
            change(edit.array());
            edit.commit();
            finished = true;
        } catch (const Error& e) {
            EXPECT_NE(std::string_view(e.what()).find("dead"), std::string_view::npos) << e.what();
        }
        // First as a reader who may change nothing, then as the next writer.
        const Content seen = content(Array::open(folder / "a", {.read_only = true}));
        const Content found = content(Array::open(folder / "a", quick));
        EXPECT_EQ(seen, found);
        const bool is_new = found == after;
        EXPECT_TRUE(is_new || found == before);
        EXPECT_TRUE(is_new || !finished);
        ++(is_new ? with_new : with_old);
        const auto store = directory_store(folder / "a", quick);
        EXPECT_TRUE(store->list(".tessera/batch").keys.empty());
        if (!is_new) continue;
        undo(Array::open(store));
        EXPECT_EQ(content(Array::open(store)), before);
    }
    EXPECT_GT(with_old, 5);
    EXPECT_GT(with_new, 5);
}

TEST_P(Edits, AreTakenBackAndMadeAgain) {
    const auto [before, after] = old_and_new(GetParam());
    const TemporaryFolder folder;
    for (const auto& store : {directory_store(folder / "a", {.durability = Durability::none}), memory_store()}) {
        Array array = make(store, GetParam());
        Edit edit(array);
        change(edit.array());
        edit.commit();
        EXPECT_GT(undo(array), 5);
        EXPECT_EQ(content(Array::open(store)), before);
        undo(array);
        EXPECT_EQ(content(Array::open(store)), after);
        undo(array);
        EXPECT_EQ(content(Array::open(store)), before);
    }
}

INSTANTIATE_TEST_SUITE_P(Kinds, Edits, testing::ValuesIn(kinds));

TEST(Edit, UndoRefusesToLoseWhatCameAfter) {
    const TemporaryFolder folder;
    const auto store = directory_store(folder / "a");
    Array array = make(store, kinds[0]);
    expect_error(ErrorCode::not_found, "nothing to take back", [&] { undo(array); });
    Edit edit(array);
    change(edit.array());
    edit.commit();
    array.refresh();
    const std::vector<std::int32_t> one{5};
    array.write(Region{{3, 2}, {1, 1}}, view(one, {1, 1}));
    const Content now = content(Array::open(store));
    expect_error(ErrorCode::invalid_argument, "was changed after the batch", [&] { undo(array); });
    EXPECT_EQ(content(Array::open(store)), now);
    EXPECT_FALSE(std::filesystem::exists(folder / "a/.tessera/batch")) << "what was refused leaves nothing";
}

TEST(Edit, CanForgetTheOldValues) {
    const TemporaryFolder folder;
    const auto store = directory_store(folder / "a");
    const Array array = make(store, kinds[0]);
    Edit edit(array, {.keep_old = false});
    change(edit.array());
    edit.commit();
    expect_error(ErrorCode::not_found, "nothing to take back", [&] { undo(array); });
    EXPECT_TRUE(store->list(".tessera/undo").keys.empty());
}

TEST(Edit, KeepsOnlyTheLastBatch) {
    const TemporaryFolder folder;
    const auto store = directory_store(folder / "a");
    const Array array = make(store, kinds[0]);
    const auto once = [&](std::int32_t value) {
        Edit edit(array);
        edit->fill(Selection::parse("0:8, 0:8", edit->shape()), Value(value));
        edit.commit();
        return store->list(".tessera/undo").keys.size();
    };
    EXPECT_EQ(once(3), 5U);  // four chunks and the journal
    EXPECT_EQ(once(4), 5U);
    undo(array);
    EXPECT_EQ(Array::open(store).read("0, 0").values<std::int32_t>()[0], 3);
}

TEST(Edit, WritingBesideItInTheSameThreadIsAnErrorAndNoDeadlock) {
    const TemporaryFolder folder;
    Array array = make(directory_store(folder / "a"), kinds[0]);
    const std::vector<std::int32_t> one{5};
    Edit edit(array);
    expect_error(ErrorCode::invalid_argument, "this thread has the array to itself", [&] {
        array.write(Region{{0, 0}, {1, 1}}, view(one, {1, 1}));
    });
    EXPECT_EQ(content(array), content(edit.array()));
    edit.commit();
    array.write(Region{{0, 0}, {1, 1}}, view(one, {1, 1}));
}

TEST(Edit, AnOldHandleFinishesABatchBeforeItWrites) {
    const TemporaryFolder folder;
    const StoreOptions quick{.durability = Durability::none};
    Array array = make(directory_store(folder / "a", quick), kinds[0]);
    const std::vector<std::int32_t> one{5};
    for (std::int64_t lives = 1;; ++lives) {
        ASSERT_LT(lives, 1000);
        const auto dying = std::make_shared<DyingStore>(directory_store(folder / "a", quick), lives);
        try {
            Edit edit(Array::open(dying));
            edit->fill(Selection::parse("0:8, 0:8", edit->shape()), Value(3));
            edit.commit();
            FAIL() << "never left a journal";
        } catch (const Error&) {
            if (!fs::exists(folder / "a/.tessera/batch/journal")) continue;
        }
        break;
    }
    array.write(Region{{0, 0}, {1, 1}}, view(one, {1, 1}));
    EXPECT_EQ(array.read("0, :3").values<std::int32_t>()[0], 5);
    EXPECT_EQ(array.read("0, 1:3").values<std::int32_t>()[0], 3);
    EXPECT_FALSE(fs::exists(folder / "a/.tessera/batch/journal"));
}

/// Leaves a batch pending in a folder that fills the first chunks with 3 and the next with the fill value.
void leave_pending(const fs::path& path) {
    const StoreOptions quick{.durability = Durability::none};
    for (std::int64_t lives = 1; !fs::exists(path / ".tessera/batch/journal"); ++lives) {
        ASSERT_LT(lives, 1000);
        const auto commit = [&] {
            Edit edit(Array::open(std::make_shared<DyingStore>(directory_store(path, quick), lives)));
            edit->fill(Selection::parse("0:8, 0:8", edit->shape()), Value(3));
            edit->fill(Selection::parse("8:16, 0:8", edit->shape()), Value(-1));
            edit.commit();
        };
        EXPECT_THROW(commit(), Error);
    }
}

TEST_P(Edits, OfAReaderEndWithTheirBatch) {
    const StoreOptions quick{.durability = Durability::none};
    const TemporaryFolder folder;
    const fs::path path = folder / "a";
    make(directory_store(path, quick), GetParam());
    const Array before = Array::open(path, {.read_only = true});
    leave_pending(path);
    const Array reader = Array::open(path, {.read_only = true});
    const Array other = Array::open(path, {.read_only = true});
    const auto at = [](const Array& array, const char* where) { return array.read(where).values<std::int32_t>()[0]; };
    EXPECT_EQ(at(reader, "0, 0"), 3);
    EXPECT_EQ(at(reader, "9, 0"), -1);
    Array writer = Array::open(path, quick);  // finishes it
    EXPECT_EQ(at(reader, "0, 0"), 3);
    EXPECT_EQ(at(reader, "9, 0"), -1);
    {
        // Of a batch that is never recorded nothing is seen.
        Edit edit(writer);
        edit->fill(Selection::parse("12:20, 0:12", edit->shape()), Value(7));
        for (const Array* array : {&reader, &other}) {
            EXPECT_EQ(at(*array, "0, 0"), 3);
            EXPECT_EQ(at(*array, "9, 0"), -1);
            EXPECT_EQ(content(*array), content(writer));
        }
    }
    // Nor of one that is recorded: what a reader opened before sees is what is in place.
    leave_pending(path);
    const Content now = content(before);
    writer = Array::open(path, quick);
    writer.fill("9, 0", Value(8));
    EXPECT_EQ(at(reader, "9, 0"), 8);
    EXPECT_EQ(content(other), content(writer));
    EXPECT_EQ(now.shape, content(writer).shape);
}

TEST(Edit, ADamagedJournalIsAnErrorThatChangesNothing) {
    const TemporaryFolder folder;
    const StoreOptions quick{.durability = Durability::none};
    make(directory_store(folder / "a", quick), kinds[0]);
    std::int64_t lives = 0;
    while (!fs::exists(folder / "a/.tessera/batch/journal")) {
        const auto dying = std::make_shared<DyingStore>(directory_store(folder / "a", quick), ++lives);
        const auto commit = [&] {
            Edit edit(Array::open(dying));
            edit->fill(Selection::parse("0:8, 0:8", edit->shape()), Value(3));
            edit.commit();
        };
        EXPECT_THROW(commit(), Error);
    }
    const fs::path journal = folder / "a/.tessera/batch/journal";
    const auto good = [&] {
        std::ifstream in(journal, std::ios::binary);
        return std::string(std::istreambuf_iterator<char>(in), {});
    }();
    const auto write = [&](const std::string& bytes) {
        std::ofstream(journal, std::ios::binary | std::ios::trunc) << bytes;
    };
    const auto refused = [&](ErrorCode code, const char* words) {
        expect_error(code, words, [&] { (void)Array::open(folder / "a", quick); });
        expect_error(code, words, [&] { (void)Array::open(folder / "a", {.read_only = true}); });
    };
    for (std::size_t i = 0; i < good.size(); ++i) {
        SCOPED_TRACE(i);
        std::string bad = good;
        bad[i] = static_cast<char>(bad[i] ^ 0x10);
        write(bad);
        refused(ErrorCode::corrupt, "journal");
    }
    // Its last line is what makes it a batch, and none but the right one does.
    const std::size_t last = good.rfind('\n', good.size() - 2) + 1;
    std::string other = good.substr(last);
    ASSERT_TRUE(other.starts_with("{\"committed\":4,")) << other;
    other[13] = '3';
    for (const std::string& end : {std::string(), std::string("{\"end\":4}\n"), other, good.substr(last) + '\n'}) {
        SCOPED_TRACE(end);
        write(good.substr(0, last) + end);
        refused(ErrorCode::corrupt, "damaged");
    }
    std::string newer = good;
    newer.replace(newer.find("changes\": 1"), 11, "changes\": 2");
    write(newer);
    refused(ErrorCode::unsupported, "has version 2");
    for (std::size_t size = 0; size < good.size(); size += 7) {
        write(good.substr(0, size));
        refused(ErrorCode::corrupt, "journal");
    }
    EXPECT_GT(directory_store(folder / "a")->list(".tessera/batch").keys.size(), 1U);
    write(good);
    EXPECT_EQ(Array::open(folder / "a", quick).read("0, 0").values<std::int32_t>()[0], 3);
}

}  // namespace
}  // namespace tessera
