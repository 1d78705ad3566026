// netCDF-3 as a format of array files.
#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include <tessera/element.h>
#include <tessera/error_text.h>

#include "array_file_row.h"
#include "convert_source.h"
#include "netcdf_format.h"
#include "plain_file.h"

namespace tessera {

namespace {

constexpr std::uint32_t nc_byte = 1, nc_char = 2, nc_int = 4, nc_double = 6, nc_int64 = 10;

const NetcdfVariable& find_variable(const NetcdfHeader& header, const ArrayPath& path) {
    std::vector<std::string> names;
    for (const NetcdfVariable& v : header.variables) names.push_back(v.name);
    const std::string name = chosen_member(path, names);
    const auto found = std::ranges::find(header.variables, name, &NetcdfVariable::name);
    if (found == header.variables.end()) throw not_found("{} has no variable '{}'", path.path.string(), name);
    if (found->error) throw *found->error;
    return *found;
}

// ---- writing

/// An attribute as it is stored.
struct NetcdfValues {
    std::uint32_t type = nc_char;
    std::uint64_t count = 0;
    std::string bytes;
};

bool append_values(NetcdfValues& values, std::uint32_t type, const Value::Array& list) {
    values = {.type = type, .count = list.size(), .bytes = {}};
    try {
        for (const Value& value : list) {
            const ElementBytes element = element_from_value(*netcdf_dtype(type), value, Assign::exact);
            values.bytes.append(reinterpret_cast<const char*>(element.data()), element.size());
        }
        return true;
    } catch (const Error&) {
        return false;  // a value does not fit
    }
}

/// Values in the first type that fits: the variable's, int, int64 (in CDF-5), double; anything else is text.
NetcdfValues netcdf_values(std::string_view name, const Value& value, std::optional<std::uint32_t> own_type) {
    Value::Array list = value.is_array() ? value.as_array() : Value::Array{value};
    for (Value& item : list) {
        if (item.is_bool()) item = item.as_bool() ? 1 : 0;
    }
    NetcdfValues values;
    const bool numbers = !list.empty() && std::ranges::all_of(list, &Value::is_number);
    if (numbers && own_type && has_variables_type(name) && append_values(values, *own_type, list)) return values;
    if (numbers && std::ranges::none_of(list, &Value::is_double)) {
        for (const std::uint32_t type : {nc_int, nc_int64}) {
            if (append_values(values, type, list)) return values;
        }
    }
    if (numbers && append_values(values, nc_double, list)) return values;
    values = {.type = nc_char, .count = 0, .bytes = value.is_string() ? value.as_string() : value.dump()};
    values.count = values.bytes.size();
    return values;
}

/// Big-endian numbers and padded bytes.
class NetcdfText {
public:
    explicit NetcdfText(int version) : version_(version) {}

    void number(std::uint64_t n, int bytes) {
        for (int i = bytes; i-- > 0;) text_ += static_cast<char>(n >> (8 * i) & 0xFF);
    }
    void length(std::uint64_t n) { number(n, version_ == 5 ? 8 : 4); }
    void padded(std::string_view bytes) {
        text_ += bytes;
        text_.append((4 - bytes.size() % 4) % 4, '\0');
    }
    void name(std::string_view text) {
        length(text.size());
        padded(text);
    }
    void list(std::uint32_t tag, std::size_t count) {
        number(count == 0 ? 0 : tag, 4);
        length(count);
    }
    void attributes(const std::vector<std::pair<std::string, NetcdfValues>>& all) {
        list(12, all.size());
        for (const auto& [key, values] : all) {
            name(key);
            number(values.type, 4);
            length(values.count);
            padded(values.bytes);
        }
    }
    [[nodiscard]] const std::string& text() const { return text_; }

private:
    int version_;
    std::string text_;
};

/// What a new file consists of.
class NetcdfPlan {
public:
    using Attributes = std::vector<std::pair<std::string, NetcdfValues>>;

    /// `root.unlimited`: dimensions of which one becomes unlimited, if it is the first of all variables that have it.
    NetcdfPlan(std::string name, const ArrayFileGroup& root)
        : name_(std::move(name)), attributes_(stored(root.attributes, std::nullopt)), may_grow_(root.unlimited) {}

