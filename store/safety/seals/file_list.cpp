#include "file_list.h"

#include <tessera/little_endian.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <utility>

namespace tessera {

namespace {

/// The fields of a file that are written, as bits of one byte.
enum Column : std::uint8_t { has_size = 1, has_facts = 2, has_sum = 4, has_place = 8, has_origin = 16 };

class Writer {
public:
    explicit Writer(std::vector<std::byte>& bytes) : bytes_(bytes) { bytes_.clear(); }
    template <class T>
    void number(T value) {
        std::array<std::byte, sizeof(T)> raw{};
        store_little(raw.data(), value);
        add(raw);
    }
    void add(ByteSpan bytes) { bytes_.insert(bytes_.end(), bytes.begin(), bytes.end()); }

private:
    std::vector<std::byte>& bytes_;
};

/// Encodes everything except the path.
void encode(const ListedFile& file, std::vector<std::byte>& bytes) {
    const bool size = file.size != 0;
    const bool facts = file.modified != 0 || file.mode != 0;
    const bool sum = file.sum != Sha256{};
    const bool place = file.segment != 0 || file.extent != 0;
    const bool origin = file.origin != 0;
    Writer writer(bytes);
    writer.number(static_cast<std::uint8_t>((size ? has_size : 0) | (facts ? has_facts : 0) | (sum ? has_sum : 0) |
                                            (place ? has_place : 0) | (origin ? has_origin : 0)));
    if (size) writer.number(file.size);
    if (facts) writer.number(file.modified);
    if (facts) writer.number(file.mode);
    if (sum) writer.add(std::as_bytes(std::span(file.sum)));
    if (place) writer.number(file.segment);
    if (place) writer.number(file.extent);
    if (origin) writer.number(file.origin);
}

/// Returns the number of bytes read.
std::size_t decode(const std::byte* begin, ListedFile& file) {
    const std::byte* p = begin;
    const auto number = [&]<class T>(bool there, T& value) {
        value = there ? load_little<T>(p) : T{};
        if (there) p += sizeof(T);
    };
    std::uint8_t parts = 0;
    number(true, parts);
    const auto has = [&](Column part) { return (parts & part) != 0; };
    number(has(has_size), file.size);
    number(has(has_facts), file.modified);
    number(has(has_facts), file.mode);
    file.sum = {};
    if (has(has_sum)) {
        std::memcpy(file.sum.data(), p, file.sum.size());
        p += file.sum.size();
    }
    number(has(has_place), file.segment);
    number(has(has_place), file.extent);
    number(has(has_origin), file.origin);
    return static_cast<std::size_t>(p - begin);
}

/// Big-endian, so that bytes compare as numbers do.
template <class T>
void add_sortable(std::string& key, T value) {
    for (int shift = 8 * (static_cast<int>(sizeof value) - 1); shift >= 0; shift -= 8) {
        key += static_cast<char>(value >> static_cast<unsigned>(shift) & 0xFFU);
    }
}

}  // namespace

// ---- FileList

void FileList::append(const ListedFile& file) {
    if (size_ % block_files == 0) {
        blocks_.push_back(bytes_.size());
        first_begin_.push_back(first_paths_.size());
        first_paths_ += file.path;
    }
    encode(file, encoded_);
    std::array<std::byte, 4> length{};
    store_little(length.data(), static_cast<std::uint32_t>(file.path.size()));
    bytes_.append(length);
    bytes_.append(std::as_bytes(std::span(file.path)));
    bytes_.append(encoded_);
    ++size_;
    file_bytes_ += file.size;
}

std::string_view FileList::first_path(std::size_t block) const {
    const std::size_t begin = first_begin_[block];
    const std::size_t end = block + 1 < first_begin_.size() ? first_begin_[block + 1] : first_paths_.size();
    return std::string_view(first_paths_).substr(begin, end - begin);
}

std::size_t FileList::block_before(std::string_view path) const {
    std::size_t begin = 0;
    for (std::size_t end = blocks_.size(); end - begin > 1;) {
        const std::size_t middle = begin + (end - begin) / 2;
        (first_path(middle) < path ? begin : end) = middle;
    }
    return begin;
}

std::optional<FileList::Found> FileList::find(std::string_view path) const {
    if (empty()) return std::nullopt;
    Reader reader(*this, block_before(path) * block_files);
    while (const ListedFile* const file = reader.next()) {
        if (file->path == path) return Found{*file, reader.number()};
        if (file->path > path) break;
    }
    return std::nullopt;
}

std::uint64_t FileList::lower_bound(std::string_view path) const {
    if (empty()) return 0;
    Reader reader(*this, block_before(path) * block_files);
    while (const ListedFile* const file = reader.next()) {
        if (file->path >= path) return reader.number();
    }
    return size_;
}

FileList::Reader::Reader(const FileList& list, std::uint64_t from)
    : list_(list), next_(from / block_files * block_files) {
    while (next_ < from && next() != nullptr) {
    }
}

void FileList::Reader::load(std::size_t block) {
    const std::uint64_t begin = list_.blocks_[block];
    const std::uint64_t end = block + 1 < list_.blocks_.size() ? list_.blocks_[block + 1] : list_.bytes_.size();
    block_.resize(end - begin);
    list_.bytes_.read(begin, block_);
    at_ = 0;
}

const ListedFile* FileList::Reader::next() {
    if (next_ >= list_.size_) {
        next_ = list_.size_ + 1;
        return nullptr;
    }
    if (next_ % block_files == 0) load(next_ / block_files);
    const auto length = load_little<std::uint32_t>(block_.data() + at_);
    file_.path.assign(reinterpret_cast<const char*>(block_.data() + at_ + 4), length);
    at_ += 4 + length;
    at_ += decode(block_.data() + at_, file_);
    ++next_;
    return &file_;
}

// ---- FileSorter

void FileSorter::add(const ListedFile& file) {
    encode(file, value_);
    sorter_.add(file.path, value_);
}

void FileSorter::add_by_segment(const ListedFile& file) {
    key_.clear();
    add_sortable(key_, file.segment);
    add_sortable(key_, file.origin);
    add_sortable(key_, file.extent);
    encode(file, value_);
    const ByteSpan path = std::as_bytes(std::span(file.path));
    value_.insert(value_.end(), path.begin(), path.end());
    sorter_.add(key_, value_);
    by_segment_ = true;
}

FileList FileSorter::sort() {
    FileList list(folder_);
    ListedFile file;
    sorter_.sort([&](std::string_view key, ByteSpan value) {
        const std::size_t used = decode(value.data(), file);
        if (by_segment_) {
            file.path.assign(reinterpret_cast<const char*>(value.data() + used), value.size() - used);
        } else {
            file.path = key;
        }
        list.append(file);
    });
    return list;
}

FileList FileSorter::sort_unique(const std::function<void(const ListedFile& kept, const ListedFile& file)>& again) {
    FileList list(folder_);
    ListedFile kept;
    ListedFile file;
    sorter_.sort([&](std::string_view key, ByteSpan value) {
        decode(value.data(), file);
        file.path = key;
        if (!list.empty() && kept.path == key) {
            if (again) again(kept, file);
            return;
        }
        list.append(file);
        std::swap(kept, file);
    });
    return list;
}

// ---- SumColumn

SumColumn::SumColumn(const std::string& folder, std::uint64_t count) : spool_(folder) {
    const std::vector<std::byte> zeros(std::min<std::uint64_t>(count, 2048) * sizeof(Sha256));
    for (std::uint64_t left = count * sizeof(Sha256); left > 0;) {
        const std::size_t some = std::min<std::uint64_t>(left, zeros.size());
        spool_.append(ByteSpan(zeros).first(some));
        left -= some;
    }
}

Sha256 SumColumn::Reader::next() {
    constexpr std::uint64_t most = std::uint64_t{64} << 10;
    if (used_ == bytes_.size()) {
        bytes_.resize(std::min(most, column_.spool_.size() - at_));
        column_.spool_.read(at_, bytes_);
        at_ += bytes_.size();
        used_ = 0;
    }
    Sha256 sum{};
    std::memcpy(sum.data(), bytes_.data() + used_, sum.size());
    used_ += sum.size();
    return sum;
}

}  // namespace tessera
