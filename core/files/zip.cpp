#include <fcntl.h>
#include <libdeflate.h>
#include <unistd.h>
#include <zip.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <exception>
#include <limits>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <tessera/descriptor.h>
#include <tessera/error_text.h>
#include <tessera/little_endian.h>
#include <tessera/memory_account.h>
#include <tessera/parallel.h>
#include <tessera/zip.h>

#include "mapped_file.h"
#include "zip_directory.h"

namespace tessera {

// ---- reading, by libzip

namespace {

/// Turns libzip's report into an Error: a system call that failed is io, everything else is damage.
Error zip_failure(std::string_view where, zip_error_t* e) {
    if (zip_error_code_zip(e) == ZIP_ER_MEMORY) throw std::bad_alloc();
    if (zip_error_code_zip(e) == ZIP_ER_NOZIP) {
        return corrupt("{}: not a zip archive, or a truncated one: the end record is missing", where);
    }
    const ErrorCode code = zip_error_system_type(e) == ZIP_ET_SYS ? ErrorCode::io : ErrorCode::corrupt;
    return {code, fmt::format("{}: {}", where, zip_error_strerror(e))};
}

/// About the memory that libzip and we take for an archive's list of members, as its end record counts them. 0 for
/// small archives, and for one whose end record libzip will refuse.
std::uint64_t directory_memory(std::uint64_t size, const ZipRead& read) {
    constexpr std::uint64_t small = std::uint64_t{256} << 10;
    constexpr std::uint64_t of_member = 640, of_byte = 4;  // names are kept several times
    if (size < small || memory_left() == UINT64_MAX) return 0;
    const auto end = zip_end(size, read);
    return end ? of_member * end->members + of_byte * end->bytes : 0;
}

/// Any bytes as a source of libzip, which reads in small pieces: they are taken from a larger one. Thread rule: one
/// thread at a time.
class ZipBytes {
public:
    explicit ZipBytes(std::shared_ptr<const ByteSource> bytes) : bytes_(std::move(bytes)) { zip_error_init(&error_); }
    ~ZipBytes() { zip_error_fini(&error_); }
    ZipBytes(const ZipBytes&) = delete;
    ZipBytes& operator=(const ZipBytes&) = delete;

    /// A zip_source_callback; `self` is a ZipBytes.
    static zip_int64_t call(void* self, void* data, zip_uint64_t size, zip_source_cmd_t command) {
        return static_cast<ZipBytes*>(self)->answer(data, size, command);
    }

    /// Rethrows the exception of a read. libzip cannot pass exceptions on.
    void rethrow() {
        if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
    }

    /// As a ZipRead; throws what the read throws.
    bool read_at(MutableByteSpan out, std::uint64_t offset) {
        const std::uint64_t before = std::exchange(at_, offset);
        const zip_int64_t n = read(out.data(), out.size());
        at_ = before;
        rethrow();
        return std::cmp_equal(n, out.size());
    }

private:
    zip_int64_t answer(void* data, zip_uint64_t size, zip_source_cmd_t command) {
        switch (command) {
            case ZIP_SOURCE_SUPPORTS:
                return ZIP_SOURCE_SUPPORTS_SEEKABLE;
            case ZIP_SOURCE_OPEN:
                at_ = 0;
                return 0;
            case ZIP_SOURCE_STAT: {
                auto* const stat = static_cast<zip_stat_t*>(data);
                zip_stat_init(stat);
                stat->valid = ZIP_STAT_SIZE;
                stat->size = bytes_->size();
                return sizeof *stat;
            }
            case ZIP_SOURCE_READ:
                return read(static_cast<std::byte*>(data), size);
            case ZIP_SOURCE_SEEK: {
                const zip_int64_t to = zip_source_seek_compute_offset(at_, bytes_->size(), data, size, &error_);
                if (to < 0) return -1;
                at_ = static_cast<std::uint64_t>(to);
                return 0;
            }
            case ZIP_SOURCE_TELL:
                return static_cast<zip_int64_t>(at_);
            case ZIP_SOURCE_ERROR:
                return zip_error_to_data(&error_, data, size);
            case ZIP_SOURCE_CLOSE:
            case ZIP_SOURCE_FREE:
                return 0;
            default:
                zip_error_set(&error_, ZIP_ER_OPNOTSUPP, 0);
                return -1;
        }
    }

