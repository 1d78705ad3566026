// Arrays as MLDF files: one field as a sink, and a data set of many.
#include <algorithm>

#include <tessera/element.h>
#include <tessera/error_text.h>

#include "mldf_format.h"
#include "plain_array.h"

namespace tessera {

namespace {

using namespace mldf;
namespace fs = std::filesystem;

/// Fixed-size elements: all positions in the file are known in advance, so regions may come in any order.
class FieldSink final : public ArraySink {
public:
    FieldSink(const fs::path& path, MldfField field, const DType& dtype, const Shape& shape,
              const MldfWriteOptions& options)
        : fields_{std::move(field)}, info_{.dtype = dtype, .shape = shape, .chunks = {}} {
        const std::uint64_t row_size = complete_fields(fields_, path.string());
        const bool pointers = fields_[0].type == MldfType::ndarray;
        const std::int64_t samples = shape[0], bytes = byte_count(shape, dtype.size());
        sample_bytes_ = pointers && samples > 0 ? static_cast<std::uint64_t>(bytes / samples) : 0;
        if (sample_bytes_ > most_payload_bytes) {
            throw unsupported("{}: a sample of {} bytes; MLDF holds less than 4 GiB", path.string(), sample_bytes_);
        }
        static_cast<void>(checked_multiply(samples, 64, "MLDF table size"));
        header_ = lay_out(fields_, static_cast<std::uint64_t>(samples), row_size, options);
        header_.alloc_table_ptr = header_.data_ptr + (pointers ? static_cast<std::uint64_t>(bytes) : 0);
        sink_ = create_file(path, options.durable);
        const DType little = dtype.order() == ByteOrder::big ? dtype.with_order(ByteOrder::little) : dtype;
        layout_ = {sink_->name(), pointers ? header_.data_ptr : header_.metadata_ptr, little, shape};
        sink_->append(front_bytes(header_, fields_));
        // A last byte gives each section its length; unwritten parts stay holes, which read as zeros.
        const auto reserve = [&](std::uint64_t end) { sink_->write_at(end - 1, std::array{std::byte{0}}); };
        if (samples > 0) reserve(header_.metadata_ptr + header_.num_samples * row_size);
        if (bytes > 0) reserve(layout_.data_offset + static_cast<std::uint64_t>(bytes));
    }
    ArrayInfo info() const override { return info_; }
    const std::string& name() const override { return sink_->name(); }
    void write(const Region& region, const ArrayView& in, const IoOptions& io) override {
        write_plain(layout_, region, in, false, io,
                    [&](std::uint64_t offset, ByteSpan bytes) { sink_->write_at(offset, bytes); });
    }
    void finish() override {
        if (sample_bytes_ > 0) {
            write_pointers(header_.metadata_ptr);  // the record of such a field is as long as an allocation
            write_pointers(header_.alloc_table_ptr);
        }
        sink_->finish();
    }

private:
    void write_pointers(std::uint64_t at) {
        constexpr std::uint64_t step = block_bytes / allocation_size;
        Buffer block;
        for (std::uint64_t i = 0; i < header_.num_samples; i += step) {
            const std::uint64_t n = std::min(step, header_.num_samples - i);
            block.reset(n * allocation_size);
            std::fill(block.span().begin(), block.span().end(), std::byte{0});
            for (std::uint64_t k = 0; k < n; ++k) {
                store_pointer(block.data() + k * allocation_size, header_.data_ptr + (i + k) * sample_bytes_,
                              sample_bytes_);
            }
            sink_->write_at(at + i * allocation_size, block);
        }
    }

