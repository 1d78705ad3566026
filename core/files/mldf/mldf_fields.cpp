// The fields of an MLDF file as arrays.
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <tessera/copy_elements.h>
#include <tessera/element.h>
#include <tessera/error_text.h>

#include "mldf_format.h"
#include "plain_array.h"

namespace tessera {

namespace {

using namespace mldf;

/// Finds the arrays that the fields make. For most types that requires a look at every record.
class Survey {
public:
    explicit Survey(const MldfReader::State& s) : s_(s), seen_(s.fields.size()) {}

    std::vector<FieldArray> run() {
        for (std::size_t f = 0; f < seen_.size(); ++f) {
            seen_[f].form = s_.ndarray_forms[f];
            if (needs_survey(f)) surveyed_.push_back(f);
        }
        if (!surveyed_.empty()) {
            s_.each_row(0, s_.header.num_samples, [&](std::uint64_t sample, ByteSpan row) {
                for (const std::size_t f : surveyed_) look(sample, f, row);
            });
        }
        std::vector<FieldArray> arrays;
        for (std::size_t f = 0; f < seen_.size(); ++f) arrays.push_back(array_of(f));
        return arrays;
    }

private:
    struct Seen {
        std::optional<Form> form = {};
        bool mixed = false;     // shapes differ, or one sample has none
        bool pointers = false;  // of an open type: some record points to an allocation
        bool values = false;    // and some record does not
        std::string damage = {};
    };

    bool open(std::size_t f) const { return type_row(s_.fields[f].type).record == TypeRow::Record::open; }
    bool needs_survey(std::size_t f) const {
        switch (s_.fields[f].type) {
            case MldfType::ndarray:
            case MldfType::image_raw:
            case MldfType::audio_waveform:
            case MldfType::text_tokenized:
                return true;
            default:
                return open(f);
        }
    }

    void look(std::uint64_t sample, std::size_t f, ByteSpan row) {
        const MldfField& field = s_.fields[f];
        const ByteSpan record = row.subspan(field.row_offset, field.metadata_size);
        Seen& seen = seen_[f];
        if (all_zero(record)) return;
        if (open(f)) {
            if (seen.values) return;
            const MldfAllocation p = record.size() < pointer_size ? MldfAllocation{} : pointer_of(record.data());
            const bool points = p.size > 0 && s_.allocated_size(p.ptr, block_) == p.size;
            (points ? seen.pointers : seen.values) = true;
            return;
        }
        const bool by_arguments = field.type == MldfType::ndarray;
        const std::optional<Form> form = by_arguments ? s_.ndarray_forms[f] : record_form(field, record.data());
        const std::uint32_t size = pointer_of(record.data()).size;
        if (!form) {
            seen.mixed = true;
        } else if (static_cast<std::uint64_t>(form->bytes()) != size) {
            if (seen.damage.empty()) {
                seen.damage = fmt::format("{} has {} bytes, where {} of shape {} needs {}", s_.where(sample, f), size,
                                          form->dtype.to_string(), form->shape.to_string(), form->bytes());
            }
        } else if (!by_arguments && seen.form && !(*seen.form == *form)) {
            seen.mixed = true;
        } else {
            seen.form = form;
        }
    }

    FieldArray array_of(std::size_t f) const {
        const MldfField& field = s_.fields[f];
        const Seen& seen = seen_[f];
        using enum FieldArray::Kind;
        switch (field.type) {
            case MldfType::integer:
                return {value, "<i8"};
            case MldfType::real:
                return {value, "<f8"};
            case MldfType::text_raw:
            case MldfType::json:
                return {text, DType::variable_text()};
            default:
                break;
        }
        if (open(f) && (seen.values || !seen.pointers)) {
            return {value, DType::raw(static_cast<std::int64_t>(field.metadata_size))};
        }
        FieldArray array{bytes, DType::variable_bytes()};
        if (seen.form && !seen.mixed) {
            array = {fixed, seen.form->dtype, seen.form->shape, seen.form->sample_rate};
            try {
                Shape shape{static_cast<std::int64_t>(s_.header.num_samples)};
                for (const std::int64_t n : array.shape) shape.push_back(n);
                static_cast<void>(byte_count(shape, array.dtype.size()));
            } catch (const Error& e) {
                array.damage = fmt::format("field '{}': {}", field.name, e.what());
            }
        }
        if (!seen.damage.empty()) array.damage = seen.damage;
        return array;
    }

