// Processes and threads that write to the same chunks and shards at the same time lose nothing, and readers beside them
// see every chunk whole.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <mutex>
#include <sstream>
#include <thread>

#include "child.h"
#include "contention.h"

namespace tessera::faults {
namespace {

constexpr int parties = 8;

/// What a party appended, as it says.
struct Piece {
    std::int64_t start = 0, rows = 0;
    std::int32_t number = 0;
};

std::vector<std::int32_t> shared_part(const Array& array) {
    const NDArray elements = array.read(Region{{0, 0}, {shared_rows, shared_columns}});
    const auto values = elements.values<std::int32_t>();
    return {values.begin(), values.end()};
}

/// The pieces lie one behind another, each where its writer was told, and nothing else is there.
void expect_pieces(const Array& array, std::vector<Piece> pieces, int count) {
    EXPECT_EQ(pieces.size(), static_cast<std::size_t>(parties * count));
    std::ranges::sort(pieces, {}, &Piece::start);
    const NDArray elements = array.read();
    const auto values = elements.values<std::int32_t>();
    std::int64_t end = shared_rows;
    for (const Piece& piece : pieces) {
        ASSERT_EQ(piece.start, end);
        end += piece.rows;
        ASSERT_LE(end, array.shape()[0]);
        for (std::int64_t i = piece.start * shared_columns; i < end * shared_columns; ++i) {
            ASSERT_EQ(values[static_cast<std::size_t>(i)], piece.number);
        }
    }
    EXPECT_EQ(end, array.shape()[0]);
}

class Contention : public testing::TestWithParam<bool> {
protected:
    Child start(const char* job, int self, int all, int count) {
        return {folder_,
                {worker(), job, path(), std::to_string(self), std::to_string(all), std::to_string(count)},
                {},
                job + std::to_string(self)};
    }
    [[nodiscard]] std::string path() const { return folder_.data() / "array"; }
    static void expect_done(std::vector<Child>& children) {
        for (Child& child : children) {
            const Ended ended = child.wait();
            EXPECT_EQ(ended.code, 0) << ended.to_string();
        }
    }

    Folder folder_;
    Array array_ = create_shared(path(), GetParam());
};

TEST_P(Contention, every_increment_counts_beside_a_resizing_process) {
    const int count = rounds(150, 1000);
    std::vector<Child> children;
    for (int self = 0; self < parties; ++self) children.push_back(start("increment", self, parties, count));
    children.push_back(start("resize", 0, 1, count));
    expect_done(children);
    array_.refresh();
    EXPECT_EQ(shared_part(array_), after_increments(parties, count));
}

TEST_P(Contention, chunks_that_are_removed_lose_nothing) {
    const int count = rounds(100, 1000);
    std::vector<Child> children;
    for (int self = 0; self < parties; ++self) children.push_back(start("toggle", self, parties, count));
    children.push_back(start("resize", 0, 1, count));
    expect_done(children);
    array_.refresh();
    EXPECT_EQ(shared_part(array_), after_toggles(parties, count));
}

TEST_P(Contention, appends_take_turns) {
    const int count = rounds(10, 200);
    std::vector<Child> children;
    for (int self = 0; self < parties; ++self) children.push_back(start("append", self, parties, count));
    std::vector<Piece> pieces;
    for (Child& child : children) {
        const Ended ended = child.wait();
        EXPECT_EQ(ended.code, 0) << ended.to_string();
        std::istringstream lines(ended.out);
        for (Piece piece; lines >> piece.start >> piece.rows >> piece.number;) pieces.push_back(piece);
    }
    array_.refresh();
    expect_pieces(array_, pieces, count);
}

TEST_P(Contention, readers_see_whole_chunks) {
    const int reads = rounds(4000, 100000);
    std::vector<Child> writers;
    for (int self = 0; self < 3; ++self) writers.push_back(start("write_blocks", self, 3, 1000000));
    std::vector<Child> readers;
    for (int self = 0; self < 2; ++self) readers.push_back(start("read_blocks", self, 2, reads / 2));
    expect_done(readers);
    for (Child& writer : writers) {
        writer.kill();
        EXPECT_EQ(writer.wait().signal, SIGKILL);  // it wrote all the time
    }
}

INSTANTIATE_TEST_SUITE_P(Layouts, Contention, testing::Bool(),
                         [](const auto& sharded) { return std::string(sharded.param ? "sharded" : "plain"); });

class ContentionThreads : public testing::TestWithParam<bool> {
protected:
    /// Runs job(array, party) in a thread for each party, every other one with a handle of its own.
    template <class Job>
    void run_all(int count, const Job& job) {
        std::vector<std::thread> threads;
        for (int self = 0; self < parties; ++self) {
            threads.emplace_back([this, self, count, &job] {
                Array own = self % 2 == 0 ? array_ : Array::open(path(), options);
                job(own, Party{self, parties, count});
            });
        }
        for (std::thread& thread : threads) thread.join();
    }
    [[nodiscard]] std::string path() const { return folder_.data() / "array"; }

    static inline const StoreOptions options{.durability = Durability::none};
    Folder folder_;
    Array array_ = (create_shared(path(), GetParam()), Array::open(path(), options));
};

TEST_P(ContentionThreads, every_increment_counts_beside_a_resizing_thread) {
    const int count = rounds(60, 1000);
    std::thread resizing([&] { resize_often(array_, {0, 1, count}); });
    run_all(count, increment);
    resizing.join();
    EXPECT_EQ(shared_part(array_), after_increments(parties, count));
}

TEST_P(ContentionThreads, chunks_that_are_removed_lose_nothing) {
    const int count = rounds(150, 1000);
    run_all(count, toggle);
    EXPECT_EQ(shared_part(array_), after_toggles(parties, count));
}

TEST_P(ContentionThreads, appends_take_turns) {
    const int count = rounds(8, 200);
    std::mutex mutex;
    std::vector<Piece> pieces;
    run_all(count, [&](Array& array, const Party& party) {
        append_often(array, party, [&](std::int64_t start, std::int64_t rows, std::int32_t number) {
            const std::lock_guard guard(mutex);
            pieces.push_back({start, rows, number});
        });
    });
    array_.refresh();
    expect_pieces(array_, pieces, count);
}

TEST_P(ContentionThreads, readers_see_whole_chunks) {
    const int reads = rounds(1000, 100000);
    std::thread writing([&] { write_blocks(array_, {0, 2, reads / 4}); });
    std::thread writing_too([&] { write_blocks(array_, {1, 2, reads / 4}); });
    EXPECT_NO_THROW(read_blocks(array_, {2, 3, reads}));
    writing.join();
    writing_too.join();
}

INSTANTIATE_TEST_SUITE_P(Layouts, ContentionThreads, testing::Bool(),
                         [](const auto& sharded) { return std::string(sharded.param ? "sharded" : "plain"); });

}  // namespace
}  // namespace tessera::faults
