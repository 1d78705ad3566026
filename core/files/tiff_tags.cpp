#include "tiff_tags.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <optional>
#include <span>

#include <fmt/format.h>

#include <tessera/element.h>
#include <tessera/error_text.h>
#include <tessera/geo_reference.h>
#include <tessera/nodata.h>

#include "gdal_metadata.h"
#include "tiff_text.h"

namespace tessera {

namespace {

constexpr std::string_view tiff_attribute = "tiff";
constexpr std::string_view fill_name = "_FillValue", scale_name = "scale_factor", offset_name = "add_offset";
constexpr std::string_view gdal_metadata_name = "GDAL_METADATA";
constexpr std::uint16_t text_type = 2, short_type = 3, long_type = 4, rational_type = 5, double_type = 12;
constexpr std::size_t most_listed = 4096;  // numbers in an attribute

struct NamedTag {
    TiffTag tag;
    std::string_view name;
    std::uint16_t type;   ///< in which it is written
    bool placed = false;  ///< a part of the georeference
};
constexpr std::array named_tags{
    NamedTag{TiffTag::description, "ImageDescription", text_type},
    NamedTag{TiffTag::x_resolution, "XResolution", rational_type},
    NamedTag{TiffTag::y_resolution, "YResolution", rational_type},
    NamedTag{TiffTag::resolution_unit, "ResolutionUnit", short_type},
    NamedTag{TiffTag::software, "Software", text_type},
    NamedTag{TiffTag::date_time, "DateTime", text_type},
    NamedTag{TiffTag::color_map, "ColorMap", short_type},
    NamedTag{TiffTag::pixel_scale, "ModelPixelScale", double_type, true},
    NamedTag{TiffTag::tie_points, "ModelTiepoint", double_type, true},
    NamedTag{TiffTag::transformation, "ModelTransformation", double_type, true},
    NamedTag{TiffTag::geo_keys, "GeoKeyDirectory", short_type, true},
    NamedTag{TiffTag::geo_doubles, "GeoDoubleParams", double_type, true},
    NamedTag{TiffTag::geo_texts, "GeoAsciiParams", text_type, true},
    NamedTag{TiffTag::gdal_metadata, "GDAL_METADATA", text_type},
    NamedTag{TiffTag::gdal_nodata, "GDAL_NODATA", text_type},
};

// ---- GeoKeys

enum class GeoKey : std::uint16_t { model = 1024, raster = 1025, geographic = 2048, projected = 3072 };
constexpr std::uint64_t user_defined = 32767;

/// A key whose value is in the directory itself.
std::optional<std::uint64_t> geo_key(std::span<const std::uint64_t> directory, GeoKey key) {
    for (std::size_t i = 4; i + 4 <= directory.size(); i += 4) {
        if (directory[i] == static_cast<std::uint64_t>(key) && directory[i + 1] == 0) return directory[i + 3];
    }
    return std::nullopt;
}

/// "EPSG:n", if the keys say no more than that.
std::optional<std::string> crs_code(std::span<const std::uint64_t> directory) {
    const auto known = [&](GeoKey key) {
        const auto code = geo_key(directory, key);
        return code && *code >= 1024 && *code < user_defined ? code : std::nullopt;
    };
    const auto model = geo_key(directory, GeoKey::model);
    const auto code = model == 2 ? known(GeoKey::geographic) : known(GeoKey::projected);
    return code ? std::optional(fmt::format("EPSG:{}", *code)) : std::nullopt;
}

/// The keys that say a code. GeoTIFF wants to know the kind of system: EPSG's geographic ones are 4000 to 4999.
std::vector<std::uint64_t> keys_of_code(std::string_view code, bool nodes) {
    std::uint64_t n = 0;
    const bool epsg = code.starts_with("EPSG:");
    if (epsg) std::from_chars(code.data() + 5, code.data() + code.size(), n);
    const auto number = [](GeoKey key) { return static_cast<std::uint64_t>(key); };
    std::vector<std::uint64_t> keys{1, 1, 0, 1};
    const bool known = n >= 1024 && n < user_defined;
    const bool geographic = n >= 4000 && n < 5000;
    if (known) keys.insert(keys.end(), {number(GeoKey::model), 0, 1, geographic ? 2U : 1U});
    keys.insert(keys.end(), {number(GeoKey::raster), 0, 1, nodes ? 2U : 1U});
    if (known) keys.insert(keys.end(), {number(geographic ? GeoKey::geographic : GeoKey::projected), 0, 1, n});
    keys[3] = keys.size() / 4 - 1;
    return keys;
}

// ---- from tags to attributes

class AttributeReader {
public:
    AttributeReader(const ByteSource& file, const TiffFile& tiff) : file_(file), tiff_(tiff) {}

