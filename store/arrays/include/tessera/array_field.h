// ArrayField: one field of an array of structures, for reading and writing it alone.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include <tessera/array.h>

namespace tessera {

/// A handle to a field, as Array::field() gives it. The dimensions of a sub-array follow those of the array.
/// Thread rule: as Array.
class ArrayField final : public ArraySource {
public:
    ArrayField(const Array& array, std::string_view name);

    [[nodiscard]] ArrayInfo info() const override { return source_->info(); }
    [[nodiscard]] const std::string& name() const override { return source_->name(); }
    [[nodiscard]] Value attribute_values() const override { return source_->attribute_values(); }
    [[nodiscard]] Shape shape() const { return info().shape; }
    [[nodiscard]] DType dtype() const { return info().dtype; }
    [[nodiscard]] const Array& array() const { return array_; }

    /// Reads the elements of a selection. Only the chunks that it touches are read, and only the field is kept.
    [[nodiscard]] NDArray read(SelectionText selection = "", const IoOptions& io = {}) const;
    void read_into(const Region& region, const MutableArrayView& out, const IoOptions& io = {}) const override;

    /// Writes the field of the structures that a selection picks. Their other fields keep even concurrent changes
    /// (Array::update). `in` has the shape of the selection and the field's dtype, in any byte order.
    void write(const Selection& selection, const ArrayView& in, const IoOptions& io = {});
    void write(SelectionText selection, const ArrayView& in, const IoOptions& io = {});
    /// As Array::require_direct.
    void require_direct(const Selection& selection) const;

private:
    Array array_;
    std::string field_;
    std::shared_ptr<const ArraySource> source_;
};

}  // namespace tessera
