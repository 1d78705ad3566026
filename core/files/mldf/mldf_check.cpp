// Checks of an MLDF file, and comparison of two.
#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <tessera/error_text.h>

#include "mldf_format.h"

namespace tessera {

namespace {

using namespace mldf;

/// Whether an error is about the file itself, and not about access to it.
bool is_finding(const Error& e) {
    return e.code() == ErrorCode::corrupt || e.code() == ErrorCode::unsupported;
}

class Findings {
public:
    Findings(MldfReport& report, std::size_t limit) : report_(report), limit_(limit) {}
    void add(std::string text) {
        if (report_.findings.size() < limit_) report_.findings.push_back(std::move(text));
        ++report_.finding_count;
    }
    /// Runs a check; errors about the file become findings.
    template <class Where, class Body>
    void attempt(const Where& where, const Body& body) {
        try {
            in_context(where, body);
        } catch (const Error& e) {
            if (!is_finding(e)) throw;
            add(e.what());
        }
    }

private:
    MldfReport& report_;
    std::size_t limit_;
};

Value shape_value(const Shape& shape) {
    return Value::Array(shape.begin(), shape.end());
}

/// One record of a file, and the means to look up its payload.
struct Record {
    const MldfReader::State& file;
    std::size_t field_index;
    ByteSpan bytes;
    AllocationBlock& block;