    std::vector<MldfField> fields_;
    ArrayInfo info_;
    MldfHeader header_;
    std::uint64_t sample_bytes_ = 0;  // of a payload; 0 without payloads
    std::unique_ptr<ByteSink> sink_;
    PlainLayout layout_;
};

/// Variable-length elements, in order.
class VariableFieldSink final : public ArraySink {
public:
    VariableFieldSink(const fs::path& path, MldfField field, const DType& dtype, const Shape& shape,
                      const MldfWriteOptions& options)
        : name_(path.string()),
          info_{.dtype = dtype, .shape = shape, .chunks = {}, .access = Access::stream},
          writer_(path, {std::move(field)}, options) {}
    ArrayInfo info() const override { return info_; }
    const std::string& name() const override { return name_; }
    void write(const Region& region, const ArrayView& in, const IoOptions&) override {
        require_inside(region, info_.shape);
        if (!(in.shape == region.extent) || !(in.dtype == info_.dtype) || region.start[0] < next_) {
            throw invalid_argument("{}: region {} of {} cannot follow element {} of {}", name_, region.to_string(),
                                   in.dtype.to_string(), next_, info_.dtype.to_string());
        }
        skip_to(region.start[0]);
        for (std::int64_t i = 0; i < in.shape[0]; ++i) {
            VariableSlot slot;
            std::memcpy(&slot, in.data + i * in.strides[0], sizeof slot);
            writer_.put_bytes(0, std::as_bytes(std::span(slot.data, slot.size)));
            skip_to(next_ + 1);
        }
    }
    void finish() override {
        skip_to(info_.shape[0]);
        writer_.finish();
    }

private:
    void skip_to(std::int64_t sample) {
        for (; next_ < sample; ++next_) writer_.end_sample();
    }