    zip_int64_t read(std::byte* to, std::uint64_t size) {
        try {
            const std::uint64_t n = std::min(size, bytes_->size() - std::min(at_, bytes_->size()));
            if (n >= piece_size) {
                bytes_->read(at_, {to, static_cast<std::size_t>(n)});
            } else if (n > 0) {
                if (at_ < begin_ || at_ + n > begin_ + piece_.size()) fill();
                std::copy_n(piece_.data() + (at_ - begin_), n, to);
            }
            at_ += n;
            return static_cast<zip_int64_t>(n);
        } catch (...) {
            thrown_ = std::current_exception();
            zip_error_set(&error_, ZIP_ER_READ, EIO);
            return -1;
        }
    }

    /// Reads the piece from at_ on; near the end the one that ends there, where archives have their list of members.
    void fill() {
        const std::uint64_t length = std::min<std::uint64_t>(piece_size, bytes_->size());
        const std::uint64_t begin = std::min(at_, bytes_->size() - length);
        piece_ = Buffer();  // of no use if the read fails
        piece_ = read_range(*bytes_, begin, length);
        begin_ = begin;
    }

    static constexpr std::uint64_t piece_size = std::uint64_t{256} << 10;

    std::shared_ptr<const ByteSource> bytes_;
    std::uint64_t at_ = 0, begin_ = 0;
    Buffer piece_;
    zip_error_t error_{};
    std::exception_ptr thrown_;
};

/// DEFLATE cannot shrink data by more than this, so larger claims are refused.
constexpr std::uint64_t deflate_limit = 1032;

}  // namespace

struct ZipReader::State {
    explicit State(const std::filesystem::path& path) : name(path.string()) {
        std::uint64_t size = 0;
        Descriptor file = open_regular(path, O_RDONLY, size);
        // libzip takes an empty file for an empty archive; a real one has at least its end record.
        if (size < 22) throw corrupt("{}: not a zip archive: it has only {} bytes", name, size);
        copy = Descriptor(::fcntl(file.get(), F_DUPFD_CLOEXEC, 0));
        if (!copy) throw io_error("opening", name, errno);
        read = [this](MutableByteSpan out, std::uint64_t offset) {
            return pread_all(copy.get(), out, offset) == out.size();
        };
        hold_directory(size);
        int reason = 0;
        archive.reset(zip_fdopen(file.get(), 0, &reason));
        if (archive == nullptr) {
            zip_error_t e;
            zip_error_init_with_code(&e, reason);
            const Error error = zip_failure(name, &e);
            zip_error_fini(&e);
            throw error;
        }
        (void)file.release();  // libzip's now
        file_size = size;
        list_members();
    }
    explicit State(const std::shared_ptr<const ByteSource>& file)
        : name(file->name()), file_size(file->size()), far(std::make_unique<ZipBytes>(file)) {
        if (file_size < 22) throw corrupt("{}: not a zip archive: it has only {} bytes", name, file_size);
        read = [this](MutableByteSpan out, std::uint64_t offset) { return far->read_at(out, offset); };
        hold_directory(file_size);
        zip_error_t e;
        zip_error_init(&e);
        zip_source_t* const source = zip_source_function_create(ZipBytes::call, far.get(), &e);
        archive.reset(source == nullptr ? nullptr : zip_open_from_source(source, ZIP_RDONLY, &e));
        if (archive == nullptr) {
            if (source != nullptr) zip_source_free(source);
            const Error error = zip_failure(name, &e);
            zip_error_fini(&e);
            far->rethrow();
            throw error;
        }
        zip_error_fini(&e);
        list_members();
    }

    void hold_directory(std::uint64_t size) {
        in_context([&] { return name; }, [&] { held.add(directory_memory(size, read)); });
    }

    void list_members() {
        for (zip_int64_t i = 0; i < zip_get_num_entries(archive.get(), 0); ++i) {
            zip_stat_t s;
            if (zip_stat_index(archive.get(), static_cast<zip_uint64_t>(i), 0, &s) != 0) {
                throw zip_failure(name, zip_get_error(archive.get()));
            }
            members.push_back({s.name, s.size, s.comp_size, s.comp_method == ZIP_CM_STORE});
            stats.push_back(s);
        }
        const auto end = zip_end(file_size, read);
        if (!end || end->members != members.size()) {
            throw corrupt("{}: its end record does not count its {} members", name, members.size());
        }
        directory.emplace(name, *end, read);
    }

