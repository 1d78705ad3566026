#include "netcdf_format.h"

#include <tessera/array_file.h>

#include <algorithm>
#include <array>
#include <bit>
#include <limits>

#include <fmt/format.h>

#include <tessera/action.h>
#include <tessera/element.h>
#include <tessera/error_text.h>

#include <tessera/unicode.h>

namespace tessera {

namespace {

constexpr std::uint32_t absent_tag = 0, dimension_tag = 10, variable_tag = 11, attribute_tag = 12;
constexpr std::uint32_t char_type = 2;
constexpr std::uint64_t longest_name = 1 << 16;
constexpr std::uint64_t longest_attribute = 64 << 20;

/// netCDF's types are numbered from 1.
constexpr std::array<std::string_view, 11> netcdf_types{">i1", "S1",  ">i2", ">i4", ">f4", ">f8",
                                                        ">u1", ">u2", ">u4", ">i8", ">u8"};

/// Reads a header from its front, in pieces.
class NetcdfCursor {
public:
    explicit NetcdfCursor(const ByteSource& file) : file_(file) {}

    std::uint64_t number(int bytes) {
        const ByteSpan raw = take(static_cast<std::uint64_t>(bytes));
        std::uint64_t n = 0;
        for (const std::byte b : raw) n = n << 8 | std::to_integer<std::uint64_t>(b);
        return n;
    }
    /// Valid until the next call.
    ByteSpan take(std::uint64_t count) {
        if (count > file_.size() - at_) {
            throw corrupt("the header goes on for {} bytes at offset {}, but the file has {}", count, at_,
                          file_.size());
        }
        if (at_ < begin_ || at_ + count > begin_ + piece_.size()) {
            constexpr std::uint64_t piece_bytes = 1 << 16;
            piece_ = read_range(file_, at_, std::min(std::max(count, piece_bytes), file_.size() - at_));
            begin_ = at_;
        }
        const ByteSpan found = piece_.span().subspan(at_ - begin_, count);
        at_ += count;
        return found;
    }
    /// `count` bytes and those that fill the last word of 4.
    ByteSpan padded(std::uint64_t count, std::uint64_t most, std::string_view what) {
        if (count > most) throw corrupt("{} is said to have {} bytes; at most {} are read", what, count, most);
        return take((count + 3) / 4 * 4).first(count);
    }
    [[nodiscard]] std::uint64_t left() const { return file_.size() - at_; }

private:
    const ByteSource& file_;
    Buffer piece_;
    std::uint64_t begin_ = 0, at_ = 0;
};

/// Text in Unicode. Older files have Latin-1. netCDF-4's readers drop NULs, too.
std::string netcdf_text(ByteSpan bytes) {
    std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    std::erase(text, '\0');
    return count_utf8(text) ? text : latin1_to_utf8(text);
}

/// A float as an equal double. xarray then finds it equal to the file's own.
Value attribute_value(const DType& dtype, const std::byte* p) {
    if (dtype.kind() != Kind::real || dtype.size() != 4) return element_to_value(dtype, p);
    std::uint32_t bits = 0;
    for (int i = 0; i < 4; ++i) bits = bits << 8 | std::to_integer<std::uint32_t>(p[i]);
    return {static_cast<double>(std::bit_cast<float>(bits))};
}

class NetcdfParser {
public:
    NetcdfParser(const ByteSource& file, NetcdfHeader& header) : file_(file), in_(file), h_(header) {}

    void parse() {
        const std::uint64_t magic = in_.number(4);
        h_.version = static_cast<int>(magic & 0xFF);
        if (magic >> 8 != 0x434446) throw corrupt("not a netCDF-3 file: it does not begin with CDF");
        if (h_.version != 1 && h_.version != 2 && h_.version != 5) {
            throw unsupported("version {} of netCDF-3; 1, 2 and 5 are known", h_.version);
        }
        const std::uint64_t records = in_.number(word());
        const bool streaming = records == (word() == 8 ? UINT64_MAX : UINT32_MAX);
        h_.records = streaming ? 0 : records;
        each(dimension_tag, "dimensions", [&] { dimension(); });
        attributes(h_.attributes);
        each(variable_tag, "variables", [&] { variable(); });
        lay_out(streaming);
    }

private:
    struct Raw {
        std::uint64_t begin = 0;
        std::uint64_t row_bytes = 0;  ///< of a record or the whole variable
        bool is_record = false;
    };

    [[nodiscard]] int word() const { return h_.version == 5 ? 8 : 4; }

