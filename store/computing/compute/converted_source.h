// Another form of an array, made of it slice by slice as it is read. Private to the store module.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tessera/array_io.h>
#include <tessera/copy_elements.h>
#include <tessera/element.h>
#include <tessera/error_text.h>
#include <tessera/ndarray.h>
#include <tessera/slices.h>

namespace tessera {

[[nodiscard]] inline bool is_integral(const DType& dtype) {
    return dtype.kind() == Kind::integer || dtype.kind() == Kind::unsigned_integer;
}

/// An attribute that is a text; empty for any other.
[[nodiscard]] inline std::string text_attribute(const Value& attributes, std::string_view name) {
    const Value* const value = attributes.find(name);
    return value != nullptr && value->is_string() ? value->as_string() : std::string();
}

/// Makes room for elements of a shape, in the memory that is there if it is as large: fresh pages cost as much as a
/// computation with them.
inline void make_room(NDArray& elements, const DType& dtype, const Shape& shape) {
    const bool fits = !elements.bytes().empty() && elements.shape() == shape && elements.dtype() == dtype;
    if (!fits) elements = NDArray(dtype, shape);
}

class ConvertedSource : public ArraySource {
public:
    /// `convert(from, to, n)`: packed elements, both in host order; `working` is the memory that it takes. It is called
    /// for each row, and throws for an element that does not fit.
    using Convert = std::function<void(const std::byte* from, std::byte* to, std::int64_t n)>;
    ConvertedSource(std::unique_ptr<ArraySource> array, const DType& dtype, Value attributes, Convert convert,
                    std::int64_t working = 0, bool marks_missing = false)
        : array_(std::move(array)),
          from_(array_->info()),
          native_(native_dtype(from_.dtype)),
          attributes_(std::move(attributes)),
          convert_(std::move(convert)),
          info_(from_) {
        info_.dtype = dtype;
        info_.marks_missing = marks_missing;
        // Whoever reads this source counts a chunk of it twice (reading_memory), of which there is none. Of elements
        // that become wider that is more than is taken, so that the number may be negative.
        ArrayInfo none = info_;
        none.working = 0;
        const std::int64_t needed = slice_memory(from_, native_.size()) + reading_memory(from_);
        info_.working = needed - reading_memory(none) + row_bytes + working;
    }

    [[nodiscard]] ArrayInfo info() const override { return info_; }
    [[nodiscard]] const std::string& name() const override { return array_->name(); }
    [[nodiscard]] Value attribute_values() const override { return attributes_; }
    [[nodiscard]] std::optional<ElementBytes> fill_bytes() const override {
        auto fill = array_->fill_bytes();
        if (!fill) return std::nullopt;
        if (!(native_ == from_.dtype)) swap_elements(from_.dtype, fill->data(), 1);
        ElementBytes made(static_cast<std::size_t>(info_.dtype.size()));
        try {
            convert_(fill->data(), made.data(), 1);
        } catch (const Error&) {
            return std::nullopt;  // as no element of the array is, or reading it says why
        }
        return made;
    }
    [[nodiscard]] const ArraySource* converted_from() const override { return array_.get(); }

    void read_into(const Region& region, const MutableArrayView& out, const IoOptions& io) const override {
        require_inside(region, info_.shape);
        if (region.empty()) return;
        NDArray elements;
        for_each_slice(from_, native_.size(), region, io.stop, [&](const Region& slice) {
            make_room(elements, native_, slice.extent);
            array_->read_into(slice, elements.view(), io);
            in_context([&] { return name(); },
                       [&] { convert(elements.bytes().data(), out.part(within(region, slice))); });
        });
    }

protected:
    [[nodiscard]] const ArraySource& source() const { return *array_; }

private:
    static constexpr std::int64_t row_bytes = std::int64_t{64} << 10;

    /// Converts packed elements into memory of their shape, as many at a time as lie in a row there.
    void convert(const std::byte* elements, const MutableArrayView& out) const {
        const std::int64_t size = info_.dtype.size();
        const bool direct = out.dtype == native_dtype(out.dtype);
        int outer = out.shape.rank();
        std::int64_t row = 1;
        while (outer > 0 && (out.strides[outer - 1] == row * size || out.shape[outer - 1] == 1)) {
            row *= out.shape[--outer];
        }
        if (!direct || row == 1) return convert_apart(elements, out);
        Index at = Index::filled(outer, 0);
        std::byte* to = out.data;
        for (std::int64_t left = element_count(out.shape) / row; left > 0; --left) {
            convert_(elements, to, row);
            elements += row * native_.size();
            for (int d = outer - 1; d >= 0; --d) {
                to += out.strides[d];
                if (++at[d] < out.shape[d]) break;
                to -= at[d] * out.strides[d];
                at[d] = 0;
            }
        }
    }

    /// The same where elements do not follow each other: a block at a time.
    void convert_apart(const std::byte* elements, const MutableArrayView& out) const {
        const DType made_as = native_dtype(info_.dtype);
        ArrayInfo blocks{.dtype = made_as, .shape = out.shape, .chunks = {}};
        for_each_slice(
            blocks, made_as.size(), Region::whole(out.shape), {},
            [&](const Region& block) {
                NDArray made(made_as, block.extent);
                convert_(elements, made.bytes().data(), made.count());
                elements += made.count() * native_.size();
                copy_elements(made.view(), out.part(block));
            },
            row_bytes);
    }

    std::unique_ptr<ArraySource> array_;
    ArrayInfo from_;
    DType native_;
    Value attributes_;
    Convert convert_;
    ArrayInfo info_;
};

/// The elements that the attributes `_FillValue` and `missing_value` name, in the bytes of a dtype.
[[nodiscard]] std::vector<ElementBytes> missing_elements(const Value& attributes, const DType& dtype);

}  // namespace tessera
