#include "mldf_format.h"

#include <zlib.h>

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include <tessera/error_text.h>

#include <tessera/unicode.h>

namespace tessera {

namespace mldf {

namespace {

using enum TypeRow::Record;

constexpr std::array types{
    TypeRow{MldfType::integer, "INT", value, 8},
    TypeRow{MldfType::real, "FLOAT", value, 8},
    TypeRow{MldfType::bytes, "BYTES", pointer, 16},
    TypeRow{MldfType::ndarray, "NDARRAY", pointer, 16},
    TypeRow{MldfType::json, "JSON", pointer, 16},
    TypeRow{MldfType::image_raw, "IMAGE_RAW", pointer, 24},
    TypeRow{MldfType::image_jpeg, "IMAGE_JPEG", pointer, 24},
    TypeRow{MldfType::image_png, "IMAGE_PNG", pointer, 24},
    TypeRow{MldfType::audio_waveform, "AUDIO_WAVEFORM", pointer, 24},
    TypeRow{MldfType::audio_compressed, "AUDIO_COMPRESSED", pointer, 24},
    TypeRow{MldfType::audio_spectrogram, "AUDIO_SPECTROGRAM"},
    TypeRow{MldfType::audio_codec_tokens, "AUDIO_CODEC_TOKENS"},
    TypeRow{MldfType::video_frames, "VIDEO_FRAMES"},
    TypeRow{MldfType::video_compressed, "VIDEO_COMPRESSED"},
    TypeRow{MldfType::video_optical_flow, "VIDEO_OPTICAL_FLOW"},
    TypeRow{MldfType::text_raw, "TEXT_RAW", pointer, 16},
    TypeRow{MldfType::text_tokenized, "TEXT_TOKENIZED", pointer, 16},
    TypeRow{MldfType::text_packed, "TEXT_PACKED"},
    TypeRow{MldfType::text_hierarchical, "TEXT_HIERARCHICAL"},
    TypeRow{MldfType::multimodal_sample, "MULTIMODAL_SAMPLE"},
};
constexpr TypeRow unknown{MldfType{0}, ""};

constexpr std::size_t dtype_text_size = 16;  // of an NDARRAY's arguments
constexpr std::size_t most_dimensions = (arguments_size - dtype_text_size) / 8 - 1;

}  // namespace

const TypeRow& type_row(MldfType type) {
    const auto* row = std::find_if(types.begin(), types.end(), [&](const TypeRow& r) { return r.type == type; });
    return row == types.end() ? unknown : *row;
}

DType tail_dtype(const MldfField& field) {
    const auto at = [](const char* name, const char* dtype, std::int64_t offset) {
        return Field{.name = name, .title = {}, .dtype = dtype, .shape = {}, .offset = offset};
    };
    const auto size = static_cast<std::int64_t>(field.metadata_size - pointer_size);
    switch (field.type) {
        case MldfType::image_raw:
        case MldfType::image_jpeg:
        case MldfType::image_png:
            return DType::structure(
                {at("height", "<u2", 0), at("width", "<u2", 2), at("channels", "|u1", 4), at("mode", "|u1", 5)}, size);
        case MldfType::audio_waveform:
        case MldfType::audio_compressed:
            return DType::structure({at("num_samples", "<u4", 0), at("sample_rate", "<u4", 4),
                                     at("num_channels", "<u2", 8), at("bit_depth", "|u1", 10), at("codec", "|u1", 11)},
                                    size);
        case MldfType::text_tokenized:
            return DType::structure({at("num_tokens", "<u2", 0), at("encoding", "|u1", 2)}, size);
        default:
            return DType::raw(size);
    }
}

std::optional<Form> ndarray_form(const MldfField& field) {
    std::array<std::byte, arguments_size> a{};
    std::copy(field.arguments.begin(), field.arguments.end(), a.begin());
    const std::string_view text(reinterpret_cast<const char*>(a.data()), dtype_text_size);
    const auto rank = load_little<std::uint64_t>(a.data() + dtype_text_size);
    if (a[0] == std::byte{0} || rank > most_dimensions) return {};
    try {
        Form form{DType::parse(text.substr(0, text.find('\0'))), {}, 0};
        for (std::size_t d = 0; d < rank; ++d) {
            form.shape.push_back(load_little<std::int64_t>(a.data() + dtype_text_size + 8 * (d + 1)));
        }
        if (form.dtype.is_variable() || form.dtype.kind() == Kind::object || form.dtype.kind() == Kind::structure ||
            form.bytes() > std::numeric_limits<std::uint32_t>::max()) {
            return {};
        }
        return form;
    } catch (const Error&) {
        return {};
    }
}

std::optional<Form> record_form(const MldfField& field, const std::byte* record) {
    const std::byte* tail = record + pointer_size;
    switch (field.type) {
        case MldfType::image_raw:
            if (tail[5] != std::byte{0}) return {};  // stored as JPEG or PNG
            return Form{"|u1",
                        {load_little<std::uint16_t>(tail), load_little<std::uint16_t>(tail + 2),
                         load_little<std::uint8_t>(tail + 4)}};
        case MldfType::audio_waveform: {
            const auto bits = load_little<std::uint8_t>(tail + 10);
            if (tail[11] != std::byte{0} || (bits != 16 && bits != 32)) return {};
            return Form{bits == 16 ? "<i2" : "<i4",
                        {load_little<std::uint32_t>(tail), load_little<std::uint16_t>(tail + 8)},
                        load_little<std::uint32_t>(tail + 4)};
        }
        case MldfType::text_tokenized: {
            const auto encoding = load_little<std::uint8_t>(tail + 2);
            if (encoding != 1 && encoding != 2) return {};
            const DType dtype = encoding == 1 ? "<i4" : "<i2";
            return Form{dtype, {static_cast<std::int64_t>(pointer_of(record).size) / dtype.size()}};
        }
        default:
            return {};
    }
}

bool all_zero(ByteSpan bytes) {
    return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; });
}

