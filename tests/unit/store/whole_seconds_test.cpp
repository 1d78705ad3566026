// A file system that keeps whole seconds and gives freed inodes out again, played by the C library's calls: what was
// written within one of its ticks is told apart all the same. (tests/cli/test_file_systems.py has real ones.)
#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <tessera/cached_array.h>
#include <tessera/edit.h>
#include <tessera/key_value_store.h>

#include <atomic>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <vector>

#include "expect_error.h"
#include "temporary_folder.h"

namespace {

/// What stat says on such a file system: all happens within this second; 0: as it is.
std::atomic<std::time_t> whole_second = 0;

int coarsened(int result, struct stat* status) {
    if (result != 0 || whole_second == 0 || !S_ISREG(status->st_mode)) return result;
    status->st_mtim = status->st_ctim = {.tv_sec = whole_second, .tv_nsec = 0};
    status->st_ino = 12;
    return result;
}

template <class Function>
Function next(const char* name) {
    return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

// Before those of the C library, for the whole program.
extern "C" int fstatat(int directory, const char* path, struct stat* status, int flags) noexcept {
    static const auto real = next<decltype(&::fstatat)>("fstatat");
    return coarsened(real(directory, path, status, flags), status);
}
extern "C" int fstat(int fd, struct stat* status) noexcept {
    static const auto real = next<decltype(&::fstat)>("fstat");
    return coarsened(real(fd, status), status);
}

namespace tessera {
namespace {

const StoreOptions quick{.durability = Durability::none};
const IoOptions one_thread{.threads = 1};

class WholeSeconds : public testing::Test {
protected:
    WholeSeconds() { whole_second = std::time(nullptr); }
    ~WholeSeconds() override { whole_second = 0; }

    Array make() const {
        Array array = Array::create(
            folder / "a",
            {.shape = {8, 8}, .chunks = {8, 8}, .dtype = DType::of<std::int32_t>(), .codec = "none", .format = "v2"},
            quick);
        array.fill(Selection::parse("", array.shape()), Value(5));
        return array;
    }
    static void set(Array& array, std::int64_t row, std::int64_t column, std::int32_t value) {
        const std::vector<std::int32_t> one{value};
        array.write(Region{{row, column}, {1, 1}}, view(one, {1, 1}), one_thread);
    }
    static std::int32_t at(const Array& array, std::int64_t row, std::int64_t column) {
        return array.read(Region{{row, column}, {1, 1}}, one_thread).values<std::int32_t>()[0];
    }
    /// As a program does that is not Tessera: into the file itself.
    void set_in_place(std::int64_t row, std::int64_t column, std::int32_t value) const {
        std::fstream file(folder / "a/0.0", std::ios::in | std::ios::out | std::ios::binary);
        file.seekp((row * 8 + column) * 4);
        file.write(reinterpret_cast<const char*>(&value), sizeof value);
    }

    TemporaryFolder folder;
};

TEST_F(WholeSeconds, AreWhatTheTestPlays) {
    make();
    struct stat status {};
    ASSERT_EQ(::fstatat(AT_FDCWD, (folder / "a/0.0").c_str(), &status, 0), 0);
    EXPECT_EQ(status.st_mtim.tv_nsec, 0);
    EXPECT_EQ(status.st_ino, 12U);
}

TEST_F(WholeSeconds, StampsOfTwoVersionsDiffer) {
    const auto store = directory_store(folder / "s", quick);
    const std::vector<std::byte> a(100, std::byte{1});
    const std::vector<std::byte> b(100, std::byte{2});
    EXPECT_FALSE(store->stamp("k"));
    EXPECT_FALSE(store->contains("k"));
    store->put("k", a);
    EXPECT_TRUE(store->contains("k"));
    const auto first = store->stamp("k");
    ASSERT_TRUE(first);
    EXPECT_EQ(first->size, 100U);
    EXPECT_EQ(store->stamp("k"), first);
    store->put("k", b);
    EXPECT_NE(store->stamp("k"), first);
    store->put("k", a);
    EXPECT_EQ(store->stamp("k"), first);
    // So it is for who may only read.
    const auto reader = directory_store(folder / "s", {.read_only = true});
    EXPECT_EQ(reader->stamp("k"), first);
    store->put("k", b);
    EXPECT_NE(reader->stamp("k"), first);
}

TEST_F(WholeSeconds, UndoSeesWhatCameAfter) {
    Array array = make();
    Edit edit(array);
    edit->fill(Selection::parse("0:4, 0:4", edit->shape()), Value(1));
    edit.commit();
    undo(array);
    undo(array);  // made again
    EXPECT_EQ(at(array, 0, 0), 1);
    set(array, 0, 0, 55);
    expect_error(ErrorCode::invalid_argument, "was changed after the batch", [&] { undo(array); });
    EXPECT_EQ(at(array, 0, 0), 55);
    set(array, 0, 0, 1);
    set_in_place(7, 7, 66);
    expect_error(ErrorCode::invalid_argument, "was changed after the batch", [&] { undo(array); });
    EXPECT_EQ(at(array, 7, 7), 66);
    set(array, 7, 7, 5);  // as the batch left it
    undo(array);
    EXPECT_EQ(at(array, 0, 0), 5);
}

TEST_F(WholeSeconds, ACacheSeesWhatOthersWrite) {
    Array array = make();
    CachedArray cached(Array::open(folder / "a", quick));
    const Region whole = Region::whole({8, 8});
    const auto in_cache = [&](std::int64_t row, std::int64_t column) {
        return cached.read(whole, one_thread).values<std::int32_t>()[static_cast<std::size_t>(row * 8 + column)];
    };
    EXPECT_EQ(in_cache(0, 0), 5);
    set(array, 0, 0, 6);
    EXPECT_EQ(in_cache(0, 0), 6);
    set_in_place(1, 1, 7);
    EXPECT_EQ(in_cache(1, 1), 7);
    // What it writes goes into what is there by then, whoever wrote it.
    const std::vector<std::int32_t> one{8};
    cached.write(Region{{2, 2}, {1, 1}}, view(one, {1, 1}), one_thread);
    set(array, 3, 3, 9);
    set_in_place(4, 4, 10);
    cached.flush(one_thread);
    for (const auto& [place, value] : std::vector<std::pair<int, int>>{{0, 6}, {1, 7}, {2, 8}, {3, 9}, {4, 10}}) {
        EXPECT_EQ(at(array, place, place), value);
        EXPECT_EQ(in_cache(place, place), value);
    }
}

}  // namespace
}  // namespace tessera
