// Safetensors as a format of array files: a length of 8 bytes, that much JSON, and packed tensors.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <tessera/error_text.h>
#include <tessera/little_endian.h>
#include <tessera/memory_account.h>

#include <algorithm>
#include <array>
#include <utility>

#include "array_file_row.h"
#include "plain_file.h"

namespace tessera {

namespace {

constexpr std::string_view metadata_key = "__metadata__";
constexpr std::uint64_t most_header_bytes = 100'000'000;  // as in Hugging Face's reader
constexpr std::uint64_t length_bytes = 8;

/// A type's name in a header.
struct TensorType {
    std::string_view name;
    Kind kind;
    std::int64_t size;
};
constexpr std::array tensor_types{
    TensorType{"BOOL", Kind::boolean, 1},
    TensorType{"U8", Kind::unsigned_integer, 1},
    TensorType{"I8", Kind::integer, 1},
    TensorType{"I16", Kind::integer, 2},
    TensorType{"U16", Kind::unsigned_integer, 2},
    TensorType{"F16", Kind::real, 2},
    TensorType{"BF16", Kind::bfloat16, 2},
    TensorType{"I32", Kind::integer, 4},
    TensorType{"U32", Kind::unsigned_integer, 4},
    TensorType{"F32", Kind::real, 4},
    TensorType{"F64", Kind::real, 8},
    TensorType{"I64", Kind::integer, 8},
    TensorType{"U64", Kind::unsigned_integer, 8},
    TensorType{"C64", Kind::complex, 8},
};

struct Tensor {
    std::string name;
    std::string type;
    std::optional<DType> dtype;  ///< nullopt for types without a dtype, such as F8_E4M3
    Shape shape;
    std::uint64_t begin = 0, end = 0;  ///< after the header
};

struct SafetensorsHeader {
    std::uint64_t data_offset = 0;
    std::vector<Tensor> tensors;
    Value metadata = Value::object();
    MemoryHold held;  ///< memory of all of this

    [[nodiscard]] const Tensor& find(const ArrayPath& path) const {
        std::vector<std::string> names;
        for (const Tensor& tensor : tensors) names.push_back(tensor.name);
        const std::string name = chosen_member(path, names);
        const auto found = std::ranges::find(tensors, name, &Tensor::name);
        if (found == tensors.end()) throw not_found("{} has no tensor '{}'", path.path.string(), name);
        return *found;
    }
};

Tensor parse_tensor(const std::string& name, const Value& facts, std::uint64_t data_bytes) {
    Tensor tensor{.name = name, .type = facts.at("dtype").as_string(), .dtype = {}, .shape = {}};
    std::vector<std::int64_t> lengths;
    for (const Value& length : facts.at("shape").as_array()) lengths.push_back(length.as_int64());
    tensor.shape = parse_shape(fmt::format("({})", fmt::join(lengths, ",")));
    const Value::Array& offsets = facts.at("data_offsets").as_array();
    if (offsets.size() != 2) throw corrupt("data_offsets has {} numbers, not 2", offsets.size());
    tensor.begin = offsets[0].as_uint64();
    tensor.end = offsets[1].as_uint64();
    if (tensor.begin > tensor.end || tensor.end > data_bytes) {
        throw corrupt("its data are said to be the bytes {} to {} of {}", tensor.begin, tensor.end, data_bytes);
    }
    const auto type = std::ranges::find(tensor_types, tensor.type, &TensorType::name);
    if (type == tensor_types.end()) return tensor;
    tensor.dtype = DType::scalar(type->kind, type->size, type->size == 1 ? ByteOrder::none : ByteOrder::little);
    const auto needed = static_cast<std::uint64_t>(byte_count(tensor.shape, type->size));
    if (needed != tensor.end - tensor.begin) {
        throw corrupt("shape {} of {} needs {} bytes, but its data have {}", tensor.shape.to_string(), tensor.type,
                      needed, tensor.end - tensor.begin);
    }
    return tensor;
}

SafetensorsHeader parse_safetensors(const ByteSource& file) {
    if (file.size() < length_bytes) throw corrupt("it has {} bytes, too few for a header", file.size());
    std::array<std::byte, length_bytes> prefix{};
    file.read(0, prefix);
    const auto length = load_little<std::uint64_t>(prefix.data());
    if (length > most_header_bytes || length > file.size() - length_bytes) {
        throw corrupt("the header is said to have {} bytes; the file has {}, and at most {} are read", length,
                      file.size(), most_header_bytes);
    }
    SafetensorsHeader header;
    header.data_offset = length_bytes + length;
    header.held.add(40 * length);  // the text, its JSON and the tensors
    const Buffer text = read_range(file, length_bytes, length);
    const Value json = Value::parse({reinterpret_cast<const char*>(text.data()), text.size()});
    for (const auto& [name, facts] : json.as_object()) {
        if (name == metadata_key) {
            header.metadata = facts;
            (void)header.metadata.as_object();
            continue;
        }
        header.tensors.push_back(in_context(
            [&name = name] { return fmt::format("tensor '{}'", name); },
            [&, &name = name, &facts = facts] { return parse_tensor(name, facts, file.size() - header.data_offset); }));
    }
    std::ranges::stable_sort(header.tensors, {}, &Tensor::begin);
    return header;
}

SafetensorsHeader read_safetensors(const ByteSource& file) {
    return in_context([&] { return file.name(); },
                      [&] {
                          try {
                              return parse_safetensors(file);
                          } catch (const Error& e) {
                              // A missing member or one of another kind is damage here.
                              throw e.code() == ErrorCode::invalid_argument || e.code() == ErrorCode::not_found
                                  ? corrupt(e.what())
                                  : e;
                          }
                      });
}

/// New tensors: the header is known before any element.
class SafetensorsWriter {
public:
    SafetensorsWriter(const std::filesystem::path& path, bool durable, const Value& metadata)
        : file_(create_file(path, durable)) {
        Value texts = Value::object();
        for (const auto& [name, value] : metadata.as_object()) {
            texts.set(name, value.is_string() ? value.as_string() : value.dump());
        }
        if (!texts.as_object().empty()) json_.set(metadata_key, std::move(texts));
    }

