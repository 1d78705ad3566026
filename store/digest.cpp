#include <tessera/digest.h>

#include <fmt/format.h>
#include <openssl/evp.h>
#include <tessera/chunk_grid.h>
#include <tessera/copy.h>
#include <tessera/copy_elements.h>
#include <tessera/error.h>

#include <array>
#include <cstring>
#include <memory>
#include <vector>

namespace tessera {

namespace {

constexpr std::int64_t leaf_bytes = 1 << 20;
constexpr std::int64_t variable_bytes = 16;  // what an element of variable length counts as

using Sha256 = std::array<unsigned char, 32>;

/// One SHA-256 being computed.
class Hasher {
public:
    Hasher() : context_(EVP_MD_CTX_new()) {
        if (!context_ || EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) != 1) fail();
    }
    void add(const void* data, std::size_t size) {
        if (EVP_DigestUpdate(context_.get(), data, size) != 1) fail();
    }
    [[nodiscard]] Sha256 finish() {
        Sha256 sum{};
        if (EVP_DigestFinal_ex(context_.get(), sum.data(), nullptr) != 1) fail();
        return sum;
    }

private:
    [[noreturn]] static void fail() { throw Error(ErrorCode::io, "SHA-256 of libcrypto failed"); }
    std::unique_ptr<EVP_MD_CTX, decltype([](EVP_MD_CTX* c) { EVP_MD_CTX_free(c); })> context_;
};

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
        std::string text = "tessera1:";
        for (const unsigned char byte : hasher.finish()) fmt::format_to(std::back_inserter(text), "{:02x}", byte);
        return text;
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
