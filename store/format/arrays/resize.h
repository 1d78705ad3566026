// Changing an array's shape: resize and append. Private to the store module.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "array_state.h"

namespace tessera {

/// Grows or shrinks, or both along different dimensions. Shrinking writes the metadata first and then deletes chunks;
/// growing first prepares the chunks and writes the metadata last. A crash leaves the old shape or the new one, and
/// elements that were outside always show the fill.
void resize_array(ArrayState& array, const Shape& shape, const IoOptions& io);

/// Writes `given` after the present end along `axis`, then the metadata. Returns the old length of `axis`.
std::int64_t append_array(ArrayState& array, const ArraySource& given, int axis, const IoOptions& io);

/// An append whose elements are written now, and whose shape is set with those of other arrays (record_far_batch()).
/// For stores far away: of one that is given up, elements stay beyond the shape, where nothing shows them. While it
/// lives, others do not change the shape, or was_overtaken().
class HeldAppend {
public:
    explicit HeldAppend(std::shared_ptr<ArrayState> array);
    ~HeldAppend();
    HeldAppend(const HeldAppend&) = delete;
    HeldAppend& operator=(const HeldAppend&) = delete;

    /// Before it.
    [[nodiscard]] const LoadedArray& old() const;
    /// Writes the parts one after the other, once. Throws as append_array().
    void write(std::span<const std::unique_ptr<ArraySource>> parts, int axis, const IoOptions& io);
    /// With the length that it has then.
    [[nodiscard]] const LoadedArray& grown() const { return *grown_; }
    [[nodiscard]] const ArrayState& array() const { return *array_; }
    /// Whether another writer has changed the metadata since.
    [[nodiscard]] bool was_overtaken() const;

private:
    std::shared_ptr<ArrayState> array_;
    std::unique_ptr<class ShapeChange> change_;
    std::shared_ptr<const LoadedArray> grown_;
};

}  // namespace tessera