    template <class Body>
    void each(std::uint32_t tag, std::string_view what, const Body& body) {
        const std::uint64_t found = in_.number(4);
        const std::uint64_t count = in_.number(word());
        if (found == absent_tag && count == 0) return;
        if (found != tag) throw corrupt("tag {} was found where the list of {} begins", found, what);
        if (count > in_.left() / 8) throw corrupt("{} {} do not fit into the rest of the file", count, what);
        for (std::uint64_t i = 0; i < count; ++i) {
            constexpr std::uint64_t item_memory = 400;
            h_.held.add(item_memory);
            body();
        }
    }

    std::string name() { return netcdf_text(in_.padded(in_.number(word()), longest_name, "a name")); }

    void dimension() {
        NetcdfDimension d{.name = name(), .length = in_.number(word())};
        if (d.length > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
            throw corrupt("dimension {} is said to have length {}", d.name, d.length);
        }
        if (d.length == 0) {
            if (h_.record_dimension) throw corrupt("{} is a second dimension of records", d.name);
            h_.record_dimension = h_.dimensions.size();
        }
        h_.dimensions.push_back(std::move(d));
    }

    void attributes(Value& values) {
        each(attribute_tag, "attributes", [&] {
            const std::string key = name();
            const auto type = static_cast<std::uint32_t>(in_.number(4));
            const std::optional<DType> dtype = netcdf_dtype(type);
            const std::uint64_t count = in_.number(word());
            if (!dtype) throw corrupt("attribute {} has the type {}, which is none", key, type);
            const auto item = static_cast<std::uint64_t>(dtype->size());
            const std::string what = fmt::format("attribute {}", key);
            if (count > longest_attribute) throw corrupt("{} is said to have {} values", what, count);
            h_.held.add(count * (type == char_type ? 2 : 64));
            const ByteSpan raw = in_.padded(count * item, longest_attribute, what);
            if (type == char_type) {
                values.set(key, netcdf_text(raw));
                return;
            }
            Value list = Value::array();
            for (std::uint64_t i = 0; i < count; ++i) list.push_back(attribute_value(*dtype, raw.data() + i * item));
            values.set(key, count == 1 ? list.as_array()[0] : list);
        });
    }

    void variable() {
        NetcdfVariable v;
        v.name = name();
        const std::uint64_t rank = in_.number(word());
        if (rank > in_.left() / 4) throw corrupt("variable {} is said to have {} dimensions", v.name, rank);
        h_.held.add(rank * 60);
        Value names = Value::array();
        for (std::uint64_t d = 0; d < rank; ++d) {
            const std::uint64_t id = in_.number(word());
            if (id >= h_.dimensions.size()) {
                throw corrupt("variable {} has dimension {} of {}", v.name, id, h_.dimensions.size());
            }
            v.dimensions.push_back(id);
            names.push_back(h_.dimensions[id].name);
        }
        attributes(v.attributes);
        v.attributes.set(netcdf_dimensions, std::move(names));
        const auto type = static_cast<std::uint32_t>(in_.number(4));
        const std::optional<DType> dtype = netcdf_dtype(type);
        if (!dtype) throw corrupt("variable {} has the type {}, which is none", v.name, type);
        (void)in_.number(word());  // its size, which does not fit for large ones: the shape says it
        v.layout = {.name = fmt::format("{}::{}", file_.name(), v.name),
                    .data_offset = in_.number(h_.version == 1 ? 4 : 8),
                    .dtype = *dtype,
                    .shape = {}};
        h_.variables.push_back(std::move(v));
    }

    /// Shapes and places. A record holds a row of each record variable, padded unless there is only one.
    void lay_out(bool streaming) {
        std::vector<Raw> raws;
        std::uint64_t record_bytes = 0, record_variables = 0, first = UINT64_MAX;
        for (NetcdfVariable& v : h_.variables) {
            Raw raw{.begin = v.layout.data_offset};
            raw.is_record = !v.dimensions.empty() && h_.record_dimension && v.dimensions[0] == *h_.record_dimension;
            raw.row_bytes = static_cast<std::uint64_t>(v.layout.dtype.size());
            for (std::size_t d = raw.is_record ? 1 : 0; d < v.dimensions.size(); ++d) {
                const auto length = static_cast<std::int64_t>(h_.dimensions[v.dimensions[d]].length);
                raw.row_bytes = static_cast<std::uint64_t>(
                    checked_multiply(static_cast<std::int64_t>(raw.row_bytes), length, "the size of a variable"));
            }
            if (raw.row_bytes > UINT64_MAX / 8) throw corrupt("variable {} has {} bytes", v.name, raw.row_bytes);
            if (raw.is_record) {
                ++record_variables;
                record_bytes += (raw.row_bytes + 3) / 4 * 4;
                first = std::min(first, raw.begin);
            }
            raws.push_back(raw);
        }
        if (record_variables == 1) {
            record_bytes = std::ranges::find(raws, true, &Raw::is_record)->row_bytes;
        }
        if (streaming && record_bytes > 0 && first < file_.size()) h_.records = (file_.size() - first) / record_bytes;
        if (h_.record_dimension) h_.dimensions[*h_.record_dimension].length = h_.records;
        for (std::size_t i = 0; i < raws.size(); ++i) {
            NetcdfVariable& v = h_.variables[i];
            try {
                place(v, raws[i], record_bytes);
            } catch (const Error& e) {
                v.error = (e.code() == ErrorCode::invalid_argument ? corrupt(e.what()) : e).within(v.layout.name);
            }
        }
    }