    void add(const std::string& name, const DType& dtype, const Shape& shape, Value attributes) {
        const std::optional<std::uint32_t> type = netcdf_type(dtype);
        if (!type) throw no_netcdf_type(name, "netCDF-3", dtype);
        if (name.empty() || name.find('/') != std::string::npos) {
            throw unsupported("'{}' cannot be the name of a variable of netCDF-3, which has no groups; .nc4 has", name);
        }
        for (const std::string& one : take_unlimited(attributes)) {
            if (std::ranges::count(must_grow_, one) == 0) must_grow_.push_back(one);
        }
        Variable v{.name = name, .type = *type, .dtype = dtype, .shape = shape};
        const Value* const names = attributes.find(netcdf_dimensions);
        for (int d = 0; d < shape.rank(); ++d) {
            const auto n = static_cast<std::size_t>(d);
            const bool named = names != nullptr && names->is_array() && n < names->as_array().size() &&
                               names->as_array()[n].is_string();
            v.dimensions.push_back(
                dimension(name, named ? names->as_array()[n].as_string() : fmt::format("dim_{}", shape[d]), shape[d]));
        }
        if (dtype.kind() == Kind::bytes && dtype.size() > 1) {
            v.dimensions.push_back(dimension(name, fmt::format("string{}", dtype.size()), dtype.size()));
        }
        if (dtype.kind() == Kind::boolean) attributes.set("dtype", "bool");  // xarray's mark
        v.attributes = stored(attributes, *type);
        v.bytes = static_cast<std::uint64_t>(byte_count(shape, dtype.size()));
        variables_.push_back(std::move(v));
    }

    /// Sets the places of all variables in the oldest version that can say them. Returns the header.
    [[nodiscard]] std::string begin() {
        choose_records();
        for (const int version : {1, 2, 5}) {
            if (version < 5 && needs_cdf5()) continue;
            size_ = place((header(version).size() + 3) / 4 * 4);
            if (version > 1 || size_ <= INT32_MAX) return header(version);
        }
        return {};
    }

    // After begin():
    /// The size of the file.
    [[nodiscard]] std::uint64_t size() const { return size_; }
    /// Where the elements of a variable lie.
    [[nodiscard]] PackedArray part(const std::string& name) const {
        const auto v = std::ranges::find(variables_, name, &Variable::name);
        return {.name = name,
                .dtype = v->dtype.swap_unit() > 1 ? v->dtype.with_order(ByteOrder::big) : v->dtype,
                .shape = v->shape,
                .offset = v->begin,
                .row_stride = is_record(*v) ? static_cast<std::int64_t>(record_bytes_) : 0};
    }

private:
    struct Variable {
        std::string name;
        std::uint32_t type = nc_byte;
        DType dtype;
        Shape shape;
        std::vector<std::size_t> dimensions = {};
        Attributes attributes = {};
        std::uint64_t bytes = 0, begin = 0;  ///< of a variable of records: the bytes of one
    };

    [[nodiscard]] bool is_record(const Variable& v) const {
        return !v.dimensions.empty() && record_dimension_ == v.dimensions.front();
    }
    /// Whether a dimension is nowhere another one than the first, as that of records has to be.
    [[nodiscard]] bool comes_first(std::size_t dimension) const {
        return std::ranges::none_of(variables_, [&](const Variable& v) {
            return std::find(v.dimensions.begin() + (v.dimensions.empty() ? 0 : 1), v.dimensions.end(), dimension) !=
                   v.dimensions.end();
        });
    }
    [[nodiscard]] std::optional<std::size_t> dimension_named(const std::string& name) const {
        const auto found = std::ranges::find(dimensions_, name, &NetcdfDimension::name);
        if (found == dimensions_.end()) return std::nullopt;
        return static_cast<std::size_t>(found - dimensions_.begin());
    }