    void read(const TiffImage& image, Value& attributes) {
        const TiffPage& page = tiff_.pages[image.pages[0]];
        const auto transform = affine();
        const std::vector<std::uint64_t> keys = integers(TiffTag::geo_keys);
        GeoReference reference{.transform = transform,
                               .shape = std::array{page.height, page.width},
                               .nodes = geo_key(keys, GeoKey::raster) == 2};
        if (const auto code = crs_code(keys)) reference.crs.set("proj:code", *code);
        set_geo_reference(attributes, reference);
        bool filled = false;
        if (tiff_.tags.contains(TiffTag::gdal_nodata)) {
            const std::string text = tiff_text(file_, tiff_.tags.at(TiffTag::gdal_nodata));
            if (const auto nodata = parse_nodata(text, page.dtype)) {
                attributes.set(fill_name, element_to_value(page.dtype, nodata->element.data()));
                // A text that is written otherwise here stays, too: it says how exact it is.
                filled = text == element_to_text(page.dtype, nodata->element.data());
            }
        }
        Value rest = Value::object();
        for (const NamedTag& row : named_tags) {
            const bool said = (filled && row.tag == TiffTag::gdal_nodata) ||
                              (transform && (row.tag == TiffTag::pixel_scale || row.tag == TiffTag::tie_points ||
                                             row.tag == TiffTag::transformation));
            if (!said && tiff_.tags.contains(row.tag)) rest.set(row.name, value(row));
        }
        take_packing(page, rest, attributes);
        constexpr int white_is_zero = 0, palette = 3;
        if (page.photometric == palette || (page.photometric == white_is_zero && page.bits == 1)) {
            rest.set("PhotometricInterpretation", page.photometric);
        }
        if (!rest.as_object().empty()) attributes.set(tiff_attribute, std::move(rest));
    }

private:
    /// Where all bands are packed in one way.
    static void take_packing(const TiffPage& page, Value& rest, Value& attributes) {
        const Value* const told = rest.find(gdal_metadata_name);
        if (told == nullptr) return;
        const std::string text = told->as_string();
        const auto packing = gdal_packing(text, page.samples);
        if (!packing) return;
        if (packing->scale != 1) attributes.set(scale_name, packing->scale);
        if (packing->offset != 0) attributes.set(offset_name, packing->offset);
        rest.erase(gdal_metadata_name);
        if (std::string left = without_gdal_packing(text); !left.empty()) {
            rest.set(gdal_metadata_name, std::move(left));
        }
    }

    std::vector<double> doubles(TiffTag tag) {
        return tiff_.tags.contains(tag) ? tiff_doubles(file_, tiff_, tiff_.tags.at(tag)) : std::vector<double>{};
    }
    std::vector<std::uint64_t> integers(TiffTag tag) {
        if (!tiff_.tags.contains(tag) || tiff_.tags.at(tag).count > UINT16_MAX) return {};
        return tiff_integers(file_, tiff_, tiff_.tags.at(tag));
    }

    Value value(const NamedTag& row) {
        const TiffEntry& entry = tiff_.tags.at(row.tag);
        if (row.type == text_type) return tiff_text(file_, entry);
        Value::Array list;
        if (entry.count > most_listed) return {};
        if (row.type == short_type) {
            for (const std::uint64_t n : integers(row.tag)) list.emplace_back(n);
        } else {
            for (const double n : doubles(row.tag)) list.emplace_back(n);
        }
        return list.size() == 1 ? list[0] : Value(std::move(list));
    }

    /// (a, b, c, d, e, f): x = a·column + b·row + c, y = d·column + e·row + f. Nothing if the tags say more or less.
    std::optional<std::array<double, 6>> affine() {
        const std::vector<double> m = doubles(TiffTag::transformation);
        if (m.size() == 16) {
            const bool flat = m[2] == 0 && m[6] == 0 && m[11] == 0;
            return flat ? std::optional(std::array{m[0], m[1], m[3], m[4], m[5], m[7]}) : std::nullopt;
        }
        const std::vector<double> scale = doubles(TiffTag::pixel_scale);
        const std::vector<double> tie = doubles(TiffTag::tie_points);
        if (scale.size() != 3 || tie.size() != 6 || tie[2] != 0 || tie[5] != 0) return std::nullopt;
        return std::array{scale[0], 0.0, tie[3] - tie[0] * scale[0], 0.0, -scale[1], tie[4] + tie[1] * scale[1]};
    }

