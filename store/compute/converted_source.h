// Another form of an array, made of it slice by slice as it is read. Private to the store module.
#pragma once

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

class ConvertedSource : public ArraySource {
public:
    /// `convert(from, to, n)`: packed elements, both in host order; `working` is the memory that it takes. It throws
    /// for one that does not fit.
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
        info_.working += slice_memory(from_, item()) + reading_memory(from_) + working;
    }

    [[nodiscard]] ArrayInfo info() const override { return info_; }
    [[nodiscard]] const std::string& name() const override { return array_->name(); }
    [[nodiscard]] Value attribute_values() const override { return attributes_; }
    [[nodiscard]] const ArraySource* converted_from() const override { return array_.get(); }

    void read_into(const Region& region, const MutableArrayView& out, const IoOptions& io) const override {
        require_inside(region, info_.shape);
        if (region.empty()) return;
        for_each_slice(from_, item(), region, io.stop, [&](const Region& slice) {
            NDArray elements(native_, slice.extent, from_.order);
            array_->read_into(slice, elements.view(), io);
            NDArray made(native_dtype(info_.dtype), slice.extent, from_.order);
            in_context([&] { return name(); },
                       [&] { convert_(elements.bytes().data(), made.bytes().data(), elements.count()); });
            copy_elements(made.view(), out.part(within(region, slice)));
        });
    }

protected:
    [[nodiscard]] const ArraySource& source() const { return *array_; }

private:
    [[nodiscard]] std::int64_t item() const { return native_.size() + info_.dtype.size(); }

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
