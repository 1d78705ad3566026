// A file is "PAR1", pages, the metadata, their length (u32 little-endian), and "PAR1". A page is a header in Thrift's
// compact protocol and values: in the first version compressed with the levels that say which are null, in the second
// one after them.
#include "parquet_columns.h"

#include <tessera/codec.h>
#include <tessera/error_text.h>

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "thrift_compact.h"

namespace tessera {

namespace {

constexpr std::string_view magic = "PAR1";
constexpr std::uint64_t longest_metadata = std::uint64_t{256} << 10;
constexpr std::uint64_t thrift_bytes = 160;  ///< memory for each byte of metadata, at most

enum PhysicalType : std::uint8_t { int32 = 1, int64 = 2, byte_array = 6 };
enum Encoding : std::uint8_t { plain = 0, plain_dictionary = 2, rle_dictionary = 8 };
enum PageType : std::uint8_t { data_page = 0, dictionary_page = 2, data_page_v2 = 3 };

std::uint64_t load_little(ByteSpan in, std::size_t size) {
    if (in.size() < size) throw corrupt("the values are cut short");
    std::uint64_t v = 0;
    for (std::size_t n = size; n-- > 0;) v = v << 8 | std::to_integer<std::uint64_t>(in[n]);
    return v;
}

ByteSpan take(ByteSpan& in, std::uint64_t size) {
    if (size > in.size()) throw corrupt("the values are cut short");
    const ByteSpan taken = in.first(static_cast<std::size_t>(size));
    in = in.subspan(taken.size());
    return taken;
}

/// Runs of one value, and groups of eight packed ones, of `width` bits each; calls each(value) for `count` of them.
template <class Each>
void for_each_packed(ByteSpan in, unsigned width, std::int64_t count, const Each& each) {
    if (width > 32) throw corrupt("values of {} bits are none", width);
    while (count > 0) {
        const std::uint64_t header = read_varint(in);
        if ((header & 1) == 0) {
            const std::uint64_t value = load_little(take(in, (width + 7) / 8), (width + 7) / 8);
            const auto run = static_cast<std::int64_t>(std::min<std::uint64_t>(header >> 1, INT64_MAX));
            if (run == 0) throw corrupt("a run of no values");
            for (const std::int64_t end = count - std::min(run, count); count > end; --count) each(value);
            continue;
        }
        const std::uint64_t groups = header >> 1;
        if (groups == 0 || (width > 0 && groups > in.size() / width)) throw corrupt("the values are cut short");
        const ByteSpan packed = take(in, groups * width);
        std::uint64_t at = 0;
        for (std::uint64_t n = 0; n / 8 < groups && count > 0; ++n, --count) {
            std::uint64_t value = 0;
            for (unsigned bit = 0; bit < width; ++bit, ++at) {
                value |= (std::to_integer<std::uint64_t>(packed[at / 8]) >> (at % 8) & 1) << bit;
            }
            each(value);
        }
    }
}

/// The chunks of one column, read page by page.
class ColumnReader {
public:
    ColumnReader(ByteSpan file, std::int64_t type, bool nullable, std::int64_t most_rows)
        : file_(file), type_(type), nullable_(nullable), most_rows_(most_rows) {
        if (type != int32 && type != int64 && type != byte_array) {
            throw unsupported("a column of Parquet's type {}; there are integers and bytes", type);
        }
        column_.is_text = type == byte_array;
    }

    void read(const ThriftValue& chunk) {
        const ThriftValue& about = chunk.at(3);
        codec_ = about.at(4).number;
        if (about.at(1).number != type_) throw corrupt("a part of the column has another type");
        std::int64_t start = about.at(9).number;
        if (const std::int64_t dictionary = about.number_of(11, 0); dictionary > 0) start = std::min(start, dictionary);
        const std::int64_t size = about.at(7).number;
        const auto whole = static_cast<std::int64_t>(file_.size());
        if (start < 0 || size < 0 || start > whole || size > whole - start)
            throw corrupt("its pages lie beyond the file");
        ByteSpan pages = file_.subspan(static_cast<std::size_t>(start), static_cast<std::size_t>(size));
        dictionary_ = {};
        const auto end = static_cast<std::int64_t>(column_.rows.size()) + about.at(5).number;
        while (std::cmp_less(column_.rows.size(), end)) read_page(pages);
    }

