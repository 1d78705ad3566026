// MLDF, a data set of samples with named fields in one file: read by sample and by field, written as a stream, checked
// and compared. A field is an array whose first dimension is the samples.
//
// Layout, all little-endian: a 9-byte magic; a 64-byte header at 9; descriptors of 208 bytes, one per field (204 in
// files of the original program); a metadata table at a multiple of 64, one row per sample with one record per field;
// the data region at a multiple of the page size; a table of 16-byte allocations (pointer, size), sorted, up to the end
// of the file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/array_io.h>
#include <tessera/byte_io.h>
#include <tessera/ndarray.h>

namespace tessera {

inline constexpr std::uint32_t mldf_little_endian = 1;
inline constexpr std::uint32_t mldf_compressed = 2;   ///< refused: the format does not specify the method
inline constexpr std::uint32_t mldf_checksummed = 4;  ///< MldfHeader::checksum counts
inline constexpr std::uint32_t mldf_encrypted = 8;    ///< refused

/// The header. Pointers are offsets in the file.
struct MldfHeader {
    std::uint16_t version_major = 1;
    std::uint16_t version_minor = 0;
    std::uint32_t flags = mldf_little_endian;
    std::uint64_t num_samples = 0;
    std::uint16_t num_fields = 0;
    std::uint32_t page_size = 0;
    std::uint64_t field_desc_ptr = 0;
    std::uint64_t metadata_ptr = 0;
    std::uint64_t data_ptr = 0;
    std::uint64_t alloc_table_ptr = 0;
    std::uint32_t checksum = 0;  ///< CRC-32 (zlib's) of the bytes from data_ptr to alloc_table_ptr; flag 4
};

/// The type of a field. A file may have other numbers, which are carried as bytes.
enum class MldfType : std::uint16_t {
    integer = 1,
    real = 2,
    bytes = 3,
    ndarray = 4,
    json = 5,
    image_raw = 10,
    image_jpeg = 11,
    image_png = 12,
    audio_waveform = 20,
    audio_compressed = 21,
    audio_spectrogram = 22,
    audio_codec_tokens = 23,
    video_frames = 30,
    video_compressed = 31,
    video_optical_flow = 32,
    text_raw = 40,
    text_tokenized = 41,
    text_packed = 42,
    text_hierarchical = 43,
    multimodal_sample = 50,
};
/// As the format's design spells it: "IMAGE_RAW"; "unknown type 99" for other numbers.
[[nodiscard]] std::string mldf_type_name(MldfType type);

/// One field of the data set.
struct MldfField {
    std::string name;
    MldfType type = MldfType::bytes;
    std::uint16_t flags = 0;
    std::uint32_t metadata_size = 0;        ///< bytes of a sample's record; for a writer 0 means the type's own
    std::vector<std::byte> arguments = {};  ///< up to 128 bytes, without the zeros at the end
    std::uint64_t row_offset = 0;           ///< of the record in a row; for a writer ignored
};
/// A field whose samples are arrays of this dtype (little-endian in the file) and shape. Its arguments hold the dtype
/// in NumPy's spelling (16 bytes), the number of dimensions, and the dimensions. Throws unsupported if they do not fit:
/// dtypes of more than 16 characters, more than 13 dimensions, structures.
[[nodiscard]] MldfField mldf_ndarray_field(std::string name, const DType& dtype, const Shape& shape);

/// One field of one sample.
struct MldfValue {
    /// The whole record is zero, which stands for a missing value. An integer 0, a real 0.0 and empty bytes look the
    /// same.
    bool absent = false;
    std::vector<std::byte> record;  ///< as stored
    /// INT and FLOAT 0-d; NDARRAY, IMAGE_RAW, AUDIO_WAVEFORM (frames, channels) and TEXT_TOKENIZED as arrays; TEXT_RAW
    /// and JSON as 0-d text; all else as 0-d bytes. An absent array has only lengths of 0.
    NDArray value;
};

/// An entry of the allocation table.
struct MldfAllocation {
    std::uint64_t ptr = 0;
    std::uint32_t size = 0;
};

struct MldfReadOptions {
    /// Whether the data region of a checksummed file is read and checked before the first data are returned.
    bool verify_checksum = true;
};

/// A file opened for reading; holds neither table in memory. Copies share everything.
/// Thread rule: const members may be called from several threads at once.
class MldfReader {
public:
    /// Checks the header, the descriptors, that every section lies in the file, and the allocation table's order.
    /// Throws corrupt, or unsupported for another major version, compression, encryption, big-endian files.
    explicit MldfReader(std::shared_ptr<const ByteSource> file, const MldfReadOptions& options = {});

    [[nodiscard]] const MldfHeader& header() const;
    [[nodiscard]] const std::vector<MldfField>& fields() const;
    [[nodiscard]] std::uint64_t descriptor_size() const;  ///< 208, or 204 in files of the original program
    [[nodiscard]] std::uint64_t row_size() const;
    [[nodiscard]] const std::vector<std::string>& warnings() const;  ///< a newer minor version, odd names
    [[nodiscard]] const std::string& name() const;                   ///< of the file

    /// The index of a field. Throws not_found, naming the fields there are.
    [[nodiscard]] std::size_t field_index(std::string_view name) const;
    /// One field of one sample, by two ranged reads and one of the allocation table. Throws out_of_bounds; corrupt
    /// when record, payload and allocation table do not agree.
    [[nodiscard]] MldfValue read(std::uint64_t sample, std::size_t field) const;

