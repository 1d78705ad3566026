// Lists of files that may be longer than memory, for seals and snapshots. Private to the store module.
//
// A list lies in a Spool, in blocks of 64 files; memory holds the place and the first path of each block, less than a
// byte for a file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tessera/parallel.h>

#include "sha256.h"
#include "spool.h"

namespace tessera {

/// A file, and what is known of it; what is 0 takes no space in a list.
struct ListedFile {
    std::string path;  ///< below the root of what the list is of
    std::uint64_t size = 0;
    std::int64_t modified = 0;  ///< nanoseconds since 1970
    std::uint32_t mode = 0;     ///< permissions
    Sha256 sum{};
    std::uint32_t segment = 0;  ///< of parity
    std::uint32_t extent = 0;   ///< its number in the file
    std::uint64_t origin = 0;   ///< its number in another list, or its line in a manifest
};

/// Thread rule: const members may be called from several threads at once.
class FileList {
public:
    class Reader;
    class Follower;

    explicit FileList(std::string folder) : bytes_(std::move(folder)) {}

    [[nodiscard]] std::uint64_t size() const { return size_; }
    [[nodiscard]] bool empty() const { return size_ == 0; }
    /// Of all files.
    [[nodiscard]] std::uint64_t bytes() const { return file_bytes_; }
    /// Adds a file at the end.
    void append(const ListedFile& file);

    struct Found {
        ListedFile file;
        std::uint64_t number = 0;  ///< its place in the list
    };
    /// The first file of that path; for lists sorted by path.
    [[nodiscard]] std::optional<Found> find(std::string_view path) const;
    /// The number of the first file whose path is not less; for lists sorted by path.
    [[nodiscard]] std::uint64_t lower_bound(std::string_view path) const;

private:
    static constexpr std::uint64_t block_files = 64;
    [[nodiscard]] std::string_view first_path(std::size_t block) const;
    /// The last block that begins with a path less than this one, or else the first.
    [[nodiscard]] std::size_t block_before(std::string_view path) const;

    Spool bytes_;
    std::uint64_t size_ = 0;
    std::uint64_t file_bytes_ = 0;
    std::vector<std::uint64_t> blocks_;       ///< where each begins
    std::string first_paths_;                 ///< of the blocks, one after another
    std::vector<std::uint64_t> first_begin_;  ///< where each begins in first_paths_
    std::vector<std::byte> encoded_;          ///< of the file that is appended
};

/// Goes through a list. The list outlives it, and does not change. Thread rule: one thread.
class FileList::Reader {
public:
    explicit Reader(const FileList& list, std::uint64_t from = 0);

    /// The next file, until the call after; null at the end.
    const ListedFile* next();
    /// Of what next() gave, in the list.
    [[nodiscard]] std::uint64_t number() const { return next_ - 1; }

private:
    void load(std::size_t block);

    const FileList& list_;
    std::uint64_t next_ = 0;
    std::vector<std::byte> block_;
    std::size_t at_ = 0;
    ListedFile file_;
};

/// Looks up paths in ascending order, in a list sorted by path.
class FileList::Follower {
public:
    explicit Follower(const FileList& list) : reader_(list), file_(reader_.next()) {}
    Follower(const Follower&) = delete;
    Follower& operator=(const Follower&) = delete;
    ~Follower() = default;

    /// The first file of that path, or null. The path must not be less than the one before.
    const ListedFile* find(std::string_view path) {
        while (file_ != nullptr && file_->path < path) file_ = reader_.next();
        return file_ != nullptr && file_->path == path ? file_ : nullptr;
    }
    /// After a find() that found one: the next file of the same path, or null.
    const ListedFile* find_next(std::string_view path) {
        file_ = reader_.next();
        return find(path);
    }
    [[nodiscard]] std::uint64_t number() const { return reader_.number(); }

private:
    Reader reader_;
    const ListedFile* file_;
};

/// Brings files into order, however many.
class FileSorter {
public:
    explicit FileSorter(const std::string& folder) : folder_(folder), sorter_(folder) {}