    /// Where the bytes of a member begin. The caller holds the mutex.
    std::uint64_t data_offset(std::size_t index) {
        const zip_stat_t& s = stats[index];
        const char* const stored_name = zip_get_name(archive.get(), index, ZIP_FL_ENC_RAW);
        return directory->data_offset(index,
                                      {.name = stored_name == nullptr ? "" : stored_name,
                                       .method = s.comp_method,
                                       .crc = s.crc,
                                       .size = s.size,
                                       .compressed = s.comp_size},
                                      fmt::format("{}::{}", name, s.name), read);
    }

    std::string name;
    std::uint64_t file_size = 0;
    std::unique_ptr<ZipBytes> far;  // of an archive that is no file here
    Descriptor copy;                // of one that is
    ZipRead read;
    std::optional<ZipDirectory> directory;
    MemoryHold held;   // for the list of members
    std::mutex mutex;  // libzip's handles share the archive's file position
    struct Discard {
        void operator()(zip_t* opened) const { zip_discard(opened); }
    };
    std::unique_ptr<zip_t, Discard> archive;  // also of one whose list of members is damaged
    std::vector<ZipMember> members;
    std::vector<zip_stat_t> stats;
};

namespace {

/// A member's bytes. Ascending reads from the start let libzip check the CRC-32 at the end.
template <class State>
class MemberSource final : public ByteSource {
public:
    MemberSource(std::shared_ptr<State> zip, std::size_t index)
        : zip_(std::move(zip)), index_(index), name_(zip_->name + "::" + zip_->members[index].name) {
        const zip_stat_t& s = zip_->stats[index];
        if (s.encryption_method != ZIP_EM_NONE) throw unsupported(name_ + ": encrypted members are not read");
        if (s.comp_method != ZIP_CM_STORE && s.comp_method != ZIP_CM_DEFLATE) {
            throw unsupported("{}: compression method {}; stored (0) and deflated (8) members are read", name_,
                              s.comp_method);
        }
        const bool stored = s.comp_method == ZIP_CM_STORE;
        if (s.comp_size > zip_->file_size || (stored ? s.size != s.comp_size : s.size / deflate_limit > s.comp_size)) {
            throw corrupt("{}: {} bytes cannot come from {} in an archive of {}", name_, s.size, s.comp_size,
                          zip_->file_size);
        }
        const std::lock_guard lock(zip_->mutex);
        (void)zip_->data_offset(index);
        rewind();
    }
    ~MemberSource() override {
        const std::lock_guard lock(zip_->mutex);
        if (file_ != nullptr) zip_fclose(file_);
    }
    MemberSource(const MemberSource&) = delete;
    MemberSource& operator=(const MemberSource&) = delete;

    std::uint64_t size() const override { return member().size; }
    const std::string& name() const override { return name_; }
    bool sequential() const override { return true; }

    void read(std::uint64_t offset, MutableByteSpan out) const override {
        require_range(*this, offset, out.size());
        const std::lock_guard lock(zip_->mutex);
        seek(offset);
        next(out);
        // At the end libzip compares the CRC-32, but only when asked for more.
        std::byte none;
        if (position_ == size() && zip_fread(file_, &none, 1) != 0) throw failure();
    }

private:
    const ZipMember& member() const { return zip_->members[index_]; }

    void rewind() const {
        if (file_ != nullptr) zip_fclose(std::exchange(file_, nullptr));
        position_ = 0;
        file_ = zip_fopen_index(zip_->archive.get(), index_, 0);
        if (file_ != nullptr) return;
        if (zip_->far) zip_->far->rethrow();
        throw zip_failure(name_, zip_get_error(zip_->archive.get()));
    }

    void seek(std::uint64_t offset) const {
        if (file_ == nullptr) rewind();  // the last read failed
        if (member().stored && offset != position_) {
            if (zip_fseek(file_, static_cast<zip_int64_t>(offset), SEEK_SET) != 0) throw failure();
            position_ = offset;
        }
        if (offset < position_) rewind();
        std::array<std::byte, 1 << 16> skipped;
        while (position_ < offset) {
            require_not_stopped();
            next(std::span(skipped).first(std::min<std::uint64_t>(skipped.size(), offset - position_)));
        }
    }

