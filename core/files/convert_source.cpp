#include "convert_source.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <string_view>

#include <fmt/format.h>

#include <tessera/chunk_grid.h>
#include <tessera/copy_elements.h>
#include <tessera/element.h>
#include <tessera/error_text.h>
#include <tessera/ndarray.h>
#include <tessera/slices.h>

#include <tessera/unicode.h>
#include <tessera/value.h>

namespace tessera {

namespace {

/// Base of the two conversions. It keeps all of the source's facts but the dtype, and reads in slices, so that little
/// memory is needed beside `out`.
class ConvertedSource : public ArraySource {
public:
    ConvertedSource(const ArraySource& source, const DType& dtype) : source_(source), dtype_(dtype) {}
    ArrayInfo info() const override {
        ArrayInfo info = source_.info();
        info.dtype = dtype_;
        return info;
    }
    const std::string& name() const override { return source_.name(); }
    Value attribute_values() const override { return source_.attribute_values(); }
    void read_into(const Region& region, const MutableArrayView& out, const IoOptions& io) const override {
        const ArrayInfo info = source_.info();
        for_each_slice(info, info.dtype.size() + dtype_.size(), region, io.stop, [&](const Region& slice) {
            NDArray from(info.dtype, slice.extent, info.order);
            source_.read_into(slice, from.view(), io);
            NDArray to(dtype_, slice.extent, info.order);
            convert(from, to);
            copy_elements(to, out.part(within(region, slice)));
        });
    }

protected:
    /// Converts all elements of `from` into `to`, both packed in the same order.
    virtual void convert(const NDArray& from, NDArray& to) const = 0;

private:
    const ArraySource& source_;
    DType dtype_;
};

class WidenedBfloat16 final : public ConvertedSource {
public:
    explicit WidenedBfloat16(const ArraySource& source)
        : ConvertedSource(source, DType::scalar(Kind::real, 4, ByteOrder::little)),
          big_(source.info().dtype.order() == ByteOrder::big) {}

private:
    void convert(const NDArray& from, NDArray& to) const override {
        // A bfloat16 is the upper half of a float32.
        const std::byte* in = from.bytes().data();
        std::byte* out = to.bytes().data();
        for (std::int64_t i = 0; i < from.count(); ++i, in += 2, out += 4) {
            out[0] = out[1] = std::byte{0};
            out[2] = in[big_ ? 1 : 0];
            out[3] = in[big_ ? 0 : 1];
        }
    }
    bool big_;
};

class FixedLengthStrings final : public ConvertedSource {
public:
    using ConvertedSource::ConvertedSource;

private:
    void convert(const NDArray& from, NDArray& to) const override {
        const auto size = static_cast<std::size_t>(to.dtype().size());
        const auto* slot = reinterpret_cast<const VariableSlot*>(from.bytes().data());
        std::byte* out = to.bytes().data();
        for (std::int64_t i = 0; i < from.count(); ++i, ++slot, out += size) {
            const std::string_view content = slot->view();
            std::memset(out, 0, size);
            if (to.dtype().kind() == Kind::text) {
                const auto characters = from_utf8(content);
                if (!characters || characters->size() * 4 > size) throw corrupt(changed());
                if (!content.empty()) std::memcpy(out, characters->data(), characters->size() * 4);
            } else {
                if (content.size() > size) throw corrupt(changed());
                if (!content.empty()) std::memcpy(out, content.data(), content.size());
            }
        }
    }
    std::string changed() const { return fmt::format("{}: the array was changed while it was read", name()); }
};

/// Calls each(content) for all elements of text.
template <class Each>
void for_each_text(const NDArray& elements, const Each& each) {
    const DType& dtype = elements.dtype();
    const std::byte* at = elements.bytes().data();
    for (std::int64_t i = 0; i < elements.count(); ++i, at += dtype.size()) {
        if (dtype.is_variable()) {
            each(reinterpret_cast<const VariableSlot*>(at)->view());
        } else {
            const Value text = element_to_value(dtype, at);
            each(std::string_view(text.as_string()));
        }
    }
}

class Utf8Strings final : public ConvertedSource {
public:
    using ConvertedSource::ConvertedSource;

private:
    void convert(const NDArray& from, NDArray& to) const override {
        const auto size = static_cast<std::size_t>(to.dtype().size());
        std::byte* out = to.bytes().data();
        for_each_text(from, [&](std::string_view content) {
            if (content.size() > size) throw corrupt("{}: the array was changed while it was read", name());
            std::memset(out, 0, size);
            if (!content.empty()) std::memcpy(out, content.data(), content.size());
            out += size;
        });
    }
};

class VariableStrings final : public ConvertedSource {
public:
    using ConvertedSource::ConvertedSource;

private:
    void convert(const NDArray& from, NDArray& to) const override {
        const MutableArrayView made = to.view();
        auto* slot = reinterpret_cast<VariableSlot*>(made.data);
        for_each_text(from, [&](std::string_view content) { *slot++ = made.arena->add(content); });
    }
};

/// Calls body(elements) for the array in blocks that cover it, each of a size that suits the source.
template <class Body>
void for_each_block(const ArraySource& source, const IoOptions& io, const Body& body) {
    const ArrayInfo info = source.info();
    constexpr std::int64_t plain_block = 1 << 12;  // elements: few, because each may be long
    Shape block = info.chunks;
    if (block.rank() != info.shape.rank()) {
        block = info.shape;
        std::int64_t rest = plain_block;  // whole rows along the fast dimensions
        for (int k = 0; k < block.rank(); ++k) {
            const int d = info.order == Order::C ? block.rank() - 1 - k : k;
            block[d] = std::clamp<std::int64_t>(block[d], 1, rest);
            rest = std::max<std::int64_t>(1, rest / block[d]);
        }
    }
    const ChunkGrid grid(info.shape, block);
    for (std::int64_t i = 0; i < grid.chunk_count(); ++i) {
        if (io.stop.stop_requested()) throw cancelled("stopped on request");
        const Region region = grid.chunk_region(grid.index(i));
        NDArray elements(info.dtype, region.extent);
        source.read_into(region, elements.view(), io);
        body(elements);
    }
}

}  // namespace

std::unique_ptr<ArraySource> widened_bfloat16(const ArraySource& source) {
    return std::make_unique<WidenedBfloat16>(source);
}

std::unique_ptr<ArraySource> fixed_length_strings(const ArraySource& source, const IoOptions& io) {
    const bool is_text = source.info().dtype.kind() == Kind::variable_text;
    std::int64_t longest = 1;
    for_each_block(source, io, [&](const NDArray& elements) {
        const auto* slot = reinterpret_cast<const VariableSlot*>(elements.bytes().data());
        for (std::int64_t i = 0; i < elements.count(); ++i, ++slot) {
            const std::string_view content = slot->view();
            if (content.ends_with('\0')) {
                throw unsupported(
                    "{}: an element ends in NUL, which strings of fixed length cannot keep; "
                    "write an object array instead (object_strings)",
                    source.name());
            }
            const auto length = is_text ? count_utf8(content) : content.size();
            if (!length) throw corrupt("{}: an element is not UTF-8", source.name());
            longest = std::max(longest, static_cast<std::int64_t>(*length));
        }
    });
    return std::make_unique<FixedLengthStrings>(source,
                                                is_text ? DType::text(longest, native_order) : DType::bytes(longest));
}

std::unique_ptr<ArraySource> utf8_strings(const ArraySource& source, const IoOptions& io) {
    std::int64_t longest = 1;
    for_each_block(source, io, [&](const NDArray& elements) {
        for_each_text(elements, [&](std::string_view content) {
            if (content.ends_with('\0')) {
                throw unsupported("{}: an element ends in NUL, which strings of fixed length cannot keep",
                                  source.name());
            }
            longest = std::max(longest, std::ssize(content));
        });
    });
    return std::make_unique<Utf8Strings>(source, DType::bytes(longest));
}

std::unique_ptr<ArraySource> variable_strings(const ArraySource& source) {
    return std::make_unique<VariableStrings>(source, DType::variable_text());
}

}  // namespace tessera
