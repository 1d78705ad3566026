#include <tessera/byte_io.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <utility>

#include <tessera/error_text.h>

namespace tessera {

namespace {

class MemorySource final : public ByteSource {
public:
    MemorySource(Buffer bytes, std::string name) : bytes_(std::move(bytes)), name_(std::move(name)) {}
    std::uint64_t size() const override { return bytes_.size(); }
    const std::string& name() const override { return name_; }
    ByteSpan mapped() const override { return bytes_.span(); }
    void read(std::uint64_t offset, MutableByteSpan out) const override {
        require_range(*this, offset, out.size());
        if (!out.empty()) std::memcpy(out.data(), bytes_.data() + offset, out.size());
    }

private:
    Buffer bytes_;
    std::string name_;
};

class SliceSource final : public ByteSource {
public:
    SliceSource(std::shared_ptr<const ByteSource> whole, std::uint64_t offset, std::uint64_t length, std::string name)
        : whole_(std::move(whole)), offset_(offset), length_(length), name_(std::move(name)) {
        require_range(*whole_, offset_, length_);
    }
    std::uint64_t size() const override { return length_; }
    const std::string& name() const override { return name_; }
    bool sequential() const override { return whole_->sequential(); }
    std::uint64_t worth_skipping() const override { return whole_->worth_skipping(); }
    ByteSpan mapped() const override {
        const ByteSpan all = whole_->mapped();
        return all.empty() ? all : all.subspan(offset_, length_);
    }
    void read(std::uint64_t offset, MutableByteSpan out) const override {
        require_range(*this, offset, out.size());
        whole_->read(offset_ + offset, out);
    }
    void drop_cache(std::uint64_t offset, std::uint64_t length) const override {
        whole_->drop_cache(offset_ + offset, length);
    }

private:
    std::shared_ptr<const ByteSource> whole_;
    std::uint64_t offset_, length_;
    std::string name_;
};

}  // namespace

void ByteSource::drop_cache(std::uint64_t, std::uint64_t) const {}

Buffer read_all(const ByteSource& source) {
    return read_range(source, 0, source.size());
}

Buffer read_range(const ByteSource& source, std::uint64_t offset, std::uint64_t length) {
    require_range(source, offset,
                  length);  // before the length is believed and allocated
    // A size claimed for packed bytes can pass every check and still exceed the memory that exists.
    if (length > static_cast<std::uint64_t>(PTRDIFF_MAX)) {
        throw corrupt("{}: {} bytes are more than memory can hold", source.name(), length);
    }
    Buffer bytes;
    try {
        bytes.resize(static_cast<std::size_t>(length));
    } catch (const std::bad_alloc&) {
        throw corrupt("{}: {} bytes are more than memory can hold", source.name(), length);
    }
    source.read(offset, bytes.span());
    return bytes;
}

void require_range(const ByteSource& source, std::uint64_t offset, std::uint64_t length) {
    if (offset > source.size() || length > source.size() - offset) {
        throw corrupt("{}: {} bytes are needed at offset {}, but there are only {} bytes in all", source.name(), length,
                      offset, source.size());
    }
}

std::unique_ptr<ByteSource> memory_source(Buffer bytes, std::string name) {
    return std::make_unique<MemorySource>(std::move(bytes), std::move(name));
}

std::unique_ptr<ByteSource> slice_source(std::shared_ptr<const ByteSource> whole, std::uint64_t offset,
                                         std::uint64_t length, std::string name) {
    return std::make_unique<SliceSource>(std::move(whole), offset, length, std::move(name));
}

}  // namespace tessera
