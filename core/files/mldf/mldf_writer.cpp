#include <algorithm>

#include <fmt/format.h>

#include <tessera/error_text.h>

#include "mldf_format.h"
#include "plain_array.h"

namespace tessera {

namespace {

using namespace mldf;
namespace fs = std::filesystem;

/// Appends to a sink in large pieces.
class Buffered {
public:
    explicit Buffered(ByteSink& sink) : sink_(sink) {}
    void append(ByteSpan bytes) {
        if (pending_.size() + bytes.size() > block_bytes) flush();
        if (bytes.size() >= block_bytes) {
            sink_.append(bytes);
        } else {
            pending_.append(bytes);
        }
        size_ += bytes.size();
    }
    void append_zeros_to(std::uint64_t size) {
        static constexpr std::array<std::byte, 4096> zeros{};
        while (size_ < size) append(std::span(zeros).first(std::min<std::uint64_t>(zeros.size(), size - size_)));
    }
    void flush() {
        sink_.append(pending_);
        pending_.resize(0);
    }
    [[nodiscard]] std::uint64_t size() const { return size_; }

private:
    ByteSink& sink_;
    Buffer pending_;
    std::uint64_t size_ = 0;
};

/// A temporary file beside the one being written: appended to, then read.
class Spool {
public:
    explicit Spool(const fs::path& beside) {
        path_ = beside.parent_path() / temporary_name();
        sink_ = create_file(path_, false);
        out_.emplace(*sink_);
    }
    Spool(const Spool&) = delete;
    Spool& operator=(const Spool&) = delete;

    void append(ByteSpan bytes) { out_->append(bytes); }
    [[nodiscard]] std::uint64_t size() const { return out_->size(); }
    /// The appended bytes. The file loses its name now, and its space when the source is destroyed.
    std::unique_ptr<ByteSource> finish() {
        out_->flush();
        sink_->finish();
        auto source = open_file(path_);
        fs::remove(path_);
        return source;
    }

private:
    fs::path path_;
    std::unique_ptr<ByteSink> sink_;
    std::optional<Buffered> out_;
};

/// Calls body(bytes) for all of a source, in pieces of whole items.
void each_piece(const ByteSource& source, std::uint64_t item, const std::function<void(MutableByteSpan)>& body) {
    Buffer piece;
    const std::uint64_t step = std::max<std::uint64_t>(1, block_bytes / item) * item;
    for (std::uint64_t at = 0; at < source.size(); at += piece.size()) {
        piece.reset(std::min(step, source.size() - at));
        source.read(at, piece.span());
        body(piece.span());
    }
}

}  // namespace

struct MldfWriter::State {
    State(const fs::path& path, std::vector<MldfField> f, const MldfWriteOptions& o)
        : options(o),
          fields(std::move(f)),
          row_size(complete_fields(fields, path.string())),
          sink(create_file(path, options.durable)),
          rows(path),
          data(path),
          row(row_size) {
        static_cast<void>(lay_out(fields, 0, row_size, options));
        for (const MldfField& field : fields) {
            kinds.push_back(type_row(field.type).record);
            forms.push_back(field.type == MldfType::ndarray ? ndarray_form(field) : std::nullopt);
        }
    }

    /// The record of `field` in the current row. `kind` is what the call writes. A record of an open type takes the
    /// kind of its first call, because the pointers in it are corrected at the end.
    std::byte* begin(std::size_t field, TypeRow::Record kind) {
        if (field >= fields.size() || field < next) {
            throw invalid_argument("{}: field {} of {}; the fields of a sample are put in ascending order",
                                   sink->name(), field, fields.size());
        }
        if (kinds[field] == TypeRow::Record::open) kinds[field] = kind;
        const bool room = kind != TypeRow::Record::pointer || fields[field].metadata_size > pointer_size;
        if (kinds[field] != kind || !room) {
            throw wrong_kind(field, kind == TypeRow::Record::value ? "a record" : "a payload");
        }
        next = field + 1;
        return row.data() + fields[field].row_offset;
    }
    [[nodiscard]] Error wrong_kind(std::size_t field, std::string_view what) const {
        return invalid_argument("{}: field '{}' of type {} does not take {}", sink->name(), fields[field].name,
                                mldf_type_name(fields[field].type), what);
    }