    /// To be sorted by path; files of one path stay in the order in which they came.
    void add(const ListedFile& file);
    /// To be sorted by segment, and then by origin and extent.
    void add_by_segment(const ListedFile& file);

    [[nodiscard]] FileList sort();
    /// The same, but calls again(file) for a file with the same path as the one before.
    [[nodiscard]] FileList sort_unique(
        const std::function<void(const ListedFile& kept, const ListedFile& file)>& again);

private:
    std::string folder_;
    RecordSorter sorter_;
    bool by_segment_ = false;
    std::string key_;
    std::vector<std::byte> value_;
};

/// Sums of the files of a list, by their numbers, set in any order; zeros before. Thread rule: one thread.
class SumColumn {
public:
    SumColumn(const std::string& folder, std::uint64_t count);
    [[nodiscard]] Sha256 get(std::uint64_t number) const {
        Sha256 sum{};
        spool_.read(number * sizeof sum, std::as_writable_bytes(std::span(sum)));
        return sum;
    }
    void set(std::uint64_t number, const Sha256& sum) {
        spool_.write(number * sizeof sum, std::as_bytes(std::span(sum)));
    }

    /// All, in order.
    class Reader {
    public:
        explicit Reader(const SumColumn& column) : column_(column) {}
        Sha256 next();

    private:
        const SumColumn& column_;
        std::uint64_t at_ = 0;
        std::vector<std::byte> bytes_;
        std::size_t used_ = 0;
    };

private:
    Spool spool_;
};

/// Calls each(item, result) in parallel for what next() gives as long as it returns true, some thousand at a time, and
/// then take(item, result) in order.
template <class Item, class Result, class Next, class Each, class Take>
void in_batches(const Next& next, const IoOptions& io, const Each& each, const Take& take) {
    constexpr std::size_t most = 4096;
    std::vector<Item> items;
    for (bool more = true; more;) {
        std::size_t count = 0;
        for (; count < most; ++count) {
            if (items.size() == count) items.emplace_back();
            if (!(more = next(items[count]))) break;
        }
        std::vector<Result> results(count);
        parallel_for(static_cast<std::int64_t>(count), io, [&](std::int64_t n) {
            const auto i = static_cast<std::size_t>(n);
            each(std::as_const(items[i]), results[i]);
        });
        for (std::size_t i = 0; i < count; ++i) take(std::as_const(items[i]), results[i]);
    }
}

/// The same for the files of a list.
template <class Result, class Each, class Take>
void in_batches(const FileList& files, const IoOptions& io, const Each& each, const Take& take) {
    FileList::Reader reader(files);
    const auto next = [&](ListedFile& file) {
        const ListedFile* const there = reader.next();
        if (there != nullptr) file = *there;
        return there != nullptr;
    };
    in_batches<ListedFile, Result>(next, io, each, take);
}

/// The same, with progress by their bytes.
template <class Result, class Each, class Take>
void for_each_file(const FileList& files, const IoOptions& io, std::string_view what, const Each& each,
                   const Take& take) {
    if (io.progress != nullptr) io.progress->start(static_cast<std::int64_t>(files.bytes()), what);
    const auto counted = [&](const ListedFile& file, Result& result) {
        each(file, result);
        if (io.progress != nullptr) io.progress->advance(static_cast<std::int64_t>(file.size));
    };
    in_batches<Result>(files, io, counted, take);
}

/// Calls both(a, b) for every path of two lists sorted by path, null where one of them has it not.
template <class Both>
void join_files(const FileList& a, const FileList& b, const Both& both) {
    FileList::Reader left(a);
    FileList::Reader right(b);
    const ListedFile* l = left.next();
    const ListedFile* r = right.next();
    while (l != nullptr || r != nullptr) {
        const int order = l == nullptr ? 1 : r == nullptr ? -1 : l->path.compare(r->path);
        both(order <= 0 ? l : nullptr, order >= 0 ? r : nullptr);
        if (order <= 0) l = left.next();
        if (order >= 0) r = right.next();
    }
}

}  // namespace tessera
