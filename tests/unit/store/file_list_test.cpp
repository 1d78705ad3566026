// Lists that do not fit into memory: sorted, looked up and joined.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "file_list.h"
#include "temporary_folder.h"

namespace tessera {
namespace {

using testing::ElementsAre;

constexpr int many = 60'000;  // several MiB: more than a sorter has in memory

std::string path_of(int n) {
    return "group " + std::to_string(n % 7) + "/array/c/" + std::to_string(n);
}

Sha256 sum_of_number(std::uint64_t n) {
    Sha256 sum{};
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = static_cast<unsigned char>(n >> (i % 4 * 8)) ^ 0x5A;
    return sum;
}

/// All of them, in an order that is none.
std::vector<int> shuffled() {
    std::vector<int> numbers(many);
    for (int i = 0; i < many; ++i) numbers[static_cast<std::size_t>(i)] = i;
    std::ranges::shuffle(numbers, std::mt19937(20));
    return numbers;
}

ListedFile file_of(int n) {
    const auto u = static_cast<std::uint64_t>(n);
    return {.path = path_of(n), .size = u * 3, .modified = n - 5, .mode = 0600, .sum = sum_of_number(u)};
}

class FileLists : public testing::Test {
protected:
    [[nodiscard]] FileList sorted() const {
        FileSorter sorter(folder_.path().string());
        for (const int n : shuffled()) sorter.add(file_of(n));
        return sorter.sort();
    }
    [[nodiscard]] static std::vector<std::string> paths() {
        std::vector<std::string> all;
        for (int i = 0; i < many; ++i) all.push_back(path_of(i));
        std::ranges::sort(all);
        return all;
    }