    ParquetColumn column() && { return std::move(column_); }

private:
    struct Span {
        std::int64_t first = 0, count = 0;
    };

    void read_page(ByteSpan& pages) {
        const ThriftValue header = read_thrift(pages);
        const std::int64_t size = header.at(3).number;
        const std::int64_t decoded = header.at(2).number;
        if (size < 0 || decoded < 0) throw corrupt("a page has a negative size");
        ByteSpan page = take(pages, static_cast<std::uint64_t>(size));
        const std::int64_t type = header.at(1).number;
        if (type == data_page_v2) return read_second(header.at(8), page, decoded);
        if (type != data_page && type != dictionary_page) return;  // an index
        Buffer memory;
        ByteSpan values = unpacked(page, decoded, memory);
        if (type == dictionary_page) {
            dictionary_ = append(values, header.at(7).at(1).number);
            return;
        }
        const ThriftValue& about = header.at(5);
        const std::int64_t count = checked_rows(about.at(1).number);
        ByteSpan levels;
        if (nullable_) levels = take(values, load_little(take(values, 4), 4));
        take_rows(levels, count, values, about.at(2).number);
    }

    void read_second(const ThriftValue& about, ByteSpan page, std::int64_t decoded) {
        const std::int64_t count = checked_rows(about.at(1).number);
        const std::int64_t definition = about.at(5).number;
        if (about.at(6).number != 0 || definition < 0 || definition > decoded)
            throw corrupt("levels of no flat column");
        const ByteSpan levels = take(page, static_cast<std::uint64_t>(definition));
        Buffer memory;
        const bool packed = about.number_of(7, 1) != 0;
        const ByteSpan values = packed ? unpacked(page, decoded - definition, memory) : page;
        take_rows(levels, count, values, about.at(4).number);
    }

    [[nodiscard]] std::int64_t checked_rows(std::int64_t count) const {
        if (count < 1 || count > most_rows_ - static_cast<std::int64_t>(column_.rows.size())) {
            throw corrupt("a page of {} rows; expected at most {} in all", count, most_rows_);
        }
        return count;
    }

    [[nodiscard]] ByteSpan unpacked(ByteSpan page, std::int64_t decoded, Buffer& memory) const {
        if (codec_ == 0) return page;
        constexpr int gzip = 2;
        constexpr int zstd = 6;
        if (codec_ != gzip && codec_ != zstd) {
            constexpr std::array<std::string_view, 8> names{"none",   "snappy", "gzip", "lzo",
                                                            "brotli", "lz4",    "zstd", "lz4_raw"};
            const bool known = codec_ > 0 && std::cmp_less(codec_, names.size());
            throw unsupported("pages compressed by {}; zstd and gzip are read",
                              known ? names[static_cast<std::size_t>(codec_)] : "an unknown codec");
        }
        if (decoded == 0) return {};
        memory.reset(static_cast<std::size_t>(decoded));
        const CodecRow* row = find_codec(codec_ == gzip ? "gzip" : "zstd");
        row->bytes_to_bytes(Value(Value::Object{{"level", 1}}), 1)->decode(page, memory.span());
        return std::as_const(memory).span();
    }

    /// Appends `count` plain values.
    Span append(ByteSpan& in, std::int64_t count) {
        const std::uint64_t least = type_ == int64 ? 8 : 4;
        if (count < 0 || std::cmp_greater(count, in.size() / least)) throw corrupt("the values are cut short");
        const Span added{static_cast<std::int64_t>(column_.is_text ? column_.texts.size() : column_.integers.size()),
                         count};
        column_.memory.add(in.size() + static_cast<std::uint64_t>(count) * sizeof(std::string));
        for (std::int64_t n = 0; n < count; ++n) {
            if (column_.is_text) {
                const ByteSpan text = take(in, load_little(take(in, 4), 4));
                column_.texts.emplace_back(reinterpret_cast<const char*>(text.data()), text.size());
            } else {
                const std::uint64_t v = load_little(take(in, least), least);
                column_.integers.push_back(type_ == int32 ? static_cast<std::int32_t>(v)
                                                          : static_cast<std::int64_t>(v));
            }
        }
        return added;
    }