    void place(NetcdfVariable& v, const Raw& raw, std::uint64_t record_bytes) const {
        if (v.dimensions.size() > static_cast<std::size_t>(max_rank)) {
            throw unsupported("{} dimensions: Tessera handles at most {}", v.dimensions.size(), max_rank);
        }
        for (const std::uint64_t d : v.dimensions) {
            v.layout.shape.push_back(static_cast<std::int64_t>(h_.dimensions[d].length));
        }
        if (byte_count(v.layout.shape, v.layout.dtype.size()) == 0) return;
        if (raw.is_record) {
            v.layout.row_stride = static_cast<std::int64_t>(record_bytes);
            (void)checked_multiply(v.layout.shape[0], v.layout.row_stride, "the size of all records");
        }
        const std::uint64_t skipped = raw.is_record ? (h_.records - 1) * record_bytes : 0;
        if (raw.begin > file_.size() || skipped + raw.row_bytes > file_.size() - raw.begin) {
            throw corrupt("shape {} of {} needs {} bytes from offset {}, but the file has {}",
                          v.layout.shape.to_string(), v.layout.dtype.to_string(), skipped + raw.row_bytes, raw.begin,
                          file_.size());
        }
    }

    const ByteSource& file_;
    NetcdfCursor in_;
    NetcdfHeader& h_;
};

}  // namespace

std::optional<DType> netcdf_dtype(std::uint32_t type) {
    if (type < 1 || type > netcdf_types.size()) return std::nullopt;
    return DType::parse(netcdf_types[type - 1]);
}

std::optional<std::uint32_t> netcdf_type(const DType& dtype) {
    if (dtype.kind() == Kind::boolean) return 1;
    if (dtype.kind() == Kind::bytes && dtype.size() > 0) return char_type;
    for (std::uint32_t type = 1; type <= netcdf_types.size(); ++type) {
        if (netcdf_dtype(type)->equal_but_order(dtype)) return type;
    }
    return std::nullopt;
}

std::vector<std::string> take_unlimited(Value& attributes) {
    std::vector<std::string> names;
    const Value* const list = attributes.find(unlimited_attribute);
    if (list == nullptr || !list->is_array()) return names;
    for (const Value& name : list->as_array()) {
        if (name.is_string()) names.push_back(name.as_string());
    }
    attributes.erase(unlimited_attribute);
    return names;
}

Error no_netcdf_type(std::string_view array, std::string_view format, const DType& dtype) {
    Error error = unsupported("{}: {} has no elements of type {}", array, format, dtype.to_string());
    const bool time = dtype.kind() == Kind::datetime || dtype.kind() == Kind::timedelta;
    return time ? error.advising(Action::encode_cf, "makes them numbers with units") : error;
}

bool has_variables_type(std::string_view name) {
    constexpr std::array names{netcdf_fill,
                               std::string_view("missing_value"),
                               std::string_view("valid_min"),
                               std::string_view("valid_max"),
                               std::string_view("valid_range"),
                               std::string_view("flag_values"),
                               std::string_view("flag_masks")};
    return std::ranges::count(names, name) > 0;
}

bool is_cdf5_type(std::uint32_t type) {
    return type > 6;
}

NetcdfHeader read_netcdf_header(const ByteSource& file) {
    return in_context([&] { return file.name(); },
                      [&] {
                          NetcdfHeader header;
                          try {
                              NetcdfParser(file, header).parse();
                          } catch (const Error& e) {
                              throw e.code() == ErrorCode::invalid_argument ? corrupt(e.what()) : e;
                          }
                          return header;
                      });
}

}  // namespace tessera