    void next(MutableByteSpan out) const {
        while (!out.empty()) {
            const zip_int64_t n = zip_fread(file_, out.data(), out.size());
            if (n < 0) throw failure();
            if (n == 0) throw corrupt("{}: it ends after {} of {} bytes", name_, position_, size());
            position_ += static_cast<std::uint64_t>(n);
            out = out.subspan(static_cast<std::size_t>(n));
        }
    }

    /// Drops the handle, because a failed one stays failed. The next read opens the member anew.
    Error failure() const {
        zip_error_t* e = zip_file_get_error(file_);
        const Error error = zip_error_code_zip(e) == ZIP_ER_OK ? corrupt(name_ + ": it goes on after its stated size")
                                                               : zip_failure(name_, e);
        zip_fclose(std::exchange(file_, nullptr));
        if (zip_->far) zip_->far->rethrow();
        return error;
    }

    std::shared_ptr<State> zip_;
    std::size_t index_;
    std::string name_;
    mutable zip_file_t* file_ = nullptr;  // guarded by zip_->mutex, as all below
    mutable std::uint64_t position_ = 0;
};

}  // namespace

ZipReader::ZipReader(const std::filesystem::path& path) : state_(std::make_shared<State>(path)) {}
ZipReader::ZipReader(const std::shared_ptr<const ByteSource>& file) : state_(std::make_shared<State>(file)) {}
ZipReader::~ZipReader() = default;
ZipReader::ZipReader(ZipReader&&) noexcept = default;
ZipReader& ZipReader::operator=(ZipReader&&) noexcept = default;

const std::vector<ZipMember>& ZipReader::members() const {
    return state_->members;
}

std::shared_ptr<const ByteSource> ZipReader::open(std::string_view name) const {
    const auto& members = state_->members;
    // If two members share a name, the last one counts, as in Python.
    const auto found =
        std::find_if(members.rbegin(), members.rend(), [&](const ZipMember& m) { return m.name == name; });
    if (found == members.rend()) {
        std::vector<std::string_view> names;
        for (const ZipMember& m : members) names.push_back(m.name);
        throw not_found("{} has no member '{}'; it has: {}", state_->name, name, fmt::join(names, ", "));
    }
    return open(static_cast<std::size_t>(members.rend() - found) - 1);
}

std::unique_ptr<ByteSource> ZipReader::open(std::size_t index) const {
    return std::make_unique<MemberSource<State>>(state_, index);
}

std::uint64_t ZipReader::stored_offset(std::size_t index) const {
    const std::lock_guard lock(state_->mutex);
    return state_->data_offset(index);
}

// ---- writing

// libzip would hold everything until it closes. minizip copies stored bytes one by one, and writes each number of a
// header by itself.

namespace {

constexpr std::uint64_t most32 = 0xFFFFFFFF;
constexpr std::uint16_t zip64_version = 45;
constexpr std::uint16_t utf8_names = 1 << 11;
constexpr std::uint32_t the_date = 1 << 21 | 1 << 16;  // 1980-01-01, as NumPy: the same content gives the same bytes

/// Numbers of a header, little-endian.
class Record {
public:
    template <class T>
    Record& put(std::type_identity_t<T> value) {
        bytes_.resize(bytes_.size() + sizeof(T));
        store_little<T>(bytes_.data() + bytes_.size() - sizeof(T), value);
        return *this;
    }
    Record& put(std::string_view text) {
        const auto* const p = reinterpret_cast<const std::byte*>(text.data());
        bytes_.insert(bytes_.end(), p, p + text.size());
        return *this;
    }
    [[nodiscard]] ByteSpan bytes() const { return bytes_; }

private:
    std::vector<std::byte> bytes_;
};

std::uint32_t capped(std::uint64_t n) {
    return static_cast<std::uint32_t>(std::min(n, most32));
}

struct WrittenMember {
    std::string name;
    std::uint16_t flags = 0, method = 0;
    std::uint32_t crc = 0;
    std::uint64_t size = 0, compressed = 0, offset = 0;