    /// Appends `count` rows: `levels` say which are not null, and `values` hold these.
    void take_rows(ByteSpan levels, std::int64_t count, ByteSpan values, std::int64_t encoding) {
        column_.memory.add(static_cast<std::uint64_t>(count) * 2 * sizeof(std::int64_t));
        std::vector<bool> there(static_cast<std::size_t>(count), true);
        if (nullable_) {
            std::size_t n = 0;
            for_each_packed(levels, 1, count, [&](std::uint64_t level) { there[n++] = level == 1; });
        }
        const std::int64_t full = std::ranges::count(there, true);
        std::vector<std::int64_t> places;
        places.reserve(static_cast<std::size_t>(full));
        if (encoding == plain) {
            const Span added = append(values, full);
            for (std::int64_t n = 0; n < full; ++n) places.push_back(added.first + n);
        } else if (encoding == rle_dictionary || encoding == plain_dictionary) {
            const auto width = full == 0 ? 0U : static_cast<unsigned>(load_little(take(values, 1), 1));
            for_each_packed(values, width, full, [&](std::uint64_t n) {
                if (std::cmp_greater_equal(n, dictionary_.count))
                    throw corrupt("value {} of a dictionary of {}", n, dictionary_.count);
                places.push_back(dictionary_.first + static_cast<std::int64_t>(n));
            });
        } else {
            throw unsupported("values in Parquet's encoding {}; plain ones and dictionaries are read", encoding);
        }
        auto place = places.begin();
        for (const bool is : there) column_.rows.push_back(is ? *place++ : -1);
    }

    ByteSpan file_;
    std::int64_t type_;
    bool nullable_;
    std::int64_t most_rows_;
    std::int64_t codec_ = 0;
    Span dictionary_;
    ParquetColumn column_;
};

std::string_view text_at(ByteSpan file, std::size_t at, std::size_t size) {
    return {reinterpret_cast<const char*>(file.data()) + at, size};
}

ByteSpan metadata_in(ByteSpan file) {
    const std::size_t ends = 2 * magic.size() + 4;
    const bool whole = file.size() >= ends && text_at(file, 0, magic.size()) == magic &&
                       text_at(file, file.size() - magic.size(), magic.size()) == magic;
    if (!whole) throw corrupt("no Parquet file: expected PAR1 at its beginning and end");
    const std::uint64_t size = load_little(file.subspan(file.size() - magic.size() - 4), 4);
    if (size > file.size() - ends || size > longest_metadata) throw corrupt("{} bytes of metadata are too many", size);
    return file.subspan(file.size() - magic.size() - 4 - static_cast<std::size_t>(size),
                        static_cast<std::size_t>(size));
}

}  // namespace

std::optional<ParquetColumn> read_parquet_column(ByteSpan file, std::string_view name, std::int64_t most_rows) {
    ByteSpan text = metadata_in(file);
    const MemoryHold parsing(text.size() * thrift_bytes);
    const ThriftValue metadata = read_thrift(text);
    const std::vector<ThriftValue>& schema = metadata.at(2).list;
    const auto found = std::ranges::find_if(
        schema, [&](const ThriftValue& element) { return &element != schema.data() && element.at(4).bytes == name; });
    if (found == schema.end()) return std::nullopt;
    const bool flat = std::ranges::all_of(schema, [&](const ThriftValue& element) {
        return &element == schema.data() || (element.number_of(5, 0) == 0 && element.number_of(3, 0) <= 1);
    });
    if (!flat) throw unsupported("columns that are nested or repeated");
    const auto number = static_cast<std::size_t>(found - schema.begin()) - 1;
    ColumnReader reader(file, found->at(1).number, found->number_of(3, 0) == 1, most_rows);
    for (const ThriftValue& group : metadata.at(4).list) {
        const std::vector<ThriftValue>& columns = group.at(1).list;
        if (columns.size() != schema.size() - 1) throw corrupt("a group of rows lacks columns");
        reader.read(columns[number]);
    }
    return std::move(reader).column();
}

}  // namespace tessera
