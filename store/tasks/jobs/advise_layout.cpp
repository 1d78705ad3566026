#include <tessera/advise_layout.h>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <tessera/array.h>
#include <tessera/byte_io.h>
#include <tessera/chunk_layout.h>
#include <tessera/codec.h>
#include <tessera/convert.h>
#include <tessera/error_text.h>
#include <tessera/key_value_store.h>
#include <tessera/ndarray.h>
#include <tessera/node_facts.h>
#include <tessera/slices.h>
#include <tessera/view.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <ctime>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <system_error>
#include <utility>

#include "array_access.h"
#include "array_state.h"

namespace tessera {

namespace {

constexpr std::int64_t part_bytes = std::int64_t{16} << 20;
constexpr std::int64_t kib = 1024;
/// From so many chunks on, shards are reckoned.
constexpr double many_chunks = 10'000;
constexpr double shard_bytes = double{64 << 20};

double processor_seconds() {
    timespec now{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// What one value takes where an array lies.
struct ValueTimes {
    double open = 0;  ///< seconds
    double byte = 0;
};

ValueTimes value_times(const ArraySource& source) {
    const Array* const array = as_array(source);
    if (array == nullptr) return {};
    const ArrayState& state = *ArrayAccess::state(*array);
    const auto loaded = state.loaded();
    const std::int64_t chunks = loaded->grid.chunk_count();
    constexpr std::int64_t tries = 8;
    ValueTimes sum;
    double found = 0, bytes = 0;
    for (std::int64_t n = 0; n < std::min(tries, chunks); ++n) {
        const Index chunk = loaded->grid.index(n * (chunks / std::min(tries, chunks)));
        const auto start = std::chrono::steady_clock::now();
        const auto value = state.store->open(state.chunk_key(*loaded, chunk));
        if (value == nullptr || value->size() == 0) continue;
        (void)read_range(*value, 0, 1);
        const auto opened = std::chrono::steady_clock::now();
        const std::uint64_t some = std::min<std::uint64_t>(value->size(), std::uint64_t{1} << 20);
        (void)read_range(*value, 0, some);
        const std::chrono::duration<double> open = opened - start, read = std::chrono::steady_clock::now() - opened;
        sum.open += open.count();
        sum.byte += std::max(0.0, read.count() - open.count());
        bytes += static_cast<double>(some);
        ++found;
    }
    if (found == 0) return {};
    return {.open = sum.open / found, .byte = sum.byte / bytes};
}

/// What encoding and decoding take, for each element.
struct Rates {
    double encode = 0, decode = 0, bytes = 0;
};

/// The chunks of the part that are whole.
ArrayView whole_chunks(const ArrayView& part, const Shape& chunks) {
    Region whole = Region::whole(part.shape);
    for (int d = 0; d < chunks.rank(); ++d) whole.extent[d] -= whole.extent[d] % chunks[d];
    return part.part(whole);
}

Rates measure(const ArrayView& part, const Shape& chunks, const std::string& codec) {
    const ArrayView elements = whole_chunks(part, chunks);
    const IoOptions one{.threads = 1};
    Array made = Array::create(
        Place(memory_store()),
        {.shape = elements.shape, .chunks = chunks, .dtype = elements.dtype, .codec = codec, .format = "v3"});
    const Region all = Region::whole(elements.shape);
    const double start = processor_seconds();
    made.write(all, elements, one);
    const double written = processor_seconds();
    NDArray back(elements.dtype, elements.shape);
    double decode = std::numeric_limits<double>::infinity();
    for (int tries = 0; tries < 2; ++tries) {
        const double begin = processor_seconds();
        made.read_into(all, back.view(), one);
        decode = std::min(decode, processor_seconds() - begin);
    }
    const auto count = static_cast<double>(all.count());
    return {.encode = (written - start) / count,
            .decode = decode / count,
            .bytes = static_cast<double>(made.stored_size().bytes) / count};
}

/// How many of the chunks of length `chunk` along `length` elements a run of `some` meets, on average.
double touched(std::int64_t length, std::int64_t chunk, std::int64_t some) {
    const double all = std::ceil(static_cast<double>(length) / static_cast<double>(chunk));
    if (some >= length) return all;
    return std::min(all, 1 + static_cast<double>(some - 1) / static_cast<double>(chunk));
}

double touched(const Shape& shape, const Shape& chunks, const Shape& box) {
    double product = 1;
    for (int d = 0; d < shape.rank(); ++d) product *= touched(shape[d], chunks[d], box[d]);
    return product;
}

double count_of(const Shape& shape) {
    double product = 1;
    for (const std::int64_t length : shape) product *= static_cast<double>(length);
    return product;
}

/// As many chunks as before, of lengths that differ as little as can be.
void even_out(const Shape& shape, Shape& chunks) {
    for (int d = 0; d < shape.rank(); ++d) {
        const std::int64_t n = (shape[d] + chunks[d] - 1) / chunks[d];
        chunks[d] = (shape[d] + n - 1) / n;
    }
}

/// Chunks of about so many bytes of which the patterns together decode as little as can be: grown along the dimension
/// that costs them least.
Shape chunks_for(const Shape& shape, const std::vector<ReadPattern>& reads, std::int64_t item, std::int64_t bytes) {
    constexpr double each_chunk = 10'000;  // elements that are decoded in the time that a chunk takes besides
    Shape chunks = Shape::filled(shape.rank(), 1);
    while (count_of(chunks) * static_cast<double>(item) < static_cast<double>(bytes)) {
        std::optional<std::pair<double, Shape>> best;
        for (int d = 0; d < shape.rank(); ++d) {
            if (chunks[d] >= shape[d]) continue;
            Shape larger = chunks;
            larger[d] = std::min(2 * larger[d], shape[d]);
            double cost = 0;
            for (const ReadPattern& read : reads) {
                cost += touched(shape, larger, read.box) * (count_of(larger) + each_chunk);
            }
            if (!best || cost < best->first) best.emplace(cost, larger);
        }
        if (!best) break;
        chunks = best->second;
    }
    even_out(shape, chunks);
    return chunks;
}

/// Shards of whole chunks, of about shard_bytes as stored, or all of the array.
Shape shards_of(const Shape& shape, const Shape& chunks, double bytes_each) {
    constexpr double least = 1.0 / 16;  // of what is not stored in the part, there may be some elsewhere
    Shape shards = chunks;
    while (count_of(shards) * std::max(bytes_each, least) < shard_bytes) {
        int longest = -1;  // that in which most chunks are missing
        for (int d = 0; d < shape.rank(); ++d) {
            const bool more = shards[d] < shape[d];
            if (more && (longest < 0 || shape[d] / shards[d] > shape[longest] / shards[longest])) longest = d;
        }
        if (longest < 0) break;
        shards[longest] *= 2;
    }
    return shards;
}

/// A part of some MiB in the middle, from where a chunk begins; less of tiny chunks, each of which takes its time.
Region middle_of(const ArrayInfo& info, std::int64_t most) {
    constexpr double most_chunks = 20'000;
    Region part = Region::whole(info.shape);
    const auto chunks = [&] { return info.chunks.empty() ? 1 : touched(part.extent, info.chunks, part.extent); };
    while (count_of(part.extent) * static_cast<double>(info.dtype.size()) > static_cast<double>(most) ||
           chunks() > most_chunks) {
        const auto longest = std::ranges::max_element(part.extent);
        *longest = (*longest + 1) / 2;
    }
    for (int d = 0; d < part.rank(); ++d) {
        part.start[d] = (info.shape[d] - part.extent[d]) / 2;
        if (!info.chunks.empty() && info.chunk_offset.empty()) part.start[d] -= part.start[d] % info.chunks[d];
    }
    return part;
}

/// What is tried on one part of an array.
class Trial {
public:
    Trial(const ArraySource& source, const std::vector<ReadPattern>& reads, const Region& part, const IoOptions& io)
        : shape_(source.info().shape),
          reads_(reads),
          elements_(native_dtype(source.info().dtype), part.extent),
          times_(value_times(source)) {
        source.read_into(part, elements_.view(), io);
    }

    void try_out(const Shape& chunks, const std::string& codec, const Shape& shards = {}, bool present = false) {
        require_not_stopped();
        const Rates* const rates = rates_of(chunks, codec);
        if (rates == nullptr) return;
        add(chunks, shards, codec, *rates, present);
        const double chunk_count = std::ceil(count_of(shape_) / count_of(chunks));
        if (present || chunk_count < many_chunks) return;
        add(chunks, shards_of(shape_, chunks, rates->bytes), codec, *rates, false);
    }

    [[nodiscard]] std::vector<TriedLayout> ranked() && {
        if (tried_.empty()) throw unsupported("no layout could be tried: {}", why_not_);
        rank();
        std::ranges::stable_sort(tried_, {}, &TriedLayout::cost);
        return std::move(tried_);
    }

private:
    /// nullptr if the elements cannot be stored like this.
    const Rates* rates_of(const Shape& chunks, const std::string& codec) {
        Shape there = chunks;
        for (int d = 0; d < there.rank(); ++d) there[d] = std::min(there[d], elements_.shape()[d]);
        const auto [at, is_new] = rates_.try_emplace(codec + ' ' + there.to_string());
        if (!is_new) return at->second ? &*at->second : nullptr;
        try {
            at->second = measure(std::as_const(elements_).view(), there, codec);
        } catch (const Error& e) {
            if (e.code() != ErrorCode::invalid_argument && e.code() != ErrorCode::unsupported) throw;
            why_not_ = e.what();
            return nullptr;
        }
        return &*at->second;
    }

    void add(const Shape& chunks, const Shape& shards, const std::string& codec, const Rates& rates, bool present) {
        const bool twice = std::ranges::any_of(tried_, [&](const TriedLayout& other) {
            return other.chunks == chunks && other.shards == shards && other.codec == codec;
        });
        if (twice) return;
        const double all = count_of(shape_);
        TriedLayout tried{.chunks = chunks, .shards = shards, .codec = codec, .present = present};
        const Shape& value = shards.empty() ? chunks : shards;
        tried.stored = all * rates.bytes;
        tried.values = touched(shape_, value, shape_);
        tried.write = all * rates.encode + tried.values * times_.open;
        for (const ReadPattern& read : reads_) {
            const double inner = touched(shape_, chunks, read.box);
            const double decoded = inner * count_of(chunks);
            // Of each shard the index is read first.
            const double opened = shards.empty() ? inner : inner + touched(shape_, shards, read.box);
            tried.reads.push_back(decoded * (rates.decode + rates.bytes * times_.byte) + opened * times_.open);
        }
        tried_.push_back(std::move(tried));
    }

    void rank() {
        const auto relative = [&](const auto& of) {
            double least = std::numeric_limits<double>::infinity();
            for (const TriedLayout& tried : tried_) least = std::min(least, of(tried));
            return [of, least](const TriedLayout& tried) { return least > 0 ? of(tried) / least : 1.0; };
        };
        const auto size = relative([](const TriedLayout& tried) { return tried.stored; });
        const auto write = relative([](const TriedLayout& tried) { return tried.write; });
        const auto read = relative(
            [](const TriedLayout& tried) { return std::accumulate(tried.reads.begin(), tried.reads.end(), 0.0); });
        for (TriedLayout& tried : tried_) tried.cost = read(tried) + size(tried) + write(tried) / 4;
    }

    Shape shape_;
    const std::vector<ReadPattern>& reads_;
    NDArray elements_;
    ValueTimes times_;
    std::map<std::string, std::optional<Rates>> rates_;
    std::string why_not_;
    std::vector<TriedLayout> tried_;
};

/// An array's codecs as parse_codecs() reads them.
std::string present_codecs(const Array& array) {
    std::string text;
    for (const CodecConfig& codec : chunk_layout(array.metadata()).codecs) {
        if (codec.name != "bytes") text += (text.empty() ? "" : ",") + codec_text(codec);
    }
    return text.empty() ? "none" : text;
}

ReadPattern parse_read(std::string_view text, const Shape& shape, const DimensionNames& names) {
    ReadPattern read{.text = std::string(text), .box = shape};
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t comma = std::min(text.find(',', at), text.size());
        const std::string_view item = text.substr(at, comma - at);
        at = comma + 1;
        const std::size_t equals = item.find('=');
        if (equals == item.npos) throw invalid_argument("expected DIM=N, found '{}'", item);
        const int d = find_dimension(item.substr(0, equals), names, shape.rank());
        const std::string_view many = item.substr(equals + 1);
        std::int64_t n = 1;
        if (many != "…" && many != "...") {
            const auto number = std::from_chars(many.data(), many.data() + many.size(), n);
            if (number.ec != std::errc() || number.ptr != many.data() + many.size() || n < 1) {
                throw invalid_argument("expected how many indices are read, found '{}'", item);
            }
        }
        read.box[d] = std::min(n, shape[d]);
    }
    return read;
}

/// The name of a dimension, or its number if it has none that can stand in a pattern.
std::string word_for(const DimensionNames& names, int d) {
    const bool named = static_cast<std::size_t>(d) < names.size() && names[static_cast<std::size_t>(d)];
    const std::string name = named ? *names[static_cast<std::size_t>(d)] : std::string();
    return name.empty() || name.find_first_of(",;= ") != name.npos ? fmt::format("{}", d) : name;
}

std::string lengths_of(const Shape& shape) {
    return fmt::format("{}", fmt::join(shape, ","));
}

std::int64_t whole_number(double number) {
    constexpr double most = 9e18;
    return static_cast<std::int64_t>(std::min(number, most));
}

Value layout_value(const TriedLayout& layout) {
    Value value = Value::object();
    value.set("chunks", shape_value(layout.chunks));
    value.set("shards", layout.shards.empty() ? Value() : shape_value(layout.shards));
    value.set("codec", layout.codec);
    value.set("present", layout.present);
    value.set("stored_bytes_about", whole_number(layout.stored));
    value.set("values", whole_number(layout.values));
    Value reads = Value::array();
    for (const double seconds : layout.reads) reads.push_back(seconds);
    value.set("read_seconds", std::move(reads));
    value.set("write_seconds", layout.write);
    value.set("cost", layout.cost);
    value.set("options", layout_options(layout));
    return value;
}

std::string without_blanks(std::string_view text) {
    std::string kept;
    std::ranges::copy_if(text, std::back_inserter(kept), [](char c) { return c != ' '; });
    return kept;
}

}  // namespace

std::vector<ReadPattern> parse_reads(std::string_view text, const Shape& shape, const DimensionNames& names) {
    std::vector<ReadPattern> reads;
    const std::string compact = without_blanks(text);
    for (std::size_t at = 0; at < compact.size();) {
        const std::size_t end = std::min(compact.find(';', at), compact.size());
        if (end > at) reads.push_back(parse_read(std::string_view(compact).substr(at, end - at), shape, names));
        at = end + 1;
    }
    if (!reads.empty()) return reads;
    const auto one_along = [&](int first, int last) {
        std::string items;
        for (int d = first; d < last; ++d) {
            items += fmt::format("{}{}=1", d == first ? "" : ",", word_for(names, d));
        }
        reads.push_back(parse_read(items, shape, names));
    };
    for (int d = 0; d < shape.rank(); ++d) one_along(d, d + 1);
    if (shape.rank() > 2) one_along(1, shape.rank());
    return reads;
}

LayoutAdvice advise_layout(const ArraySource& source, const std::vector<ReadPattern>& reads, const IoOptions& io) {
    const ArrayInfo info = source.info();
    if (info.dtype.is_variable()) {
        throw unsupported("{}: elements of variable length: a part does not tell what others take", source.name());
    }
    if (element_count(info.shape) == 0) throw unsupported("{}: it has no elements to try", source.name());
    constexpr std::int64_t copies = 4;  // of the part, in memory at once
    const auto room = static_cast<std::int64_t>(io.max_memory) / copies;
    LayoutAdvice advice{.tried = {}, .part = middle_of(info, room > 0 ? std::min(room, part_bytes) : part_bytes)};
    Trial trial(source, reads, advice.part, io);
    std::vector<Shape> shapes;
    for (const std::int64_t bytes : {256 * kib, 1024 * kib, 4096 * kib}) {
        Shape chunks = chunks_for(info.shape, reads, info.dtype.size(), bytes);
        if (std::ranges::find(shapes, chunks) == shapes.end()) shapes.push_back(std::move(chunks));
    }
    std::vector<std::string> codecs{"blosc:lz4:5:shuffle", "blosc:lz4:5:bitshuffle", "blosc:zstd:3:shuffle",
                                    "blosc:zstd:7:bitshuffle", "none"};
    if (const Array* const array = as_array(source)) {
        const ChunkLayout layout = chunk_layout(array->metadata());
        const std::string codec = present_codecs(*array);
        trial.try_out(layout.chunks, codec, layout.shards, true);
        if (std::ranges::find(codecs, codec) == codecs.end()) codecs.push_back(codec);
        const bool tiny = byte_count(layout.chunks, info.dtype.size()) < 16 * kib;  // no codec makes them good
        if (!tiny && std::ranges::find(shapes, layout.chunks) == shapes.end()) shapes.push_back(layout.chunks);
    }
    for (const Shape& chunks : shapes) {
        for (const std::string& codec : codecs) trial.try_out(chunks, codec);
    }
    advice.tried = std::move(trial).ranked();
    return advice;
}

std::string layout_options(const TriedLayout& layout) {
    std::string text = fmt::format("--chunks {} --codec {}", lengths_of(layout.chunks), layout.codec);
    if (!layout.shards.empty()) text += fmt::format(" --format v3 --shards {}", lengths_of(layout.shards));
    return text;
}

Value advice_value(std::string_view path, const std::vector<ReadPattern>& reads, const LayoutAdvice& advice) {
    Value value{{"path", std::string(path)}};
    value.set("part", Value{{"start", shape_value(advice.part.start)}, {"shape", shape_value(advice.part.extent)}});
    Value patterns = Value::array();
    for (const ReadPattern& read : reads) {
        patterns.push_back(Value{{"text", read.text}, {"shape", shape_value(read.box)}});
    }
    value.set("reads", std::move(patterns));
    Value layouts = Value::array();
    for (const TriedLayout& tried : advice.tried) layouts.push_back(layout_value(tried));
    value.set("layouts", std::move(layouts));
    return value;
}

}  // namespace tessera
