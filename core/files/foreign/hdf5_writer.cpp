#include "hdf5_writer.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <new>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <tessera/array_file.h>
#include <tessera/chunk_grid.h>
#include <tessera/copy_elements.h>
#include <tessera/element.h>
#include <tessera/error_text.h>

#include "../netcdf_format.h"
#include "hdf5_driver.h"

namespace tessera {

namespace {

constexpr std::int64_t wanted_chunk_bytes = 1 << 20;

void require_hdf5(bool good, std::string_view what) {
    if (!good) throw Error(ErrorCode::io, fmt::format("{}: {}", what, hdf5_error()));
}

Hdf5Id ordered(hid_t native, const DType& dtype) {
    Hdf5Id type(H5Tcopy(native), H5Tclose);
    if (dtype.size() > 1) H5Tset_order(type.get(), dtype.order() == ByteOrder::big ? H5T_ORDER_BE : H5T_ORDER_LE);
    return type;
}

Hdf5Id half_type(const DType& dtype) {
    Hdf5Id type = ordered(H5T_NATIVE_FLOAT, dtype);
    H5Tset_fields(type.get(), 15, 10, 5, 0, 10);
    H5Tset_size(type.get(), 2);
    H5Tset_ebias(type.get(), 15);
    return type;
}

Hdf5Id text_type(std::size_t size) {
    Hdf5Id type(H5Tcopy(H5T_C_S1), H5Tclose);
    H5Tset_size(type.get(), size);
    if (size != H5T_VARIABLE) H5Tset_strpad(type.get(), H5T_STR_NULLPAD);
    return type;
}

Hdf5Id written_type(const DType& dtype, std::string_view array);

Hdf5Id written_compound(const DType& dtype, std::string_view array) {
    Hdf5Id type(H5Tcreate(H5T_COMPOUND, static_cast<std::size_t>(dtype.size())), H5Tclose);
    for (const Field& field : dtype.fields()) {
        Hdf5Id part = written_type(field.dtype, array);
        if (!field.shape.empty() || field.shape.rank() > 0) {
            std::array<hsize_t, max_rank> lengths{};
            std::ranges::copy(field.shape, lengths.begin());
            part = Hdf5Id(H5Tarray_create2(part.get(), static_cast<unsigned>(field.shape.rank()), lengths.data()),
                          H5Tclose);
        }
        require_hdf5(H5Tinsert(type.get(), field.name.c_str(), static_cast<std::size_t>(field.offset), part.get()) >= 0,
                     fmt::format("field {} is refused", field.name));
    }
    return type;
}

/// One of these, of 1, 2, 4 and 8 bytes.
Hdf5Id integer_type(const DType& dtype, const std::array<hid_t, 4>& natives) {
    return ordered(natives[static_cast<std::size_t>(std::countr_zero(static_cast<std::uint64_t>(dtype.size())))],
                   dtype);
}

/// The type of an array's elements in the file. A Boolean is a byte, as in netCDF.
Hdf5Id written_type(const DType& dtype, std::string_view array) {
    const std::int64_t size = dtype.size();
    switch (dtype.kind()) {
        case Kind::boolean:
            return Hdf5Id(H5Tcopy(H5T_NATIVE_INT8), H5Tclose);
        case Kind::integer:
            return integer_type(dtype, {H5T_NATIVE_INT8, H5T_NATIVE_INT16, H5T_NATIVE_INT32, H5T_NATIVE_INT64});
        case Kind::unsigned_integer:
            return integer_type(dtype, {H5T_NATIVE_UINT8, H5T_NATIVE_UINT16, H5T_NATIVE_UINT32, H5T_NATIVE_UINT64});
        case Kind::real:
            return size == 2 ? half_type(dtype) : ordered(size == 4 ? H5T_NATIVE_FLOAT : H5T_NATIVE_DOUBLE, dtype);
        case Kind::complex: {
            const DType part = DType::scalar(Kind::real, size / 2, dtype.order());
            return written_compound(DType::structure({{"r", {}, part, {}, 0}, {"i", {}, part, {}, size / 2}}, size),
                                    array);
        }
        case Kind::bytes:
            if (size > 0) return text_type(static_cast<std::size_t>(size));
            break;
        case Kind::raw:
            if (size > 0) return Hdf5Id(H5Tcreate(H5T_OPAQUE, static_cast<std::size_t>(size)), H5Tclose);
            break;
        case Kind::variable_text: {
            Hdf5Id type = text_type(H5T_VARIABLE);
            H5Tset_cset(type.get(), H5T_CSET_UTF8);
            return type;
        }
        case Kind::structure:
            return written_compound(dtype, array);
        default:
            break;
    }
    throw no_netcdf_type(array, "HDF5", dtype);
}

void put_attribute(hid_t object, const std::string& name, hid_t type, std::optional<hsize_t> count, const void* data) {
    const Hdf5Id space(count ? H5Screate_simple(1, &*count, nullptr) : H5Screate(H5S_SCALAR), H5Sclose);
    const Hdf5Id attribute(H5Acreate2(object, name.c_str(), type, space.get(), H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
    require_hdf5(attribute.good() && H5Awrite(attribute.get(), type, data) >= 0,
                 fmt::format("attribute {} cannot be written", name));
}

void put_text(hid_t object, const std::string& name, const std::string& text) {
    const Hdf5Id type = text_type(text.size() + 1);  // with a NUL, because no type has size 0
    H5Tset_cset(type.get(), H5T_CSET_UTF8);
    H5Tset_strpad(type.get(), H5T_STR_NULLTERM);
    put_attribute(object, name, type.get(), std::nullopt, text.c_str());
}

bool put_numbers(hid_t object, const std::string& name, const DType& dtype, const Value::Array& list) {
    std::vector<std::byte> bytes;
    try {
        for (const Value& value : list) {
            const ElementBytes element = element_from_value(dtype, value, Assign::exact);
            bytes.insert(bytes.end(), element.begin(), element.end());
        }
    } catch (const Error&) {
        return false;  // a value does not fit
    }
    const Hdf5Id type = written_type(dtype, name);
    put_attribute(object, name, type.get(), static_cast<hsize_t>(list.size()), bytes.data());
    return true;
}

/// As netCDF-4 would: numbers as a list, even of one; text; lists of texts; anything else as JSON.
void put_value(hid_t object, const std::string& name, const Value& value, const DType* own) {
    Value::Array list = value.is_array() ? value.as_array() : Value::Array{value};
    for (Value& item : list) {
        if (item.is_bool()) item = item.as_bool() ? 1 : 0;
    }
    if (!list.empty() && std::ranges::all_of(list, &Value::is_number)) {
        std::vector<DType> types{"<i4", "<i8", "<u8", "<f8"};
        if (std::ranges::any_of(list, &Value::is_double)) types = {"<f8"};
        if (own != nullptr && has_variables_type(name)) types.insert(types.begin(), *own);
        for (const DType& type : types) {
            if (put_numbers(object, name, type, list)) return;
        }
    }
    if (value.is_array() && !list.empty() && std::ranges::all_of(list, &Value::is_string)) {
        std::vector<const char*> texts;
        for (const Value& item : list) texts.push_back(item.as_string().c_str());
        const Hdf5Id type = written_type(DType::variable_text(), name);
        return put_attribute(object, name, type.get(), static_cast<hsize_t>(texts.size()), texts.data());
    }
    put_text(object, name, value.is_string() ? value.as_string() : value.dump());
}

void put_attributes(hid_t object, const Value& values, const DType* own) {
    for (const auto& [name, value] : values.as_object()) {
        const bool passed = name == netcdf_dimensions || name == unlimited_attribute || value.is_null() ||
                            (name == netcdf_fill && own != nullptr && own->is_variable());
        if (!passed) put_value(object, name, value, own);
    }
}

/// A chunk of about 1 MiB: the slowest dimensions are cut first.
Shape chosen_chunks(const Shape& shape, std::int64_t item) {
    Shape chunks = shape;
    for (int d = 0; d < chunks.rank(); ++d) chunks[d] = std::max<std::int64_t>(chunks[d], 1);
    for (int d = 0; d < chunks.rank(); ++d) {
        const std::int64_t row = byte_count(chunks, item) / chunks[d];
        chunks[d] = std::clamp<std::int64_t>(wanted_chunk_bytes / std::max<std::int64_t>(row, 1), 1, chunks[d]);
    }
    return chunks;
}

Hdf5Id creation_order(hid_t kind) {
    Hdf5Id list(H5Pcreate(kind), H5Pclose);
    constexpr unsigned tracked = H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED;  // netCDF needs it to append
    if (kind != H5P_DATASET_CREATE) H5Pset_link_creation_order(list.get(), tracked);
    H5Pset_attr_creation_order(list.get(), tracked);
    H5Pset_obj_track_times(list.get(), false);  // the same arrays become the same bytes
    return list;
}

std::string scale_path(const std::string& group, const std::string& name) {
    return group.empty() ? name : fmt::format("{}/{}", group, name);
}

void require_written_to(const std::string& name, int error) {
    if (error != 0) throw io_error("cannot write", name, error);
}

}  // namespace

Hdf5Writer::Hdf5Writer(const std::string& name, const std::string& temporary, bool adds)
    : name_(name), temporary_(temporary), adds_(adds), error_(std::make_shared<int>(0)) {
    if (adds) {
        file_ = open_hdf5_output(temporary_, true, H5P_DEFAULT, error_);
        if (!file_.good()) throw Error(ErrorCode::io, fmt::format("{}: cannot be added to: {}", name_, hdf5_error()));
        return;
    }
    const Hdf5Id list = creation_order(H5P_FILE_CREATE);
    file_ = open_hdf5_output(temporary_, false, list.get(), error_);
    if (!file_.good()) require_written();
    require_hdf5(file_.good(), fmt::format("{}: cannot be created", name_));
}

Hdf5Id Hdf5Writer::found_dataset(const std::string& path) const {
    if (H5Lexists(file_.get(), path.c_str(), H5P_DEFAULT) <= 0) return {};
    Hdf5Id object(H5Oopen(file_.get(), path.c_str(), H5P_DEFAULT), H5Oclose);
    return object.good() && H5Iget_type(object.get()) == H5I_DATASET ? std::move(object) : Hdf5Id();
}

/// The length of a dimension scale that the file had before.
std::optional<std::int64_t> Hdf5Writer::scale_length(const std::string& path) const {
    const Hdf5Id dataset = adds_ ? found_dataset(path) : Hdf5Id();
    if (!dataset.good() || hdf5_text_attribute(dataset.get(), "CLASS") != "DIMENSION_SCALE") return std::nullopt;
    const Hdf5Id space(H5Dget_space(dataset.get()), H5Sclose);
    hsize_t length = 0;
    if (H5Sget_simple_extent_ndims(space.get()) != 1) return std::nullopt;
    H5Sget_simple_extent_dims(space.get(), &length, nullptr);
    return static_cast<std::int64_t>(length);
}

Hdf5Writer::~Hdf5Writer() {
    arrays_.clear();
    file_ = Hdf5Id();
    std::error_code ignored;
    if (!temporary_.empty()) std::filesystem::remove(temporary_, ignored);
}

void Hdf5Writer::require_written() const {
    require_written_to(name_, *error_);
}

void Hdf5Writer::group(const std::string& path, const Value& attributes) {
    if (path.empty()) {
        const Hdf5Id root(H5Gopen2(file_.get(), "/", H5P_DEFAULT), H5Gclose);
        return put_attributes(root.get(), attributes, nullptr);
    }
    const Hdf5Id list = creation_order(H5P_GROUP_CREATE);
    if (H5Lexists(file_.get(), path.c_str(), H5P_DEFAULT) <= 0) {
        const Hdf5Id made(H5Gcreate2(file_.get(), path.c_str(), H5P_DEFAULT, list.get(), H5P_DEFAULT), H5Gclose);
        require_hdf5(made.good(), fmt::format("{}: group {} cannot be made", name_, path));
    }
    const Hdf5Id group(H5Gopen2(file_.get(), path.c_str(), H5P_DEFAULT), H5Gclose);
    put_attributes(group.get(), attributes, nullptr);
}

namespace {

/// The names of dimensions, if there is one for each.
std::vector<std::string> dimension_names_in(const Value& attributes, int rank) {
    std::vector<std::string> names;
    if (const Value* list = attributes.find(netcdf_dimensions); list != nullptr && list->is_array()) {
        for (const Value& name : list->as_array()) names.push_back(name.is_string() ? name.as_string() : "");
    }
    if (std::cmp_not_equal(names.size(), rank)) names.clear();
    return names;
}

/// How the elements of a new data set are stored.
struct Hdf5Storage {
    Shape chunks = {};
    int level = 0;  ///< of deflate; 0: none
};

/// What may grow needs chunks.
Hdf5Storage set_storage(const Hdf5Id& list, const ArrayInfo& info, bool grows, int deflate_level) {
    Hdf5Storage storage;
    const int rank = info.shape.rank();
    const bool plain = element_count(info.shape) == 0 || (deflate_level == 0 && info.chunks.empty());
    if (rank == 0 || (plain && !grows)) return storage;
    storage.chunks = info.chunks.empty() ? chosen_chunks(info.shape, info.dtype.size()) : info.chunks;
    for (int d = 0; d < rank; ++d) {
        storage.chunks[d] = std::clamp<std::int64_t>(storage.chunks[d], 1, std::max<std::int64_t>(1, info.shape[d]));
    }
    std::array<hsize_t, max_rank> lengths{};
    std::ranges::copy(storage.chunks, lengths.begin());
    H5Pset_chunk(list.get(), rank, lengths.data());
    if (deflate_level > 0 && !info.dtype.is_variable()) {
        storage.level = deflate_level;
        H5Pset_shuffle(list.get());
        H5Pset_deflate(list.get(), static_cast<unsigned>(storage.level));
    }
    return storage;
}

void set_fill(const Hdf5Id& list, const Hdf5Id& type, const DType& dtype, const Value& attributes) {
    const Value* fill = attributes.find(netcdf_fill);
    if (fill == nullptr || dtype.is_variable()) return;
    try {
        const ElementBytes element = element_from_value(dtype, *fill, Assign::exact);
        H5Pset_fill_value(list.get(), type.get(), element.data());
    } catch (const Error&) {
        // A fill of another type is only an attribute.
    }
}

Hdf5Id new_space(const Shape& shape, const std::vector<bool>& grows) {
    if (shape.empty()) return {H5Screate(H5S_SCALAR), H5Sclose};
    std::array<hsize_t, max_rank> lengths{};
    std::ranges::copy(shape, lengths.begin());
    std::array<hsize_t, max_rank> longest = lengths;
    for (std::size_t d = 0; d < grows.size(); ++d) {
        if (grows[d]) longest[d] = H5S_UNLIMITED;
    }
    return {H5Screate_simple(shape.rank(), lengths.data(), longest.data()), H5Sclose};
}

/// Which of the dimensions are unlimited; empty: none.
std::vector<bool> growing(const std::vector<std::string>& names, const std::vector<std::string>& unlimited) {
    std::vector<bool> grows;
    for (const std::string& name : names) grows.push_back(std::ranges::count(unlimited, name) > 0);
    if (std::ranges::count(grows, true) == 0) grows.clear();
    return grows;
}

}  // namespace

Hdf5Id Hdf5Writer::new_dataset(const std::string& path, const std::string& stored, const Hdf5Id& type,
                               const Shape& shape, const std::vector<bool>& grows, const Hdf5Id& list) {
    if (adds_ && found_dataset(stored).good()) {
        require_hdf5(H5Ldelete(file_.get(), stored.c_str(), H5P_DEFAULT) >= 0,
                     fmt::format("{}::{}: cannot be replaced", name_, path));
    }
    const Hdf5Id space = new_space(shape, grows);
    const Hdf5Id links(H5Pcreate(H5P_LINK_CREATE), H5Pclose);
    H5Pset_create_intermediate_group(links.get(), 1);
    Hdf5Id dataset(
        H5Dcreate2(file_.get(), stored.c_str(), type.get(), space.get(), links.get(), list.get(), H5P_DEFAULT),
        H5Dclose);
    require_hdf5(dataset.good(), fmt::format("{}::{}: cannot be made", name_, path));
    return dataset;
}

Hdf5Writer::Added Hdf5Writer::add(const std::string& path, const ArrayInfo& info, Value attributes, int deflate_level) {
    const std::string group = path.find('/') == std::string::npos ? "" : path.substr(0, path.rfind('/'));
    const std::string own = path.substr(path.rfind('/') + 1);
    const std::vector<std::string> names = dimension_names_in(attributes, info.shape.rank());
    const std::vector<bool> grows = growing(names, take_unlimited(attributes));
    const bool is_scale = names.size() == 1 && names[0] == own;
    // A variable with the name of a dimension that is not its coordinates has another name in netCDF-4, too.
    const bool alias = !is_scale && std::ranges::count(names, own) > 0;
    const std::string stored = alias ? hdf5_alias_of(path) : path;

    Hdf5Id type = written_type(info.dtype, fmt::format("{}::{}", name_, path));
    const Hdf5Id list = creation_order(H5P_DATASET_CREATE);
    const Hdf5Storage storage = set_storage(list, info, !grows.empty(), deflate_level);
    set_fill(list, type, info.dtype, attributes);
    Hdf5Id dataset = new_dataset(path, stored, type, info.shape, grows, list);
    const bool boolean = info.dtype.kind() == Kind::boolean;
    if (boolean) attributes.set("dtype", "bool");  // xarray's mark
    put_attributes(dataset.get(), attributes, boolean ? nullptr : &info.dtype);
    if (is_scale) {
        put_text(dataset.get(), "CLASS", "DIMENSION_SCALE");
        put_text(dataset.get(), "NAME", own);
        scales_.push_back({stored, info.shape[0]});
    } else if (!names.empty() && std::ranges::count(names, "") == 0) {
        uses_.push_back({stored, group, names, info.shape, grows});
    }
    arrays_.push_back({.name = fmt::format("{}::{}", name_, path),
                       .dataset = std::move(dataset),
                       .type = std::move(type),
                       .dtype = info.dtype,
                       .shape = info.shape});
    return {.number = arrays_.size() - 1, .chunks = storage.chunks, .level = storage.level};
}

Hdf5Writer::Array& Hdf5Writer::array(std::uint64_t number) {
    if (number >= arrays_.size()) throw not_found("there is no array {}", number);
    return arrays_[static_cast<std::size_t>(number)];
}

std::int64_t Hdf5Writer::element_bytes(std::uint64_t number, const Region& region) {
    const Array& a = array(number);
    require_inside(region, a.shape);
    return a.dtype.is_variable() ? 0 : byte_count(region.extent, a.dtype.size());
}

bool Hdf5Writer::has_texts(std::uint64_t number) {
    return array(number).dtype.is_variable();
}

void Hdf5Writer::write_elements(std::uint64_t number, const Region& region, const void* from) {
    const Array& a = array(number);
    const Hdf5Region at(a.dataset.get(), region);
    require_hdf5(H5Dwrite(a.dataset.get(), a.type.get(), at.memory.get(), at.file.get(), H5P_DEFAULT, from) >= 0,
                 fmt::format("{}: region {} cannot be written", a.name, region.to_string()));
    require_written_to(a.name, *error_);
}

void Hdf5Writer::write_chunk(std::uint64_t number, const Region& part, ByteSpan encoded) {
    const Array& a = array(number);
    require_inside(part, a.shape);
    std::array<hsize_t, max_rank> start{};
    std::ranges::copy(part.start, start.begin());
    require_hdf5(H5Dwrite_chunk(a.dataset.get(), H5P_DEFAULT, 0, start.data(), encoded.size(), encoded.data()) >= 0,
                 fmt::format("{}: chunk at {} cannot be written", a.name, part.to_string()));
    require_written_to(a.name, *error_);
}

void Hdf5Writer::close(std::uint64_t number) {
    Array& a = array(number);
    a.type = Hdf5Id();
    require_hdf5(a.dataset.close(), fmt::format("{}: cannot be written", a.name));
    require_written_to(a.name, *error_);
}

/// A dimension without a variable, as netCDF-4 writes it.
void Hdf5Writer::add_bare_dimension(const std::string& path, const std::string& name, std::int64_t length, bool grows) {
    const Hdf5Id space = new_space({length}, {grows});
    const Hdf5Id list = creation_order(H5P_DATASET_CREATE);
    const ArrayInfo info{.dtype = DType::of<float>(), .shape = {length}, .chunks = {}};
    (void)set_storage(list, info, grows, 0);
    const Hdf5Id scale(
        H5Dcreate2(file_.get(), path.c_str(), H5T_IEEE_F32BE, space.get(), H5P_DEFAULT, list.get(), H5P_DEFAULT),
        H5Dclose);
    require_hdf5(scale.good(), fmt::format("{}: dimension {} cannot be made", name_, name));
    put_text(scale.get(), "CLASS", "DIMENSION_SCALE");
    put_text(scale.get(), "NAME", fmt::format("This is a netCDF dimension but not a netCDF variable.{:10}", length));
    scales_.push_back({path, length});
}

/// A variable that has the name of a dimension of another one, but is not its coordinates, gets netCDF-4's other name.
void Hdf5Writer::give_way() {
    if (adds_) return;  // arrays of others keep their names
    for (const Use& use : uses_) {
        for (const std::string& name : use.names) {
            const std::string path = scale_path(use.group, name), other = hdf5_alias_of(path);
            if (std::ranges::find(scales_, path, &Scale::path) != scales_.end()) continue;
            if (!found_dataset(path).good()) continue;
            require_hdf5(H5Lmove(file_.get(), path.c_str(), H5L_SAME_LOC, other.c_str(), H5P_DEFAULT, H5P_DEFAULT) >= 0,
                         fmt::format("{}::{}: cannot be renamed", name_, path));
            for (Use& moved : uses_) {
                if (moved.path == path) moved.path = other;
            }
        }
    }
}

void Hdf5Writer::attach_scales() {
    const Hdf5Id type(H5Tvlen_create(H5T_STD_REF_OBJ), H5Tclose);
    give_way();
    for (const Use& use : uses_) {
        std::vector<hobj_ref_t> references(use.names.size());
        std::vector<hvl_t> lists;
        for (std::size_t d = 0; d < use.names.size(); ++d) {
            const std::string path = scale_path(use.group, use.names[d]);
            const std::int64_t length = use.shape[static_cast<int>(d)];
            auto scale = std::ranges::find(scales_, path, &Scale::path);
            if (scale == scales_.end()) {
                if (const auto known = scale_length(path)) {
                    scales_.push_back({path, *known});
                    scale = std::prev(scales_.end());
                }
            }
            if (scale == scales_.end()) {
                if (H5Lexists(file_.get(), path.c_str(), H5P_DEFAULT) > 0) {
                    throw unsupported(
                        "{}::{}: its dimension {} has the name of an array that is not its coordinates, or "
                        "of a group",
                        name_, use.path, use.names[d]);
                }
                add_bare_dimension(path, use.names[d], length, !use.grows.empty() && use.grows[d]);
                scale = std::prev(scales_.end());
            }
            if (scale->length != length) {
                throw unsupported(
                    "{}::{}: its dimension {} has length {}, but that of another array {}; in a group of netCDF a name "
                    "has one length",
                    name_, use.path, use.names[d], length, scale->length);
            }
            require_hdf5(H5Rcreate(&references[d], file_.get(), path.c_str(), H5R_OBJECT, -1) >= 0, path);
            lists.push_back({1, &references[d]});
        }
        const Hdf5Id dataset(H5Dopen2(file_.get(), use.path.c_str(), H5P_DEFAULT), H5Dclose);
        put_attribute(dataset.get(), "DIMENSION_LIST", type.get(), static_cast<hsize_t>(lists.size()), lists.data());
    }
}

void Hdf5Writer::finish() {
    attach_scales();
    const bool flushed = H5Fflush(file_.get(), H5F_SCOPE_LOCAL) >= 0;
    require_hdf5(file_.close() && flushed, fmt::format("{}: cannot be written", name_));
    require_written();
    temporary_.clear();  // the parent takes it
}

}  // namespace tessera