    /// Chooses the dimension of records, and with it which variables consist of records.
    void choose_records() {
        for (const std::string& name : must_grow_) {
            const auto dimension = dimension_named(name);
            if (!dimension) continue;
            if (record_dimension_ || !comes_first(*dimension)) {
                throw unsupported(
                    "{}: netCDF-3 has one unlimited dimension, which is the first one of its variables, and {} is "
                    "another; .nc4 has any",
                    name_, name);
            }
            record_dimension_ = dimension;
        }
        for (const std::string& name : may_grow_) {
            const auto dimension = dimension_named(name);
            if (!record_dimension_ && dimension && comes_first(*dimension)) record_dimension_ = dimension;
        }
        for (const Variable& v : variables_) {
            const bool no_length = std::ranges::any_of(
                v.dimensions, [&](std::size_t d) { return dimensions_[d].length == 0 && record_dimension_ != d; });
            if (no_length) throw unsupported("{}: netCDF-3 has no fixed dimension of length 0", v.name);
        }
    }

    /// Sets the places of all variables from there on: first of fixed ones, then of records. Returns the end.
    std::uint64_t place(std::uint64_t at) {
        std::int64_t of_records = 0;
        for (Variable& v : variables_) {
            if (is_record(v)) {
                ++of_records;
                v.bytes = static_cast<std::uint64_t>(
                    byte_count(v.shape.rank() == 0 ? v.shape : row_of(v.shape), v.dtype.size()));
                continue;
            }
            v.begin = at;
            at += (v.bytes + 3) / 4 * 4;
        }
        record_bytes_ = 0;
        for (Variable& v : variables_) {
            if (!is_record(v)) continue;
            v.begin = at + record_bytes_;
            record_bytes_ += of_records == 1 ? v.bytes : (v.bytes + 3) / 4 * 4;  // a single one is not padded
        }
        return at + records() * record_bytes_;
    }
    [[nodiscard]] std::uint64_t records() const {
        return record_dimension_ ? dimensions_[*record_dimension_].length : 0;
    }
    static Shape row_of(Shape shape) {
        shape[0] = 1;
        return shape;
    }

    static Attributes stored(const Value& attributes, std::optional<std::uint32_t> own_type) {
        Attributes all;
        for (const auto& [key, value] : attributes.as_object()) {
            if (key != netcdf_dimensions && !value.is_null())
                all.emplace_back(key, netcdf_values(key, value, own_type));
        }
        return all;
    }

    std::size_t dimension(const std::string& variable, const std::string& name, std::int64_t length) {
        const auto found = std::ranges::find(dimensions_, name, &NetcdfDimension::name);
        if (found == dimensions_.end()) {
            dimensions_.push_back({name, static_cast<std::uint64_t>(length)});
            return dimensions_.size() - 1;
        }
        if (std::cmp_not_equal(found->length, length)) {
            throw unsupported(
                "{}: its dimension {} has length {}, but that of another variable {}; in a netCDF file "
                "a name has one length",
                variable, name, length, found->length);
        }
        return static_cast<std::size_t>(found - dimensions_.begin());
    }

    [[nodiscard]] bool needs_cdf5() const {
        const auto is_new = [](const auto& attribute) { return is_cdf5_type(attribute.second.type); };
        constexpr std::uint64_t most = UINT32_MAX - 3;
        return std::ranges::any_of(attributes_, is_new) ||
               std::ranges::any_of(dimensions_, [](const auto& d) { return d.length > INT32_MAX; }) ||
               std::ranges::any_of(variables_, [&](const Variable& v) {
                   return is_cdf5_type(v.type) || v.bytes > most || std::ranges::any_of(v.attributes, is_new);
               });
    }

    [[nodiscard]] std::string header(int version) const {
        NetcdfText out(version);
        out.number(0x43444600 + static_cast<unsigned>(version), 4);
        out.length(records());
        out.list(10, dimensions_.size());
        for (std::size_t d = 0; d < dimensions_.size(); ++d) {
            out.name(dimensions_[d].name);
            out.length(record_dimension_ == d ? 0 : dimensions_[d].length);
        }
        out.attributes(attributes_);
        out.list(11, variables_.size());
        for (const Variable& v : variables_) {
            out.name(v.name);
            out.length(v.dimensions.size());
            for (const std::size_t d : v.dimensions) out.length(d);
            out.attributes(v.attributes);
            out.number(v.type, 4);
            out.length((v.bytes + 3) / 4 * 4);
            out.number(v.begin, version == 1 ? 4 : 8);
        }
        return out.text();
    }