    void add(const std::string& name, const DType& dtype, const Shape& shape) {
        const auto type = std::ranges::find_if(
            tensor_types, [&](const TensorType& t) { return t.kind == dtype.kind() && t.size == dtype.size(); });
        if (type == tensor_types.end()) {
            throw unsupported("{}: a safetensors file has no elements of type {}", name, dtype.to_string());
        }
        if (name.empty() || name == metadata_key) throw invalid_argument("'{}' cannot be the name of a tensor", name);
        tensors_.push_back({name, std::string(type->name), dtype, shape});
    }

    /// Sets the places of all tensors and writes the header. Large elements come first, so that all are aligned.
    void begin() {
        std::ranges::stable_sort(tensors_, std::greater(), [](const Tensor& t) { return t.dtype->size(); });
        std::uint64_t at = 0;
        for (Tensor& tensor : tensors_) {
            tensor.begin = at;
            at += static_cast<std::uint64_t>(byte_count(tensor.shape, tensor.dtype->size()));
            tensor.end = at;
            Value facts = Value::object();
            facts.set("dtype", tensor.type);
            facts.set("shape", Value::Array(tensor.shape.begin(), tensor.shape.end()));
            facts.set("data_offsets", Value::Array{Value(tensor.begin), Value(tensor.end)});
            json_.set(tensor.name, std::move(facts));
        }
        std::string text = json_.dump();
        text.append((length_bytes - text.size() % length_bytes) % length_bytes, ' ');
        if (text.size() > most_header_bytes) throw unsupported("{} tensors have too long a header", tensors_.size());
        std::array<std::byte, length_bytes> prefix{};
        store_little(prefix.data(), static_cast<std::uint64_t>(text.size()));
        file_->append(prefix);
        file_->append(std::as_bytes(std::span(text)));
        data_offset_ = length_bytes + text.size();
        if (at > 0) file_->write_at(data_offset_ + at - 1, std::array{std::byte{0}});
    }

    [[nodiscard]] std::unique_ptr<ArraySink> open(const std::string& name) {
        const auto tensor = std::ranges::find(tensors_, name, &Tensor::name);
        const ByteOrder order = tensor->dtype->size() == 1 ? ByteOrder::none : ByteOrder::little;
        return part_sink(*file_, {.name = fmt::format("{}::{}", file_->name(), name),
                                  .data_offset = data_offset_ + tensor->begin,
                                  .dtype = DType::scalar(tensor->dtype->kind(), tensor->dtype->size(), order),
                                  .shape = tensor->shape});
    }

