#include "plain_file.h"

#include <algorithm>
#include <array>
#include <limits>
#include <mutex>
#include <utility>

#include <tessera/error_text.h>

namespace tessera {

namespace {

class PlainSource final : public ArraySource {
public:
    PlainSource(std::shared_ptr<const ByteSource> file, PlainLayout layout, Value attributes)
        : file_(std::move(file)), layout_(std::move(layout)), attributes_(std::move(attributes)) {
        info_ = {
            layout_.dtype, layout_.shape, {}, layout_.order, file_->sequential() ? Access::sequential : Access::any};
    }
    ArrayInfo info() const override { return info_; }
    const std::string& name() const override { return layout_.name; }
    Value attribute_values() const override { return attributes_; }
    void read_into(const Region& region, const MutableArrayView& out, const IoOptions& io) const override {
        read_plain(*file_, layout_, region, out, io);
    }

private:
    std::shared_ptr<const ByteSource> file_;
    PlainLayout layout_;
    Value attributes_;
    ArrayInfo info_;
};

/// One array of several in a file that can be written anywhere.
class PartSink final : public ArraySink {
public:
    PartSink(ByteSink& file, PlainLayout layout) : file_(file), layout_(std::move(layout)) {
        info_ = {layout_.dtype, layout_.shape, {}, layout_.order, Access::any};
    }
    ArrayInfo info() const override { return info_; }
    const std::string& name() const override { return layout_.name; }
    void write(const Region& region, const ArrayView& in, const IoOptions& io) override {
        const std::lock_guard lock(writing_);  // as in PlainSink
        write_plain(layout_, region, in, false, io,
                    [&](std::uint64_t offset, ByteSpan bytes) { file_.write_at(offset, bytes); });
    }
    void finish() override {}

private:
    std::mutex writing_;
    ByteSink& file_;
    PlainLayout layout_;
    ArrayInfo info_;
};

class PlainSink final : public ArraySink {
public:
    PlainSink(std::unique_ptr<ByteSink> sink, std::string_view header, const DType& dtype, const Shape& shape,
              Order order, ByteSpan trailing)
        : sink_(std::move(sink)), trailing_(trailing) {
        layout_ = {name(), header.size(), dtype, shape, order};
        end_ = header.size();
        size_ = end_ + static_cast<std::uint64_t>(byte_count(shape, dtype.size()));
        if (size_ > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()) - trailing.size()) {
            throw invalid_argument("{}: shape {} is too large for a file", name(), shape.to_string());
        }
        info_ = {dtype, shape, {}, order, sink_->random_access() ? Access::any : Access::stream};
        sink_->append(std::as_bytes(std::span(header)));
        // The last byte gives the file its length; unwritten parts before it stay holes, which read as zeros.
        if (sink_->random_access() && size_ > end_) sink_->write_at(size_ - 1, std::array{std::byte{0}});
    }
    ArrayInfo info() const override { return info_; }
    const std::string& name() const override { return sink_->name(); }
    void write(const Region& region, const ArrayView& in, const IoOptions& io) override {
        // The kernel serialises writes to one file, piece by piece. Two threads that write at once take turns, finish
        // at the same time, and then nobody writes while both read. So threads write region by region.
        const std::lock_guard lock(writing_);
        const bool stream = info_.access == Access::stream;
        write_plain(layout_, region, in, stream, io, [&](std::uint64_t offset, ByteSpan bytes) {
            if (!stream) return sink_->write_at(offset, bytes);
            if (offset < end_) {
                throw invalid_argument(
                    "{}: region {} lies before what was written already; a stream takes "
                    "regions in memory order only",
                    name(), region.to_string());
            }
            append_zeros(offset);
            sink_->append(bytes);
            end_ += bytes.size();
        });
    }
    void finish() override {
        if (info_.access == Access::stream) {
            append_zeros(size_);
            sink_->append(trailing_);
        } else if (!trailing_.empty()) {
            sink_->write_at(size_, trailing_);
        }
        sink_->finish();
    }

private:
    void append_zeros(std::uint64_t end) {
        static constexpr std::array<std::byte, 1 << 16> zeros{};
        while (end_ < end) {
            const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(zeros.size(), end - end_));
            sink_->append(std::span(zeros).first(n));
            end_ += n;
        }
    }

    std::mutex writing_;
    std::unique_ptr<ByteSink> sink_;
    Buffer trailing_;
    PlainLayout layout_;
    ArrayInfo info_;
    std::uint64_t end_ = 0;   // of what was appended
    std::uint64_t size_ = 0;  // of the header and the elements
};

}  // namespace

std::unique_ptr<ArraySource> plain_source(std::shared_ptr<const ByteSource> file, PlainLayout layout,
                                          Value attributes) {
    return std::make_unique<PlainSource>(std::move(file), std::move(layout), std::move(attributes));
}

std::unique_ptr<ArraySink> part_sink(ByteSink& file, PlainLayout layout) {
    return std::make_unique<PartSink>(file, std::move(layout));
}

std::unique_ptr<ArraySink> plain_sink(std::unique_ptr<ByteSink> sink, std::string_view header, const DType& dtype,
                                      const Shape& shape, Order order, ByteSpan trailing) {
    return std::make_unique<PlainSink>(std::move(sink), header, dtype, shape, order, trailing);
}

}  // namespace tessera
