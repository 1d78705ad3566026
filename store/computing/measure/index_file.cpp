#include "index_file.h"

#include <tessera/error.h>
#include <tessera/fnv.h>
#include <tessera/shape.h>
#include <tessera/value.h>

#include <cstddef>
#include <optional>
#include <utility>

#include "index_bytes.h"

namespace tessera {

namespace {

void save_entry(IndexWriter& to, const IndexEntry& entry, std::int64_t before) {
    to.count(static_cast<std::uint64_t>(entry.chunk - before));
    to.count(entry.stamp.size);
    to.word(static_cast<std::uint64_t>(entry.stamp.modified));
    to.count(entry.stamp.id);
    to.word(static_cast<std::uint64_t>(entry.stamp.changed));
    to.text(entry.units);
}

IndexEntry load_entry(IndexReader& from, std::int64_t before, std::int64_t most) {
    IndexEntry entry{.chunk = before + from.count(most), .stamp = {}, .units = {}};
    entry.stamp.size = from.count();
    entry.stamp.modified = static_cast<std::int64_t>(from.word());
    entry.stamp.id = from.count();
    entry.stamp.changed = static_cast<std::int64_t>(from.word());
    entry.units = from.text();
    return entry;
}

Value lengths_value(const Shape& shape) {
    Value list = Value::array();
    for (const std::int64_t length : shape) list.push_back(length);
    return list;
}

/// The grid for which entries were made, if chunks have the same numbers in it: it may be longer or shorter.
std::optional<ChunkGrid> grid_then(const Value& lengths, const ChunkGrid& now) {
    Shape shape;
    for (const Value& length : lengths.as_array()) shape.push_back(length.as_int64());
    if (shape == now.shape()) return now;
    if (shape.rank() != now.shape().rank() || !now.regular()) return std::nullopt;
    for (int d = 1; d < shape.rank(); ++d) {
        if (shape[d] != now.shape()[d]) return std::nullopt;
    }
    return ChunkGrid(shape, now.chunks());
}

bool is_as_then(const ChunkGrid& old, const ChunkGrid& now, std::int64_t chunk) {
    return chunk < now.chunk_count() && chunk < old.chunk_count() &&
           old.chunk_region(now.index(chunk)) == now.chunk_region(now.index(chunk));
}

}  // namespace

std::string index_file(const IndexRun& run, const std::vector<IndexEntry>& entries) {
    std::string file =
        Value{{"tessera_index", index_version}, {"sense", run.sense}, {"shape", lengths_value(run.grid.shape())}}.dump(
            {.ascii = true}) +
        '\n';
    IndexWriter to(file);
    std::int64_t before = run.first;
    for (const IndexEntry& entry : entries) {
        save_entry(to, entry, before);
        before = entry.chunk;
    }
    to.word(fnv1a(file));
    return file;
}

std::vector<IndexEntry> entries_in(std::string_view file, const IndexRun& run) {
    constexpr std::size_t sum_size = 8;
    const std::size_t line = file.find('\n');
    if (line == file.npos || file.size() - line - 1 < sum_size) throw corrupt("no index of chunks");
    const std::string_view covered = file.substr(0, file.size() - sum_size);
    if (IndexReader(file.substr(covered.size())).word() != fnv1a(covered)) throw corrupt("a damaged index");
    const Value head = Value::parse(file.substr(0, line));
    if (head.at("tessera_index").as_int64() != index_version || head.at("sense").as_string() != run.sense) return {};
    const auto old = grid_then(head.at("shape"), run.grid);
    IndexReader from(covered.substr(line + 1));
    std::vector<IndexEntry> entries;
    std::int64_t before = run.first;
    while (old && !from.ended()) {
        IndexEntry entry = load_entry(from, before, run.first + run.count - 1 - before);
        before = entry.chunk;
        if (is_as_then(*old, run.grid, before)) entries.push_back(std::move(entry));
    }
    return entries;
}

}  // namespace tessera