    const MldfReader::State& s_;
    std::vector<Seen> seen_;
    std::vector<std::size_t> surveyed_;
    AllocationBlock block_;
};

/// Shape and strides of one sample in a view whose first dimension is the samples.
MutableArrayView sample_of(const MutableArrayView& out, std::int64_t i) {
    MutableArrayView one{out.data + i * out.strides[0], out.dtype, {}, {}, out.arena};
    for (int d = 1; d < out.shape.rank(); ++d) {
        one.shape.push_back(out.shape[d]);
        one.strides.push_back(out.strides[d]);
    }
    return one;
}

/// A field, or the tails of its records, as an array.
class FieldSource final : public ArraySource {
public:
    FieldSource(std::shared_ptr<const MldfReader::State> s, std::size_t field, FieldArray array, std::string name)
        : s_(std::move(s)), field_(field), array_(std::move(array)), name_(std::move(name)) {
        info_.dtype = array_.dtype;
        info_.shape.push_back(static_cast<std::int64_t>(s_->header.num_samples));
        for (const std::int64_t n : array_.shape) info_.shape.push_back(n);
        info_.access = s_->file->sequential() ? Access::sequential : Access::any;
    }
    ArrayInfo info() const override { return info_; }
    const std::string& name() const override { return name_; }

    Value attribute_values() const override {
        const MldfField& field = s_->fields[field_];
        Value facts = Value::object();
        if (array_.kind == FieldArray::Kind::record) {
            facts.set("record_of", field.name);
        } else {
            facts.set("type", mldf_type_name(field.type));
            facts.set("type_id", static_cast<unsigned>(field.type));
            facts.set("field", field_);
            if (field.flags != 0) facts.set("flags", unsigned{field.flags});
            if (array_.sample_rate != 0) facts.set("sample_rate", array_.sample_rate);
            if (!field.arguments.empty() && field.type != MldfType::ndarray) {
                facts.set("arguments_hex", fmt::format("{:02x}", fmt::join(field.arguments, "")));
            }
        }
        Value attributes = Value::object();
        attributes.set("mldf", std::move(facts));
        return attributes;
    }

    void read_into(const Region& region, const MutableArrayView& out, const IoOptions& io) const override {
        require_inside(region, info_.shape);
        if (!(out.shape == region.extent) || !out.dtype.equal_but_order(info_.dtype)) {
            throw invalid_argument("{}: region {} of {} does not fit memory of shape {} and dtype {}", name_,
                                   region.to_string(), info_.dtype.to_string(), out.shape.to_string(),
                                   out.dtype.to_string());
        }
        if (info_.dtype.is_variable() && out.arena == nullptr) {
            throw invalid_argument("{}: memory for variable-length elements needs an arena", name_);
        }
        if (region.empty()) return;
        in_context([&] { return name_; },
                   [&] {
                       if (has_payloads()) s_->verify_once();
                       IoOptions how = io;
                       if (s_->file->sequential()) how.threads = 1;
                       constexpr std::int64_t most_samples = 1024;
                       const auto row = static_cast<std::int64_t>(s_->row_size);
                       const std::int64_t step =
                           std::clamp<std::int64_t>(static_cast<std::int64_t>(block_bytes) / row, 1, most_samples);
                       const std::int64_t count = region.extent[0];
                       parallel_for(ceil_div(count, step), how, [&](std::int64_t b) {
                           read_block(region, b * step, std::min(step, count - b * step), out, how);
                       });
                   });
    }

private:
    bool has_payloads() const {
        return array_.kind != FieldArray::Kind::value && array_.kind != FieldArray::Kind::record;
    }

