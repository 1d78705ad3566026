// Shared by reader, writer and checks of MLDF: the layout's numbers, the table of types, and an open file's state.
#pragma once

#include <array>
#include <bit>
#include <cstring>
#include <functional>
#include <limits>
#include <mutex>
#include <type_traits>

#include <tessera/little_endian.h>
#include <tessera/mldf.h>

namespace tessera::mldf {

using namespace std::string_view_literals;

inline constexpr std::string_view magic = "\x89MLDF\r\n\x1a\n"sv;
inline constexpr std::uint64_t header_size = 64;
inline constexpr std::uint64_t front_size = magic.size() + header_size;  // the writer puts the descriptors here
inline constexpr std::uint64_t descriptor_size = 208;
inline constexpr std::uint64_t original_descriptor_size = 204;
inline constexpr std::size_t name_size = 64;
inline constexpr std::size_t arguments_size = 128;
inline constexpr std::uint64_t allocation_size = 16;
inline constexpr std::uint64_t table_alignment = 64;
inline constexpr std::uint64_t pointer_size = 12;      // u64 pointer, u32 size: the start of every record of a payload
inline constexpr std::uint64_t block_bytes = 1 << 20;  // of a table, read at once

/// A row of the table of types.
struct TypeRow {
    MldfType type;
    std::string_view name;
    enum class Record : std::uint8_t {
        value,    ///< is the value
        pointer,  ///< begins with pointer and size
        open,     ///< is not defined by the format
    } record = Record::open;
    std::uint32_t metadata_size = 16;  ///< the least, and the size written
};
/// The row of a type; its name is "" if the format does not have the type.
[[nodiscard]] const TypeRow& type_row(MldfType type);
/// The fields of the record after pointer and size, as a structure; V n if the format does not define them.
[[nodiscard]] DType tail_dtype(const MldfField& field);

/// One sample as an array.
struct Form {
    DType dtype;
    Shape shape;
    std::uint32_t sample_rate = 0;
    bool operator==(const Form&) const = default;
    [[nodiscard]] std::int64_t bytes() const { return byte_count(shape, dtype.size()); }
};
/// The dtype and shape in an NDARRAY field's arguments; nullopt if these make no sense.
[[nodiscard]] std::optional<Form> ndarray_form(const MldfField& field);
/// For the types whose records hold a shape; nullopt for other types and for encodings without plain elements.
[[nodiscard]] std::optional<Form> record_form(const MldfField& field, const std::byte* record);

/// Pointer and size at the start of a record.
[[nodiscard]] inline MldfAllocation pointer_of(const std::byte* record) {
    return {load_little<std::uint64_t>(record), load_little<std::uint32_t>(record + 8)};
}
[[nodiscard]] bool all_zero(ByteSpan bytes);

[[nodiscard]] inline std::uint64_t round_up(std::uint64_t n, std::uint64_t multiple) {
    return (n + multiple - 1) / multiple * multiple;
}

/// Continues zlib's CRC-32 `crc` with `bytes`; start with 0.
[[nodiscard]] std::uint32_t crc32_after(std::uint32_t crc, ByteSpan bytes);

// Shared by both ways of writing.

/// Completes the descriptions: truncates names, fills in sizes and offsets. Returns the size of a row. Throws
/// invalid_argument, naming `file`.
std::uint64_t complete_fields(std::vector<MldfField>& fields, const std::string& file);
/// The positions of all sections but the allocation table, which follows the data.
[[nodiscard]] MldfHeader lay_out(const std::vector<MldfField>& fields, std::uint64_t samples, std::uint64_t row_size,
                                 const MldfWriteOptions& options);
/// Magic, header, descriptors, and zeros up to the metadata table.
[[nodiscard]] Buffer front_bytes(const MldfHeader& header, const std::vector<MldfField>& fields);

inline void store_pointer(std::byte* p, std::uint64_t ptr, std::uint64_t size) {
    store_little(p, ptr);
    store_little(p + 8, static_cast<std::uint32_t>(size));
}
inline constexpr std::uint64_t most_payload_bytes = std::numeric_limits<std::uint32_t>::max();

/// How a field becomes an array.
struct FieldArray {
    enum class Kind : std::uint8_t { value, fixed, text, bytes, record } kind = Kind::bytes;
    DType dtype;
    Shape shape = {};  ///< of one sample
    std::uint32_t sample_rate = 0;
    std::string damage = {};  ///< why the samples cannot be one array
};

/// The last part of the allocation table that a lookup read.
struct AllocationBlock {
    Buffer bytes = {};
    std::uint64_t first = std::numeric_limits<std::uint64_t>::max();  ///< index of its first entry; none was read yet
};

}  // namespace tessera::mldf

namespace tessera {

struct MldfReader::State {
    std::shared_ptr<const ByteSource> file;
    MldfReadOptions options;
    MldfHeader header;
    std::uint64_t descriptor_size = mldf::descriptor_size;
    std::uint64_t row_size = 0;
    std::vector<MldfField> fields;
    std::vector<std::optional<mldf::Form>> ndarray_forms;  // by field
    std::vector<std::string> warnings;
    std::uint64_t allocations = 0;
    /// The pointer of every index_step-th allocation. A lookup reads the entries of one step.
    std::vector<std::uint64_t> index;
    std::uint64_t index_step = 256;

    mutable std::mutex mutex;  // for facts that are found once, when first needed
    mutable bool verified = false;
    mutable std::optional<std::vector<mldf::FieldArray>> arrays;

    /// The size of the allocation at `ptr`, 0 if there is none. `block` keeps the part of the table that was read:
    /// payloads are mostly read in order, so the next entry is usually in it.
    [[nodiscard]] std::uint64_t allocated_size(std::uint64_t ptr, mldf::AllocationBlock& block) const;
    /// Calls body(sample, row) for rows [first, first + count), which it reads in blocks.
    void each_row(std::uint64_t first, std::uint64_t count,
                  const std::function<void(std::uint64_t, ByteSpan)>& body) const;
    /// Calls body(index, allocation) for the whole allocation table.
    void each_allocation(const std::function<void(std::uint64_t, MldfAllocation)>& body) const;
    /// Throws corrupt unless the payload lies in the data region and the allocation table agrees.
    void require_payload(const MldfAllocation& payload, mldf::AllocationBlock& block) const;
    /// Checks the data region's checksum at the first call, if there is one and the options ask for it.
    void verify_once() const;
    /// A payload of any length as one variable-length element at `out`. Throws corrupt for text that is not UTF-8.
    void read_slot(const MldfAllocation& payload, bool is_text, const MutableArrayView& out) const;
    /// Sets the value of a record that points at its payload.
    void read_payload(std::size_t field, const Buffer& record, MldfValue& result) const;
    [[nodiscard]] const std::vector<mldf::FieldArray>& field_arrays() const;
    /// "sample 3 of field image", for messages.
    [[nodiscard]] std::string where(std::uint64_t sample, std::size_t field) const;
};

}  // namespace tessera