    /// The header before its bytes. There is room for large sizes always, as NumPy has: they are not known before.
    [[nodiscard]] Record local_header() const {
        const bool large = size >= most32 || compressed >= most32;
        Record r;
        r.put<std::uint32_t>(0x04034b50).put<std::uint16_t>(zip64_version).put<std::uint16_t>(flags);
        r.put<std::uint16_t>(method).put<std::uint32_t>(the_date).put<std::uint32_t>(crc);
        r.put<std::uint32_t>(capped(large ? most32 : compressed)).put<std::uint32_t>(capped(large ? most32 : size));
        r.put<std::uint16_t>(static_cast<std::uint16_t>(name.size())).put<std::uint16_t>(20).put(name);
        r.put<std::uint16_t>(1).put<std::uint16_t>(16);
        r.put<std::uint64_t>(large ? size : 0).put<std::uint64_t>(large ? compressed : 0);
        return r;
    }
    void add_to_directory(Record& r) const {
        Record large;
        for (const std::uint64_t n : {size, compressed, offset}) {
            if (n >= most32) large.put<std::uint64_t>(n);
        }
        const auto more = static_cast<std::uint16_t>(large.bytes().size());
        // Made by Unix: for archives made by DOS, unzip takes the names to be in DOS's character set.
        r.put<std::uint32_t>(0x02014b50).put<std::uint16_t>(3 << 8 | zip64_version);
        r.put<std::uint16_t>(more > 0 ? zip64_version : 20).put<std::uint16_t>(flags).put<std::uint16_t>(method);
        r.put<std::uint32_t>(the_date).put<std::uint32_t>(crc);
        r.put<std::uint32_t>(capped(compressed)).put<std::uint32_t>(capped(size));
        r.put<std::uint16_t>(static_cast<std::uint16_t>(name.size()));
        r.put<std::uint16_t>(static_cast<std::uint16_t>(more > 0 ? more + 4 : 0));
        r.put<std::uint16_t>(0).put<std::uint16_t>(0).put<std::uint16_t>(0);  // comment, disk, kind of content
        r.put<std::uint32_t>(0100644U << 16U).put<std::uint32_t>(capped(offset)).put(name);
        if (more == 0) return;
        r.put<std::uint16_t>(1).put<std::uint16_t>(more);
        r.put({reinterpret_cast<const char*>(large.bytes().data()), more});
    }
};

}  // namespace

struct ZipWriter::State {
    State(const std::filesystem::path& path, bool durable) : sink(create_file(path, durable)) {}
    void write(ByteSpan bytes) {
        sink->write_at(position, bytes);
        position += bytes.size();
    }
    void require_no_open_member() const {
        if (open_member.empty()) return;
        throw invalid_argument("{}: member '{}' is not finished", sink->name(), open_member);
    }

    std::unique_ptr<ByteSink> sink;
    std::uint64_t position = 0;
    std::set<std::string, std::less<>> names;
    std::string open_member;
    Record directory;
    std::uint64_t count = 0;  ///< of members in it
};

namespace {

template <class State>
class MemberSink final : public ByteSink {
public:
    MemberSink(std::shared_ptr<State> zip, WrittenMember member, int level)
        : zip_(std::move(zip)), member_(std::move(member)), name_(zip_->sink->name() + "::" + member_.name) {
        member_.offset = zip_->position;
        zip_->write(member_.local_header().bytes());
        begin_ = zip_->position;
        if (level == 0) return;
        deflated_.resize(std::size_t{1} << 16U);
        if (deflateInit2(&stream_, level, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK)
            throw std::bad_alloc();
    }
    ~MemberSink() override { end(); }
    MemberSink(const MemberSink&) = delete;
    MemberSink& operator=(const MemberSink&) = delete;

    bool random_access() const override { return false; }
    const std::string& name() const override { return name_; }
    void append(ByteSpan bytes) override {
        if (bytes.empty()) return;  // libdeflate begins anew without bytes
        member_.crc = libdeflate_crc32(member_.crc, bytes.data(), bytes.size());
        member_.size += bytes.size();
        if (member_.method == 0) {
            zip_->write(bytes);
            return;
        }
        while (!bytes.empty()) {
            const std::size_t n = std::min<std::size_t>(bytes.size(), 1 << 30);  // zlib counts in 32 bits
            deflate_bytes(bytes.first(n), Z_NO_FLUSH);
            bytes = bytes.subspan(n);
        }
    }
    void write_at(std::uint64_t, ByteSpan) override {
        throw invalid_argument(name_ + ": a member of a zip archive is written from front to back only");
    }
    void finish() override {
        if (member_.method != 0) deflate_bytes({}, Z_FINISH);
        end();
        member_.compressed = zip_->position - begin_;
        zip_->sink->write_at(member_.offset, member_.local_header().bytes());
        member_.add_to_directory(zip_->directory);
        ++zip_->count;
        zip_->open_member.clear();
    }

private:
    void deflate_bytes(ByteSpan bytes, int flush) {
        stream_.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(bytes.data()));
        stream_.avail_in = static_cast<uInt>(bytes.size());
        do {
            stream_.next_out = reinterpret_cast<Bytef*>(deflated_.data());
            stream_.avail_out = static_cast<uInt>(deflated_.size());
            if (deflate(&stream_, flush) == Z_STREAM_ERROR) throw Error(ErrorCode::io, name_ + ": zlib failed");
            zip_->write(ByteSpan(deflated_).first(deflated_.size() - stream_.avail_out));
        } while (stream_.avail_out == 0);
    }
    void end() {
        if (!deflated_.empty()) deflateEnd(&stream_);
        deflated_.clear();
    }

