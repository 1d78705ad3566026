// A sink over an existing file. Elements are written by pwrite and not through a mapping, because a full disk and a
// file that somebody cuts off are errors of pwrite, and would end the process otherwise.
#include <tessera/descriptor.h>
#include <tessera/update_file.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <tessera/error_text.h>
#include <tessera/npy.h>
#include <tessera/raw_array.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "plain_file.h"

namespace tessera {

namespace {

/// Where the elements of a file are.
PlainLayout layout_in(const ByteSource& file) {
    const ArrayFileFormat* const format = array_file_format_of(file);
    if (format != nullptr && format->name == "npy") {
        const NpyHeader h = read_npy_header(file);
        if (h.dtype.kind() == Kind::object) {
            throw unsupported("{}: Python objects cannot be changed in place", file.name());
        }
        return {file.name(), h.data_offset, h.dtype, h.shape, h.order};
    }
    if (format != nullptr && format->name == "ra") {
        const RawArrayHeader h = read_raw_array_header(file);
        if (h.encoding != RawArrayEncoding::plain) {
            throw unsupported("{}: the elements are compressed ({}) and cannot be changed in place", file.name(),
                              to_string(h.encoding));
        }
        return {file.name(), h.data_offset, h.dtype, h.dims, Order::F};
    }
    if (format == nullptr) throw no_array_file(file.name());
    throw unsupported("{}: of array files only .npy and .ra are changed in place; a copy as an array can be changed",
                      file.name());
}

/// Bytes of an existing file.
class ExistingFile final : public ByteSink {
public:
    ExistingFile(const std::filesystem::path& path, bool durable)
        : name_(path.string()), durable_(durable), file_(open_at(AT_FDCWD, name_.c_str(), O_RDWR | O_NONBLOCK)) {
        if (!file_) throw io_error("opening to write", name_, errno);
    }

    [[nodiscard]] bool random_access() const override { return true; }
    void append(ByteSpan /*bytes*/) override {}  // never: its length stays
    void write_at(std::uint64_t offset, ByteSpan bytes) override {
        if (!pwrite_all(file_.get(), bytes, offset)) throw io_error("writing", name_, errno);
    }
    void finish() override {
        if (durable_ && ::fdatasync(file_.get()) != 0) throw io_error("writing to the disk", name_, errno);
    }
    [[nodiscard]] const std::string& name() const override { return name_; }

private:
    std::string name_;
    bool durable_;
    Descriptor file_;
};

class UpdateSink final : public ArraySink {
public:
    UpdateSink(const std::filesystem::path& path, PlainLayout layout, bool durable)
        : file_(path, durable), elements_(part_sink(file_, std::move(layout))) {}

    [[nodiscard]] ArrayInfo info() const override { return elements_->info(); }
    [[nodiscard]] const std::string& name() const override { return file_.name(); }
    void write(const Region& region, const ArrayView& in, const IoOptions& io) override {
        elements_->write(region, in, io);
    }
    void finish() override { file_.finish(); }

private:
    ExistingFile file_;
    std::unique_ptr<ArraySink> elements_;
};

}  // namespace

std::unique_ptr<ArraySink> update_array_file(const ArrayPath& path, bool durable) {
    if (path.member)
        throw unsupported("{}::{}: a part of an array file is not changed in place", path.path.string(), *path.member);
    return std::make_unique<UpdateSink>(path.path, layout_in(*path.bytes()), durable);
}

}  // namespace tessera
