// What the workloads of the benchmark share: cases that are measured side by side, and who takes part.
//
// In each round the sides of a case run one right after the other, and the order changes from round to round, so that a
// machine whose speed drifts treats all alike. A round that warms up comes first.
#pragma once

#include <array>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <tessera/array.h>
#include <tessera/ndarray.h>

#include "cost.h"
#include "plain_loop.h"

namespace bench {

namespace fs = std::filesystem;

struct Settings {
    fs::path folder = fs::temp_directory_path();
    std::vector<std::string> only;
    int rounds = 7;
    int threads = 0;                 ///< 0: 1 and 2
    int offset = -1;                 ///< -1: all of `offsets`
    std::vector<std::string> peers;  ///< commands that speak the protocol of peers.py
};

/// Bytes from a page to where memory begins: on it; as `std::vector`, malloc and NumPy give large blocks (16); within
/// what a register of 32 or 64 bytes holds.
constexpr std::array<std::size_t, 4> offsets{0, 4, 16, 32};

/// Memory that begins so many bytes behind a page, and was touched.
class Memory {
public:
    Memory(std::size_t bytes, std::size_t offset);
    [[nodiscard]] std::byte* data() const { return begin_; }

private:
    std::unique_ptr<std::byte[]> bytes_;
    std::byte* begin_;
};

/// One side of a comparison: what is timed, and what makes ready for it.
struct Side {
    std::function<void()> run;
    std::function<void()> prepare = [] {};
};

/// Another program that does the same work, as a process that is told what to do, line by line: see peers.py.
class Peer {
public:
    explicit Peer(const std::string& command);
    ~Peer();
    Peer(const Peer&) = delete;
    Peer& operator=(const Peer&) = delete;

    [[nodiscard]] const std::string& name() const { return name_; }
    /// Nothing when it cannot do that.
    std::optional<Cost> ask(const std::string& request);

private:
    std::string name_;
    int pid_ = -1;
    std::FILE* to_ = nullptr;
    std::FILE* from_ = nullptr;
};

struct Case {
    std::string name;
    int threads = 1;
    std::size_t offset = 0;
};

class Bench {
public:
    explicit Bench(Settings settings);

    [[nodiscard]] const Settings& settings() const { return settings_; }
    /// By --only, which names words that the cases contain, with semicolons between them (shapes have commas); none:
    /// all cases.
    [[nodiscard]] bool wanted(const std::string& name) const;
    /// Whether any case of a workload is to run, so that its array must be made.
    [[nodiscard]] bool wants_any(const std::string& workload) const;
    [[nodiscard]] std::vector<int> thread_counts() const {
        return settings_.threads > 0 ? std::vector{settings_.threads} : std::vector{1, 2};
    }

    [[nodiscard]] std::vector<std::size_t> memory_offsets() const {
        if (settings_.offset >= 0) return {static_cast<std::size_t>(settings_.offset)};
        return {offsets.begin(), offsets.end()};
    }

    /// Runs a case and prints a line for each side that is not the plain loop: case, threads, offset of the memory,
    /// side, the medians in milliseconds of the plain loop and of the side, the median of the ratios round by round,
    /// the same of processor time, and the most memory in MiB that the plain loop and the side took beyond what was
    /// there. `request` is what peers are asked to do, made anew for each run; empty: they do not take part.
    void compare(const Case& c, const Side& plain, const Side& ours,
                 const std::function<std::string()>& request = nullptr) const;

private:
    Settings settings_;
    std::vector<std::unique_ptr<Peer>> peers_;
};

/// A new folder: on ext4, files made where as many were just deleted take far longer.
[[nodiscard]] fs::path fresh(const fs::path& folder, const std::string& name);

/// Where the rounds of one side write: a new folder each time. Those before go at once where they take memory, and at
/// the end on a disk.
class FreshFolder {
public:
    FreshFolder(const fs::path& parent, std::string name);
    ~FreshFolder();
    FreshFolder(const FreshFolder&) = delete;
    FreshFolder& operator=(const FreshFolder&) = delete;
    const fs::path& next();

private:
    fs::path parent_;
    std::string name_;
    fs::path now_;
};

/// The dimensions of a layout that count, and a box as a region.
[[nodiscard]] tessera::Shape dims(const plain::Layout& l, const plain::Point& all);
[[nodiscard]] tessera::Region region_of(const plain::Layout& l, const plain::Box& box);
[[nodiscard]] tessera::DType dtype_of(const plain::Layout& l);
[[nodiscard]] tessera::ArrayOptions options_of(const plain::Layout& l);

/// One workload's array: its elements in memory, and stored, in a folder that goes with this object.
class Stage {
public:
    /// `options`: how it is stored, where not as the plain loop stores it.
    Stage(const Bench& bench, std::string name, const plain::Layout& layout, void (*fill)(tessera::NDArray&),
          const std::function<void(tessera::ArrayOptions&)>& options = nullptr);
    ~Stage();
    Stage(const Stage&) = delete;
    Stage& operator=(const Stage&) = delete;

