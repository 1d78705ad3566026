#include <tessera/digest.h>

#include <fmt/format.h>
#include <tessera/chunk_grid.h>
#include <tessera/copy.h>
#include <tessera/copy_elements.h>

#include <array>
#include <cstring>
#include <vector>

#include "sha256.h"

namespace tessera {

namespace {

constexpr std::int64_t leaf_bytes = 1 << 20;
constexpr std::int64_t variable_bytes = 16;  // what an element of variable length counts as

/// The dtype as it is hashed: little-endian, and fields that only show padding as padding again.
DType canonical(const DType& dtype) {
    if (dtype.kind() != Kind::structure) {
        return dtype.order() == ByteOrder::none ? dtype : dtype.with_order(ByteOrder::little);
    }
    std::vector<Field> fields;
    for (const Field& field : dtype.fields()) {
        if (field.unnamed) continue;
        fields.push_back(field);
        fields.back().dtype = canonical(field.dtype);
    }
    return DType::structure(std::move(fields), dtype.size());
}

bool has_padding(const DType& dtype) {
    std::int64_t end = 0;
    for (const Field& field : dtype.fields()) {
        if (field.offset != end || has_padding(field.dtype)) return true;
        end = field.offset + field.size();
    }
    return dtype.kind() == Kind::structure && end != dtype.size();
}

void zero_padding(const DType& dtype, std::byte* element) {
    std::int64_t end = 0;
    for (const Field& field : dtype.fields()) {
        std::memset(element + end, 0, static_cast<std::size_t>(field.offset - end));
        end = field.offset;
        for (; end < field.offset + field.size(); end += field.dtype.size()) zero_padding(field.dtype, element + end);
    }
    if (dtype.kind() == Kind::structure) {
        std::memset(element + end, 0, static_cast<std::size_t>(dtype.size() - end));
    }
}

/// Hashes what is copied into it, each leaf as a whole.
class DigestSink final : public ArraySink {
public:
    DigestSink(const ArrayInfo& source, std::string name)
        : name_(std::move(name)),
          dtype_(source.dtype),
          canonical_(canonical(source.dtype)),
          padded_(has_padding(canonical_)),
          leaves_(source.shape, leaf_shape(source)),
          sums_(static_cast<std::size_t>(leaves_.chunk_count())) {}

    [[nodiscard]] ArrayInfo info() const override {
        return {.dtype = dtype_, .shape = leaves_.shape(), .chunks = leaves_.chunks()};
    }

    void write(const Region& region, const ArrayView& in, const IoOptions& io) override {
        const Region boxes = leaves_.overlapping(region);
        parallel_for(boxes.count(), io, [&](std::int64_t n) {
            const ChunkPart part = chunk_part(leaves_, region, boxes, n);
            sums_[static_cast<std::size_t>(leaves_.linear(part.chunk))] = leaf(in.part(part.in_request));
        });
    }

    void finish() override {}
    [[nodiscard]] const std::string& name() const override { return name_; }

    [[nodiscard]] std::string digest() const {
        Hasher hasher;
        const std::string header =
            fmt::format("tessera1\n{}\n{}\n", canonical_.to_string(), leaves_.shape().to_string());
        hasher.add(header.data(), header.size());
        for (const Sha256& sum : sums_) hasher.add(sum.data(), sum.size());
        return "tessera1:" + hex(hasher.finish());
    }

private:
    static Shape leaf_shape(const ArrayInfo& source) {
        const std::int64_t size = source.dtype.is_variable() ? variable_bytes : source.dtype.size();
        return choose_chunks(source.shape, size, leaf_bytes);
    }

    [[nodiscard]] Sha256 leaf(const ArrayView& elements) const {
        Hasher hasher;
        const DType little = dtype_.kind() == Kind::structure || dtype_.order() != ByteOrder::none
                                 ? dtype_.with_order(ByteOrder::little)
                                 : dtype_;
        NDArray packed(little, elements.shape);
        copy_elements(elements, packed);
        std::byte* p = packed.bytes().data();
        if (dtype_.is_variable()) {
            for (std::int64_t i = 0; i < packed.count(); ++i) {
                const std::string_view content = reinterpret_cast<const VariableSlot*>(p)[i].view();
                std::array<unsigned char, 8> length{};
                for (std::size_t b = 0; b < 8; ++b) {
                    length[b] = static_cast<unsigned char>(content.size() >> (8 * b));
                }
                hasher.add(length.data(), length.size());
                hasher.add(content.data(), content.size());
            }
            return hasher.finish();
        }
        if (padded_) {
            for (std::int64_t i = 0; i < packed.count(); ++i) zero_padding(canonical_, p + i * dtype_.size());
        }
        hasher.add(p, packed.bytes().size());
        return hasher.finish();
    }

    std::string name_;
    DType dtype_;
    DType canonical_;
    bool padded_;
    ChunkGrid leaves_;
    std::vector<Sha256> sums_;
};

}  // namespace

std::string digest(const ArraySource& source, const IoOptions& io) {
    DigestSink sink(source.info(), source.name());
    copy_array(source, sink, {.io = io, .selection = {}});
    return sink.digest();
}

}  // namespace tessera
