#include "object_array.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include <tessera/copy_elements.h>
#include <tessera/error_text.h>
#include <tessera/ndarray.h>

#include "pickle.h"
#include "plain_array.h"

namespace tessera {

namespace {

std::uint64_t content_bytes(const ArrayView& slots, const std::byte* at, int d = 0) {
    if (d == slots.shape.rank()) return reinterpret_cast<const VariableSlot*>(at)->size;
    std::uint64_t sum = 0;
    for (std::int64_t i = 0; i < slots.shape[d]; ++i) sum += content_bytes(slots, at + i * slots.strides[d], d + 1);
    return sum;
}

class ObjectSource final : public ArraySource {
public:
    ObjectSource(std::shared_ptr<const ByteSource> file, const ArrayInfo& header, std::uint64_t offset)
        : name_(file->name()), info_(header) {
        try {
            in_context([&] { return name_; }, [&] { read(*file, offset); });
        } catch (const Error& e) {
            if (e.code() != ErrorCode::corrupt && e.code() != ErrorCode::unsupported) throw;
            refusal_ = e;
        }
    }
    ArrayInfo info() const override { return info_; }
    const std::string& name() const override { return name_; }
    void read_into(const Region& region, const MutableArrayView& out, const IoOptions& io) const override {
        if (refusal_) throw *refusal_;
        const ArrayView elements = strings_.view().part(region);
        if (region.empty()) return;
        require_affordable(elements, io);
        copy_elements(elements, out);
    }

private:
    /// A pickle may use one long string for many elements, each of which becomes a copy of it.
    void require_affordable(const ArrayView& elements, const IoOptions& io) const {
        constexpr std::uint64_t default_memory = 256 << 20, most_for_each_byte = 16;
        const std::uint64_t most = std::max<std::uint64_t>(io.max_memory == 0 ? default_memory : io.max_memory,
                                                           most_for_each_byte * strings_.arena->bytes());
        const std::uint64_t needed = content_bytes(elements, elements.data);
        if (needed <= most) return;
        throw Error(
            ErrorCode::budget,
            fmt::format("{}: the strings of {} elements, which the file shares, are {} bytes as copies; at most "
                        "{} are read at once: read fewer elements, or allow more memory",
                        name_, elements.count(), needed, most));
    }

    void read(const ByteSource& file, std::uint64_t offset) {
        if (info_.dtype.kind() != Kind::object) {
            throw unsupported(
                "{} has Python objects inside a structure, which are not read; convert them "
                "in Python",
                info_.dtype.to_string());
        }
        strings_ = in_context([] { return "Python objects (pickle)"; },
                              [&] { return read_pickled_strings(read_range(file, offset, file.size() - offset)); });
        if (!(strings_.shape == info_.shape)) {
            throw corrupt("the header says shape {}, the pickle {}", info_.shape.to_string(),
                          strings_.shape.to_string());
        }
        info_.dtype = strings_.dtype;
    }

    std::string name_;
    ArrayInfo info_;
    PickledStrings strings_;
    std::optional<Error> refusal_;
};

class ObjectSink final : public ArraySink {
public:
    ObjectSink(std::unique_ptr<ByteSink> sink, std::string_view header, const DType& dtype, const Shape& shape,
               Order order)
        : sink_(std::move(sink)),
          info_{dtype, shape, {}, Order::C, Access::stream},
          count_(element_count(shape)),
          pickle_(dtype.kind(), shape, order == Order::F && !order_is_moot(shape),
                  [this](ByteSpan bytes) { sink_->append(bytes); }) {
        sink_->append(std::as_bytes(std::span(header)));
    }
    ArrayInfo info() const override { return info_; }
    const std::string& name() const override { return sink_->name(); }

    void write(const Region& region, const ArrayView& in, const IoOptions& io) override {
        in_context([&] { return name(); }, [&] { require_next(region, in); });
        if (region.empty()) return;
        skip_to(start_of(region));
        NDArray packed(DType::raw(sizeof(VariableSlot)), in.shape);  // copies slots without their content
        copy_elements({in.data, packed.dtype(), in.shape, in.strides}, packed);
        const auto* slots = reinterpret_cast<const VariableSlot*>(packed.bytes().data());
        for (std::int64_t i = 0; i < region.count(); ++i) {
            if (i % 4096 == 0 && io.stop.stop_requested()) throw cancelled("stopped on request");
            pickle_.add(slots[i].view());
        }
        next_ += region.count();
    }
    void finish() override {
        skip_to(count_);
        pickle_.finish();
        sink_->finish();
    }

private:
    /// Throws unless the region is a run of elements in C order, at or behind the end of the last one.
    void require_next(const Region& region, const ArrayView& in) const {
        require_inside(region, info_.shape);
        if (!(in.shape == region.extent) || in.dtype != info_.dtype) {
            throw invalid_argument("region {} of {} is given as {} of {}", region.to_string(), info_.dtype.to_string(),
                                   in.shape.to_string(), in.dtype.to_string());
        }
        bool whole_rows = true;
        for (int d = region.rank(), last = 1; d-- > 0;) {
            if (last == 0 && region.extent[d] != 1) whole_rows = false;
            if (region.extent[d] != info_.shape[d]) last = 0;
        }
        if (!region.empty() && (!whole_rows || start_of(region) < next_)) {
            throw invalid_argument("region {} is not next: an object array takes whole rows in C order only",
                                   region.to_string());
        }
    }
    std::int64_t start_of(const Region& region) const {
        std::int64_t n = 0;
        for (int d = 0; d < region.rank(); ++d) n = n * info_.shape[d] + region.start[d];
        return n;
    }
    void skip_to(std::int64_t element) {
        for (; next_ < element; ++next_) pickle_.add({});
    }

    std::unique_ptr<ByteSink> sink_;
    ArrayInfo info_;
    std::int64_t count_;
    std::int64_t next_ = 0;
    PickleWriter pickle_;
};

}  // namespace

std::unique_ptr<ArraySource> open_object_array(std::shared_ptr<const ByteSource> file, const ArrayInfo& header,
                                               std::uint64_t offset) {
    return std::make_unique<ObjectSource>(std::move(file), header, offset);
}

std::unique_ptr<ArraySink> create_object_array(std::unique_ptr<ByteSink> sink, std::string_view header,
                                               const DType& dtype, const Shape& shape, Order order) {
    return std::make_unique<ObjectSink>(std::move(sink), header, dtype, shape, order);
}

}  // namespace tessera