    Record(const MldfReader::State& s, std::size_t f, ByteSpan row, AllocationBlock& b)
        : file(s), field_index(f), bytes(row.subspan(s.fields[f].row_offset, s.fields[f].metadata_size)), block(b) {}
    [[nodiscard]] const MldfField& field() const { return file.fields[field_index]; }
    /// Pointer and size; nullopt if the record has none. For an open type only the allocation table tells.
    [[nodiscard]] std::optional<MldfAllocation> payload() const {
        const TypeRow::Record kind = type_row(field().type).record;
        if (kind == TypeRow::Record::value || bytes.size() < pointer_size) return {};
        const MldfAllocation at = pointer_of(bytes.data());
        const bool points =
            kind == TypeRow::Record::pointer || (at.size > 0 && file.allocated_size(at.ptr, block) == at.size);
        return points ? std::optional(at) : std::nullopt;
    }
};

void check_sections(const MldfReader& reader, Findings& findings) {
    const MldfHeader& h = reader.header();
    if (constexpr std::uint32_t known = 0xF; (h.flags & ~known) != 0) {
        findings.add(fmt::format("flags {:#x} have no meaning", h.flags & ~known));
    }
    if (h.metadata_ptr % table_alignment != 0) {
        findings.add(fmt::format("the metadata table at {} is not aligned to {}", h.metadata_ptr, table_alignment));
    }
    if (h.page_size == 0 || h.data_ptr % h.page_size != 0) {
        findings.add(fmt::format("the data at {} do not begin at a page of {} bytes", h.data_ptr, h.page_size));
    }
    struct Section {
        std::uint64_t begin, size;
        std::string_view name;
    };
    std::array sections{
        Section{h.field_desc_ptr, h.num_fields * reader.descriptor_size(), "field descriptors"},
        Section{h.metadata_ptr, h.num_samples * reader.row_size(), "metadata table"},
        Section{h.data_ptr, h.alloc_table_ptr - h.data_ptr, "data region"},
        Section{h.alloc_table_ptr, reader.allocation_count() * allocation_size, "allocation table"},
    };
    std::stable_sort(sections.begin(), sections.end(), [](const auto& a, const auto& b) { return a.begin < b.begin; });
    const Section* last = nullptr;
    for (const Section& section : sections) {
        if (section.size == 0) continue;
        if (last != nullptr && last->begin + last->size > section.begin) {
            findings.add(
                fmt::format("the {} at {} overlap the {} at {}", last->name, last->begin, section.name, section.begin));
        }
        last = &section;
    }
}

void check_fields(const MldfReader& reader, Findings& findings) {
    const auto& fields = reader.fields();
    std::set<std::string_view> names;
    for (std::size_t f = 0; f < fields.size(); ++f) {
        if (fields[f].name.empty()) findings.add(fmt::format("field {} has no name", f));
        if (!names.insert(fields[f].name).second) {
            findings.add(fmt::format("two fields are called '{}'", fields[f].name));
        }
        if (fields[f].type == MldfType::ndarray && !reader.state().ndarray_forms[f]) {
            findings.add(fmt::format("the arguments of field '{}' say no dtype and shape", fields[f].name));
        }
    }
}

void check_allocations(const MldfReader& reader, Findings& findings) {
    std::uint64_t end = 0;
    reader.state().each_allocation([&](std::uint64_t i, MldfAllocation entry) {
        if (entry.size == 0) findings.add(fmt::format("allocation {} at {} is empty", i, entry.ptr));
        if (i > 0 && entry.ptr < end) {
            findings.add(
                fmt::format("allocation {} at {} overlaps the one before, which ends at {}", i, entry.ptr, end));
        }
        end = std::max(end, entry.ptr + entry.size);
    });
}

void check_record(const Record& record, const MldfAllocation& payload, const MldfCheckOptions& options) {
    const MldfField& field = record.field();
    if (all_zero(record.bytes)) return;
    record.file.require_payload(payload, record.block);
    std::optional<Form> form = record.file.ndarray_forms[record.field_index];
    if (!form && type_row(field.type).record == TypeRow::Record::pointer) {
        form = record_form(field, record.bytes.data());
    }
    if (form && static_cast<std::uint64_t>(form->bytes()) != payload.size) {
        throw corrupt("{} of shape {} needs {} bytes, the record has {}", form->dtype.to_string(),
                      form->shape.to_string(), form->bytes(), payload.size);
    }
    if (!options.payloads || payload.size == 0) return;
    if (field.type == MldfType::text_raw || field.type == MldfType::json) {
        NDArray text(DType::variable_text(), {});
        record.file.read_slot(payload, true, text.view());
        VariableSlot slot;
        std::memcpy(&slot, text.bytes().data(), sizeof slot);
        if (field.type == MldfType::json) static_cast<void>(Value::parse(slot.view()));
    }
}

void check_samples(const MldfReader& reader, const MldfCheckOptions& options, Findings& findings) {
    const MldfReader::State& s = reader.state();
    std::uint64_t pointers = 0;
    AllocationBlock block;
    s.each_row(0, s.header.num_samples, [&](std::uint64_t sample, ByteSpan row) {
        for (std::size_t f = 0; f < s.fields.size(); ++f) {
            const Record record(s, f, row, block);
            const auto payload = record.payload();
            if (!payload) continue;
            if (payload->size > 0) ++pointers;
            findings.attempt([&] { return s.where(sample, f); }, [&] { check_record(record, *payload, options); });
        }
    });
    if (pointers < s.allocations) {
        findings.add(fmt::format("{} of {} allocations belong to no sample", s.allocations - pointers, s.allocations));
    }
}

// ---- comparison

/// The text of a record in a difference: the number, or the bytes after the pointer.
std::string record_text(const MldfField& field, ByteSpan record) {
    switch (field.type) {
        case MldfType::integer:
            return fmt::format("{}", load_little<std::int64_t>(record.data()));
        case MldfType::real:
            return python_float_repr(std::bit_cast<double>(load_little<std::uint64_t>(record.data())));
        default:
            return fmt::format("{:02x}", fmt::join(record.first(std::min<std::size_t>(record.size(), 64)), ""));
    }
}

/// The first place where two payloads of one size differ, or nullopt.
std::optional<std::uint64_t> first_difference(const ByteSource& a, std::uint64_t at_a, const ByteSource& b,
                                              std::uint64_t at_b, std::uint64_t size) {
    Buffer x, y;
    for (std::uint64_t done = 0; done < size; done += x.size()) {
        x.reset(std::min(block_bytes, size - done));
        y.reset(x.size());
        a.read(at_a + done, x.span());
        b.read(at_b + done, y.span());
        const auto differs = std::mismatch(x.data(), x.data() + x.size(), y.data()).first;
        if (differs != x.data() + x.size()) return done + static_cast<std::uint64_t>(differs - x.data());
    }
    return {};
}

/// Throws corrupt with the difference between two records of equal fields.
void compare_records(const Record& a, const Record& b, const MldfCheckOptions& options) {
    const MldfField& field = a.field();
    const auto pa = a.payload(), pb = b.payload();
    if (!pa || !pb) {
        if (std::equal(a.bytes.begin(), a.bytes.end(), b.bytes.begin(), b.bytes.end())) return;
        throw corrupt("{} and {}", record_text(field, a.bytes), record_text(field, b.bytes));
    }
    a.file.require_payload(*pa, a.block);
    b.file.require_payload(*pb, b.block);
    const ByteSpan ta = a.bytes.subspan(pointer_size), tb = b.bytes.subspan(pointer_size);
    if (!std::equal(ta.begin(), ta.end(), tb.begin(), tb.end())) {
        const auto fa = record_form(field, a.bytes.data()), fb = record_form(field, b.bytes.data());
        throw corrupt(fa && fb && !(fa->shape == fb->shape)
                          ? fmt::format("shapes {} and {}", fa->shape.to_string(), fb->shape.to_string())
                          : fmt::format("records {} and {}", record_text(field, ta), record_text(field, tb)));
    }
    if (pa->size != pb->size) throw corrupt("{} and {} bytes", pa->size, pb->size);
    if (!options.payloads) return;
    if (const auto at = first_difference(*a.file.file, pa->ptr, *b.file.file, pb->ptr, pa->size)) {
        throw corrupt("the data differ from byte {} of {} on", *at, pa->size);
    }
}

void compare_headers(const MldfHeader& a, const MldfHeader& b, Findings& findings) {
    const auto compare = [&](std::string_view what, auto x, auto y) {
        if (x != y) findings.add(fmt::format("header: {} {} and {}", what, x, y));
    };
    compare("version_major", a.version_major, b.version_major);
    compare("version_minor", a.version_minor, b.version_minor);
    compare("flags", a.flags, b.flags);
    compare("page_size", a.page_size, b.page_size);
    compare("num_samples", a.num_samples, b.num_samples);
    compare("num_fields", a.num_fields, b.num_fields);
}

/// Whether records of the two can be compared at all.
bool compare_descriptors(const MldfField& a, const MldfField& b, std::size_t place_a, std::size_t place_b,
                         Findings& findings) {
    const auto compare = [&](std::string_view what, const auto& x, const auto& y) {
        if (x != y) findings.add(fmt::format("field '{}': {} {} and {}", a.name, what, x, y));
    };
    compare("place", place_a, place_b);
    compare("type", mldf_type_name(a.type), mldf_type_name(b.type));
    compare("flags", a.flags, b.flags);
    compare("metadata_size", a.metadata_size, b.metadata_size);
    compare("arguments", fmt::format("{:02x}", fmt::join(a.arguments, "")),
            fmt::format("{:02x}", fmt::join(b.arguments, "")));
    return a.type == b.type && a.metadata_size == b.metadata_size;
}

/// The first field of each name.
std::map<std::string_view, std::size_t> places_of(const std::vector<MldfField>& fields) {
    std::map<std::string_view, std::size_t> places;
    for (std::size_t f = 0; f < fields.size(); ++f) places.emplace(fields[f].name, f);
    return places;
}

}  // namespace

namespace {

Value field_facts(const MldfField& field, const FieldArray& array, std::uint64_t samples) {
    Shape shape{static_cast<std::int64_t>(samples)};
    for (const std::int64_t n : array.shape) shape.push_back(n);
    return {{"name", field.name},
            {"type", mldf_type_name(field.type)},
            {"type_id", static_cast<unsigned>(field.type)},
            {"flags", unsigned{field.flags}},
            {"metadata_size", field.metadata_size},
            {"arguments_hex", fmt::format("{:02x}", fmt::join(field.arguments, ""))},
            {"dtype", array.dtype.to_string()},
            {"shape", shape_value(shape)}};
}

}  // namespace

Value mldf_summary(const MldfReader& reader) {
    const MldfHeader& h = reader.header();
    Value flags = Value::array();
    constexpr std::array names{"little-endian", "compressed", "checksummed", "encrypted"};
    for (std::size_t bit = 0; bit < names.size(); ++bit) {
        if ((h.flags >> bit & 1U) != 0) flags.push_back(names[bit]);
    }
    Value pointers = Value::object();
    pointers.set("field_desc", h.field_desc_ptr);
    pointers.set("metadata", h.metadata_ptr);
    pointers.set("data", h.data_ptr);
    pointers.set("alloc_table", h.alloc_table_ptr);

    Value fields = Value::array();
    for (std::size_t f = 0; f < reader.fields().size(); ++f) {
        fields.push_back(field_facts(reader.fields()[f], reader.state().field_arrays()[f], h.num_samples));
    }
    Value warnings = Value::array();
    for (const std::string& warning : reader.warnings()) warnings.push_back(warning);

    Value summary = Value::object();
    summary.set("version", fmt::format("{}.{}", h.version_major, h.version_minor));
    summary.set("flags", std::move(flags));
    summary.set("num_samples", h.num_samples);
    summary.set("num_fields", unsigned{h.num_fields});
    summary.set("page_size", h.page_size);
    summary.set("pointers", std::move(pointers));
    summary.set("descriptor_size", reader.descriptor_size());
    summary.set("row_size", reader.row_size());
    summary.set("allocations", reader.allocation_count());
    if ((h.flags & mldf_checksummed) != 0) summary.set("checksum", fmt::format("{:08x}", h.checksum));
    summary.set("fields", std::move(fields));
    summary.set("warnings", std::move(warnings));
    return summary;
}

MldfReport validate_mldf(std::shared_ptr<const ByteSource> file, const MldfCheckOptions& options) {
    MldfReport report;
    Findings findings(report, options.limit);
    std::optional<MldfReader> opened;
    try {
        opened.emplace(std::move(file));
        report.summary = mldf_summary(*opened);
    } catch (const Error& e) {
        if (!is_finding(e)) throw;
        findings.add(e.what());
        return report;
    }
    check_sections(*opened, findings);
    check_fields(*opened, findings);
    check_allocations(*opened, findings);
    if (options.payloads) {
        findings.attempt([] { return "data region"; }, [&] { opened->state().verify_once(); });
    }
    check_samples(*opened, options, findings);
    return report;
}

MldfReport validate_mldf(const std::filesystem::path& path, const MldfCheckOptions& options) {
    return validate_mldf(std::shared_ptr<const ByteSource>(open_file(path)), options);
}

MldfReport compare_mldf(const MldfReader& a, const MldfReader& b, const MldfCheckOptions& options) {
    MldfReport report;
    Findings findings(report, options.limit);
    compare_headers(a.header(), b.header(), findings);
    const auto in_a = places_of(a.fields()), in_b = places_of(b.fields());
    std::vector<std::pair<std::size_t, std::size_t>> common;
    for (std::size_t f = 0; f < a.fields().size(); ++f) {
        const MldfField& field = a.fields()[f];
        const auto other = in_b.find(field.name);
        if (other == in_b.end()) {
            findings.add(fmt::format("field '{}' is only in {}", field.name, a.name()));
        } else if (compare_descriptors(field, b.fields()[other->second], f, other->second, findings)) {
            common.emplace_back(f, other->second);
        }
    }
    for (const MldfField& field : b.fields()) {
        if (!in_a.contains(field.name)) findings.add(fmt::format("field '{}' is only in {}", field.name, b.name()));
    }
    if (common.empty()) return report;
    const MldfReader::State &sa = a.state(), &sb = b.state();
    const std::uint64_t samples = std::min(a.header().num_samples, b.header().num_samples);
    AllocationBlock block_a, block_b;
    sa.each_row(0, samples, [&](std::uint64_t sample, ByteSpan row_a) {
        const Buffer row_b = read_range(*sb.file, sb.header.metadata_ptr + sample * sb.row_size, sb.row_size);
        for (const auto& fields : common) {
            const Record ra(sa, fields.first, row_a, block_a), rb(sb, fields.second, row_b, block_b);
            findings.attempt([&] { return sa.where(sample, fields.first); }, [&] { compare_records(ra, rb, options); });
        }
    });
    return report;
}

}  // namespace tessera
