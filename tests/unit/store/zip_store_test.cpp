#include <tessera/array.h>
#include <tessera/copy.h>
#include <tessera/place.h>
#include <tessera/zip.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <mutex>

#include "conformance/store_suite.h"
#include "temporary_folder.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;
using store_suite::get;
using store_suite::put;
using testing::ElementsAre;
using testing::IsEmpty;

const fs::path golden = TESSERA_GOLDEN;

/// A name for a new file in a directory that is removed at the end of the program.
fs::path fresh_path(std::string_view name) {
    static const TemporaryFolder top;
    static int counter = 0;
    return top / fmt::format("{}-{}", counter++, name);
}

void copy_values(const PlaceView& place, KeyValueStore& to) {
    const Listing listing = place.store.list(place.prefix);
    for (const std::string& name : listing.keys) put(to, place.key(name), get(place.store, place.key(name)));
    for (const std::string& name : listing.prefixes) copy_values({place.store, place.key(name)}, to);
}

/// A store that can be changed, and reads everything from a zip archive: it is written anew after changes. So the suite
/// of every store tries what reading and writing archives do together.
class RepackedZip final : public KeyValueStore {
public:
    std::unique_ptr<ByteSource> open(std::string_view key) const override { return zip()->open(key); }
    bool get(std::string_view key, Buffer& out, std::uint64_t limit) const override {
        return zip()->get(key, out, limit);
    }
    Listing list(std::string_view prefix) const override { return zip()->list(prefix); }
    void for_each(std::string_view prefix, const EachValue& each, const EachFolder& folder) const override {
        zip()->for_each(prefix, each, folder);
    }
    void put(std::string_view key, ByteSpan value) override {
        const std::lock_guard guard(mutex_);
        values_->put(key, value);
        packed_ = nullptr;
    }
    std::unique_ptr<ByteSink> create(std::string_view key) override { return values_->create(key); }
    bool erase(std::string_view key) override {
        const std::lock_guard guard(mutex_);
        packed_ = nullptr;
        return values_->erase(key);
    }
    void erase_below(std::string_view prefix) override {
        const std::lock_guard guard(mutex_);
        packed_ = nullptr;
        values_->erase_below(prefix);
    }
    void move(std::string_view from, std::string_view to) override {
        const std::lock_guard guard(mutex_);
        packed_ = nullptr;
        values_->move(from, to);
    }
    StoreLock lock(std::string_view prefix, std::uint64_t slot, LockMode mode) override {
        return values_->lock(prefix, slot, mode);
    }
    std::optional<StoreLock> try_lock(std::string_view prefix) override { return values_->try_lock(prefix); }
    const std::string& name() const override { return values_->name(); }

private:
    std::shared_ptr<KeyValueStore> zip() const {
        const std::lock_guard guard(mutex_);
        if (packed_ == nullptr) {
            const auto made = zip_store(path_, ZipMode::replace);
            copy_values(*values_, *made);
            made->finish();
            packed_ = zip_store(path_, ZipMode::read);
        }
        return packed_;
    }

    fs::path path_ = fresh_path("suite.zip");
    std::shared_ptr<KeyValueStore> values_ = memory_store();
    mutable std::mutex mutex_;
    mutable std::shared_ptr<KeyValueStore> packed_;
};

TESSERA_STORE_SUITE(ZipStore, std::make_shared<RepackedZip>())

constexpr const char* repack = "a zip archive is never changed in place; repack it";

TEST(ZipStore, nothing_is_changed_in_an_archive_that_is_there) {
    const auto store = zip_store(golden / "zarr2" / "zip_store.zip", ZipMode::read);
    EXPECT_TRUE(store->read_only());
    EXPECT_THAT(store->list("").keys, ElementsAre(".zarray", ".zattrs", "0.0", "0.1", "1.0", "1.1", "2.0", "2.1"));
    const auto refused = [&](auto&& body) { expect_error(ErrorCode::unsupported, repack, body); };
    refused([&] { put(*store, ".zattrs", "{}"); });
    refused([&] { (void)store->create("0.0"); });
    refused([&] { store->erase("0.0"); });
    refused([&] { store->erase_below(""); });
    refused([&] { store->move("a", "b"); });
    refused([&] { (void)store->lock("", 0, LockMode::shared); });
    Array array = Array::open(store);
    refused([&] { array.resize({20, 20}); });
    refused([&] { array.attributes().set("k", 1); });
    expect_error(ErrorCode::already_exists, "never changed in place",
                 [] { (void)zip_store(golden / "zarr2" / "zip_store.zip", ZipMode::create); });
}

