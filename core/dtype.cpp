#include <tessera/dtype.h>

#include <algorithm>
#include <limits>
#include <ostream>
#include <set>

#include <fmt/format.h>

#include <tessera/error_text.h>
#include <tessera/memory_account.h>

#include "kind_rows.h"
#include "python_literal.h"
#include "time_units.h"

namespace tessera {
namespace {

constexpr std::int64_t max_item_size = std::numeric_limits<std::int32_t>::max();  // NumPy's

void require_item_size(std::int64_t size) {
    if (size < 0 || size > max_item_size) {
        throw invalid_argument("an element of {} bytes is not possible: 0 to {} are, as in NumPy", size, max_item_size);
    }
}

// A structure as its descr, spelt as a Python literal.
void append_literal(std::string& out, const DType& dtype) {
    if (dtype.kind() != Kind::structure) {
        out += python_repr(dtype.str());
        return;
    }
    out += '[';
    std::string_view separator = "";
    const auto padding = [&](std::int64_t bytes) {
        if (bytes == 0) return;
        out += fmt::format("{}('', '|V{}')", separator, bytes);
        separator = ", ";
    };
    std::int64_t end = 0;
    for (const auto& f : dtype.fields()) {
        padding(f.offset - end);
        const auto name = python_repr(f.name);
        out += fmt::format("{}({}, ", separator, f.title ? fmt::format("({}, {})", python_repr(*f.title), name) : name);
        append_literal(out, f.dtype);
        if (!f.shape.empty()) out += ", " + f.shape.to_string();
        out += ')';
        separator = ", ";
        end = f.offset + f.size();
    }
    padding(dtype.size() - end);
    out += ']';
}

}  // namespace

DType DType::scalar(Kind kind, std::int64_t size, ByteOrder order) {
    const auto& row = row_of(kind);
    if (kind == Kind::structure) throw invalid_argument("a structure is made with DType::structure");
    require_item_size(size);
    const bool possible =
        row.sizes == 0 ? kind != Kind::text || size % 4 == 0 : size < 64 && (row.sizes >> size & 1) != 0;
    if (!possible) throw invalid_argument("there is no {} type of {} bytes", row.name, size);
    const bool has_order = row.swapped_parts > 0 && (size > 1 || kind == Kind::text);
    if (has_order && order == ByteOrder::none) {
        throw invalid_argument("a {} type of {} bytes needs a byte order", row.name, size);
    }
    DType d;
    d.kind_ = kind;
    d.size_ = size;
    d.order_ = has_order ? order : ByteOrder::none;
    return d;
}

DType DType::time(Kind kind, TimeUnit unit, ByteOrder order) {
    if (kind != Kind::datetime && kind != Kind::timedelta) {
        throw invalid_argument("a {} type has no time unit", row_of(kind).name);
    }
    if (unit.multiple < 1 || (unit.base == TimeUnit::Base::generic && unit.multiple != 1)) {
        throw invalid_argument("a time unit cannot be {} times its base", unit.multiple);
    }
    auto d = scalar(kind, 8, order);
    d.unit_ = unit;
    return d;
}

DType DType::bytes(std::int64_t length) {
    return scalar(Kind::bytes, length, ByteOrder::none);
}
DType DType::text(std::int64_t characters, ByteOrder order) {
    require_item_size(characters);  // before it is multiplied
    return scalar(Kind::text, characters * 4, order);
}
DType DType::raw(std::int64_t length) {
    return scalar(Kind::raw, length, ByteOrder::none);
}
DType DType::variable_text() {
    return scalar(Kind::variable_text, sizeof(VariableSlot), ByteOrder::none);
}
DType DType::variable_bytes() {
    return scalar(Kind::variable_bytes, sizeof(VariableSlot), ByteOrder::none);
}

namespace {

/// Fields with the memory that they take, which counts once they are many: a file may have a million.
struct CountedFields {
    explicit CountedFields(std::uint64_t bytes) : held(bytes) {}
    MemoryHold held;
    std::vector<Field> fields;
};

/// Owns the fields of a structure. Throws as MemoryAccount::take.
std::shared_ptr<CountedFields> room_for_fields(std::size_t count) {
    constexpr std::size_t few = 256;
    constexpr std::size_t of_name = 80;  // also in the set that finds names that occur twice
    return std::make_shared<CountedFields>(count < few ? 0 : count * (sizeof(Field) + of_name));
}

/// Throws unless the field can follow one that ends at `end`.
void require_field(const Field& f, std::int64_t end) {
    if (f.dtype.is_variable()) throw invalid_argument("the field '{}' cannot be of variable length", f.name);
    if (f.offset < end) {
        throw invalid_argument("the field '{}' at byte {} overlaps the one before it, which ends at {}", f.name,
                               f.offset, end);
    }
    // Items without bytes cost a hostile file nothing, but each one takes a value in memory here.
    const std::int64_t most = f.dtype.kind() == Kind::structure ? 1 : 1024;
    if (f.dtype.size() == 0 && element_count(f.shape) > most) {
        throw invalid_argument("the field '{}' has {} items of 0 bytes each", f.name, element_count(f.shape));
    }
}

}  // namespace

DType DType::structure(std::vector<Field> fields, std::int64_t size) {
    require_item_size(size);
    const auto counted = room_for_fields(fields.size());
    std::set<std::string_view> names;
    std::int64_t end = 0;
    for (const auto& f : fields) {
        if (f.name.empty()) throw invalid_argument("a field of a structure has no name");
        if (!names.insert(f.name).second) throw invalid_argument("the field name '{}' occurs twice", f.name);
        if (f.title && !names.insert(*f.title).second) {
            throw invalid_argument("the title '{}' is also another field's name or title", *f.title);
        }
        require_field(f, end);
        end = checked_add(f.offset, f.size(), "the size of a structure");
    }
    if (end > size) {
        throw invalid_argument("the fields of a structure need {} bytes, its size is {}", end, size);
    }
    DType d;
    d.kind_ = Kind::structure;
    d.size_ = size;
    counted->fields = std::move(fields);
    d.fields_ = {counted, &counted->fields};
    return d;
}

std::span<const Field> DType::fields() const {
    return fields_ ? std::span<const Field>(*fields_) : std::span<const Field>();
}

bool DType::is_native() const {
    return (order_ == ByteOrder::none || order_ == native_order) &&
           std::ranges::all_of(fields(), [](const Field& f) { return f.dtype.is_native(); });
}

DType DType::with_order(ByteOrder order) const {
    if (order == ByteOrder::none) throw invalid_argument("DType::with_order needs little or big");
    DType d = *this;
    if (order_ != ByteOrder::none) d.order_ = order;
    if (fields_) {
        const auto counted = room_for_fields(fields_->size());
        counted->fields = *fields_;
        for (auto& f : counted->fields) f.dtype = f.dtype.with_order(order);
        d.fields_ = {counted, &counted->fields};
    }
    return d;
}

bool DType::equal_but_order(const DType& other) const {
    return with_order(native_order) == other.with_order(native_order);
}

std::int64_t DType::swap_unit() const {
    if (kind_ == Kind::text) return 4;
    const int parts = row_of(kind_).swapped_parts;
    return parts == 0 ? 1 : size_ / parts;
}

std::string DType::str() const {
    if (is_variable()) return std::string(row_of(kind_).letter);
    const char sign = order_ == ByteOrder::little ? '<' : order_ == ByteOrder::big ? '>' : '|';
    auto text = fmt::format("{}{}", sign, row_of(kind_).letter);
    if (kind_ == Kind::object || kind_ == Kind::bfloat16) return text;
    text += std::to_string(kind_ == Kind::text ? size_ / 4 : size_);
    if (unit_.base != TimeUnit::Base::generic) text += '[' + time_unit_name(unit_) + ']';
    return text;
}

Value DType::descr() const {
    if (kind_ != Kind::structure) return str();
    constexpr std::size_t few = 256;
    constexpr std::uint64_t of_field = 400;
    if (fields().size() > few) require_memory(of_field * fields().size());
    Value::Array list;
    const auto padding = [&](std::int64_t bytes) {
        if (bytes > 0) list.push_back(Value::Array{"", fmt::format("|V{}", bytes)});
    };
    std::int64_t end = 0;
    for (const auto& f : fields()) {
        padding(f.offset - end);
        const Value name = f.unnamed ? "" : f.name;
        Value::Array item{f.title ? Value(Value::Array{*f.title, name}) : name, f.dtype.descr()};
        if (!f.shape.empty()) item.emplace_back(Value::Array(f.shape.begin(), f.shape.end()));
        list.emplace_back(std::move(item));
        end = f.offset + f.size();
    }
    padding(size_ - end);
    return list;
}

std::string DType::to_string() const {
    if (kind_ != Kind::structure) return str();
    std::string text;
    append_literal(text, *this);
    return text;
}

std::ostream& operator<<(std::ostream& out, const DType& v) {
    return out << v.to_string();
}

bool operator==(const DType& a, const DType& b) {
    if (a.kind_ != b.kind_ || a.size_ != b.size_ || a.order_ != b.order_ || a.unit_ != b.unit_) return false;
    return a.fields_ == b.fields_ || std::ranges::equal(a.fields(), b.fields(), [](const Field& x, const Field& y) {
               return x.name == y.name && x.title == y.title && x.offset == y.offset && x.shape == y.shape &&
                      x.dtype == y.dtype;
           });
}

}  // namespace tessera
