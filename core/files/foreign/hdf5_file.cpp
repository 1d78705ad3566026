#include "hdf5_file.h"

#include <tessera/action.h>
#include <tessera/outside.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <set>
#include <utility>

#include <fmt/format.h>

#include <tessera/buffer.h>
#include <tessera/element.h>
#include <tessera/error_text.h>

#include <tessera/unicode.h>
#include "hdf5_driver.h"

namespace tessera {

namespace {

/// netCDF-4's prefix for a variable that has the name of a dimension but is not its coordinates.
constexpr std::string_view hdf5_alias = "_nc4_non_coord_";
constexpr std::string_view bare_dimension = "This is a netCDF dimension but not a netCDF variable";
constexpr int deepest_group = 256;

Hdf5Id integer_type(std::int64_t size, bool is_signed, H5T_order_t order) {
    const hid_t native = size == 1   ? (is_signed ? H5T_NATIVE_INT8 : H5T_NATIVE_UINT8)
                         : size == 2 ? (is_signed ? H5T_NATIVE_INT16 : H5T_NATIVE_UINT16)
                         : size == 4 ? (is_signed ? H5T_NATIVE_INT32 : H5T_NATIVE_UINT32)
                                     : (is_signed ? H5T_NATIVE_INT64 : H5T_NATIVE_UINT64);
    Hdf5Id type(H5Tcopy(native), H5Tclose);
    if (size > 1) H5Tset_order(type.get(), order);
    return type;
}

ByteOrder order_of_hdf5(hid_t type, std::int64_t size) {
    if (size == 1) return ByteOrder::none;
    return H5Tget_order(type) == H5T_ORDER_BE ? ByteOrder::big : ByteOrder::little;
}

Hdf5Type integer_of(hid_t type) {
    const auto size = static_cast<std::int64_t>(H5Tget_size(type));
    if (size != 1 && size != 2 && size != 4 && size != 8) throw unsupported("integers of {} bytes", size);
    const bool is_signed = H5Tget_sign(type) != H5T_SGN_NONE;
    return {DType::scalar(is_signed ? Kind::integer : Kind::unsigned_integer, size, order_of_hdf5(type, size)),
            integer_type(size, is_signed, H5Tget_order(type))};
}

Hdf5Type real_of(hid_t type) {
    const auto size = static_cast<std::int64_t>(H5Tget_size(type));
    const ByteOrder order = order_of_hdf5(type, size);
    std::size_t sign = 0, exponent = 0, exponent_bits = 0, mantissa = 0, mantissa_bits = 0;
    H5Tget_fields(type, &sign, &exponent, &exponent_bits, &mantissa, &mantissa_bits);
    if (size == 2 && exponent_bits == 5 && mantissa_bits == 10) {
        return {DType::scalar(Kind::real, 2, order), Hdf5Id(H5Tcopy(type), H5Tclose)};
    }
    if (size == 2 && exponent_bits == 8 && mantissa_bits == 7) {
        return {DType::scalar(Kind::bfloat16, 2, order), Hdf5Id(H5Tcopy(type), H5Tclose)};
    }
    if (size != 4 && size != 8) {
        throw unsupported("floats of {} bytes with {} bits of exponent", size, exponent_bits);
    }
    Hdf5Id memory(H5Tcopy(size == 4 ? H5T_NATIVE_FLOAT : H5T_NATIVE_DOUBLE), H5Tclose);
    H5Tset_order(memory.get(), H5Tget_order(type));
    return {DType::scalar(Kind::real, size, order), std::move(memory)};
}

Hdf5Type string_of(hid_t type) {
    Hdf5Id memory(H5Tcopy(H5T_C_S1), H5Tclose);
    H5Tset_cset(memory.get(), H5Tget_cset(type));
    if (H5Tis_variable_str(type) > 0) {
        H5Tset_size(memory.get(), H5T_VARIABLE);
        return {DType::variable_text(), std::move(memory)};
    }
    const std::size_t size = H5Tget_size(type);
    H5Tset_size(memory.get(), size);
    H5Tset_strpad(memory.get(), H5T_STR_NULLPAD);
    return {DType::bytes(static_cast<std::int64_t>(size)), std::move(memory)};
}

std::string member_name(hid_t type, unsigned i) {
    char* const text = H5Tget_member_name(type, i);
    std::string name = text == nullptr ? "" : text;
    H5free_memory(text);
    return name;
}

/// An enumeration as its numbers; h5py's FALSE and TRUE as Booleans.
Hdf5Type enum_of(hid_t type) {
    const Hdf5Id base(H5Tget_super(type), H5Tclose);
    Hdf5Type numbers = hdf5_type(base.get());
    if (H5Tget_nmembers(type) == 2 && numbers.dtype.size() == 1 && member_name(type, 0) == "FALSE" &&
        member_name(type, 1) == "TRUE") {
        numbers.dtype = DType::scalar(Kind::boolean, 1);
    }
    numbers.memory = Hdf5Id(H5Tcopy(type), H5Tclose);  // libhdf5 converts no enumeration into integers
    return numbers;
}

/// A field of a compound, and its type in memory.
std::pair<Field, Hdf5Id> field_of(hid_t type, unsigned n) {
    Hdf5Id member(H5Tget_member_type(type, n), H5Tclose);
    Field field{.name = member_name(type, n),
                .title = {},
                .dtype = {},
                .shape = {},
                .offset = static_cast<std::int64_t>(H5Tget_member_offset(type, n))};
    std::array<hsize_t, H5S_MAX_RANK> lengths{};
    int rank = 0;
    if (H5Tget_class(member.get()) == H5T_ARRAY) {
        rank = H5Tget_array_dims2(member.get(), lengths.data());
        member = Hdf5Id(H5Tget_super(member.get()), H5Tclose);
        for (int d = 0; d < rank; ++d) {
            field.shape.push_back(static_cast<std::int64_t>(lengths[static_cast<std::size_t>(d)]));
        }
    }
    Hdf5Type part = hdf5_type(member.get());
    if (part.dtype.is_variable()) throw unsupported("compounds with strings of variable length");
    if (rank > 0) {
        part.memory =
            Hdf5Id(H5Tarray_create2(part.memory.get(), static_cast<unsigned>(rank), lengths.data()), H5Tclose);
    }
    field.dtype = std::move(part.dtype);
    return {std::move(field), std::move(part.memory)};
}

Hdf5Type compound_of(hid_t type) {
    const int count = H5Tget_nmembers(type);
    const auto size = static_cast<std::int64_t>(H5Tget_size(type));
    constexpr int most_fields = 10'000;
    if (count < 1 || count > most_fields) throw unsupported("compounds of {} fields", count);
    Hdf5Id memory(H5Tcreate(H5T_COMPOUND, static_cast<std::size_t>(size)), H5Tclose);
    std::vector<Field> fields;
    for (int i = 0; i < count; ++i) {
        auto [field, part] = field_of(type, static_cast<unsigned>(i));
        H5Tinsert(memory.get(), field.name.c_str(), static_cast<std::size_t>(field.offset), part.get());
        fields.push_back(std::move(field));
    }
    std::ranges::sort(fields, {}, &Field::offset);
    const bool pair = fields.size() == 2 && fields[0].name == "r" && fields[1].name == "i" &&
                      fields[0].dtype == fields[1].dtype && fields[0].dtype.kind() == Kind::real &&
                      fields[0].dtype.size() >= 4 && size == 2 * fields[0].dtype.size();
    if (pair) return {DType::scalar(Kind::complex, size, fields[0].dtype.order()), std::move(memory)};
    return {DType::structure(std::move(fields), size), std::move(memory)};
}

// ---- attributes

/// A float as the double that equals it, as netCDF-3's reader does.
Value hdf5_number(const DType& dtype, const std::byte* p) {
    if (dtype.kind() != Kind::real || dtype.size() != 4) return element_to_value(dtype, p);
    std::array<std::byte, 4> bytes{};
    std::copy_n(p, 4, bytes.begin());
    if (!dtype.is_native()) std::ranges::reverse(bytes);
    return {static_cast<double>(std::bit_cast<float>(bytes))};
}

std::string hdf5_text(std::string text) {
    std::erase(text, '\0');
    return count_utf8(text) ? text : latin1_to_utf8(text);
}

std::optional<Value> attribute_of(hid_t attribute) {
    const Hdf5Id type(H5Aget_type(attribute), H5Tclose);
    const Hdf5Id space(H5Aget_space(attribute), H5Sclose);
    const hssize_t count = H5Sget_simple_extent_npoints(space.get());
    if (H5Sget_simple_extent_type(space.get()) == H5S_NULL) return Value();
    const Hdf5Type read = hdf5_type(type.get());
    constexpr std::int64_t most_bytes = 64 << 20;
    const std::int64_t item = read.dtype.is_variable() ? static_cast<std::int64_t>(sizeof(char*)) : read.dtype.size();
    if (count < 0 || count > most_bytes / std::max<std::int64_t>(item, 1)) return std::nullopt;
    const MemoryHold held(static_cast<std::uint64_t>(count) * 64);
    Buffer bytes(static_cast<std::size_t>(count * item));
    if (count > 0 && H5Aread(attribute, read.memory.get(), bytes.data()) < 0) return std::nullopt;
    Value list = Value::array();
    for (hssize_t i = 0; i < count; ++i) {
        const std::byte* const p = bytes.data() + i * item;
        if (read.dtype.is_variable()) {
            const char* text = nullptr;
            std::memcpy(&text, p, sizeof text);
            list.push_back(hdf5_text(text == nullptr ? "" : text));
        } else if (read.dtype.kind() == Kind::bytes) {
            list.push_back(hdf5_text({reinterpret_cast<const char*>(p), static_cast<std::size_t>(item)}));
        } else {
            list.push_back(hdf5_number(read.dtype, p));
        }
    }
    if (read.dtype.is_variable()) H5Dvlen_reclaim(read.memory.get(), space.get(), H5P_DEFAULT, bytes.data());
    const bool scalar = count == 1 && H5Sget_simple_extent_ndims(space.get()) <= 1;
    return scalar ? list.as_array()[0] : list;
}

bool is_convention(std::string_view name) {
    constexpr std::array<std::string_view, 10> own{
        "CLASS",         "NAME",        "REFERENCE_LIST", "DIMENSION_LIST",      "DIMENSION_LABELS",
        "_NCProperties", "_nc3_strict", "_Netcdf4Dimid",  "_Netcdf4Coordinates", "_NCCOPY"};
    return std::ranges::count(own, name) > 0;
}

std::string last_part(const std::string& path) {
    std::string name = path.substr(path.rfind('/') + 1);
    if (name.starts_with(hdf5_alias)) name.erase(0, hdf5_alias.size());
    return name;
}

/// Whether it stands for a dimension without coordinates.
bool is_bare_dimension(hid_t object) {
    return H5Iget_type(object) == H5I_DATASET && hdf5_text_attribute(object, "NAME").starts_with(bare_dimension);
}

int rank_of(hid_t dataset) {
    const Hdf5Id space(H5Dget_space(dataset), H5Sclose);
    return H5Sget_simple_extent_ndims(space.get());
}

bool is_scale(hid_t dataset, int rank) {
    return rank == 1 && hdf5_text_attribute(dataset, "CLASS") == "DIMENSION_SCALE";
}

/// The dimension scales of a dataset, not good() where there is none; empty if they are not told.
std::vector<Hdf5Id> scales_of(hid_t dataset, int rank) {
    std::vector<Hdf5Id> scales;
    if (H5Aexists(dataset, "DIMENSION_LIST") <= 0) return scales;
    const Hdf5Id attribute(H5Aopen(dataset, "DIMENSION_LIST", H5P_DEFAULT), H5Aclose);
    const Hdf5Id space(H5Aget_space(attribute.get()), H5Sclose);
    const Hdf5Id type(H5Aget_type(attribute.get()), H5Tclose);
    const Hdf5Id base(H5Tget_class(type.get()) == H5T_VLEN ? H5Tget_super(type.get()) : -1, H5Tclose);
    if (H5Sget_simple_extent_npoints(space.get()) != rank || !base.good() ||
        H5Tequal(base.get(), H5T_STD_REF_OBJ) <= 0) {
        return scales;
    }
    const Hdf5Id memory(H5Tvlen_create(H5T_STD_REF_OBJ), H5Tclose);
    std::vector<hvl_t> lists(static_cast<std::size_t>(rank));
    if (H5Aread(attribute.get(), memory.get(), lists.data()) < 0) return scales;
    for (const hvl_t& list : lists) {
        scales.emplace_back(list.len == 0 ? -1 : H5Rdereference2(dataset, H5P_DEFAULT, H5R_OBJECT, list.p), H5Oclose);
    }
    H5Dvlen_reclaim(memory.get(), space.get(), H5P_DEFAULT, lists.data());
    return scales;
}

/// The length along an unlimited dimension; nullopt for another.
std::optional<std::int64_t> unlimited_length(hid_t dataset, std::size_t d) {
    const Hdf5Id space(H5Iget_type(dataset) == H5I_DATASET ? H5Dget_space(dataset) : -1, H5Sclose);
    std::array<hsize_t, H5S_MAX_RANK> lengths{}, longest{};
    const int rank = space.good() ? H5Sget_simple_extent_dims(space.get(), lengths.data(), longest.data()) : 0;
    if (std::cmp_less_equal(rank, d) || longest[d] != H5S_UNLIMITED || lengths[d] > INT64_MAX) return std::nullopt;
    return static_cast<std::int64_t>(lengths[d]);
}

/// The length of an unlimited dimension: that of the longest variable along it. The scale itself may say 0.
std::int64_t dimension_length(hid_t scale) {
    std::int64_t longest = unlimited_length(scale, 0).value_or(0);
    if (H5Aexists(scale, "REFERENCE_LIST") <= 0) return longest;
    struct Use {
        hobj_ref_t dataset;
        unsigned dimension;
    };
    const Hdf5Id attribute(H5Aopen(scale, "REFERENCE_LIST", H5P_DEFAULT), H5Aclose);
    const Hdf5Id space(H5Aget_space(attribute.get()), H5Sclose);
    const hssize_t count = H5Sget_simple_extent_npoints(space.get());
    const Hdf5Id memory(H5Tcreate(H5T_COMPOUND, sizeof(Use)), H5Tclose);
    H5Tinsert(memory.get(), "dataset", offsetof(Use, dataset), H5T_STD_REF_OBJ);
    H5Tinsert(memory.get(), "dimension", offsetof(Use, dimension), H5T_NATIVE_UINT);
    constexpr hssize_t most_uses = 1 << 20;
    if (count < 0 || count > most_uses) return longest;
    std::vector<Use> uses(static_cast<std::size_t>(count));
    if (H5Aread(attribute.get(), memory.get(), uses.data()) < 0) return longest;
    for (const Use& use : uses) {
        const Hdf5Id dataset(H5Rdereference2(scale, H5P_DEFAULT, H5R_OBJECT, &use.dataset), H5Oclose);
        if (dataset.good()) longest = std::max(longest, unlimited_length(dataset.get(), use.dimension).value_or(0));
    }
    return longest;
}

// ---- the tree

struct Hdf5Link {
    std::string name;
    H5L_type_t type;
};

herr_t add_link(hid_t /*group*/, const char* name, const H5L_info_t* info, void* links) {
    try {
        static_cast<std::vector<Hdf5Link>*>(links)->push_back({name, info->type});
        return 0;
    } catch (...) {
        return -1;
    }
}

/// The last refused link to another file, and its target.
thread_local std::pair<std::string, std::string> refused_link;

/// Refuses a link to another file, unless that is allowed and the file is one: a pipe may never give anything.
herr_t follow_link(const char* from, const char* /*group*/, const char* to, const char* object, unsigned* /*flags*/,
                   hid_t /*access*/, void* /*data*/) {
    try {
        std::error_code ignored;
        const auto status = std::filesystem::status(std::filesystem::path(from).parent_path() / to, ignored);
        const bool other = std::filesystem::exists(status) && !std::filesystem::is_regular_file(status);
        if (outside_allowed() && !other) return 0;
        refused_link = {to, object};
    } catch (...) {
        refused_link = {"?", "?"};
    }
    return -1;
}

/// The number of a file that is open, and an address in it.
using Hdf5Place = std::pair<unsigned long, haddr_t>;

void walk_hdf5(hid_t group, const std::string& path, int depth, std::set<Hdf5Place>& seen, Hdf5Tree& tree) {
    if (depth > deepest_group) return;
    std::vector<Hdf5Link> links;
    if (H5Literate(group, H5_INDEX_NAME, H5_ITER_INC, nullptr, add_link, &links) < 0) {
        throw hdf5_failure(fmt::format("group '/{}' cannot be listed", path));
    }
    const Hdf5Id access = hdf5_access();
    for (const Hdf5Link& link : links) {
        constexpr std::uint64_t link_memory = 400;
        tree.held.add(link_memory + path.size());
        const std::string below = path.empty() ? link.name : path + '/' + link.name;
        if (link.type == H5L_TYPE_EXTERNAL && !outside_allowed()) {
            tree.arrays.push_back(below);
            continue;
        }
        const Hdf5Id object(H5Oopen(group, link.name.c_str(), access.get()), H5Oclose);
        if (!object.good()) {
            // Damaged, or in a file that is not there: opening it says how.
            if (link.type != H5L_TYPE_SOFT) tree.arrays.push_back(below);
            continue;
        }
        const H5I_type_t kind = H5Iget_type(object.get());
        H5O_info_t info;
        if (kind == H5I_GROUP && H5Oget_info(object.get(), &info) >= 0 &&
            seen.insert({info.fileno, info.addr}).second) {
            tree.groups.push_back(below);
            walk_hdf5(object.get(), below, depth + 1, seen, tree);
        } else if (kind == H5I_DATASET) {
            if (unlimited_length(object.get(), 0) && is_scale(object.get(), rank_of(object.get())))
                tree.unlimited.push_back(below);
            if (is_bare_dimension(object.get())) continue;
            const bool alias = link.name.starts_with(hdf5_alias);
            tree.arrays.push_back(alias ? (path.empty() ? "" : path + '/') + link.name.substr(hdf5_alias.size())
                                        : below);
        }
    }
}

}  // namespace

std::string hdf5_error() {
    rethrow_hdf5();
    std::string text;
    H5Ewalk2(
        H5E_DEFAULT, H5E_WALK_UPWARD,
        [](unsigned n, const H5E_error2_t* error, void* out) -> herr_t {
            if (n == 0 && error->desc != nullptr) *static_cast<std::string*>(out) = error->desc;
            return 0;
        },
        &text);
    return text.empty() ? "libhdf5 says no more" : text;
}

Error hdf5_failure(std::string_view what) {
    const std::string text = hdf5_error();
    if (text.find("version") == std::string::npos) return corrupt("{}: {}", what, text);
    unsigned major = 0, minor = 0, release = 0;
    H5get_libversion(&major, &minor, &release);
    return unsupported(
        "{}: {}: it was written by a newer HDF5 than {}.{}.{}, which reads it here, or is damaged; h5repack "
        "--high=v110 "
        "and h5py.File(..., libver=(\"earliest\", \"v110\")) write what this one reads",
        what, text, major, minor, release);
}

Hdf5Region::Hdf5Region(hid_t dataset, const Region& region) : file(H5Dget_space(dataset), H5Sclose) {
    if (region.rank() == 0) {
        memory = Hdf5Id(H5Screate(H5S_SCALAR), H5Sclose);
        return;
    }
    std::array<hsize_t, max_rank> start{}, count{};
    for (int d = 0; d < region.rank(); ++d) {
        start[static_cast<std::size_t>(d)] = static_cast<hsize_t>(region.start[d]);
        count[static_cast<std::size_t>(d)] = static_cast<hsize_t>(region.extent[d]);
    }
    memory = Hdf5Id(H5Screate_simple(region.rank(), count.data(), nullptr), H5Sclose);
    H5Sselect_hyperslab(file.get(), H5S_SELECT_SET, start.data(), nullptr, count.data(), nullptr);
}

Hdf5Type hdf5_type(hid_t type) {
    switch (H5Tget_class(type)) {
        case H5T_INTEGER:
            return integer_of(type);
        case H5T_FLOAT:
            return real_of(type);
        case H5T_STRING:
            return string_of(type);
        case H5T_ENUM:
            return enum_of(type);
        case H5T_COMPOUND:
            return compound_of(type);
        case H5T_OPAQUE:
            return {DType::raw(static_cast<std::int64_t>(H5Tget_size(type))), Hdf5Id(H5Tcopy(type), H5Tclose)};
        case H5T_BITFIELD: {
            Hdf5Type bits = integer_of(type);
            bits.dtype = DType::scalar(Kind::unsigned_integer, bits.dtype.size(), bits.dtype.order());
            bits.memory = Hdf5Id(H5Tcopy(type), H5Tclose);
            return bits;
        }
        case H5T_VLEN:
            throw unsupported("lists of variable length");
        case H5T_REFERENCE:
            throw unsupported("references");
        case H5T_ARRAY:
            throw unsupported("arrays as elements");
        default:
            throw unsupported("a type of class {}", static_cast<int>(H5Tget_class(type)));
    }
}

Value hdf5_attributes(hid_t object) {
    Value values = Value::object();
    const int count = H5Aget_num_attrs(object);
    for (int i = 0; i < count; ++i) {
        const Hdf5Id attribute(
            H5Aopen_by_idx(object, ".", H5_INDEX_NAME, H5_ITER_INC, static_cast<hsize_t>(i), H5P_DEFAULT, H5P_DEFAULT),
            H5Aclose);
        if (!attribute.good()) continue;
        const ssize_t length = H5Aget_name(attribute.get(), 0, nullptr);
        std::string name(static_cast<std::size_t>(std::max<ssize_t>(length, 0)), '\0');
        H5Aget_name(attribute.get(), name.size() + 1, name.data());
        if (is_convention(name)) continue;
        try {
            if (std::optional<Value> value = attribute_of(attribute.get())) values.set(hdf5_text(name), *value);
        } catch (const Error& e) {
            if (e.code() != ErrorCode::unsupported) throw;  // references and lists are no JSON
        }
    }
    return values;
}

std::string hdf5_text_attribute(hid_t object, const char* name) {
    if (H5Aexists(object, name) <= 0) return {};
    const Hdf5Id attribute(H5Aopen(object, name, H5P_DEFAULT), H5Aclose);
    const Hdf5Id type(H5Aget_type(attribute.get()), H5Tclose);
    if (!attribute.good() || H5Tget_class(type.get()) != H5T_STRING) return {};
    const std::optional<Value> value = attribute_of(attribute.get());
    return value && value->is_string() ? value->as_string() : std::string();
}

std::optional<Value> hdf5_dimensions(hid_t dataset, int rank, const std::string& name) {
    if (rank == 0) return Value::array();
    if (is_scale(dataset, rank)) return Value::Array{last_part(name)};
    Value names = Value::array();
    for (const Hdf5Id& scale : scales_of(dataset, rank)) {
        std::array<char, 1024> path{};
        const bool named = scale.good() && H5Iget_name(scale.get(), path.data(), path.size()) > 0;
        names.push_back(named ? Value(last_part(path.data())) : Value());
    }
    return names.as_array().empty() ? std::nullopt : std::optional(std::move(names));
}

Shape netcdf4_shape(hid_t dataset, const Shape& stored) {
    const int rank = stored.rank();
    Shape shape = stored;
    const auto lengthen = [&](hid_t scale, std::size_t d) {
        const auto at = static_cast<int>(d);
        if (unlimited_length(dataset, d) && unlimited_length(scale, 0)) {
            shape[at] = std::max(shape[at], dimension_length(scale));
        }
    };
    bool any = false;
    for (std::size_t d = 0; std::cmp_less(d, rank); ++d) any = any || unlimited_length(dataset, d).has_value();
    if (!any || H5Aexists_by_name(dataset, "/", "_NCProperties", H5P_DEFAULT) <= 0) return shape;
    if (is_scale(dataset, rank)) {
        lengthen(dataset, 0);
        return shape;
    }
    const std::vector<Hdf5Id> scales = scales_of(dataset, rank);
    for (std::size_t d = 0; d < scales.size(); ++d) {
        if (scales[d].good()) lengthen(scales[d].get(), d);
    }
    return shape;
}

std::string hdf5_alias_of(const std::string& path) {
    const std::size_t begin = path.rfind('/') + 1;  // 0 without one
    return path.substr(0, begin) + std::string(hdf5_alias) + path.substr(begin);
}

Hdf5Tree hdf5_tree(hid_t file) {
    Hdf5Tree tree{.arrays = {}, .groups = {""}, .held = MemoryHold()};
    const Hdf5Id root(H5Gopen2(file, "/", H5P_DEFAULT), H5Gclose);
    if (!root.good()) throw hdf5_failure("the root group cannot be opened");
    std::set<Hdf5Place> seen;
    H5O_info_t info;
    if (H5Oget_info(root.get(), &info) >= 0) seen.insert({info.fileno, info.addr});
    walk_hdf5(root.get(), "", 0, seen, tree);
    return tree;
}

Hdf5Id hdf5_access() {
    Hdf5Id properties(H5Pcreate(H5P_DATASET_ACCESS), H5Pclose);
    H5Pset_elink_cb(properties.get(), follow_link, nullptr);
    return properties;
}

Hdf5Id find_hdf5_object(hid_t file, const std::string& path) {
    const Hdf5Id access = hdf5_access();
    refused_link = {};
    H5L_info_t link;
    const bool there = H5Lget_info(file, path.c_str(), &link, access.get()) >= 0;
    Hdf5Id found(H5Oopen(file, path.c_str(), access.get()), H5Oclose);
    if (found.good()) return found;
    if (const auto& [target, object] = refused_link; !target.empty()) {
        const Error error =
            unsupported("is a link to {} in the file {}, which is not followed: name that file itself", object, target);
        throw outside_allowed() ? error : error.advising(Action::allow_outside, "follows it");
    }
    if (there) throw hdf5_failure("cannot be opened");
    return {};
}

Hdf5Id open_hdf5_object(hid_t file, const std::string& path) {
    if (path.empty()) return {H5Gopen2(file, "/", H5P_DEFAULT), H5Oclose};
    Hdf5Id found = find_hdf5_object(file, path);
    if (found.good() && !is_bare_dimension(found.get())) return found;
    Hdf5Id variable = find_hdf5_object(file, hdf5_alias_of(path));
    if (variable.good()) return variable;
    if (!found.good()) throw not_found("there is no such array in the file");
    return found;
}

}  // namespace tessera
