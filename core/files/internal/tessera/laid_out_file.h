// LaidOutFile: a file of plain bytes that is nowhere, but for the arrays whose elements it shows.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <tessera/array_file.h>
#include <tessera/array_io.h>
#include <tessera/byte_io.h>
#include <tessera/parallel.h>

namespace tessera {

/// The bytes that a written file of this layout would have. Elements are read when their bytes are.
/// Thread rule: any thread.
class LaidOutFile final : public ByteSource {
public:
    /// One source for each array of the layout, with its shape and, but for the byte order, its dtype.
    LaidOutFile(std::string name, FileLayout layout, std::vector<std::shared_ptr<const ArraySource>> sources,
                IoOptions io = {});

    [[nodiscard]] std::uint64_t size() const override { return layout_.size; }
    [[nodiscard]] const std::string& name() const override { return name_; }
    void read(std::uint64_t offset, MutableByteSpan out) const override;
    /// Sets elements of a layout of one packed array. Elements of which the bytes are a part keep the others. Throws
    /// invalid_argument for bytes of the header that differ, or behind the end; then nothing is written.
    void write(std::uint64_t offset, ByteSpan bytes, ArraySink& sink) const;

private:
    void read_array(std::size_t which, std::uint64_t first, MutableByteSpan out) const;
    void read_rows(std::size_t which, std::uint64_t offset, MutableByteSpan out) const;
    void read_elements(std::size_t which, std::int64_t first, MutableByteSpan out) const;

    std::string name_;
    FileLayout layout_;
    std::vector<std::shared_ptr<const ArraySource>> sources_;
    IoOptions io_;
};

/// Divides `count` elements from the one of number `first` on, in the order of memory, into as few boxes as cover them.
/// Each comes with the number of its first element after `first`; its elements follow each other in that order.
void for_each_run_box(const Shape& shape, Order order, std::int64_t first, std::int64_t count,
                      const std::function<void(const Region& box, std::int64_t after)>& each);

}  // namespace tessera