TEST(NewZipStore, documents_are_held_until_the_end_and_chunks_are_written_once) {
    const fs::path path = fresh_path("new.zip");
    const auto store = zip_store(path, ZipMode::create);
    put(*store, "a/.zarray", "first");
    put(*store, ".tessera/unfinished.json", "marker");
    put(*store, "a/0.0", "chunk");
    put(*store, "a/.zarray", "second");
    EXPECT_EQ(get(*store, "a/.zarray"), "second");
    EXPECT_TRUE(store->erase(".tessera/unfinished.json"));
    expect_error(ErrorCode::unsupported, "a/0.0: already written", [&] { put(*store, "a/0.0", "other"); });
    expect_error(ErrorCode::unsupported, "a/0.0: already written", [&] { store->erase("a/0.0"); });
    expect_error(ErrorCode::unsupported, "a/0.0: already written", [&] { store->erase_below("a"); });
    expect_error(ErrorCode::unsupported, "a/0.0: already written", [&] { (void)store->open("a/0.0"); });
    EXPECT_THAT(store->list("a").keys, ElementsAre(".zarray", "0.0"));
    EXPECT_FALSE(fs::exists(path)) << "not before it is finished";
    store->finish();
    expect_error(ErrorCode::invalid_argument, "finished", [&] { put(*store, "a/0.1", "late"); });
    expect_error(ErrorCode::invalid_argument, "finished", [&] { put(*store, "a/.zattrs", "late"); });

    const ZipReader zip(path);
    std::vector<std::string> names;
    for (const ZipMember& member : zip.members()) {
        names.push_back(member.name);
        EXPECT_TRUE(member.stored);
    }
    EXPECT_THAT(names, ElementsAre("a/0.0", "a/.zarray")) << "metadata last, each name once";
    EXPECT_EQ(get(*zip_store(path, ZipMode::read), "a/.zarray"), "second");
}

TEST(NewZipStore, unfinished_archives_leave_nothing) {
    const fs::path path = fresh_path("folder") / "given_up.zip";
    fs::create_directory(path.parent_path());
    { put(*zip_store(path, ZipMode::create), "0", "chunk"); }
    EXPECT_TRUE(fs::is_empty(path.parent_path()));
    {
        const auto store = zip_store(path, ZipMode::create);
        { store->create("0")->append(Buffer(10)); }  // given up
        expect_error(ErrorCode::invalid_argument, "'0' is not finished", [&] { put(*store, "1", "chunk"); });
        expect_error(ErrorCode::invalid_argument, "'0' is not finished", [&] { store->finish(); });
    }
    EXPECT_TRUE(fs::is_empty(path.parent_path()));
}

TEST(NewZipStore, values_are_written_one_after_another) {
    const fs::path path = fresh_path("pieces.zip");
    const auto store = zip_store(path, ZipMode::create);
    auto first = store->create("first");
    EXPECT_FALSE(first->random_access());
    expect_error(ErrorCode::invalid_argument, "one after another", [&] { put(*store, "2", "v"); });
    put(*store, "zarr.json", "{}");  // held, and so no matter
    std::thread other([&] { put(*store, "2", "waits"); });
    for (int i = 0; i < 100; ++i) first->append(std::as_bytes(std::span("0123456789", 10)));
    first->finish();
    other.join();
    store->finish();
    const auto read = zip_store(path, ZipMode::read);
    EXPECT_EQ(get(*read, "first").size(), 1000U);
    EXPECT_EQ(get(*read, "2"), "waits");
}