    /// Samples [first, first + count) of the region.
    void read_block(const Region& region, std::int64_t first, std::int64_t count, const MutableArrayView& out,
                    const IoOptions& io) const {
        const MldfField& field = s_->fields[field_];
        const auto row_size = static_cast<std::int64_t>(s_->row_size);
        const auto sample = static_cast<std::uint64_t>(region.start[0] + first);
        if (!has_payloads()) {
            const std::uint64_t in_row =
                field.row_offset + (array_.kind == FieldArray::Kind::record ? pointer_size : 0);
            const Buffer rows = read_range(*s_->file, s_->header.metadata_ptr + sample * s_->row_size,
                                           static_cast<std::uint64_t>(count) * s_->row_size);
            copy_elements({rows.data() + in_row, array_.dtype, {count}, {row_size}}, out.part({{first}, {count}}));
            return;
        }
        AllocationBlock block;
        s_->each_row(sample, static_cast<std::uint64_t>(count), [&](std::uint64_t n, ByteSpan row) {
            const std::int64_t i = first + static_cast<std::int64_t>(n - sample);
            const ByteSpan record = row.subspan(field.row_offset, field.metadata_size);
            in_context([&] { return s_->where(n, field_); },
                       [&] { read_sample(region, record, sample_of(out, i), block, io); });
        });
    }

    void read_sample(const Region& region, ByteSpan record, const MutableArrayView& out, AllocationBlock& block,
                     const IoOptions& io) const {
        const MldfAllocation payload = pointer_of(record.data());
        s_->require_payload(payload, block);
        if (array_.kind != FieldArray::Kind::fixed) {
            return s_->read_slot(payload, array_.kind == FieldArray::Kind::text, out);
        }
        if (payload.size == 0) return zero_elements(out);
        Region part;
        for (int d = 1; d < region.rank(); ++d) {
            part.start.push_back(region.start[d]);
            part.extent.push_back(region.extent[d]);
        }
        read_plain(*s_->file, {s_->file->name(), payload.ptr, array_.dtype, array_.shape}, part, out, io);
    }

    std::shared_ptr<const MldfReader::State> s_;
    std::size_t field_;
    FieldArray array_;
    std::string name_;
    ArrayInfo info_;
};

bool has_records(const MldfField& field, const FieldArray& array) {
    if (array.kind != FieldArray::Kind::bytes) return false;
    const TypeRow& row = type_row(field.type);
    return tail_dtype(field).kind() == Kind::structure ||
           (row.record == TypeRow::Record::open && field.metadata_size > row.metadata_size);
}

}  // namespace

const std::vector<FieldArray>& MldfReader::State::field_arrays() const {
    const std::lock_guard lock(mutex);
    if (!arrays) arrays = Survey(*this).run();
    return *arrays;
}

std::vector<std::string> MldfReader::arrays() const {
    std::vector<std::string> names;
    const auto& arrays = state_->field_arrays();
    for (std::size_t f = 0; f < arrays.size(); ++f) {
        const MldfField& field = state_->fields[f];
        names.push_back(field.name);
        if (has_records(field, arrays[f])) names.push_back(field.name + ".record");
    }
    return names;
}

std::unique_ptr<ArraySource> MldfReader::open(std::string_view array) const {
    const auto& arrays = state_->field_arrays();
    const auto make = [&](std::size_t f, FieldArray a) {
        if (!a.damage.empty()) throw corrupt("{}: {}", name(), a.damage);
        return std::make_unique<FieldSource>(state_, f, std::move(a), fmt::format("{}::{}", name(), array));
    };
    for (std::size_t f = 0; f < arrays.size(); ++f) {
        if (state_->fields[f].name == array) return make(f, arrays[f]);
    }
    for (std::size_t f = 0; f < arrays.size(); ++f) {
        const MldfField& field = state_->fields[f];
        if (array == field.name + ".record" && has_records(field, arrays[f])) {
            return make(f, {FieldArray::Kind::record, tail_dtype(field)});
        }
    }
    throw not_found("{} has no field '{}'; it has {}", name(), array, fmt::join(this->arrays(), ", "));
}

}  // namespace tessera
