// What the tests of .mldf share: the golden files, and elements as JSON.
#pragma once

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <tessera/element.h>
#include <tessera/mldf.h>
#include <tessera/ndarray.h>

#include "files.h"

namespace tessera::test {

inline const std::filesystem::path mldf_golden = TESSERA_GOLDEN "/mldf";
/// The files in it that are as they should be.
inline const std::vector<std::string> good_mldf{
    "all_fields",     "other_fields", "one_field_label", "one_field_label_padded", "zero_samples", "zero_fields",
    "missing_values", "name_63_utf8", "page_64k",        "minor_version_newer",    "stride_204"};

inline std::shared_ptr<const ByteSource> source_of(const std::string& text) {
    return memory_source(Buffer(bytes(text)), "test.mldf");
}

inline MldfReader mldf_at(const std::filesystem::path& path) {
    return MldfReader(std::shared_ptr<const ByteSource>(open_file(path)));
}
inline MldfReader golden_mldf(const std::string& name) {
    return mldf_at(mldf_golden / (name + ".mldf"));
}
inline Value expected_of(const std::string& name) {
    return Value::parse(content(mldf_golden / (name + ".expected.json")));
}

// ---- elements

inline std::string hex(ByteSpan b) {
    return fmt::format("{:02x}", fmt::join(b, ""));
}

inline std::vector<std::byte> unhex(const std::string& text) {
    return element_from_value(DType::raw(static_cast<std::int64_t>(text.size() / 2)), "0x" + text, Assign::exact);
}

template <class T>
void patch(std::string& file, std::size_t at, T value) {
    for (std::size_t i = 0; i < sizeof(T); ++i) file[at + i] = static_cast<char>(value >> (8 * i));
}

inline std::string_view slot_text(const NDArray& a) {
    VariableSlot slot;
    std::memcpy(&slot, a.bytes().data(), sizeof slot);
    return slot.view();
}

/// Numbers as nested lists.
inline Value list_value(const ArrayView& v) {
    if (v.shape.empty()) return element_to_value(v.dtype, v.data);
    Value list = Value::array();
    for (std::int64_t i = 0; i < v.shape[0]; ++i) {
        ArrayView row{v.data + i * v.strides[0], v.dtype, {}, {}};
        for (int d = 1; d < v.shape.rank(); ++d) {
            row.shape.push_back(v.shape[d]);
            row.strides.push_back(v.strides[d]);
        }
        list.push_back(list_value(row));
    }
    return list;
}

inline NDArray load(const ArraySource& source, std::optional<Region> region = {}) {
    if (!region) region = Region::whole(source.info().shape);
    NDArray a(source.info().dtype, region->extent);
    source.read_into(*region, a.view(), {});
    return a;
}

inline std::string text_at(const NDArray& a, std::size_t i) {
    VariableSlot slot;
    std::memcpy(&slot, a.bytes().data() + i * sizeof slot, sizeof slot);
    return std::string(slot.view());
}

// ---- whole data sets

/// Writes the samples of an expected.json again.
inline void write_again(const std::filesystem::path& path, const Value& expected, bool checksum = false) {
    std::vector<MldfField> fields;
    for (const Value& f : expected.at("fields").as_array()) {
        fields.push_back({.name = f.at("name").as_string(),
                          .type = MldfType{static_cast<std::uint16_t>(f.at("type_id").as_uint64())},
                          .arguments = unhex(f.at("arguments_hex").as_string())});
    }
    const auto page = static_cast<std::uint32_t>(expected.at("header").at("page_size").as_uint64());
    MldfWriter writer(path, fields, {.page_size = page, .checksum = checksum});
    const auto shape_of = [](const Value& v) {
        Shape shape;
        for (const Value& n : v.at("shape").as_array()) shape.push_back(n.as_int64());
        return shape;
    };
    for (const Value& sample : expected.at("samples").as_array()) {
        for (std::size_t f = 0; f < fields.size(); ++f) {
            const Value& v = sample.at(fields[f].name);
            if (v.is_null()) continue;
            switch (fields[f].type) {
                case MldfType::integer:
                    writer.put(f, v.as_int64());
                    break;
                case MldfType::real:
                    writer.put(f, v.as_double());
                    break;
                case MldfType::bytes:
                    writer.put_bytes(f, unhex(v.at("hex").as_string()));
                    break;
                case MldfType::text_raw:
                    writer.put_bytes(f, bytes(v.as_string()));
                    break;
                case MldfType::json: {
                    std::string text = v.dump();  // with Python's spaces, which the files do not have
                    std::erase(text, ' ');
                    writer.put_bytes(f, bytes(text));
                    break;
                }
                case MldfType::text_tokenized: {
                    std::vector<std::int32_t> tokens;
                    for (const Value& t : v.as_array()) tokens.push_back(static_cast<std::int32_t>(t.as_int64()));
                    writer.put_array(f, view(tokens));
                    break;
                }
                case MldfType::audio_waveform: {
                    std::vector<std::int16_t> values;
                    for (const Value& frame : v.at("values").as_array()) {
                        for (const Value& x : frame.as_array())
                            values.push_back(static_cast<std::int16_t>(x.as_int64()));
                    }
                    writer.put_array(f, view(values, shape_of(v)),
                                     static_cast<std::uint32_t>(v.at("rate").as_uint64()));
                    break;
                }
                default: {
                    const auto data = unhex(v.at("hex").as_string());
                    writer.put_array(f, view_bytes(data.data(), v.at("dtype").as_string(), shape_of(v)));
                }
            }
        }
        writer.end_sample();
    }
    writer.finish();
}

/// The columns of a whole data set, as an import and an export meet them.
struct MldfColumns {
    explicit MldfColumns(const MldfReader& reader) {
        for (const std::string& name : reader.arrays()) {
            sources.push_back(reader.open(name));
            columns.push_back({name, sources.back().get()});
        }
        // Files in a folder come by name.
        std::ranges::sort(columns, {}, &MldfColumn::name);
    }
    std::vector<std::unique_ptr<ArraySource>> sources;
    std::vector<MldfColumn> columns;
};

}  // namespace tessera::test