TEST(NewZipStore, arrays_are_written_by_many_threads) {
    const fs::path path = fresh_path("array.zip");
    const auto store = zip_store(path, ZipMode::create);
    NDArray values(DType::parse("<i4"), {100, 50});
    for (int i = 0; i < 5000; ++i) values.values<std::int32_t>()[static_cast<std::size_t>(i)] = i * i;
    Array array = Array::create({store, "sub/a"}, {.shape = {100, 50}, .chunks = {10, 10}, .dtype = values.dtype()});
    array.write("", values.view(), {.threads = 4});
    store->finish();
    const Array read = Array::open(path / "sub" / "a");
    EXPECT_EQ(read.stored_size().chunks, 50);
    EXPECT_TRUE(std::ranges::equal(read.read().values<std::int32_t>(), values.values<std::int32_t>()));
    EXPECT_TRUE(std::ranges::equal(
        read_selection(*open_source((path / "sub/a").string()), Selection::parse("3:40:7, 5", read.shape()))
            .values<std::int32_t>(),
        read.read("3:40:7, 5").values<std::int32_t>()));
}

/// The archives of golden/bad/zip: what is refused, and how; what reads in spite of the attack.
TEST(BadZips, are_refused_or_read_right) {
    const fs::path bad = golden / "bad" / "zip";
    std::ifstream in(bad / "errors.json");
    const Value errors = Value::parse(std::string(std::istreambuf_iterator<char>(in), {}));
    EXPECT_EQ(errors.as_object().size(), 20U);
    for (const auto& [name, words] : errors.as_object()) {
        SCOPED_TRACE(name);
        const fs::path zip = bad / name;
        const auto read = [&] { return Array::open(zip).read(); };
        if (words.is_null()) {
            EXPECT_TRUE(std::ranges::equal(read().values<std::uint8_t>(), std::vector<std::uint8_t>{1, 2, 3, 4}));
        } else {
            const bool refused = name == "encrypted.zip" || name == "method_unknown.zip";
            expect_error(refused ? ErrorCode::unsupported : ErrorCode::corrupt, words.as_string(), read);
        }
    }
}

TEST(BadZips, names_that_are_no_keys_are_passed_over) {
    const auto store = zip_store(golden / "bad" / "zip" / "outside_root.zip", ZipMode::read);
    EXPECT_THAT(store->list("").keys, ElementsAre(".zarray", "0", "a.npy"));
    EXPECT_THAT(store->list("").prefixes, IsEmpty());
    expect_error(ErrorCode::invalid_argument, "not a key", [&] { (void)store->open("../outside"); });
    EXPECT_EQ(zip_store(golden / "bad" / "zip" / "duplicate_names.zip", ZipMode::read)->list("").keys.size(), 3U);
}

TEST(Place, zips_and_what_is_in_them) {
    const fs::path path = fresh_path("place.zip");
    const auto made = zip_store(path, ZipMode::create);
    put(*made, "g/a/.zarray", "{}");
    made->finish();
    EXPECT_EQ(find_place(path).prefix, "");
    EXPECT_EQ(find_place(path / "g" / "a").prefix, "g/a");
    EXPECT_EQ(find_place(path.string() + "/g/a/").prefix, "g/a");
    EXPECT_TRUE(find_place(path / "g").store->read_only());
    EXPECT_EQ(find_place(path.parent_path()).prefix, "");
    expect_error(ErrorCode::not_found, "no such file", [&] { (void)find_place(path.string() + "x/g"); });
    expect_error(ErrorCode::not_found, "g/b: no array here", [&] { (void)Array::open(path / "g" / "b"); });
    expect_error(ErrorCode::not_found, "g: no array here: looked for", [&] { (void)Array::open(path / "g"); });

    // Array files are none, also where they are zips.
    EXPECT_FALSE(probe_place(golden / "npz" / "savez.npz", {.read_only = true}).has_value());
    EXPECT_FALSE(probe_place(golden / "npz" / "savez.npz" / "a", {.read_only = true}).has_value());
    const fs::path renamed = fresh_path("renamed.zip");
    fs::copy_file(golden / "npz" / "savez.npz", renamed);
    EXPECT_FALSE(probe_place(renamed, {.read_only = true}).has_value());
    EXPECT_EQ(open_source(renamed.string() + "::a")->info().shape,
              open_source((golden / "npz/savez.npz::a").string())->info().shape);
    expect_error(ErrorCode::invalid_argument, "a file, not the directory or zip archive",
                 [] { (void)find_place(golden / "npz" / "manifest.json", {}); });
}

}  // namespace
}  // namespace tessera