    void finish() { file_->finish(); }

private:
    std::unique_ptr<ByteSink> file_;
    Value json_ = Value::object();
    std::vector<Tensor> tensors_;
    std::uint64_t data_offset_ = 0;
};

/// A new file of one tensor.
class SafetensorsSink final : public ArraySink {
public:
    SafetensorsSink(const ArrayPath& path, const DType& dtype, const Shape& shape, const ArrayFileOptions& options)
        : writer_(path.path, options.durable, Value::object()) {
        const std::string name = path.member.value_or("data");
        writer_.add(name, dtype, shape);
        writer_.begin();
        tensor_ = writer_.open(name);
    }
    ArrayInfo info() const override { return tensor_->info(); }
    const std::string& name() const override { return tensor_->name(); }
    void write(const Region& region, const ArrayView& in, const IoOptions& io) override {
        tensor_->write(region, in, io);
    }
    void finish() override { writer_.finish(); }

private:
    SafetensorsWriter writer_;
    std::unique_ptr<ArraySink> tensor_;
};

bool safetensors_recognise(ByteSpan first) {
    constexpr std::size_t least = length_bytes + 2;
    return first.size() >= least && load_little<std::uint64_t>(first.data()) <= most_header_bytes &&
           (starts_with(first.subspan(length_bytes), "{\"") || starts_with(first.subspan(length_bytes), "{}"));
}

std::vector<std::string> safetensors_list(const ArrayPath& path) {
    std::vector<std::string> names;
    for (Tensor& tensor : read_safetensors(*path.bytes()).tensors) names.push_back(std::move(tensor.name));
    return names;
}

std::vector<ArrayFileGroup> safetensors_groups(const ArrayPath& path) {
    return {{"", read_safetensors(*path.bytes()).metadata}};
}

std::unique_ptr<ArraySource> safetensors_open(const ArrayPath& path, const ArrayFileOptions& /*options*/) {
    const std::shared_ptr<const ByteSource> file = path.bytes();
    const SafetensorsHeader header = read_safetensors(*file);
    const Tensor& tensor = header.find(path);
    const std::string name = fmt::format("{}::{}", path.path.string(), tensor.name);
    if (!tensor.dtype) throw unsupported("{}: there is no dtype for elements of type {}", name, tensor.type);
    return plain_source(file, {name, header.data_offset + tensor.begin, *tensor.dtype, tensor.shape});
}

std::unique_ptr<ArraySink> safetensors_create(const ArrayPath& path, const DType& dtype, const Shape& shape,
                                              const ArrayFileOptions& options) {
    return std::make_unique<SafetensorsSink>(path, dtype, shape, options);
}

Value safetensors_describe(const ArrayPath& path) {
    const SafetensorsHeader header = read_safetensors(*path.bytes());
    Value facts = Value::object();
    facts.set("format", "safetensors");
    facts.set("data_offset", header.data_offset);
    if (!path.member) {
        facts.set("metadata", header.metadata);
        return facts;
    }
    const Tensor& tensor = header.find(path);
    facts.set("type", tensor.type);
    facts.set("data_offsets", Value::Array{Value(tensor.begin), Value(tensor.end)});
    return facts;
}

std::vector<PackedArray> safetensors_packed(const ArrayPath& path) {
    const SafetensorsHeader header = read_safetensors(*path.bytes());
    std::vector<PackedArray> arrays;
    for (const Tensor& tensor : header.tensors) {
        if (path.member && tensor.name != *path.member) continue;
        if (!tensor.dtype) throw unsupported("{}: there is no dtype for elements of type {}", tensor.name, tensor.type);
        arrays.push_back({tensor.name, *tensor.dtype, tensor.shape, header.data_offset + tensor.begin});
    }
    return arrays;
}

/// The header says all that can be wrong; elements have no checksums. Tensors lie side by side without holes.
void safetensors_check(const ArrayPath& path, ArrayFileChecker& checker) {
    const std::shared_ptr<const ByteSource> file = path.bytes();
    const SafetensorsHeader header = read_safetensors(*file);
    std::uint64_t at = 0;
    for (const Tensor& tensor : header.tensors) {
        if (tensor.begin != at) {
            checker.damage(fmt::format("tensor '{}' begins at byte {} of the data; {} was expected", tensor.name,
                                       tensor.begin, at));
        }
        at = std::max(at, tensor.end);
    }
    if (const std::uint64_t left = file->size() - header.data_offset - at; left != 0) {
        checker.damage(fmt::format("{} bytes after the last tensor belong to none", left));
    }
    checker.read_bytes(*file);
    checker.count_arrays(std::ssize(header.tensors));
}

void safetensors_bundle(const std::filesystem::path& path, const ArrayBundle& bundle, const ArrayFileOptions& options,
                        const IoOptions& /*io*/) {
    const auto root = std::ranges::find(bundle.groups, "", &ArrayFileGroup::name);
    SafetensorsWriter writer(path, options.durable, root == bundle.groups.end() ? Value::object() : root->attributes);
    for (const std::string& name : bundle.names) {
        const ArrayInfo info = bundle.open(name)->info();
        writer.add(name, info.dtype, info.shape);
    }
    writer.begin();
    for (const std::string& name : bundle.names) {
        const std::unique_ptr<ArraySource> source = bundle.open(name);
        const std::unique_ptr<ArraySink> sink = writer.open(name);
        bundle.copy(*source, *sink);
        bundle.made(name, source->info());
    }
    writer.finish();
}

}  // namespace

extern constinit const ArrayFileFormat safetensors_format{
    .name = "safetensors",
    .extension = ".safetensors",
    .about = "tensors of models, by Hugging Face",
    .ranged = true,
    .recognise = safetensors_recognise,
    .members = safetensors_list,
    .groups = safetensors_groups,
    .packed = safetensors_packed,
    .open = safetensors_open,
    .create = safetensors_create,
    .describe = safetensors_describe,
    .check = safetensors_check,
    .bundle = safetensors_bundle,
};

}  // namespace tessera