    [[nodiscard]] const Bench& bench() const { return bench_; }
    [[nodiscard]] const plain::Layout& layout() const { return layout_; }  ///< what the plain loop reads
    [[nodiscard]] const tessera::NDArray& elements() const { return elements_; }
    [[nodiscard]] const fs::path& folder() const { return folder_; }
    [[nodiscard]] tessera::Region whole() const;
    [[nodiscard]] tessera::Array open() const;
    [[nodiscard]] std::string named(const std::string& what) const { return name_ + ' ' + what; }
    /// Of an operation of W1 that is known by a name of its own, "W5 cached": as it is, for others "W9 W5 cached".
    [[nodiscard]] std::string named_alone(const std::string& what) const { return name_ == "W1" ? what : named(what); }
    /// Throws unless these are the array's elements.
    void check(const tessera::ArrayView& out) const;

    void read_all() const;
    /// The box [3:-3] in each dimension.
    void read_inner() const;
    void write_inner() const;
    void read_fresh() const;
    /// `renames`: the plain loop too.
    void write_all(tessera::Durability durability, const std::string& what, bool renames = false) const;
    /// Boxes one after another; with two threads two callers, each with its own.
    void read_boxes(const std::string& what, int count, std::int64_t side) const;
    /// Single elements beside a loop of blosc_getitem.
    void read_items(const std::string& what, int count) const;
    /// The same in one call, beside the loop that reads them one after another, and beside one that reads each chunk
    /// once.
    void read_batch(const std::string& what, int count, std::int64_t side) const;
    /// Boxes read, changed and written, one after another; with a `cache` of so many bytes through one, which
    /// is flushed at the end.
    void edit_boxes(const std::string& name, int count, std::int64_t side, std::uint64_t cache) const;

private:
    [[nodiscard]] plain::Box inner() const;
    [[nodiscard]] std::size_t bytes_of(const plain::Box& box) const;
    /// Memory as a packed box of the array.
    [[nodiscard]] tessera::MutableArrayView view(const Memory& memory, const plain::Box& box) const;
    [[nodiscard]] bool peers() const { return !layout_.big_endian; }
    /// Copies of both arrays, to be changed, for as long as `body` runs; they have to end up equal.
    void with_copies(const std::function<void(const plain::Layout&, tessera::Array&)>& body) const;
    [[nodiscard]] tessera::Array create(const fs::path& folder, tessera::Durability durability) const;
    /// The places of boxes as a file of int64, for peers.
    [[nodiscard]] std::string boxes_file(int count, std::int64_t side) const;

    const Bench& bench_;
    std::string name_;
    plain::Layout layout_;
    tessera::ArrayOptions options_;
    tessera::NDArray elements_;
    fs::path folder_;
    fs::path array_;  ///< the plain loop's own where the two differ
};

/// The workloads, each in a file of its own.
void rechunking(const Stage& stage);   // W6
void npy_files(const Stage& stage);    // W8
void passes(const Stage& stage);       // stats, digest and diff, beside reading
void many_chunks(const Bench& bench);  // cost per chunk, and a million of them

}  // namespace bench