std::uint32_t crc32_after(std::uint32_t crc, ByteSpan bytes) {
    // z_size is 64 bits wide if size_t is. A null pointer would mean something else to zlib.
    if (bytes.empty()) return crc;
    return static_cast<std::uint32_t>(crc32_z(crc, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

std::uint64_t complete_fields(std::vector<MldfField>& fields, const std::string& file) {
    if (fields.size() > std::numeric_limits<std::uint16_t>::max()) {
        throw unsupported("{}: {} fields; MLDF holds at most 65535", file, fields.size());
    }
    std::set<std::string_view> names;
    std::uint64_t end = 0;
    for (MldfField& field : fields) {
        if (!from_utf8(field.name) || field.name.find('\0') != std::string::npos) {
            throw invalid_argument("{}: a field's name is not UTF-8 or holds a NUL", file);
        }
        if (field.name.size() >= name_size) {
            std::size_t cut = name_size - 1;
            while ((static_cast<unsigned char>(field.name[cut]) & 0xC0U) == 0x80U) --cut;  // inside a character
            field.name.resize(cut);
        }
        if (!names.insert(field.name).second) {
            throw invalid_argument("{}: two fields are called '{}' (names are cut to {} bytes)", file, field.name,
                                   name_size - 1);
        }
        const TypeRow& row = type_row(field.type);
        if (field.metadata_size == 0) field.metadata_size = row.metadata_size;
        const bool open = row.record == TypeRow::Record::open;
        if (field.metadata_size % 8 != 0 || (!open && field.metadata_size != row.metadata_size)) {
            throw invalid_argument("{}: records of {} bytes for field '{}' of type {}; {} are right", file,
                                   field.metadata_size, field.name, mldf_type_name(field.type),
                                   open ? "multiples of 8" : std::to_string(row.metadata_size));
        }
        if (field.arguments.size() > arguments_size) {
            throw invalid_argument("{}: field '{}' has {} bytes of arguments; at most {} fit", file, field.name,
                                   field.arguments.size(), arguments_size);
        }
        field.row_offset = end;  // every record is a multiple of 8, and so every offset is
        end += field.metadata_size;
    }
    return end;
}

MldfHeader lay_out(const std::vector<MldfField>& fields, std::uint64_t samples, std::uint64_t row_size,
                   const MldfWriteOptions& options) {
    if (options.page_size == 0) throw invalid_argument("an MLDF page size of 0; the usual one is 2097152");
    const auto add = [](std::uint64_t a, std::uint64_t b) {
        return static_cast<std::uint64_t>(
            checked_add(static_cast<std::int64_t>(a), static_cast<std::int64_t>(b), "MLDF file size"));
    };
    const auto table = static_cast<std::uint64_t>(checked_multiply(
        static_cast<std::int64_t>(samples), static_cast<std::int64_t>(row_size), "MLDF metadata table size"));
    MldfHeader h;
    h.num_samples = samples;
    h.num_fields = static_cast<std::uint16_t>(fields.size());
    h.page_size = options.page_size;
    h.field_desc_ptr = front_size;
    h.metadata_ptr = round_up(front_size + fields.size() * descriptor_size, table_alignment);
    const std::uint64_t end = add(h.metadata_ptr, table);
    static_cast<void>(add(end, options.page_size));
    h.data_ptr = round_up(end, options.page_size);
    return h;
}

Buffer front_bytes(const MldfHeader& header, const std::vector<MldfField>& fields) {
    Buffer bytes(header.metadata_ptr);
    std::fill(bytes.span().begin(), bytes.span().end(), std::byte{0});
    std::memcpy(bytes.data(), magic.data(), magic.size());
    std::byte* h = bytes.data() + magic.size();
    store_little(h, header.version_major);
    store_little(h + 2, header.version_minor);
    store_little(h + 4, header.flags);
    store_little(h + 8, header.num_samples);
    store_little(h + 16, header.num_fields);
    store_little(h + 20, header.page_size);
    store_little(h + 24, header.field_desc_ptr);
    store_little(h + 32, header.metadata_ptr);
    store_little(h + 40, header.data_ptr);
    store_little(h + 48, header.alloc_table_ptr);
    store_little(h + 56, header.checksum);
    std::byte* d = bytes.data() + front_size;
    for (const MldfField& field : fields) {
        std::memcpy(d, field.name.data(), field.name.size());
        store_little(d + 64, static_cast<std::uint16_t>(field.type));
        store_little(d + 66, field.flags);
        store_little(d + 68, field.metadata_size);
        std::copy(field.arguments.begin(), field.arguments.end(), d + 76);
        d += descriptor_size;
    }
    return bytes;
}

}  // namespace mldf

std::string mldf_type_name(MldfType type) {
    const std::string_view name = mldf::type_row(type).name;
    return name.empty() ? fmt::format("unknown type {}", static_cast<unsigned>(type)) : std::string(name);
}

MldfField mldf_ndarray_field(std::string name, const DType& dtype, const Shape& shape) {
    const DType little = dtype.order() == ByteOrder::big ? dtype.with_order(ByteOrder::little) : dtype;
    const std::string text = little.str();
    if (little.kind() == Kind::structure || little.kind() == Kind::object || little.is_variable() ||
        text.size() > mldf::dtype_text_size || shape.size() > mldf::most_dimensions) {
        throw unsupported(
            "MLDF field '{}': {} of shape {} does not fit the {} bytes in which the format "
            "describes an array",
            name, dtype.to_string(), shape.to_string(), mldf::arguments_size);
    }
    MldfField field{.name = std::move(name), .type = MldfType::ndarray};
    field.arguments.resize(mldf::dtype_text_size + 8 * (1 + shape.size()));
    std::memcpy(field.arguments.data(), text.data(), text.size());
    std::byte* p = field.arguments.data() + mldf::dtype_text_size;
    store_little(p, static_cast<std::uint64_t>(shape.rank()));
    for (const std::int64_t n : shape) store_little(p += 8, n);
    return field;
}

}  // namespace tessera