    const ByteSource& file_;
    const TiffFile& tiff_;
};

// ---- from attributes to tags

void put_little(std::string& bytes, std::uint64_t n, int size) {
    for (int i = 0; i < size; ++i) bytes += static_cast<char>(n >> (8 * i) & 0xFF);
}

TiffValues double_tag(TiffTag tag, std::span<const double> numbers) {
    TiffValues values{.tag = tag, .type = double_type, .count = numbers.size(), .bytes = {}};
    for (const double n : numbers) put_little(values.bytes, std::bit_cast<std::uint64_t>(n), 8);
    return values;
}

TiffValues rational_tag(TiffTag tag, double number) {
    constexpr double most = 4294967295.0, below = 1000000.0;
    TiffValues values{.tag = tag, .type = rational_type, .count = 1, .bytes = {}};
    const double denominator = number * below <= most ? below : 1;
    put_little(values.bytes, static_cast<std::uint64_t>(std::clamp(std::round(number * denominator), 0.0, most)), 4);
    put_little(values.bytes, static_cast<std::uint64_t>(denominator), 4);
    return values;
}

std::vector<double> numbers_in(const Value* list) {
    std::vector<double> numbers;
    if (list == nullptr) return numbers;
    for (const Value& n : list->is_array() ? list->as_array() : Value::Array{*list}) {
        if (!n.is_number()) return {};
        numbers.push_back(n.as_double());
    }
    return numbers;
}

std::optional<TiffValues> named_tag(const NamedTag& row, const Value& value) {
    if (row.type == text_type)
        return value.is_string() ? std::optional(text_tag(row.tag, value.as_string())) : std::nullopt;
    const std::vector<double> numbers = numbers_in(&value);
    if (numbers.empty() || numbers.size() > UINT16_MAX) return std::nullopt;
    if (row.type == double_type) return double_tag(row.tag, numbers);
    if (row.type == rational_type) return rational_tag(row.tag, numbers[0]);
    std::vector<std::uint64_t> integers;
    for (const double n : numbers) {
        if (!(n >= 0 && n <= UINT16_MAX)) return std::nullopt;
        integers.push_back(static_cast<std::uint64_t>(n));
    }
    return integer_tag(row.tag, short_type, integers);
}

/// Whether a description suits other pages than those that it came with.
bool is_for(std::string_view description, std::int64_t pages, std::int64_t height, std::int64_t width) {
    if (description.starts_with("{\"shape\"") || description.starts_with("ImageJ=")) return false;
    return !is_ome_xml(description) || pages == 1 || !tiff_axes(description, pages, height, width).lengths.empty();
}

/// The attribute "tiff", with GDAL's items of how the array is packed.
Value stored_tags(const Value& attributes, std::int64_t samples) {
    const Value* const tiff = attributes.find(tiff_attribute);
    Value stored = tiff != nullptr && tiff->is_object() ? *tiff : Value::object();
    const Value* const scale = attributes.find(scale_name);
    const Value* const offset = attributes.find(offset_name);
    if (scale == nullptr && offset == nullptr) return stored;
    const GdalPacking packing{.scale = scale != nullptr && scale->is_number() ? scale->as_double() : 1,
                              .offset = offset != nullptr && offset->is_number() ? offset->as_double() : 0};
    const Value* const text = stored.find(gdal_metadata_name);
    const std::string others = text != nullptr && text->is_string() ? without_gdal_packing(text->as_string()) : "";
    stored.set(gdal_metadata_name, with_gdal_packing(others, packing, samples));
    return stored;
}

}  // namespace

Value tiff_attributes(const ByteSource& file, const TiffFile& tiff, const TiffImage& image) {
    Value attributes = Value::object();
    Value names = Value::array();
    for (const std::string& name : image.dimensions) names.push_back(name.empty() ? Value() : Value(name));
    attributes.set("_ARRAY_DIMENSIONS", std::move(names));
    if (&image == tiff.images.data()) AttributeReader(file, tiff).read(image, attributes);
    return attributes;
}

TiffValues integer_tag(TiffTag tag, std::uint16_t type, const std::vector<std::uint64_t>& numbers) {
    TiffValues values{.tag = tag, .type = type, .count = numbers.size(), .bytes = {}};
    const int size = type == short_type ? 2 : type == long_type ? 4 : 8;
    for (const std::uint64_t n : numbers) put_little(values.bytes, n, size);
    return values;
}

TiffValues text_tag(TiffTag tag, std::string text) {
    text += '\0';
    const std::uint64_t count = text.size();
    return {.tag = tag, .type = text_type, .count = count, .bytes = std::move(text)};
}

namespace {

/// The georeference in an array's attributes.
class Placement {
public:
    Placement(const Value& attributes, const Value& stored, std::int64_t height, std::int64_t width)
        : geo_(geo_reference_in(attributes).value_or(GeoReference{})),
          placed_(!geo_.shape || *geo_.shape == std::array{height, width}),
          code_(geo_.crs.find("proj:code")) {
        std::vector<std::uint64_t> keys;
        for (const double n : numbers_in(stored.find("GeoKeyDirectory"))) keys.push_back(static_cast<std::uint64_t>(n));
        // The code may have been changed since the keys were read.
        same_keys_ = !keys.empty() && (code_ == nullptr || crs_code(keys) == code_->as_string());
    }