    TemporaryFolder folder_;
};

TEST_F(FileLists, AreSortedByPath) {
    const FileList list = sorted();
    EXPECT_EQ(list.size(), many);
    EXPECT_EQ(list.bytes(), std::uint64_t{3} * many * (many - 1) / 2);
    FileList::Reader reader(list);
    for (const std::string& path : paths()) {
        const ListedFile* const file = reader.next();
        ASSERT_NE(file, nullptr);
        ASSERT_EQ(file->path, path);
        const ListedFile expected = file_of(std::stoi(path.substr(path.rfind('/') + 1)));
        ASSERT_EQ(file->size, expected.size);
        ASSERT_EQ(file->modified, expected.modified);
        ASSERT_EQ(file->mode, expected.mode);
        ASSERT_EQ(file->sum, expected.sum);
    }
    EXPECT_EQ(reader.next(), nullptr);
    EXPECT_EQ(reader.next(), nullptr);
    EXPECT_TRUE(std::filesystem::is_empty(folder_.path())) << "what it takes there has no name";
}

TEST_F(FileLists, AreLookedUp) {
    const FileList list = sorted();
    const std::vector<std::string> all = paths();
    for (std::size_t i = 0; i < all.size(); i += 997) {
        const auto found = list.find(all[i]);
        ASSERT_TRUE(found) << all[i];
        EXPECT_EQ(found->number, i);
        EXPECT_EQ(found->file.path, all[i]);
        EXPECT_EQ(list.lower_bound(all[i]), i);
        EXPECT_EQ(list.lower_bound(all[i] + '!'), i + 1);
        EXPECT_FALSE(list.find(all[i] + '!'));
        FileList::Reader reader(list, i);
        EXPECT_EQ(reader.next()->path, all[i]);
        EXPECT_EQ(reader.number(), i);
    }
    EXPECT_EQ(list.lower_bound(""), 0);
    EXPECT_EQ(list.lower_bound("zzz"), all.size());
    EXPECT_FALSE(FileList("").find("a"));
    EXPECT_EQ(FileList("").lower_bound("a"), 0);
}

TEST_F(FileLists, KeepTheFirstOfAPath) {
    FileSorter sorter(folder_.path().string());
    for (std::uint64_t round = 0; round < 3; ++round) {
        for (const int n : shuffled()) {
            if (n % 3 == 0 || round == 0) sorter.add({.path = path_of(n), .origin = round + 1});
        }
    }
    std::uint64_t again = 0;
    const FileList list = sorter.sort_unique([&](const ListedFile& kept, const ListedFile& file) {
        EXPECT_EQ(kept.path, file.path);
        EXPECT_EQ(kept.origin, 1);
        EXPECT_GT(file.origin, 1);
        ++again;
    });
    EXPECT_EQ(list.size(), many);
    EXPECT_EQ(again, 2 * many / 3);
    FileList::Reader reader(list);
    while (const ListedFile* const file = reader.next()) ASSERT_EQ(file->origin, 1);
}

TEST_F(FileLists, AreSortedBySegment) {
    FileSorter sorter(folder_.path().string());
    for (const int n : shuffled()) {
        ListedFile file = file_of(n);
        file.segment = static_cast<std::uint32_t>(n % 300);
        file.origin = static_cast<std::uint64_t>(n / 2);
        file.extent = static_cast<std::uint32_t>(n);
        sorter.add_by_segment(file);
    }
    const FileList list = sorter.sort();
    FileList::Reader reader(list);
    std::tuple<std::uint32_t, std::uint64_t, std::uint32_t> before{0, 0, 0};
    std::uint64_t count = 0;
    while (const ListedFile* const file = reader.next()) {
        const std::tuple now{file->segment, file->origin, file->extent};
        ASSERT_LE(before, now);
        ASSERT_EQ(file->path, path_of(static_cast<int>(file->extent)));
        before = now;
        ++count;
    }
    EXPECT_EQ(count, many);
}

TEST_F(FileLists, AreJoinedAndFollowed) {
    FileList a("");
    FileList b("");
    for (const char* path : {"a", "b", "b", "d"}) a.append({.path = path, .origin = a.size() + 1});
    for (const char* path : {"b", "c", "e"}) b.append({.path = path});
    FileList left("");
    for (const char* path : {"a", "b", "d"}) left.append({.path = path});
    std::vector<std::string> seen;
    join_files(left, b, [&](const ListedFile* l, const ListedFile* r) {
        seen.push_back((l == nullptr ? "-" : l->path) + (r == nullptr ? "-" : r->path));
    });
    EXPECT_THAT(seen, ElementsAre("a-", "bb", "-c", "d-", "-e"));
    FileList::Follower follower(a);
    EXPECT_EQ(follower.find("0"), nullptr);
    EXPECT_EQ(follower.find("b")->origin, 2);
    EXPECT_EQ(follower.find_next("b")->origin, 3);
    EXPECT_EQ(follower.number(), 2);
    EXPECT_EQ(follower.find_next("b"), nullptr);
    EXPECT_EQ(follower.find("d")->origin, 4);
    EXPECT_EQ(follower.find("e"), nullptr);
}

TEST_F(FileLists, HaveSumsInAnyOrder) {
    SumColumn sums(folder_.path().string(), many);
    for (const int n : shuffled()) {
        if (n % 5 != 0) sums.set(static_cast<std::uint64_t>(n), sum_of_number(static_cast<std::uint64_t>(n)));
    }
    SumColumn::Reader reader(sums);
    for (std::uint64_t n = 0; n < many; ++n) {
        const Sha256 expected = n % 5 == 0 ? Sha256{} : sum_of_number(n);
        ASSERT_EQ(reader.next(), expected) << n;
        ASSERT_EQ(sums.get(n), expected) << n;
    }
}

TEST_F(FileLists, AreGoneThroughInBatches) {
    const FileList list = sorted();
    std::vector<std::string> seen;
    in_batches<std::string>(
        list, {}, [](const ListedFile& file, std::string& result) { result = file.path + '!'; },
        [&](const ListedFile& file, const std::string& result) {
            EXPECT_EQ(result, file.path + '!');
            seen.push_back(file.path);
        });
    EXPECT_EQ(seen, paths());
    in_batches<char>(
        FileList(""), {}, [](const auto&...) { FAIL(); }, [](const auto&...) { FAIL(); });
}

TEST(Spools, HoldWhatWasWritten) {
    const TemporaryFolder folder;
    Spool spool(folder.path().string());
    std::vector<std::byte> expected;
    std::mt19937 random(20);
    for (int i = 0; i < 300; ++i) {
        std::vector<std::byte> some(random() % 9000);
        for (std::byte& byte : some) byte = static_cast<std::byte>(random());
        spool.append(some);
        expected.insert(expected.end(), some.begin(), some.end());
        const std::size_t at = random() % expected.size();
        some.assign(std::min<std::size_t>(random() % 3000, expected.size() - at), static_cast<std::byte>(i));
        spool.write(at, some);
        std::ranges::copy(some, expected.begin() + static_cast<std::ptrdiff_t>(at));
    }
    ASSERT_EQ(spool.size(), expected.size());
    std::vector<std::byte> all(expected.size());
    spool.read(0, all);
    EXPECT_EQ(all, expected);
    for (int i = 0; i < 300; ++i) {
        const std::size_t at = random() % expected.size();
        std::vector<std::byte> some(std::min<std::size_t>(random() % 300'000, expected.size() - at));
        spool.read(at, some);
        ASSERT_TRUE(std::equal(some.begin(), some.end(), expected.begin() + static_cast<std::ptrdiff_t>(at)));
    }
    Spool elsewhere((folder / "not there").string());
    elsewhere.append(all);
    elsewhere.append(all);
    elsewhere.read(expected.size(), all);
    EXPECT_EQ(all, expected) << "a folder that cannot be written does not matter";
}

}  // namespace
}  // namespace tessera