    /// Pointer and size of a payload that is about to be appended. Pointers count from the start of the data region,
    /// whose position is known only at the end.
    void point(std::byte* record, std::size_t field, std::uint64_t size) const {
        if (size > most_payload_bytes) {
            throw unsupported("{}: {} bytes for sample {} of field '{}'; MLDF holds less than 4 GiB", sink->name(),
                              size, samples, fields[field].name);
        }
        if (size > 0) store_pointer(record, data.size(), size);
    }
    void append(ByteSpan bytes) {
        data.append(bytes);
        if (options.checksum) crc = crc32_after(crc, bytes);
    }

    MldfWriteOptions options;
    std::vector<MldfField> fields;
    std::vector<TypeRow::Record> kinds;
    std::vector<std::optional<Form>> forms;
    std::uint64_t row_size;
    std::unique_ptr<ByteSink> sink;
    Spool rows, data;
    std::vector<std::byte> row;
    std::size_t next = 0;  // the first field of the current sample that may be put
    std::uint64_t samples = 0;
    std::uint32_t crc = 0;
};

MldfWriter::MldfWriter(const fs::path& path, std::vector<MldfField> fields, const MldfWriteOptions& options)
    : state_(std::make_unique<State>(path, std::move(fields), options)) {}
MldfWriter::~MldfWriter() = default;
MldfWriter::MldfWriter(MldfWriter&&) noexcept = default;
MldfWriter& MldfWriter::operator=(MldfWriter&&) noexcept = default;

void MldfWriter::put(std::size_t field, std::int64_t value) {
    std::byte* record = state_->begin(field, TypeRow::Record::value);
    if (state_->fields[field].type != MldfType::integer) throw state_->wrong_kind(field, "an integer");
    store_little(record, value);
}

void MldfWriter::put(std::size_t field, double value) {
    std::byte* record = state_->begin(field, TypeRow::Record::value);
    if (state_->fields[field].type != MldfType::real) throw state_->wrong_kind(field, "a float");
    store_little(record, std::bit_cast<std::uint64_t>(value));
}

void MldfWriter::put_record(std::size_t field, ByteSpan record) {
    std::byte* to = state_->begin(field, TypeRow::Record::value);
    if (record.size() != state_->fields[field].metadata_size) throw state_->wrong_kind(field, "a record of this size");
    std::copy(record.begin(), record.end(), to);
}

void MldfWriter::put_bytes(std::size_t field, ByteSpan payload, ByteSpan tail) {
    std::byte* record = state_->begin(field, TypeRow::Record::pointer);
    if (tail.size() > state_->fields[field].metadata_size - pointer_size) {
        throw state_->wrong_kind(field, "as much beside the payload");
    }
    state_->point(record, field, payload.size());
    std::copy(tail.begin(), tail.end(), record + pointer_size);
    state_->append(payload);
}

void MldfWriter::put_array(std::size_t field, const ArrayView& array, std::uint32_t sample_rate) {
    State& s = *state_;
    std::byte* to = s.begin(field, TypeRow::Record::pointer);
    const MldfField& f = s.fields[field];
    const std::int64_t bytes = byte_count(array.shape, array.dtype.size());
    std::array<std::byte, 24> record{};  // of every type below
    s.point(record.data(), field, static_cast<std::uint64_t>(bytes));
    std::byte* tail = record.data() + pointer_size;
    const auto length = [&](int d) { return d < array.shape.rank() ? static_cast<std::uint64_t>(array.shape[d]) : 0; };
    switch (f.type) {
        case MldfType::image_raw:
            store_little(tail, static_cast<std::uint16_t>(length(0)));
            store_little(tail + 2, static_cast<std::uint16_t>(length(1)));
            store_little(tail + 4, static_cast<std::uint8_t>(length(2)));
            break;
        case MldfType::audio_waveform:
            store_little(tail, static_cast<std::uint32_t>(length(0)));
            store_little(tail + 4, sample_rate);
            store_little(tail + 8, static_cast<std::uint16_t>(length(1)));
            store_little(tail + 10, static_cast<std::uint8_t>(array.dtype.size() * 8));
            break;
        case MldfType::text_tokenized:
            // A number that does not fit is stored as 0, as for plain text: the size implies it.
            store_little(tail, static_cast<std::uint16_t>(length(0) <= 0xFFFF ? length(0) : 0));
            store_little(tail + 2, static_cast<std::uint8_t>(array.dtype.size() == 4 ? 1 : 2));
            break;
        default:
            break;
    }
    // The record must give the array's own shape again: lengths that its numbers cannot hold are refused.
    const std::optional<Form> form = f.type == MldfType::ndarray ? s.forms[field] : record_form(f, record.data());
    if (!form || !array.dtype.equal_but_order(form->dtype) || !(array.shape == form->shape)) {
        throw s.wrong_kind(
            field, fmt::format("an array of {} and shape {}", array.dtype.to_string(), array.shape.to_string()));
    }
    std::copy_n(record.begin(), std::min<std::size_t>(record.size(), f.metadata_size), to);
    write_plain({s.sink->name(), 0, form->dtype, form->shape}, Region::whole(form->shape), array, true, {.threads = 1},
                [&](std::uint64_t, ByteSpan run) { s.append(run); });
}

void MldfWriter::end_sample() {
    State& s = *state_;
    s.rows.append(s.row);
    std::fill(s.row.begin(), s.row.end(), std::byte{0});
    s.next = 0;
    ++s.samples;
}

namespace {

/// Calls body(record) for the pointer of every payload of a row, in the order of the data.
template <class State, class Body>
void each_pointer(const State& s, std::byte* row, const Body& body) {
    for (std::size_t f = 0; f < s.fields.size(); ++f) {
        std::byte* record = row + s.fields[f].row_offset;
        if (s.kinds[f] == TypeRow::Record::pointer && pointer_of(record).size > 0) body(record);
    }
}

/// Calls body(row) for each of the spooled rows.
template <class Rows, class Body>
void each_row(const Rows& rows, std::size_t row_size, const Body& body) {
    if (row_size == 0) return;
    each_piece(rows, row_size, [&](MutableByteSpan piece) {
        for (std::size_t at = 0; at < piece.size(); at += row_size) body(piece.data() + at);
    });
}

}  // namespace

void MldfWriter::finish() {
    State& s = *state_;
    if (s.next != 0) throw invalid_argument("{}: the last sample was not ended", s.sink->name());
    const auto rows = s.rows.finish();
    const auto data = s.data.finish();
    MldfHeader header = lay_out(s.fields, s.samples, s.row_size, s.options);
    header.alloc_table_ptr = header.data_ptr + data->size();
    header.flags |= s.options.checksum ? mldf_checksummed : 0;
    header.checksum = s.crc;

    Buffered out(*s.sink);
    out.append(front_bytes(header, s.fields));
    const auto place = [&](std::byte* record) { store_little(record, pointer_of(record).ptr + header.data_ptr); };
    each_row(*rows, s.row_size, [&](std::byte* row) {
        each_pointer(s, row, place);
        out.append({row, s.row_size});
    });
    if (data->size() > 0) {  // else the file ends here
        out.append_zeros_to(header.data_ptr);
        each_piece(*data, 1, [&](ByteSpan piece) { out.append(piece); });
        each_row(*rows, s.row_size, [&](std::byte* row) {
            each_pointer(s, row, [&](std::byte* record) {
                place(record);
                std::array<std::byte, allocation_size> entry{};
                std::copy_n(record, pointer_size, entry.begin());
                out.append(entry);
            });
        });
    }
    out.flush();
    s.sink->finish();
}

}  // namespace tessera
