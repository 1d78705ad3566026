// What the processes under test do, step by step, and what must then be there: worker.cpp does the steps to an array,
// the tests do them to a Table and compare.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <tessera/array.h>

namespace tessera::faults {

/// The content of a small array of int32 with two dimensions, and its attribute "mark".
struct Table {
    Shape shape;
    std::vector<std::int32_t> values;  ///< in C order
    std::int64_t mark = 0;

    [[nodiscard]] std::int32_t& at(std::int64_t row, std::int64_t column) {
        return values[static_cast<std::size_t>(row * shape[1] + column)];
    }
    [[nodiscard]] std::int32_t at(std::int64_t row, std::int64_t column) const {
        return const_cast<Table&>(*this).at(row, column);
    }
    friend bool operator==(const Table&, const Table&) = default;
};

/// No element that is written has this value but those that are to become the fill, and zeros are never written: a
/// chunk that was lost, or came back as zeros, is seen.
inline constexpr std::int32_t fill_value = 7;

/// What there is: the array, and what each of its snapshots holds.
struct State {
    Table table;
    std::map<std::string, Table> snapshots = {};
};

struct Step {
    enum class Kind : std::uint8_t {
        write,
        append,
        resize,
        mark,
        batch,
        undo,    ///< of the step before, which is a batch
        cached,  ///< a write, block by block through a cache that has room for a few
        snapshot,
        restore,
        remove,  ///< a snapshot
    } kind = Kind::write;
    std::vector<Selection::Axis> axes = {};  ///< write, cached (without gaps): what is written
    Shape shape = {};                        ///< resize: the new shape; append: of what is appended
    int axis = 0;                            ///< append
    std::int32_t first = 0;  ///< write, cached, append: the values count up from here; fill_value: all are the fill
    std::vector<Step> parts = {};  ///< batch: what takes effect together
    std::string name = {};         ///< of the snapshot
    [[nodiscard]] std::string to_string() const;
};

inline constexpr int all_kinds = 8;
/// `count` steps that depend on `seed` alone: writes of regions and slices within chunks and across, erasures, appends
/// and resizes along both dimensions, attributes, batches of such; undo and snapshots. In any `all_kinds` that begin at
/// a multiple of it there is everything that is no single write, append, resize or attribute.
[[nodiscard]] std::vector<Step> make_steps(unsigned seed, int count);

/// The array before the first step.
[[nodiscard]] Table first_table();
/// How it is stored: "zmeta", "v1", "v2", "v3", "sharded" (v3), of 6×5 chunks, shards of 12×10.
void create_first(const std::filesystem::path& path, const std::string& layout);

/// How the process does what it does.
struct Way {
    StoreOptions store = {};
    IoOptions io = {};
};
/// Where the array is replaced, it is opened anew.
void apply(const Step& step, Array& array, const Way& way);

/// What there is after 0, 1, 2 … steps.
[[nodiscard]] std::vector<State> states_after(const std::vector<Step>& steps);

/// Whether a step takes effect as a whole.
[[nodiscard]] bool is_atomic(const Step& step);

/// What is in the array. Throws what reading throws.
[[nodiscard]] Table table_of(const Array& array);

}  // namespace tessera::faults