    std::string name_;
    ArrayInfo info_;
    MldfWriter writer_;
    std::int64_t next_ = 0;
};

Shape without_first(const Shape& shape) {
    return Shape(std::span<const std::int64_t>(shape).subspan(1));
}

/// The field that an array of this dtype and shape becomes.
MldfField field_for(std::string name, const DType& dtype, const Shape& shape) {
    if (shape.empty()) {
        throw unsupported("MLDF field '{}': a 0-d array has no dimension to be the samples", name);
    }
    MldfField field{.name = std::move(name)};
    if (dtype.is_variable()) {
        if (shape.rank() != 1) {
            throw unsupported("MLDF field '{}': variable-length elements of shape {}; a sample holds one", field.name,
                              shape.to_string());
        }
        field.type = dtype.kind() == Kind::variable_text ? MldfType::text_raw : MldfType::bytes;
    } else if (shape.rank() == 1 && dtype.kind() == Kind::integer && dtype.size() == 8) {
        field.type = MldfType::integer;
    } else if (shape.rank() == 1 && dtype.kind() == Kind::real && dtype.size() == 8) {
        field.type = MldfType::real;
    } else {
        return mldf_ndarray_field(std::move(field.name), dtype, without_first(shape));
    }
    return field;
}

constexpr std::uint64_t default_memory = std::uint64_t{256} << 20;

/// A column and the field that it becomes.
struct Plan {
    const ArraySource* source = nullptr;
    const ArraySource* tails = nullptr;  ///< of the records, for fields whose samples are bytes
    MldfField field = {};
    enum class Kind : std::uint8_t { integer, real, array, bytes, record } kind = Kind::array;
    std::uint32_t sample_rate = 0;
    std::uint64_t place = std::numeric_limits<std::uint64_t>::max();  ///< in the file it came from
};

/// The member of the attribute "mldf" as a number; nullopt if absent.
std::optional<std::uint64_t> number_in(const Value& facts, std::string_view key) {
    const Value* value = facts.find(key);
    return value == nullptr ? std::nullopt : std::optional(value->as_uint64());
}

Value facts_of(const ArraySource& source) {
    const Value attributes = source.attribute_values();
    const Value* facts = attributes.is_object() ? attributes.find("mldf") : nullptr;
    return facts != nullptr && facts->is_object() ? *facts : Value::object();
}

/// Makes the plan one for `type`; false when arrays like this one are not of that type.
bool take_type(Plan& plan, MldfType type, const ArrayInfo& info) {
    const auto is = [&](Kind kind, std::int64_t size) {
        return info.dtype.kind() == kind && info.dtype.size() == size;
    };
    const int rank = info.shape.rank();
    const auto fits = [&](int d, std::int64_t most) { return info.shape[d] <= most; };
    const TypeRow& row = type_row(type);
    MldfField field{.name = plan.field.name, .type = type};
    if (info.dtype.kind() == Kind::variable_bytes && row.record != TypeRow::Record::value &&
        type != MldfType::ndarray && type != MldfType::text_raw && type != MldfType::json) {
        field.metadata_size = row.metadata_size;
        if (plan.tails != nullptr) {
            field.metadata_size = static_cast<std::uint32_t>(plan.tails->info().dtype.size() + pointer_size);
            if (field.metadata_size % 8 != 0 || !plan.tails->info().dtype.equal_but_order(tail_dtype(field)))
                return false;
        } else if (row.record == TypeRow::Record::pointer && type != MldfType::bytes) {
            return false;  // a picture needs height and width
        }
        plan.kind = Plan::Kind::bytes;
    } else if (info.dtype.kind() == Kind::variable_text) {
        if (type != MldfType::text_raw && type != MldfType::json) return false;
        plan.kind = Plan::Kind::bytes;
    } else if (row.record == TypeRow::Record::open && rank == 1 && is(Kind::raw, info.dtype.size()) &&
               info.dtype.size() % 8 == 0 && info.dtype.size() > 0) {
        field.metadata_size = static_cast<std::uint32_t>(info.dtype.size());
        plan.kind = Plan::Kind::record;
    } else {
        const bool image = type == MldfType::image_raw && rank == 4 && is(Kind::unsigned_integer, 1) &&
                           fits(1, 0xFFFF) && fits(2, 0xFFFF) && fits(3, 0xFF);
        const bool sound = type == MldfType::audio_waveform && rank == 3 && fits(2, 0xFFFF) &&
                           (is(Kind::integer, 2) || is(Kind::integer, 4));
        const bool tokens =
            type == MldfType::text_tokenized && rank == 2 && (is(Kind::integer, 2) || is(Kind::integer, 4));
        if (!image && !sound && !tokens) return false;
        plan.kind = Plan::Kind::array;
    }
    plan.field = std::move(field);
    return true;
}

Plan plan_column(const MldfColumn& column, const ArraySource* tails) {
    const ArrayInfo info = column.source->info();
    Plan plan{.source = column.source, .field = field_for(column.name, info.dtype, info.shape)};
    switch (plan.field.type) {
        case MldfType::integer:
            plan.kind = Plan::Kind::integer;
            break;
        case MldfType::real:
            plan.kind = Plan::Kind::real;
            break;
        case MldfType::ndarray:
            plan.kind = Plan::Kind::array;
            break;
        default:
            plan.kind = Plan::Kind::bytes;
    }
    const Value facts = facts_of(*column.source);
    const auto id = number_in(facts, "type_id");
    const MldfType by_default = plan.field.type;
    const MldfType type = column.type.value_or(id ? MldfType{static_cast<std::uint16_t>(*id)} : by_default);
    plan.tails = tails;
    if (type != by_default && !take_type(plan, type, info) && column.type) {
        throw invalid_argument("column '{}': {} of shape {} cannot be a field of type {}", column.name,
                               info.dtype.to_string(), info.shape.to_string(), mldf_type_name(type));
    }
    if (tails != nullptr && (plan.kind != Plan::Kind::bytes || plan.field.type == by_default)) {
        throw invalid_argument("column '{}': the records in {} do not fit a field of type {}", column.name,
                               tails->name(), mldf_type_name(type));
    }
    plan.place = number_in(facts, "field").value_or(plan.place);
    if (id && plan.field.type == MldfType{static_cast<std::uint16_t>(*id)}) {
        plan.sample_rate = static_cast<std::uint32_t>(number_in(facts, "sample_rate").value_or(0));
        plan.field.flags = static_cast<std::uint16_t>(number_in(facts, "flags").value_or(0));
        if (const Value* hex = facts.find("arguments_hex")) {
            const auto size = static_cast<std::int64_t>(hex->as_string().size() / 2);
            plan.field.arguments = element_from_value(DType::raw(size), "0x" + hex->as_string(), Assign::exact);
        }
    }
    return plan;
}

/// The fields of the data set, in order. Columns of records belong to the field that they describe.
std::vector<Plan> plan_columns(std::span<const MldfColumn> columns) {
    const auto subject_of = [&](const MldfColumn& records) -> const MldfColumn* {
        const Value facts = facts_of(*records.source);
        const Value* subject = facts.find("record_of");
        if (subject == nullptr || !subject->is_string()) return nullptr;
        const auto c = std::find_if(columns.begin(), columns.end(),
                                    [&](const MldfColumn& other) { return other.name == subject->as_string(); });
        return c == columns.end() ? nullptr : &*c;
    };
    std::vector<Plan> plans;
    for (const MldfColumn& column : columns) {
        if (subject_of(column) != nullptr) continue;
        const auto records = std::find_if(columns.begin(), columns.end(),
                                          [&](const MldfColumn& other) { return subject_of(other) == &column; });
        plans.push_back(plan_column(column, records == columns.end() ? nullptr : records->source));
    }
    std::stable_sort(plans.begin(), plans.end(), [](const Plan& a, const Plan& b) { return a.place < b.place; });
    return plans;
}

Shape block_shape(const Shape& shape, std::int64_t samples) {
    Shape block = shape;
    block[0] = samples;
    return block;
}

/// Samples [first, first + n) of a column in memory.
NDArray read_samples(const ArraySource& source, std::int64_t first, std::int64_t n, const IoOptions& io) {
    const ArrayInfo info = source.info();
    Region region = Region::whole(block_shape(info.shape, n));
    region.start[0] = first;
    const bool swapped = info.dtype.order() != ByteOrder::none && info.dtype.order() != native_order;
    NDArray block(swapped ? info.dtype.with_order(native_order) : info.dtype, region.extent);
    source.read_into(region, block.view(), io);
    return block;
}

/// The bytes of sample i of a block.
ByteSpan sample_bytes(const NDArray& block, std::int64_t i) {
    const std::size_t size = block.bytes().size() / static_cast<std::size_t>(block.shape()[0]);
    return block.bytes().subspan(static_cast<std::size_t>(i) * size, size);
}

void put_sample(MldfWriter& writer, std::size_t field, const Plan& plan, const NDArray& block, const NDArray& tails,
                std::int64_t i) {
    const ByteSpan bytes = sample_bytes(block, i);
    switch (plan.kind) {
        case Plan::Kind::integer:
            return writer.put(field, block.values<std::int64_t>()[static_cast<std::size_t>(i)]);
        case Plan::Kind::real:
            return writer.put(field, block.values<double>()[static_cast<std::size_t>(i)]);
        case Plan::Kind::array:
            return writer.put_array(field, view_bytes(bytes.data(), block.dtype(), without_first(block.shape())),
                                    plan.sample_rate);
        case Plan::Kind::record:
            return writer.put_record(field, bytes);
        case Plan::Kind::bytes: {
            VariableSlot slot;
            std::memcpy(&slot, bytes.data(), sizeof slot);
            return writer.put_bytes(field, std::as_bytes(std::span(slot.data, slot.size)),
                                    plan.tails == nullptr ? ByteSpan{} : sample_bytes(tails, i));
        }
    }
}

}  // namespace

std::unique_ptr<ArraySink> create_mldf(const fs::path& path, std::string_view field, const DType& dtype,
                                       const Shape& shape, const MldfWriteOptions& options) {
    MldfField f = field_for(std::string(field), dtype, shape);
    if (dtype.is_variable()) return std::make_unique<VariableFieldSink>(path, std::move(f), dtype, shape, options);
    if (options.checksum) {
        throw unsupported("{}: the checksum of a field that is written in any order; use write_mldf", path.string());
    }
    return std::make_unique<FieldSink>(path, std::move(f), dtype, shape, options);
}

namespace {

/// The common properties of a data set's columns.
struct Samples {
    std::int64_t count = 0;
    std::int64_t size = 0;        ///< bytes of one, as far as they are known before it is read
    std::int64_t chunk_rows = 1;  ///< the longest chunk
    bool variable = false;        ///< elements have various lengths
};

Samples samples_of(const fs::path& path, const std::vector<Plan>& plans) {
    std::vector<const ArraySource*> sources;
    for (const Plan& plan : plans) {
        sources.push_back(plan.source);
        if (plan.tails != nullptr) sources.push_back(plan.tails);
    }
    Samples all{.count = plans[0].source->info().shape[0]};
    for (const ArraySource* source : sources) {
        const ArrayInfo info = source->info();
        if (info.shape.empty() || info.shape[0] != all.count) {
            throw invalid_argument("{}: {} has shape {}, {} has {} samples; the first lengths must be equal",
                                   path.string(), source->name(), info.shape.to_string(), sources[0]->name(),
                                   all.count);
        }
        all.size = checked_add(all.size, byte_count(block_shape(info.shape, 1), info.dtype.size()), "sample size");
        if (!info.chunks.empty()) all.chunk_rows = std::max(all.chunk_rows, info.chunks[0]);
        all.variable = all.variable || info.dtype.is_variable();
    }
    return all;
}

/// Writes `n` samples from `first` on; returns the bytes that they took.
std::int64_t write_samples(MldfWriter& writer, const std::vector<Plan>& plans, std::int64_t first, std::int64_t n,
                           const IoOptions& io) {
    std::vector<NDArray> blocks;
    std::vector<NDArray> tails;
    std::int64_t of_variable = 0;
    for (const Plan& plan : plans) {
        blocks.push_back(read_samples(*plan.source, first, n, io));
        tails.push_back(plan.tails == nullptr ? NDArray() : read_samples(*plan.tails, first, n, io));
        if (const Arena* arena = blocks.back().view().arena) of_variable += static_cast<std::int64_t>(arena->bytes());
    }
    for (std::int64_t i = 0; i < n; ++i) {
        for (std::size_t f = 0; f < plans.size(); ++f) put_sample(writer, f, plans[f], blocks[f], tails[f], i);
        writer.end_sample();
    }
    return of_variable;
}

}  // namespace

void write_mldf(const fs::path& path, std::span<const MldfColumn> columns, const MldfWriteOptions& options,
                const IoOptions& io) {
    const std::vector<Plan> plans = plan_columns(columns);
    if (plans.empty()) throw invalid_argument("{}: no column to write", path.string());
    const Samples all = samples_of(path, plans);
    const auto budget = static_cast<std::int64_t>(io.max_memory == 0 ? default_memory : io.max_memory);
    if (all.size > budget) {
        throw over_budget("{}: one sample has {} bytes, more than the {} that may be held", path.string(), all.size,
                          budget);
    }
    if (io.progress != nullptr) io.progress->start(checked_multiply(all.count, all.size, "data set size"), "writing");
    std::vector<MldfField> fields;
    for (const Plan& plan : plans) fields.push_back(plan.field);
    MldfWriter writer(path, std::move(fields), options);
    // The length of variable-length elements shows only when they are read: begin with a few, then adapt to their size.
    constexpr std::int64_t first_step = 16;
    constexpr std::int64_t most_samples = 1 << 20;
    std::int64_t taken = all.variable ? std::max(all.size, budget / first_step) : all.size;
    for (std::int64_t first = 0, n = 0; first < all.count; first += n) {
        if (io.stop.stop_requested()) throw cancelled("{}: stopped on request", path.string());
        n = std::clamp<std::int64_t>(budget / std::max<std::int64_t>(taken, 1), 1, most_samples);
        if (n > all.chunk_rows) n -= (first + n) % all.chunk_rows;  // blocks end where chunks end
        n = std::min(n, all.count - first);
        const std::int64_t held = n * all.size + write_samples(writer, plans, first, n, io);
        // Twice the size seen so far, because the next samples may be longer.
        if (all.variable) taken = std::max(all.size, 2 * held / n);
        if (io.progress != nullptr) io.progress->advance(n * all.size);
    }
    writer.finish();
}

}  // namespace tessera
