// The record `.tessera/stored`, a text:
//
//   {"tessera_stored": 1, "grid": [8, 4], "chunks": [100, 100], "key": "c/0/0"}   one line of JSON
//   0-13                                                                 ranges of chunks that were stored
//   15
//   end                                                                  without it the record is incomplete
//   -c/1/2                                                               erased by Tessera since
//   -c/1/3 4-5                                                           of this shard, these inner chunks
//   <6,4                                                                 chunks beyond this grid may be gone
//
// With shards "tessera_stored" is 2, and "units": [80, 40], "unit": [10, 10] follow: the ranges are of inner chunks, in
// the grid `units`. A record of version 1 speaks of shards alone.
//
// The lines after "end" are appended, each before its change. So a crash between the two leaves a chunk that is not
// expected although it is there, and never one that is missed although it was erased on purpose. Writing a chunk
// changes nothing here.
#include "stored_record.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <tessera/error.h>
#include <tessera/key_value_store.h>
#include <tessera/value.h>

#include <algorithm>
#include <charconv>
#include <span>

#include "keys.h"
#include "lines.h"
#include "staged_store.h"

namespace tessera {

namespace {

constexpr int of_chunks = 1;  ///< versions
constexpr int of_inner_chunks = 2;
constexpr std::string_view stored_end = "end";
/// Beyond these, completeness is not worth what the record costs.
constexpr std::int64_t most_stored = std::int64_t{1} << 26;
constexpr std::uint64_t longest_record = std::uint64_t{64} << 20;

Value lengths_value(const Shape& shape) {
    Value list = Value::array();
    for (const std::int64_t length : shape) list.push_back(length);
    return list;
}

Shape lengths_of(const Value& list, std::int64_t least) {
    Shape shape;
    for (const Value& length : list.as_array()) {
        if (length.as_int64() < least) throw corrupt("a length of {}", length.as_int64());
        shape.push_back(length.as_int64());
    }
    return shape;
}

/// "3,4" in at most as many numbers as `like` has; nullopt for anything else.
std::optional<Shape> lengths_in(std::string_view text, const Shape& like) {
    Shape shape;
    while (!text.empty() && shape.rank() < like.rank()) {
        std::int64_t length = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), length);
        if (error != std::errc() || length < 0) return {};
        shape.push_back(length);
        text.remove_prefix(static_cast<std::size_t>(end - text.data()));
        if (!text.empty() && text.front() != ',') return {};
        if (!text.empty()) text.remove_prefix(1);
    }
    return text.empty() && shape.rank() == like.rank() ? std::optional(shape) : std::nullopt;
}

/// "3" or "3-7".
std::optional<std::pair<std::int64_t, std::int64_t>> range_in(std::string_view text) {
    std::int64_t first = 0;
    const char* const stop = text.data() + text.size();
    const auto begun = std::from_chars(text.data(), stop, first);
    if (begun.ec != std::errc() || first < 0) return {};
    if (begun.ptr == stop) return std::pair(first, first);
    std::int64_t last = 0;
    if (*begun.ptr != '-') return {};
    const auto ended = std::from_chars(begun.ptr + 1, stop, last);
    if (ended.ec != std::errc() || ended.ptr != stop || last < first) return {};
    return std::pair(first, last);
}

void append_lines(OwnValue& record, KeyValueStore& store, const std::string& key, std::string_view text) {
    if (record.append(text) > longest_record) store.erase(key);
}

/// "3", or "3-7".
std::string range_text(std::int64_t first, std::int64_t last) {
    return first == last ? fmt::format("{}", first) : fmt::format("{}-{}", first, last);
}

/// Calls each(first, last) for the runs of ascending numbers.
template <class Each>
void for_each_run(std::span<const std::int64_t> numbers, const Each& each) {
    for (std::size_t i = 0; i < numbers.size();) {
        std::size_t end = i + 1;
        while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1) ++end;
        each(numbers[i], numbers[end - 1]);
        i = end;
    }
}

}  // namespace

void write_stored_record(const PlaceRef& place, const StoredGrid& of, std::span<const std::int64_t> numbers) {
    if (numbers.empty() || std::ssize(numbers) > most_stored || !is_directory_store(place.store)) return;
    Value header = Value::object();
    header.set("tessera_stored", of.unit.empty() ? of_chunks : of_inner_chunks);
    header.set("grid", lengths_value(of.grid));
    header.set("chunks", lengths_value(of.chunks));
    header.set("key", of.key);
    if (!of.unit.empty()) {
        header.set("units", lengths_value(of.units));
        header.set("unit", lengths_value(of.unit));
    }
    const auto file = place.store.create(place.key(stored_record_key));
    constexpr std::size_t piece = std::size_t{256} << 10;
    std::string text = header.dump({.ascii = true}) + '\n';
    const auto flush = [&](std::size_t least) {
        if (text.size() < least) return;
        file->append(std::as_bytes(std::span(text)));
        text.clear();
    };
    for_each_run(numbers, [&](std::int64_t first, std::int64_t last) {
        text += range_text(first, last) + '\n';
        flush(piece);
    });
    fmt::format_to(std::back_inserter(text), "{}\n", stored_end);
    flush(0);
    file->finish();
}