    std::shared_ptr<State> zip_;
    WrittenMember member_;
    std::string name_;
    std::uint64_t begin_ = 0;  ///< of its bytes
    z_stream stream_{};
    std::vector<std::byte> deflated_;  ///< empty for a member that is stored
};

}  // namespace

ZipWriter::ZipWriter(const std::filesystem::path& path, bool durable)
    : state_(std::make_shared<State>(path, durable)) {}
ZipWriter::~ZipWriter() = default;
ZipWriter::ZipWriter(ZipWriter&&) noexcept = default;
ZipWriter& ZipWriter::operator=(ZipWriter&&) noexcept = default;

std::unique_ptr<ByteSink> ZipWriter::add(std::string_view name, int level) {
    State& s = *state_;
    s.require_no_open_member();
    WrittenMember member{.name = std::string(name)};
    if (name.empty() || name.size() > 0xFFFF || name.find('\0') != std::string_view::npos) {
        throw invalid_argument("{}: '{}' is no name for a member", s.sink->name(), name);
    }
    if (level < 0 || level > 9) throw invalid_argument("DEFLATE level {}: 0 (store) to 9 are known", level);
    if (!s.names.insert(member.name).second) {
        throw already_exists("{} has a member '{}' already", s.sink->name(), name);
    }
    const bool ascii =
        std::all_of(name.begin(), name.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
    // How much it was compressed.
    const int speed = level == 8 || level == 9 ? 2 : level == 2 ? 4 : level == 1 ? 6 : 0;
    member.flags = static_cast<std::uint16_t>((ascii ? 0 : utf8_names) | speed);
    member.method = level == 0 ? 0 : Z_DEFLATED;
    s.open_member = name;  // first, so that an archive with a header that is torn cannot be finished
    return std::make_unique<MemberSink<State>>(state_, std::move(member), level);
}

void ZipWriter::finish(const std::string& comment) {
    State& s = *state_;
    s.require_no_open_member();
    const std::uint64_t begin = s.position;
    const std::uint64_t size = s.directory.bytes().size();
    s.write(s.directory.bytes());
    Record end;
    if (begin >= most32 || s.count >= 0xFFFF) {
        end.put<std::uint32_t>(0x06064b50).put<std::uint64_t>(44).put<std::uint16_t>(zip64_version);
        end.put<std::uint16_t>(zip64_version).put<std::uint32_t>(0).put<std::uint32_t>(0);
        end.put<std::uint64_t>(s.count).put<std::uint64_t>(s.count).put<std::uint64_t>(size).put<std::uint64_t>(begin);
        end.put<std::uint32_t>(0x07064b50).put<std::uint32_t>(0).put<std::uint64_t>(s.position).put<std::uint32_t>(1);
    }
    const auto count = static_cast<std::uint16_t>(std::min<std::uint64_t>(s.count, 0xFFFF));
    end.put<std::uint32_t>(0x06054b50).put<std::uint16_t>(0).put<std::uint16_t>(0).put<std::uint16_t>(count);
    end.put<std::uint16_t>(count).put<std::uint32_t>(capped(size)).put<std::uint32_t>(capped(begin));
    end.put<std::uint16_t>(static_cast<std::uint16_t>(comment.size())).put(comment);
    s.write(end.bytes());
    s.sink->finish();
}

}  // namespace tessera
