#include "contention.h"

#include <fmt/format.h>

#include <tessera/error.h>
#include <algorithm>
#include <random>

namespace tessera::faults {

namespace {

const IoOptions one_thread{.threads = 1};
constexpr std::int64_t chunk_length = 16;
constexpr std::int64_t shard_length = 32;

class Random {
public:
    explicit Random(const Party& party) : engine_(static_cast<unsigned>(party.self + 1)) {}
    /// From 0 to `most`.
    std::int64_t operator()(std::int64_t most) { return static_cast<std::int64_t>(engine_() % (most + 1)); }

private:
    std::mt19937 engine_;
};

/// Rows of `party` in [first, end), and some or all columns in [left, right).
Selection own_rows(const Party& party, std::int64_t first, std::int64_t end, std::int64_t left, std::int64_t right) {
    const std::int64_t start = first + (party.self - first % party.all + party.all) % party.all;
    const std::int64_t count = start < end ? ceil_div(end - start, std::int64_t{party.all}) : 0;
    return Selection({{.start = count > 0 ? start : first, .step = party.all, .count = count},
                      {.start = left, .count = right - left}});
}

/// The slice that the next increment is about.
Selection next_slice(Random& random, const Party& party) {
    const std::int64_t first = random(shared_rows - 1);
    const std::int64_t left = random(shared_columns - 1);
    const std::int64_t end = first + 1 + random(shared_rows - 1 - first);
    return own_rows(party, first, end, left, left + 1 + random(shared_columns - 1 - left));
}

struct Toggle {
    Selection where;
    std::int32_t value;
};

Toggle next_toggle(Random& random, const Party& party) {
    const std::int64_t row = chunk_length * random((shared_rows - 1) / chunk_length);
    const std::int64_t column = chunk_length * random((shared_columns - 1) / chunk_length);
    const std::int64_t end = std::min(row + chunk_length, shared_rows);
    const auto value = static_cast<std::int32_t>(std::max<std::int64_t>(0, random(7) - 5));
    return {own_rows(party, row, end, column, std::min(column + chunk_length, shared_columns)), value};
}

/// Calls each(element of the shared part) for what a selection picks.
template <class Each>
void for_each_picked(std::vector<std::int32_t>& values, const Selection& where, const Each& each) {
    const auto& rows = where.axes()[0];
    const auto& columns = where.axes()[1];
    for (std::int64_t r = 0; r < rows.count; ++r) {
        for (std::int64_t c = 0; c < columns.count; ++c) {
            each(values[static_cast<std::size_t>((rows.start + r * rows.step) * shared_columns + columns.start + c)]);
        }
    }
}

std::vector<std::int32_t> empty_values() {
    return std::vector<std::int32_t>(static_cast<std::size_t>(shared_rows * shared_columns));
}

void set(Array& array, const Selection& where, std::int32_t value) {
    array.fill(where, std::int64_t{value}, one_thread);
}

/// A whole chunk or, now and then, a whole shard.
Region next_block(Random& random) {
    const std::int64_t length = random(3) == 0 ? shard_length : chunk_length;
    return {{length * random(64 / length - 1), length * random(32 / length - 1)}, {length, length}};
}

}  // namespace

Array create_shared(const std::filesystem::path& path, bool sharded) {
    ArrayOptions options{.shape = {shared_rows, shared_columns},
                         .chunks = {chunk_length, chunk_length},
                         .dtype = DType::of<std::int32_t>(),
                         .fill_value = Value(0),
                         .format = sharded ? "v3" : "zmeta"};
    if (sharded) options.shards = {shard_length, shard_length};
    return Array::create(path, options, {.durability = Durability::none});
}

void increment(Array& array, const Party& party) {
    Random random(party);
    for (int i = 0; i < party.count; ++i) {
        const Selection where = next_slice(random, party);
        NDArray elements = array.read(where, one_thread);
        for (std::int32_t& value : elements.values<std::int32_t>()) ++value;
        array.write(where, elements, one_thread);
    }
}

void toggle(Array& array, const Party& party) {
    Random random(party);
    for (int i = 0; i < party.count; ++i) {
        const auto [where, value] = next_toggle(random, party);
        set(array, where, value);
    }
}

std::vector<std::int32_t> after_increments(int all, int count) {
    std::vector<std::int32_t> values = empty_values();
    for (Party party{0, all, count}; party.self < all; ++party.self) {
        Random random(party);
        for (int i = 0; i < count; ++i) {
            for_each_picked(values, next_slice(random, party), [](std::int32_t& value) { ++value; });
        }
    }
    return values;
}

std::vector<std::int32_t> after_toggles(int all, int count) {
    std::vector<std::int32_t> values = empty_values();
    for (Party party{0, all, count}; party.self < all; ++party.self) {
        Random random(party);
        for (int i = 0; i < count; ++i) {
            const auto [where, value] = next_toggle(random, party);
            for_each_picked(values, where, [v = value](std::int32_t& element) { element = v; });
        }
    }
    return values;
}

void resize_often(Array& array, const Party& party) {
    Random random(party);
    std::int64_t before = shared_rows;
    for (int i = 0; i < party.count; ++i) {
        const std::int64_t rows = shared_rows + random(50);
        array.resize({rows, shared_columns}, one_thread);
        const Selection beyond(Region{{shared_rows, 0}, {rows - shared_rows, shared_columns}}, {rows, shared_columns});
        const NDArray seen = array.read(beyond, one_thread);
        const auto values = seen.values<std::int32_t>();
        // Rows that were there all the time hold what was written, those that are new the fill.
        for (std::size_t n = 0; n < values.size(); ++n) {
            const bool old = shared_rows + static_cast<std::int64_t>(n) / shared_columns < before;
            if (values[n] != (old ? -1 : 0)) {
                throw corrupt(fmt::format("{}: resized from {} to {} rows, element {} beyond row {} is {}",
                                          array.name(), before, rows, n, shared_rows, values[n]));
            }
        }
        if (rows > shared_rows) set(array, beyond, -1);
        before = rows;
    }
}

void append_often(Array& array, const Party& party,
                  const std::function<void(std::int64_t, std::int64_t, std::int32_t)>& appended) {
    Random random(party);
    for (int i = 0; i < party.count; ++i) {
        const std::int64_t rows = 1 + random(4);
        const auto number = static_cast<std::int32_t>(1 + party.self + party.all * i);
        const std::vector<std::int32_t> piece(static_cast<std::size_t>(rows * shared_columns), number);
        appended(array.append(view(piece, {rows, shared_columns}), 0, one_thread), rows, number);
    }
}

void write_blocks(Array& array, const Party& party) {
    Random random(party);
    for (int i = 0; i < party.count; ++i) {
        const Region block = next_block(random);
        set(array, Selection(block, array.shape()), random(9) == 0 ? 0 : party.self + party.all * i);
    }
}

void read_blocks(const Array& array, const Party& party) {
    Random random(party);
    for (int i = 0; i < party.count; ++i) {
        // Chunks only: a shard may have got some of its chunks from one writer and some from another.
        Region block = next_block(random);
        block.extent = {chunk_length, chunk_length};
        const NDArray elements = array.read(block, one_thread);
        const auto values = elements.values<std::int32_t>();
        if (std::ranges::any_of(values, [&](std::int32_t value) { return value != values[0]; })) {
            throw corrupt(fmt::format("{}: the chunk at {} is torn", array.name(), block.start.to_string()));
        }
    }
}

}  // namespace tessera::faults