    [[nodiscard]] std::uint64_t allocation_count() const;
    [[nodiscard]] MldfAllocation allocation(std::uint64_t index) const;
    /// The size of the allocation at `ptr`, by binary search; nullopt if no allocation begins there.
    [[nodiscard]] std::optional<std::uint32_t> allocated_size(std::uint64_t ptr) const;

    /// The names of the arrays that the fields make. Each field is one. A field whose samples differ in shape is read
    /// as bytes, and "image.record" after it holds the rest of its records (height, width, channels, ...).
    [[nodiscard]] std::vector<std::string> arrays() const;
    /// One of arrays(), its first dimension the samples. INT is <i8, FLOAT <f8. Fields whose samples share one shape
    /// have that shape after the first dimension. TEXT_RAW and JSON are variable-length text. All else is
    /// variable-length bytes, or V n for records of unknown types that point nowhere. Absent values read as zeros or
    /// empty. The attribute "mldf" holds what write_mldf needs to restore the field. Throws not_found, corrupt.
    [[nodiscard]] std::unique_ptr<ArraySource> open(std::string_view array) const;

    struct State;
    [[nodiscard]] const State& state() const { return *state_; }  ///< for the library's own files

private:
    std::shared_ptr<const State> state_;
};

struct MldfWriteOptions {
    std::uint32_t page_size = 2 << 20;  ///< the data region begins at a multiple of this
    bool checksum = false;              ///< write the CRC-32 of the data region
    bool durable = true;                ///< as in create_file()
};

/// Writes a file sample by sample; the number of samples need not be known in advance. Payloads and rows go to
/// temporary files beside `path` until finish() assembles the file, so memory stays at a few MiB.
/// Thread rule: one thread.
class MldfWriter {
public:
    /// Names are truncated to 63 bytes, at the end of a character. Throws invalid_argument for duplicate names.
    MldfWriter(const std::filesystem::path& path, std::vector<MldfField> fields, const MldfWriteOptions& options = {});
    ~MldfWriter();  ///< without finish(), nothing remains
    MldfWriter(MldfWriter&&) noexcept;
    MldfWriter& operator=(MldfWriter&&) noexcept;

    // The fields of the current sample, in ascending order; an omitted field is absent. Each call throws
    // invalid_argument for a field of another kind, and unsupported for payloads of 4 GiB and more.
    void put(std::size_t field, std::int64_t value);  ///< INT
    void put(std::size_t field, double value);        ///< FLOAT
    /// A raw payload, for every type but INT and FLOAT. `tail` is the record after pointer and size (height, width,
    /// ...), padded with zeros.
    void put_bytes(std::size_t field, ByteSpan payload, ByteSpan tail = {});
    /// NDARRAY; IMAGE_RAW u1 (height, width, channels); AUDIO_WAVEFORM i2 (frames, channels) and its rate;
    /// TEXT_TOKENIZED i4 or i2 (tokens).
    void put_array(std::size_t field, const ArrayView& array, std::uint32_t sample_rate = 0);
    /// The record itself, for types whose records this library does not know.
    void put_record(std::size_t field, ByteSpan record);
    void end_sample();
    /// Assembles the file and makes it appear under its name.
    void finish();

private:
    struct State;
    std::unique_ptr<State> state_;
};

/// A new file with one field: a sink of this dtype and shape, whose first dimension is the samples. i8 and f8 of one
/// dimension become INT and FLOAT, other fixed sizes NDARRAY. Variable-length text and bytes become TEXT_RAW and BYTES;
/// they must have one dimension and are written in order. Throws unsupported for a 0-d array and for dtypes that
/// NDARRAY cannot hold.
[[nodiscard]] std::unique_ptr<ArraySink> create_mldf(const std::filesystem::path& path, std::string_view field,
                                                     const DType& dtype, const Shape& shape,
                                                     const MldfWriteOptions& options = {});

/// An array that becomes a field.
struct MldfColumn {
    std::string name;
    const ArraySource* source = nullptr;  ///< not owned
    std::optional<MldfType> type = {};    ///< such as JSON for text; else by the attribute "mldf", else by the dtype
};
/// Writes arrays of equal first dimension as one data set, in blocks of samples within io.max_memory. Columns that were
/// fields of an MLDF file (attribute "mldf") get their type and place back. "image.record" columns return into the
/// records. Throws invalid_argument if lengths differ, and unsupported as create_mldf.
void write_mldf(const std::filesystem::path& path, std::span<const MldfColumn> columns,
                const MldfWriteOptions& options = {}, const IoOptions& io = {});

/// The findings of a check or a comparison.
struct MldfReport {
    Value summary = Value::object();    ///< the header's facts; empty if the header cannot be read
    std::vector<std::string> findings;  ///< the first ones, in the file's order; each names field and sample
    std::uint64_t finding_count = 0;    ///< all of them
};
struct MldfCheckOptions {
    bool payloads = true;     ///< read payloads too: checksum, UTF-8, JSON
    std::size_t limit = 100;  ///< findings that are kept
};
/// Header facts: version, flags, counts, pointers, fields with type, dtype and shape.
[[nodiscard]] Value mldf_summary(const MldfReader& reader);
/// Checks every pointer, size and table of a file. Damage is a finding, not an exception. Throws only if the file
/// cannot be read at all (not_found, io).
[[nodiscard]] MldfReport validate_mldf(std::shared_ptr<const ByteSource> file, const MldfCheckOptions& options = {});
[[nodiscard]] MldfReport validate_mldf(const std::filesystem::path& path, const MldfCheckOptions& options = {});
/// Finds differences of header, fields and samples, but not of payload positions. Fields are paired by name.
[[nodiscard]] MldfReport compare_mldf(const MldfReader& a, const MldfReader& b, const MldfCheckOptions& options = {});

}  // namespace tessera