    /// Whether a tag that was read still holds.
    [[nodiscard]] bool keeps(const NamedTag& row) const {
        const bool is_key =
            row.tag == TiffTag::geo_keys || row.tag == TiffTag::geo_doubles || row.tag == TiffTag::geo_texts;
        if ((row.placed && !placed_) || (is_key && !same_keys_)) return false;
        return !row.placed || is_key || !geo_.transform;
    }

    void add_to(std::vector<TiffValues>& tags) const {
        if (placed_ && geo_.transform) add_transform(tags);
        if (placed_ && !same_keys_ && (code_ != nullptr || geo_.nodes)) {
            const std::string_view code = code_ != nullptr ? std::string_view(code_->as_string()) : "";
            tags.push_back(integer_tag(TiffTag::geo_keys, short_type, keys_of_code(code, geo_.nodes)));
        }
    }

private:
    void add_transform(std::vector<TiffValues>& tags) const {
        const auto [a, b, c, d, e, f] = *geo_.transform;
        if (b == 0 && d == 0 && a > 0 && e < 0) {
            tags.push_back(double_tag(TiffTag::pixel_scale, std::array{a, -e, 0.0}));
            tags.push_back(double_tag(TiffTag::tie_points, std::array{0.0, 0.0, 0.0, c, f, 0.0}));
        } else {
            tags.push_back(double_tag(TiffTag::transformation,
                                      std::array{a, b, 0.0, c, d, e, 0.0, f, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0}));
        }
    }

    GeoReference geo_;
    bool placed_;        ///< of pictures of this height and width
    const Value* code_;  ///< in geo_
    bool same_keys_ = false;
};

/// Replaces the tag of the marker of missing pixels, unless the tag that was read has the same value.
void set_fill(std::vector<TiffValues>& tags, const Value& fill, const Value* text_before, const DType& dtype) {
    const auto before = text_before != nullptr && text_before->is_string()
                            ? parse_nodata(text_before->as_string(), dtype)
                            : std::nullopt;
    try {
        const ElementBytes element = element_from_value(dtype, fill, Assign::exact);
        if (before && before->element == element) return;
        std::erase_if(tags, [](const TiffValues& tag) { return tag.tag == TiffTag::gdal_nodata; });
        std::string text = element_to_text(dtype, element.data());
        if (dtype.kind() != Kind::complex) tags.push_back(text_tag(TiffTag::gdal_nodata, std::move(text)));
    } catch (const Error&) {
        // It is no element, and so says nothing of these.
    }
}

}  // namespace

std::vector<TiffValues> tags_of_attributes(const Value& attributes, const DType& dtype, std::int64_t height,
                                           std::int64_t width, std::int64_t pages, std::int64_t samples) {
    std::vector<TiffValues> tags;
    const Value stored = stored_tags(attributes, samples);
    const Placement placement(attributes, stored, height, width);
    for (const NamedTag& row : named_tags) {
        const Value* const value = stored.find(row.name);
        if (value == nullptr || !placement.keeps(row)) continue;
        if (row.tag == TiffTag::description && value->is_string() &&
            !is_for(value->as_string(), pages, height, width)) {
            continue;
        }
        if (auto tag = named_tag(row, *value)) tags.push_back(*std::move(tag));
    }
    placement.add_to(tags);
    const Value* const fill = attributes.find(fill_name);
    if (fill != nullptr && !fill->is_null()) set_fill(tags, *fill, stored.find("GDAL_NODATA"), dtype);
    return tags;
}

}  // namespace tessera
