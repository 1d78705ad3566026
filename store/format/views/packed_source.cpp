#include "packed_source.h"

#include <tessera/copy_elements.h>
#include <tessera/dtype.h>
#include <tessera/ndarray.h>
#include <tessera/slices.h>

#include <cstring>
#include <utility>
#include <vector>

namespace tessera {

namespace {

/// Bytes of an element that stay together.
struct Piece {
    std::int64_t from = 0;
    std::int64_t to = 0;
    std::int64_t size = 0;
};

DType packed(const DType& dtype, bool raw_bfloat16) {
    if (dtype.kind() == Kind::bfloat16 && raw_bfloat16) return DType::raw(dtype.size());
    if (dtype.kind() != Kind::structure) return dtype;
    std::vector<Field> fields;
    std::int64_t at = 0;
    for (const Field& field : dtype.fields()) {
        Field close = field;
        close.title = std::nullopt;
        close.dtype = packed(field.dtype, raw_bfloat16);
        close.offset = at;
        at += close.size();
        fields.push_back(std::move(close));
    }
    return DType::structure(std::move(fields), at);
}

void add_pieces(const DType& wide, const DType& close, std::int64_t from, std::int64_t to, std::vector<Piece>& pieces) {
    if (wide.kind() != Kind::structure) {
        pieces.push_back({from, to, wide.size()});
        return;
    }
    for (std::size_t i = 0; i < wide.fields().size(); ++i) {
        const Field& a = wide.fields()[i];
        const Field& b = close.fields()[i];
        for (std::int64_t n = 0; n < element_count(a.shape); ++n) {
            add_pieces(a.dtype, b.dtype, from + a.offset + n * a.dtype.size(), to + b.offset + n * b.dtype.size(),
                       pieces);
        }
    }
}

class PackedSource final : public ArraySource {
public:
    PackedSource(const ArraySource& source, DType dtype) : source_(source), info_(source.info()) {
        add_pieces(info_.dtype, dtype, 0, 0, pieces_);
        info_.dtype = std::move(dtype);
    }
    [[nodiscard]] ArrayInfo info() const override { return info_; }
    [[nodiscard]] const std::string& name() const override { return source_.name(); }
    [[nodiscard]] Value attribute_values() const override { return source_.attribute_values(); }

    void read_into(const Region& region, const MutableArrayView& out, const IoOptions& io) const override {
        const ArrayInfo wide = source_.info();
        for_each_slice(wide, wide.dtype.size(), region, io.stop, [&](const Region& slice) {
            NDArray from(wide.dtype, slice.extent);
            source_.read_into(slice, from.view(), io);
            NDArray to(info_.dtype, slice.extent);
            for (std::int64_t n = 0; n < from.count(); ++n) {
                const std::byte* const element = from.bytes().data() + n * wide.dtype.size();
                std::byte* const close = to.bytes().data() + n * info_.dtype.size();
                for (const Piece& p : pieces_) {
                    std::memcpy(close + p.to, element + p.from, static_cast<std::size_t>(p.size));
                }
            }
            copy_elements(to.view(), out.part(within(region, slice)));
        });
    }

private:
    const ArraySource& source_;
    ArrayInfo info_;
    std::vector<Piece> pieces_;
};

}  // namespace

std::unique_ptr<ArraySource> packed_source(const ArraySource& source, bool raw_bfloat16) {
    const DType wide = source.info().dtype;
    DType close = packed(wide, raw_bfloat16);
    if (close == wide) return nullptr;
    return std::make_unique<PackedSource>(source, std::move(close));
}

}  // namespace tessera