    std::string name_;  ///< for messages
    Attributes attributes_;
    std::vector<NetcdfDimension> dimensions_;
    std::vector<Variable> variables_;
    std::vector<std::string> must_grow_, may_grow_;
    std::optional<std::size_t> record_dimension_;
    std::uint64_t record_bytes_ = 0;  ///< of one record of all variables
    std::uint64_t size_ = 0;
};

/// A new file.
class NetcdfWriter {
public:
    NetcdfWriter(const std::filesystem::path& path, bool durable, const ArrayFileGroup& root)
        : file_(create_file(path, durable)), plan_(file_->name(), root) {}

    void add(const std::string& name, const DType& dtype, const Shape& shape, Value attributes) {
        plan_.add(name, dtype, shape, std::move(attributes));
    }
    /// Writes the header of what was added.
    void begin() {
        const std::string header = plan_.begin();
        file_->append(std::as_bytes(std::span(header)));
        if (plan_.size() > header.size()) file_->write_at(plan_.size() - 1, std::array{std::byte{0}});
    }
    [[nodiscard]] std::unique_ptr<ArraySink> open(const std::string& name) {
        PackedArray part = plan_.part(name);
        return part_sink(*file_, {.name = fmt::format("{}::{}", file_->name(), name),
                                  .data_offset = part.offset,
                                  .dtype = std::move(part.dtype),
                                  .shape = part.shape,
                                  .row_stride = part.row_stride});
    }
    void finish() { file_->finish(); }

private:
    std::unique_ptr<ByteSink> file_;
    NetcdfPlan plan_;
};

/// A new file of one variable.
class NetcdfSink final : public ArraySink {
public:
    NetcdfSink(const ArrayPath& path, const DType& dtype, const Shape& shape, const ArrayFileOptions& options)
        : writer_(path.path, options.durable, {.name = ""}) {
        const std::string name = path.member.value_or("data");
        writer_.add(name, dtype, shape, options.attributes);
        writer_.begin();
        variable_ = writer_.open(name);
    }
    ArrayInfo info() const override { return variable_->info(); }
    const std::string& name() const override { return variable_->name(); }
    void write(const Region& region, const ArrayView& in, const IoOptions& io) override {
        variable_->write(region, in, io);
    }
    void finish() override { writer_.finish(); }

private:
    NetcdfWriter writer_;
    std::unique_ptr<ArraySink> variable_;
};

// ---- the row

bool netcdf_recognise(ByteSpan first) {
    return starts_with(first, std::string_view("CDF\x01", 4)) || starts_with(first, std::string_view("CDF\x02", 4)) ||
           starts_with(first, std::string_view("CDF\x05", 4));
}

std::vector<std::string> netcdf_list(const ArrayPath& path) {
    std::vector<std::string> names;
    for (NetcdfVariable& v : read_netcdf_header(*path.bytes()).variables) names.push_back(std::move(v.name));
    return names;
}

std::vector<ArrayFileGroup> netcdf_groups(const ArrayPath& path) {
    NetcdfHeader header = read_netcdf_header(*path.bytes());
    ArrayFileGroup root{.name = "", .attributes = std::move(header.attributes)};
    if (header.record_dimension) root.unlimited.push_back(header.dimensions[*header.record_dimension].name);
    return {std::move(root)};
}

std::vector<PackedArray> netcdf_packed(const ArrayPath& path) {
    const NetcdfHeader header = read_netcdf_header(*path.bytes());
    std::vector<PackedArray> arrays;
    for (const NetcdfVariable& v : header.variables) {
        if (path.member && v.name != *path.member) continue;
        if (v.error) throw *v.error;
        arrays.push_back(
            {v.name, v.layout.dtype, v.layout.shape, v.layout.data_offset, v.layout.row_stride, v.attributes});
    }
    return arrays;
}

std::unique_ptr<ArraySource> netcdf_open(const ArrayPath& path, const ArrayFileOptions& /*options*/) {
    const std::shared_ptr<const ByteSource> file = path.bytes();
    const NetcdfHeader header = read_netcdf_header(*file);
    const NetcdfVariable& v = find_variable(header, path);
    return plain_source(file, v.layout, v.attributes);
}

std::unique_ptr<ArraySink> netcdf_create(const ArrayPath& path, const DType& dtype, const Shape& shape,
                                         const ArrayFileOptions& options) {
    return std::make_unique<NetcdfSink>(path, dtype, shape, options);
}

std::unique_ptr<ArraySource> netcdf_convert(const ArraySource& source, const ArrayFileOptions& /*options*/,
                                            const IoOptions& io) {
    const DType dtype = source.info().dtype;
    if (dtype.kind() == Kind::text || dtype.is_variable()) return utf8_strings(source, io);
    return dtype.kind() == Kind::bfloat16 ? widened_bfloat16(source) : nullptr;
}

FileLayout netcdf_layout(std::span<const FileArray> arrays, const ArrayFileGroup& root, Order /*order*/) {
    NetcdfPlan plan("netCDF-3", root);
    for (const FileArray& array : arrays) plan.add(array.name, array.dtype, array.shape, array.attributes);
    FileLayout layout{.header = plan.begin()};
    layout.size = std::max<std::uint64_t>(plan.size(), layout.header.size());
    for (const FileArray& array : arrays) layout.arrays.push_back(plan.part(array.name));
    return layout;
}

Value netcdf_describe(const ArrayPath& path) {
    const NetcdfHeader header = read_netcdf_header(*path.bytes());
    Value facts = Value::object();
    facts.set("format", "netcdf3");
    facts.set("version", fmt::format("CDF-{}", header.version));
    if (path.member) {
        const NetcdfVariable& v = find_variable(header, path);
        facts.set("data_offset", v.layout.data_offset);
        if (v.layout.row_stride != 0) facts.set("record_bytes", v.layout.row_stride);
        facts.set("attributes", v.attributes);
        return facts;
    }
    Value dimensions = Value::object();
    for (const NetcdfDimension& d : header.dimensions) dimensions.set(d.name, d.length);
    facts.set("dimensions", std::move(dimensions));
    if (header.record_dimension) facts.set("records", header.records);
    facts.set("attributes", header.attributes);
    return facts;
}

void netcdf_check(const ArrayPath& path, ArrayFileChecker& checker) {
    const NetcdfHeader header = read_netcdf_header(*path.bytes());
    for (const NetcdfVariable& v : header.variables) checker.read_array(v.name);
}

void netcdf_bundle(const std::filesystem::path& path, const ArrayBundle& bundle, const ArrayFileOptions& options,
                   const IoOptions& io) {
    const auto root = std::ranges::find(bundle.groups, "", &ArrayFileGroup::name);
    NetcdfWriter writer(path, options.durable, root == bundle.groups.end() ? ArrayFileGroup{.name = ""} : *root);
    const auto opened = [&](const std::string& name, const auto& use) {
        const std::unique_ptr<ArraySource> stored = bundle.open(name);
        const auto converted = netcdf_convert(*stored, options, io);
        use(*stored, converted ? *converted : *stored);
    };
    for (const std::string& name : bundle.names) {
        opened(name, [&](const ArraySource& stored, const ArraySource& source) {
            Value attributes = bundle.attributes ? bundle.attributes(stored) : stored.attribute_values();
            const Kind kind = stored.info().dtype.kind();
            if (kind == Kind::text || kind == Kind::variable_text) attributes.set("_Encoding", "utf-8");  // xarray's
            writer.add(name, source.info().dtype, source.info().shape, std::move(attributes));
        });
    }
    writer.begin();
    for (const std::string& name : bundle.names) {
        opened(name, [&](const ArraySource& /*stored*/, const ArraySource& source) {
            const std::unique_ptr<ArraySink> sink = writer.open(name);
            bundle.copy(source, *sink);
            bundle.made(name, source.info());
        });
    }
    writer.finish();
}

}  // namespace

extern constinit const ArrayFileFormat netcdf_format{
    .name = "netcdf3",
    .extension = ".nc",
    .also = ".nc3 .cdf ",
    .about = "netCDF-3: classic, 64-bit offset and CDF-5",
    .ranged = true,
    .keeps_attributes = true,
    .recognise = netcdf_recognise,
    .members = netcdf_list,
    .groups = netcdf_groups,
    .packed = netcdf_packed,
    .open = netcdf_open,
    .create = netcdf_create,
    .convert = netcdf_convert,
    .layout = netcdf_layout,
    .describe = netcdf_describe,
    .check = netcdf_check,
    .bundle = netcdf_bundle,
};

}  // namespace tessera
