#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <tessera/copy_elements.h>
#include <tessera/element.h>
#include <tessera/error_text.h>

#include <tessera/unicode.h>
#include "mldf_format.h"
#include "plain_array.h"

namespace tessera {

namespace {

using namespace mldf;

std::string text_of(ByteSpan bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// The most helpful reason why the first bytes are not the magic.
std::string magic_damage(std::string_view found) {
    const auto begins = [&](std::string_view text) { return found.starts_with(text); };
    const std::string_view advice = "; transfer the file again in binary mode";
    if (begins("\x89MLDF\n\x1a\n"sv) || begins("\x89MLDF\n\n"sv)) {
        return fmt::format("the file was damaged as text: a CR LF in its magic became LF{}", advice);
    }
    if (begins("\x89MLDF\r\r\n"sv) || begins("\x89MLDF\r\n\x1a\r\n"sv)) {
        return fmt::format("the file was damaged as text: a LF in its magic became CR LF{}", advice);
    }
    if (begins("\x09MLDF"sv)) return fmt::format("the file was damaged: the eighth bit of its bytes is lost{}", advice);
    if (begins("\xef\xbf\xbdMLDF"sv) || begins("\xc2\x89MLDF"sv)) {
        return fmt::format("the file was damaged: it was converted to UTF-8{}", advice);
    }
    if (begins(magic.substr(0, 8))) {
        return "the magic has 8 bytes, without its last LF: the header cannot be where the format wants it";
    }
    return "not an MLDF file: it does not begin with \\x89MLDF\\r\\n\\x1a\\n";
}

MldfHeader parse_header(const ByteSource& file) {
    std::array<std::byte, front_size> front{};
    const auto got = static_cast<std::size_t>(std::min<std::uint64_t>(front.size(), file.size()));
    file.read(0, std::span(front).first(got));
    const std::string begin = text_of(std::span(front).first(std::min(got, magic.size() + 2)));
    if (!begin.starts_with(magic)) throw corrupt(magic_damage(begin));
    if (got < front_size) {
        throw corrupt("the file ends inside the header, after {} of {} bytes", got, front_size);
    }
    const std::byte* h = front.data() + magic.size();
    MldfHeader header{
        .version_major = load_little<std::uint16_t>(h),
        .version_minor = load_little<std::uint16_t>(h + 2),
        .flags = load_little<std::uint32_t>(h + 4),
        .num_samples = load_little<std::uint64_t>(h + 8),
        .num_fields = load_little<std::uint16_t>(h + 16),
        .page_size = load_little<std::uint32_t>(h + 20),
        .field_desc_ptr = load_little<std::uint64_t>(h + 24),
        .metadata_ptr = load_little<std::uint64_t>(h + 32),
        .data_ptr = load_little<std::uint64_t>(h + 40),
        .alloc_table_ptr = load_little<std::uint64_t>(h + 48),
        .checksum = load_little<std::uint32_t>(h + 56),
    };
    // Checked before the version, whose bytes are reversed in a big-endian file.
    if ((header.flags & mldf_little_endian) == 0) {
        throw unsupported("flags {:#x}: the file is not marked as little-endian, and no other is read", header.flags);
    }
    if (header.version_major != 1) {
        throw unsupported("version {}.{} of MLDF; only 1.x can be read: use {} program", header.version_major,
                          header.version_minor, header.version_major > 1 ? "a newer" : "an older");
    }
    if ((header.flags & mldf_compressed) != 0) {
        throw unsupported(
            "the data are marked as compressed, and MLDF does not define how; ask the writer of the "
            "file for an uncompressed one");
    }
    if ((header.flags & mldf_encrypted) != 0) throw unsupported("the data are encrypted, which is not supported");
    return header;
}

/// A field's name. Faults in it become warnings, because names can be repaired and data cannot.
std::string field_name(ByteSpan bytes, std::size_t index, std::vector<std::string>& warnings) {
    std::string name = text_of(bytes);
    name.resize(std::min(name.find('\0'), name.size()));
    if (from_utf8(name)) return name;
    // The original writer truncates names to 63 bytes, even inside a character.
    for (std::size_t cut = 1; cut <= 3 && cut < name.size(); ++cut) {
        const std::string shorter = name.substr(0, name.size() - cut);
        if (!from_utf8(shorter)) continue;
        warnings.push_back(
            fmt::format("the name of field {} ends inside a character; it is read as '{}'", index, shorter));
        return shorter;
    }
    name = latin1_to_utf8(name);
    warnings.push_back(fmt::format("the name of field {} is not UTF-8; it is read as Latin-1: '{}'", index, name));
    return name;
}

MldfField parse_field(const std::byte* d, std::size_t index, std::vector<std::string>& warnings) {
    MldfField field{
        .name = field_name({d, name_size}, index, warnings),
        .type = MldfType{load_little<std::uint16_t>(d + 64)},
        .flags = load_little<std::uint16_t>(d + 66),
        .metadata_size = load_little<std::uint32_t>(d + 68),
    };
    field.arguments.assign(d + 76, d + 76 + arguments_size);
    while (!field.arguments.empty() && field.arguments.back() == std::byte{0}) field.arguments.pop_back();
    const TypeRow& row = type_row(field.type);
    const std::uint32_t least = row.record == TypeRow::Record::open ? 1 : row.metadata_size;
    constexpr std::uint32_t most = std::numeric_limits<std::int32_t>::max();  // of a V n element
    if (field.metadata_size < least || field.metadata_size > most) {
        throw corrupt("field '{}' of type {} has records of {} bytes, not {} to {}", field.name,
                      mldf_type_name(field.type), field.metadata_size, least, most);
    }
    return field;
}

/// The alignment of a record: every known one holds a 64-bit number. For an unknown one only its size is a hint: in C
/// it is a multiple of the alignment.
std::uint64_t alignment_of(const MldfField& field) {
    if (type_row(field.type).record != TypeRow::Record::open) return 8;
    return std::min<std::uint64_t>(8, field.metadata_size & (0U - field.metadata_size));
}

void require_section(const char* what, std::uint64_t offset, std::uint64_t count, std::uint64_t size,
                     std::uint64_t file_size) {
    // Division instead of multiplication: count and size may be anything.
    if (offset < front_size || offset > file_size || (size > 0 && count > (file_size - offset) / size)) {
        throw corrupt("the {} of {} × {} bytes at offset {} {} the file of {} bytes", what, count, size, offset,
                      offset < front_size ? "overlaps the header of" : "does not lie in", file_size);
    }
}

void read_descriptors(MldfReader::State& s) {
    const std::uint64_t file_size = s.file->size(), at = s.header.field_desc_ptr;
    const std::size_t count = s.header.num_fields;
    // In 204-byte descriptors the next name begins where 208-byte descriptors have zeros.
    require_section("field descriptors", at, count, original_descriptor_size, file_size);
    if (count > 1 && !all_zero(read_range(*s.file, at + original_descriptor_size, 4))) {
        s.descriptor_size = original_descriptor_size;
        s.warnings.push_back("field descriptors of 204 bytes, as the original program wrote them");
    }
    // Checked again: the first check counted only 204 bytes for each descriptor.
    require_section("field descriptors", at, count, s.descriptor_size, file_size);
    const Buffer bytes = read_range(*s.file, at, count * s.descriptor_size);
    std::uint64_t end = 0, widest = 1;
    for (std::size_t i = 0; i < count; ++i) {
        MldfField field = parse_field(bytes.data() + i * s.descriptor_size, i, s.warnings);
        const std::uint64_t alignment = alignment_of(field);
        field.row_offset = round_up(end, alignment);
        end = field.row_offset + field.metadata_size;
        widest = std::max(widest, alignment);
        s.ndarray_forms.push_back(field.type == MldfType::ndarray ? ndarray_form(field) : std::nullopt);
        s.fields.push_back(std::move(field));
    }
    s.row_size = round_up(end, widest);
}

void check_sections(MldfReader::State& s) {
    const MldfHeader& h = s.header;
    const std::uint64_t file_size = s.file->size();
    if (h.num_samples > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
        throw corrupt("the file is said to hold {} samples", h.num_samples);
    }
    require_section("metadata table", h.metadata_ptr, h.num_samples, s.row_size, file_size);
    if (h.alloc_table_ptr < h.data_ptr) {
        throw corrupt("the allocation table at {} lies before the data at {}", h.alloc_table_ptr, h.data_ptr);
    }
    // If there is no payload, the original writer ends the file after the metadata table, before the page for data.
    const bool no_data = h.alloc_table_ptr == h.data_ptr;
    if (no_data && h.data_ptr >= file_size && h.data_ptr - file_size < std::max<std::uint64_t>(h.page_size, 1)) return;
    require_section("data region", h.data_ptr, h.alloc_table_ptr - h.data_ptr, 1, file_size);
    require_section("allocation table", h.alloc_table_ptr, 0, allocation_size, file_size);
    const std::uint64_t table = file_size - h.alloc_table_ptr;
    if (table % allocation_size != 0) {
        throw corrupt("the allocation table has {} bytes, no multiple of {}: the file was cut short", table,
                      allocation_size);
    }
    s.allocations = table / allocation_size;
}

void check_allocations(MldfReader::State& s) {
    constexpr std::uint64_t most_index_entries = 1 << 16;
    s.index_step = std::max(s.index_step, s.allocations / most_index_entries + 1);
    std::uint64_t before = 0;
    s.each_allocation([&](std::uint64_t i, MldfAllocation entry) {
        if (i > 0 && entry.ptr <= before) {
            throw corrupt("the allocation table is not sorted: entry {} points to {}, after one to {}", i, entry.ptr,
                          before);
        }
        if (entry.ptr < s.header.data_ptr || entry.ptr > s.header.alloc_table_ptr ||
            entry.size > s.header.alloc_table_ptr - entry.ptr) {
            throw corrupt(
                "entry {} of the allocation table, {} bytes at {}, does not lie in the data region "
                "from {} to {}",
                i, entry.size, entry.ptr, s.header.data_ptr, s.header.alloc_table_ptr);
        }
        before = entry.ptr;
        if (i % s.index_step == 0) s.index.push_back(entry.ptr);
    });
}

}  // namespace

std::uint64_t MldfReader::State::allocated_size(std::uint64_t ptr, AllocationBlock& block) const {
    const auto after = std::upper_bound(index.begin(), index.end(), ptr);
    if (after == index.begin()) return 0;
    const std::uint64_t first = static_cast<std::uint64_t>(after - index.begin() - 1) * index_step;
    if (block.first != first) {
        block.first = std::numeric_limits<std::uint64_t>::max();  // in case reading fails
        block.bytes.reset(std::min(index_step, allocations - first) * allocation_size);
        file->read(header.alloc_table_ptr + first * allocation_size, block.bytes.span());
        block.first = first;
    }
    std::uint64_t low = 0, high = block.bytes.size() / allocation_size;
    while (low < high) {
        const std::uint64_t middle = (low + high) / 2;
        const MldfAllocation entry = pointer_of(block.bytes.data() + middle * allocation_size);
        if (entry.ptr == ptr) return entry.size;
        (entry.ptr < ptr ? low : high) = entry.ptr < ptr ? middle + 1 : middle;
    }
    return 0;
}

void MldfReader::State::each_row(std::uint64_t first, std::uint64_t count,
                                 const std::function<void(std::uint64_t, ByteSpan)>& body) const {
    if (row_size == 0) return;
    Buffer block;
    const std::uint64_t step = std::max<std::uint64_t>(1, block_bytes / row_size), end = first + count;
    for (std::uint64_t i = first; i < end; i += step) {
        const std::uint64_t n = std::min(step, end - i);
        block.reset(n * row_size);
        file->read(header.metadata_ptr + i * row_size, block.span());
        for (std::uint64_t k = 0; k < n; ++k) body(i + k, block.span().subspan(k * row_size, row_size));
    }
}

void MldfReader::State::each_allocation(const std::function<void(std::uint64_t, MldfAllocation)>& body) const {
    Buffer block;
    constexpr std::uint64_t step = block_bytes / allocation_size;
    for (std::uint64_t i = 0; i < allocations; i += step) {
        block.reset(std::min(step, allocations - i) * allocation_size);
        file->read(header.alloc_table_ptr + i * allocation_size, block.span());
        for (std::uint64_t k = 0; k * allocation_size < block.size(); ++k) {
            body(i + k, pointer_of(block.data() + k * allocation_size));
        }
    }
}

void MldfReader::State::require_payload(const MldfAllocation& payload, AllocationBlock& block) const {
    if (payload.ptr == 0 && payload.size == 0) return;
    if (payload.ptr < header.data_ptr || payload.ptr > header.alloc_table_ptr ||
        payload.size > header.alloc_table_ptr - payload.ptr) {
        throw corrupt("the record points to {} bytes at {}, outside the data region from {} to {}", payload.size,
                      payload.ptr, header.data_ptr, header.alloc_table_ptr);
    }
    if (payload.size == 0) return;
    if (const std::uint64_t size = allocated_size(payload.ptr, block); size != payload.size) {
        throw corrupt("the record has {} bytes at {}, where the allocation table has {}", payload.size, payload.ptr,
                      size == 0 ? "nothing" : std::to_string(size));
    }
}

void MldfReader::State::verify_once() const {
    if ((header.flags & mldf_checksummed) == 0 || !options.verify_checksum) return;
    const std::lock_guard lock(mutex);
    if (verified) return;
    std::uint32_t crc = 0;
    Buffer block;
    for (std::uint64_t at = header.data_ptr; at < header.alloc_table_ptr;) {
        block.reset(std::min(block_bytes, header.alloc_table_ptr - at));
        file->read(at, block.span());
        crc = crc32_after(crc, block);
        at += block.size();
    }
    if (crc != header.checksum) {
        throw corrupt("the data are damaged: their CRC-32 is {:08x}, the header says {:08x}", crc, header.checksum);
    }
    verified = true;
}

void MldfReader::State::read_slot(const MldfAllocation& payload, bool is_text, const MutableArrayView& out) const {
    VariableSlot slot;
    if (payload.size > 0) {
        const ByteSpan bytes = out.arena->adopt(read_range(*file, payload.ptr, payload.size));
        slot = {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
        if (is_text && !from_utf8(slot.view())) throw corrupt("the text is not UTF-8");
    }
    std::memcpy(out.data, &slot, sizeof slot);
}

std::string MldfReader::State::where(std::uint64_t sample, std::size_t field) const {
    return fmt::format("sample {} of field '{}'", sample, fields[field].name);
}

MldfReader::MldfReader(std::shared_ptr<const ByteSource> file, const MldfReadOptions& options) {
    auto s = std::make_shared<State>();
    s->file = std::move(file);
    s->options = options;
    in_context([&] { return s->file->name(); },
               [&] {
                   s->header = parse_header(*s->file);
                   if (s->header.version_minor > 0) {
                       s->warnings.push_back(
                           fmt::format("version 1.{} is newer than 1.0, which is what this program knows; what "
                                       "it added is not read",
                                       s->header.version_minor));
                   }
                   read_descriptors(*s);
                   check_sections(*s);
                   check_allocations(*s);
               });
    state_ = std::move(s);
}

const MldfHeader& MldfReader::header() const {
    return state_->header;
}
const std::vector<MldfField>& MldfReader::fields() const {
    return state_->fields;
}
std::uint64_t MldfReader::descriptor_size() const {
    return state_->descriptor_size;
}
std::uint64_t MldfReader::row_size() const {
    return state_->row_size;
}
const std::vector<std::string>& MldfReader::warnings() const {
    return state_->warnings;
}
const std::string& MldfReader::name() const {
    return state_->file->name();
}

std::size_t MldfReader::field_index(std::string_view name) const {
    const auto& fields = state_->fields;
    const auto at = std::find_if(fields.begin(), fields.end(), [&](const MldfField& f) { return f.name == name; });
    if (at == fields.end()) {
        std::vector<std::string> names;
        for (const MldfField& f : fields) names.push_back(f.name);
        throw not_found("{} has no field '{}'; it has {}", this->name(), name, fmt::join(names, ", "));
    }
    return static_cast<std::size_t>(at - fields.begin());
}

MldfValue MldfReader::read(std::uint64_t sample, std::size_t field) const {
    const State& s = *state_;
    if (sample >= s.header.num_samples || field >= s.fields.size()) {
        throw out_of_bounds("{}: sample {} of field {} of {} samples of {} fields", name(), sample, field,
                            s.header.num_samples, s.fields.size());
    }
    const MldfField& f = s.fields[field];
    const TypeRow::Record kind = type_row(f.type).record;
    const Buffer bytes =
        read_range(*s.file, s.header.metadata_ptr + sample * s.row_size + f.row_offset, f.metadata_size);
    MldfValue result{.absent = all_zero(bytes), .record = {bytes.data(), bytes.data() + bytes.size()}, .value = {}};
    if (kind == TypeRow::Record::value) {
        result.value = NDArray(f.type == MldfType::integer ? "<i8" : "<f8", {});
        std::memcpy(result.value.bytes().data(), bytes.data(), 8);
        return result;
    }
    in_context([&] { return fmt::format("{}: {}", name(), s.where(sample, field)); },
               [&] { s.read_payload(field, bytes, result); });
    return result;
}

/// The value of a record that points at its payload.
void MldfReader::State::read_payload(std::size_t field, const Buffer& record, MldfValue& result) const {
    const MldfField& f = fields[field];
    const TypeRow::Record kind = type_row(f.type).record;
    AllocationBlock block;
    MldfAllocation payload = record.size() < pointer_size ? MldfAllocation{} : pointer_of(record.data());
    // A record of an unknown kind need not begin with a pointer.
    if (kind == TypeRow::Record::open && allocated_size(payload.ptr, block) != payload.size) payload = {};
    require_payload(payload, block);
    if (payload.size > 0) verify_once();
    std::optional<Form> form = ndarray_forms[field];
    if (!form && kind == TypeRow::Record::pointer) form = record_form(f, record.data());
    if (!form) {
        const bool text = f.type == MldfType::text_raw || f.type == MldfType::json;
        result.value = NDArray(text ? DType::variable_text() : DType::variable_bytes(), {});
        return read_slot(payload, text, result.value.view());
    }
    if (payload.size != form->bytes() && !result.absent) {
        throw corrupt("{} of shape {} needs {} bytes, but there are {}", form->dtype.to_string(),
                      form->shape.to_string(), form->bytes(), payload.size);
    }
    // An absent array does not get the shape in the arguments, or a file could demand any amount of memory for no data.
    if (payload.size == 0) form->shape = Shape::filled(form->shape.rank(), 0);
    result.value = NDArray(form->dtype, form->shape);
    const MutableByteSpan out = result.value.bytes();
    std::fill(out.begin(), out.end(), std::byte{0});  // an absent 0-d array has one element
    if (payload.size > 0) file->read(payload.ptr, out);
}

std::uint64_t MldfReader::allocation_count() const {
    return state_->allocations;
}

MldfAllocation MldfReader::allocation(std::uint64_t index) const {
    if (index >= state_->allocations) {
        throw out_of_bounds("{}: allocation {} of {}", name(), index, state_->allocations);
    }
    const Buffer entry =
        read_range(*state_->file, state_->header.alloc_table_ptr + index * allocation_size, allocation_size);
    return pointer_of(entry.data());
}

std::optional<std::uint32_t> MldfReader::allocated_size(std::uint64_t ptr) const {
    AllocationBlock block;
    const std::uint64_t size = state_->allocated_size(ptr, block);
    return size == 0 ? std::nullopt : std::optional(static_cast<std::uint32_t>(size));
}

}  // namespace tessera