void ErasedNotes::add(std::span<const std::string> keys) {
    if (keys.empty()) return;
    std::string text;
    const std::size_t own = place_.prefix.empty() ? 0 : place_.prefix.size() + 1;
    for (const std::string& key : keys) {
        fmt::format_to(std::back_inserter(text), "-{}\n", std::string_view(key).substr(own));
    }
    append(place_.store, text);
}

void ErasedNotes::add_inner(const std::string& shard, std::span<const std::int64_t> numbers) {
    std::string text;
    const std::size_t own = place_.prefix.empty() ? 0 : place_.prefix.size() + 1;
    for_each_run(numbers, [&](std::int64_t first, std::int64_t last) {
        fmt::format_to(std::back_inserter(text), "-{} {}\n", std::string_view(shard).substr(own),
                       range_text(first, last));
    });
    auto* const batch = dynamic_cast<StagedStore*>(&place_.store);
    if (!text.empty()) append(batch == nullptr ? place_.store : batch->beneath(), text);
}

void ErasedNotes::append(KeyValueStore& store, std::string_view text) {
    const std::string key = place_.key(stored_record_key);
    std::call_once(opened_, [&] { record_ = open_own(store, key); });
    if (record_ != nullptr) append_lines(*record_, store, key, text);
}

void note_replaced(KeyValueStore& store, std::string_view key) {
    if (!is_directory_store(store)) return;
    for (std::string_view above = key; !above.empty();) {
        above = parent_of(above);
        const std::string record = join_key(above, stored_record_key);
        const auto file = store.open(record);
        if (file == nullptr) continue;
        static const std::string begin = fmt::format("{{\"tessera_stored\": {}", of_inner_chunks);
        const Buffer head = read_range(*file, 0, std::min<std::uint64_t>(file->size(), begin.size()));
        if (std::string_view(reinterpret_cast<const char*>(head.data()), head.size()) != begin) return;
        const std::string own(key.substr(above.empty() ? 0 : above.size() + 1));
        const auto appended = open_own(store, record);
        if (appended != nullptr) append_lines(*appended, store, record, fmt::format("-{}\n", own));
        return;
    }
}

void note_grid(const PlaceRef& place, const Shape& grid) {
    const auto record = open_own(place.store, place.key(stored_record_key));
    if (record != nullptr)
        append_lines(*record, place.store, place.key(stored_record_key), fmt::format("<{}\n", fmt::join(grid, ",")));
}

namespace {

StoredGrid grid_in(std::string_view line) {
    const Value header = Value::parse(line);
    const std::int64_t version = header.at("tessera_stored").as_int64();
    if (version != of_chunks && version != of_inner_chunks) throw corrupt("another version");
    StoredGrid of{.grid = lengths_of(header.at("grid"), 0),
                  .chunks = lengths_of(header.at("chunks"), 1),
                  .key = header.at("key").as_string()};
    if (version == of_inner_chunks) {
        of.units = lengths_of(header.at("units"), 0);
        of.unit = lengths_of(header.at("unit"), 1);
    }
    if (of.counted().rank() != of.grid.rank()) throw corrupt("another number of dimensions");
    return of;
}

/// Adds the chunks of a line; false if it cannot be one, or says too many.
bool take_range(StoredRecord& record, std::string_view line, std::int64_t grid_count, std::int64_t& count) {
    const auto range = range_in(line);
    if (!range || range->second >= grid_count) return false;
    if (!record.ranges.empty() && range->first <= record.ranges.back().second) return false;
    count += range->second - range->first + 1;
    record.ranges.push_back(*range);
    return count <= most_stored;
}

/// The same of a line that was added later.
bool take_change(
    StoredRecord& record, std::string_view line,
    const std::function<std::optional<std::int64_t>(const StoredGrid& of, std::string_view key)>& number_of) {
    if (line.starts_with('-')) {
        const std::size_t space = std::min(line.find(' '), line.size());
        const auto inner =
            space < line.size() ? range_in(line.substr(space + 1)) : std::pair(std::int64_t{0}, INT64_MAX);
        if (!inner) return false;
        const auto number = number_of(record.of, line.substr(1, space - 1));
        if (number) record.erased.push_back({*number, inner->first, inner->second});
        return true;
    }
    if (!line.starts_with('<')) return false;
    const auto grid = lengths_in(line.substr(1), record.within);
    for (int d = 0; grid && d < grid->rank(); ++d) record.within[d] = std::min(record.within[d], (*grid)[d]);
    return grid.has_value();
}

}  // namespace

StoredRecord read_stored_record(
    const ByteSource& file,
    const std::function<std::optional<std::int64_t>(const StoredGrid& of, std::string_view key)>& number_of) {
    StoredRecord record;
    bool ended = false;
    std::int64_t grid_count = 0;
    std::int64_t count = 0;
    for_each_line(file, "a line of a record of stored chunks", [&](std::string_view line, std::size_t number) {
        if (number == 1) {
            record.of = grid_in(line);
            record.within = record.of.grid;
            grid_count = element_count(record.of.counted());
            return true;
        }
        if (ended) return take_change(record, line, number_of);
        ended = line == stored_end;
        return ended || take_range(record, line, grid_count, count);
    });
    if (!ended) throw corrupt("the record of stored chunks ends in its middle");
    return record;
}

}  // namespace tessera
