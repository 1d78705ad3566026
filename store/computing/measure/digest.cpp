#include <tessera/measure.h>

#include <fmt/format.h>
#include <tessera/absent.h>
#include <tessera/chunk_grid.h>
#include <tessera/copy.h>
#include <tessera/copy_elements.h>
#include <tessera/counted.h>
#include <tessera/error.h>
#include <tessera/memory_account.h>
#include <tessera/parallel.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>
#include <utility>
#include <vector>

#include "sha256.h"

namespace tessera {

namespace {

constexpr std::int64_t leaf_bytes = 1 << 20;
constexpr std::int64_t many_leaves = std::int64_t{1} << 20;  ///< whose sums take 32 MiB
constexpr std::int64_t variable_bytes = 16;                  // assumed size of a variable-length element

DType little_endian(const DType& dtype) {
    const bool ordered = dtype.kind() == Kind::structure || dtype.order() != ByteOrder::none;
    return ordered ? dtype.with_order(ByteOrder::little) : dtype;
}

/// The dtype for hashing: little-endian, with fields that only show padding turned back into padding.
DType canonical(const DType& dtype) {
    if (dtype.kind() != Kind::structure) return little_endian(dtype);
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

/// Zeroes the padding of `items` consecutive elements, `count` times, `step` bytes apart.
void zero_padding(const DType& dtype, std::byte* p, std::int64_t step, std::int64_t count, std::int64_t items) {
    if (!has_padding(dtype)) return;
    const auto zero = [&](std::int64_t from, std::int64_t to) {
        for (std::int64_t i = 0; from < to && i < count; ++i) {
            for (std::int64_t k = 0; k < items; ++k) {
                std::memset(p + i * step + k * dtype.size() + from, 0, static_cast<std::size_t>(to - from));
            }
        }
    };
    std::int64_t end = 0;
    for (const Field& field : dtype.fields()) {
        zero(end, field.offset);
        end = field.offset + field.size();
        for (std::int64_t k = 0; k < items; ++k) {
            zero_padding(field.dtype, p + k * dtype.size() + field.offset, step, count, element_count(field.shape));
        }
    }
    zero(end, dtype.size());
}

Shape leaf_shape(const ArrayInfo& source) {
    const std::int64_t size = source.dtype.is_variable() ? variable_bytes : source.dtype.size();
    return choose_chunks(source.shape, size, leaf_bytes);
}

/// Bytes for the sums of all leaves. A bogus shape may claim very many.
std::uint64_t sums_memory(const ChunkGrid& leaves) {
    return static_cast<std::uint64_t>(
        checked_multiply(leaves.chunk_count(), static_cast<std::int64_t>(sizeof(Sha256)), "memory for the sums"));
}

Hasher begun(const DType& canonical, const Shape& shape) {
    Hasher hasher;
    const std::string header = fmt::format("tessera1\n{}\n{}\n", canonical.to_string(), shape.to_string());
    hasher.add(header.data(), header.size());
    return hasher;
}

std::string digest_of(const DType& canonical, const Shape& shape, const std::vector<Sha256>& leaves) {
    Hasher hasher = begun(canonical, shape);
    for (const Sha256& sum : leaves) hasher.add(sum.data(), sum.size());
    return "tessera1:" + hex(hasher.finish());
}

/// Hashes elements of variable length, each after its length.
void add_elements(Hasher& hasher, const ArrayView& elements) {
    NDArray packed(DType::raw(sizeof(VariableSlot)), elements.shape);  // slots only, without their content
    copy_elements({elements.data, packed.dtype(), elements.shape, elements.strides}, packed);
    const auto* const slots = reinterpret_cast<const VariableSlot*>(packed.bytes().data());
    for (std::int64_t i = 0; i < packed.count(); ++i) {
        const std::string_view content = slots[i].view();
        std::array<unsigned char, 8> length{};
        for (std::size_t b = 0; b < 8; ++b) length[b] = static_cast<unsigned char>(content.size() >> (8 * b));
        hasher.add(length.data(), length.size());
        hasher.add(content.data(), content.size());
    }
}

/// Elements that lie next to each other in C order: those of all dimensions from `first` on.
struct Run {
    int first = 0;
    std::int64_t bytes = 0;
};

Run run_of(const ArrayView& elements) {
    Run run{.first = elements.shape.rank(), .bytes = elements.dtype.size()};
    for (; run.first > 0; --run.first) {
        const int d = run.first - 1;
        if (elements.shape[d] != 1 && elements.strides[d] != run.bytes) break;
        run.bytes *= elements.shape[d];
    }
    return run;
}

/// Shorter runs are faster copied together than hashed one by one.
constexpr std::int64_t least_run = 512;

/// Hashes the runs of the dimensions from `d` on, in C order, where they lie.
void add_runs(Hasher& hasher, const ArrayView& elements, const std::byte* at, int d, const Run& run) {
    if (d == run.first) return hasher.add(at, static_cast<std::size_t>(run.bytes));
    for (std::int64_t i = 0; i < elements.shape[d]; ++i) {
        add_runs(hasher, elements, at + i * elements.strides[d], d + 1, run);
    }
}

/// Hashes the elements copied into it, each leaf as a whole.
class DigestSink final : public ArraySink {
public:
    explicit DigestSink(const ArraySource& source)
        : source_(source),
          name_(source.name()),
          dtype_(little_endian(source.info().dtype)),
          canonical_(canonical(source.info().dtype)),
          padded_(has_padding(canonical_)),
          leaves_(source.info().shape, leaf_shape(source.info())),
          sparse_(leaves_.chunk_count() > many_leaves && source.absent_element()) {
        if (sparse_) return;
        held_ = MemoryHold(sums_memory(leaves_));
        sums_.resize(static_cast<std::size_t>(leaves_.chunk_count()));
    }

    /// Whether leaves may be passed over of which nothing is stored.
    [[nodiscard]] bool sparse() const { return sparse_; }

    /// Elements arrive little-endian, as required for hashing.
    [[nodiscard]] ArrayInfo info() const override {
        return {.dtype = dtype_, .shape = leaves_.shape(), .chunks = leaves_.chunks()};
    }

    void write(const Region& region, const ArrayView& in, const IoOptions& io) override {
        const Region boxes = leaves_.overlapping(region);
        parallel_for(boxes.count(), io, [&](std::int64_t n) {
            const ChunkPart part = chunk_part(leaves_, region, boxes, n);
            const std::int64_t number = leaves_.linear(part.chunk);
            const Sha256 sum = leaf(in.part(part.in_request));
            if (!sparse_) {
                sums_[static_cast<std::size_t>(number)] = sum;
                return;
            }
            const std::lock_guard lock(mutex_);
            stored_.emplace_back(number, sum);
        });
    }

    void finish() override {}
    [[nodiscard]] const std::string& name() const override { return name_; }

    [[nodiscard]] std::string digest() {
        if (!sparse_) return digest_of(canonical_, leaves_.shape(), sums_);
        std::ranges::sort(stored_, {}, &std::pair<std::int64_t, Sha256>::first);
        Hasher hasher = begun(canonical_, leaves_.shape());
        auto next = stored_.begin();
        for (std::int64_t n = 0; n < leaves_.chunk_count(); ++n) {
            if (n % many_leaves == 0) require_not_stopped();
            const Sha256& sum = next != stored_.end() && next->first == n ? (next++)->second : absent_leaf(n);
            hasher.add(sum.data(), sum.size());
        }
        return "tessera1:" + hex(hasher.finish());
    }

private:
    /// The sum of a leaf of nothing but absent chunks, which depends on its shape alone.
    const Sha256& absent_leaf(std::int64_t n) {
        const Shape shape = leaves_.chunk_region(leaves_.index(n)).extent;
        if (last_ != nullptr && last_->first == shape) return last_->second;
        auto known = std::ranges::find(absent_, shape, &std::pair<Shape, Sha256>::first);
        if (known == absent_.end()) {
            NDArray elements(dtype_, shape);
            fill_as_absent(source_, elements.view());
            known = absent_.insert(known, {shape, leaf(std::as_const(elements).view())});
        }
        last_ = &*known;
        return known->second;
    }

    [[nodiscard]] Sha256 leaf(const ArrayView& elements) const {
        Hasher hasher;
        if (dtype_.is_variable()) {
            add_elements(hasher, elements);
            return hasher.finish();
        }
        const Run run = run_of(elements);
        if (!padded_ && elements.dtype == dtype_ && run.bytes >= least_run) {
            add_runs(hasher, elements, elements.data, 0, run);
            return hasher.finish();
        }
        NDArray packed(dtype_, elements.shape);
        copy_elements(elements, packed);
        const MutableByteSpan bytes = packed.bytes();
        if (padded_) zero_padding(canonical_, bytes.data(), dtype_.size(), packed.count(), 1);
        hasher.add(bytes.data(), bytes.size());
        return hasher.finish();
    }

    const ArraySource& source_;
    std::string name_;
    DType dtype_;
    DType canonical_;
    bool padded_;
    ChunkGrid leaves_;
    bool sparse_;
    MemoryHold held_;
    std::vector<Sha256> sums_;  ///< of all leaves; or if `sparse_`, what follows
    std::mutex mutex_;
    CountedVector<std::pair<std::int64_t, Sha256>> stored_;  ///< of leaves, by their numbers
    std::vector<std::pair<Shape, Sha256>> absent_;           ///< at most two lengths along each dimension
    const std::pair<Shape, Sha256>* last_ = nullptr;         ///< in `absent_`
};

/// Hashes the elements of a region in C order; in halves if their content does not fit into memory.
void add_region(Hasher& hasher, const ArraySource& source, const Region& region, const IoOptions& io) {
    int d = 0;
    while (d < region.rank() && region.extent[d] == 1) ++d;
    try {
        NDArray elements(source.info().dtype, region.extent);
        source.read_into(region, elements, io);
        add_elements(hasher, elements);
        return;
    } catch (const Error& e) {
        if (e.code() != ErrorCode::budget || d == region.rank()) throw;
    }
    Region first = region;
    Region second = region;
    first.extent[d] = region.extent[d] / 2;
    second.start[d] += first.extent[d];
    second.extent[d] -= first.extent[d];
    add_region(hasher, source, first, io);
    add_region(hasher, source, second, io);
}

/// Hashes a leaf of variable-length elements, one row of chunks at a time.
Sha256 hash_leaf(const ArraySource& source, const Region& leaf, const IoOptions& io) {
    const ArrayInfo info = source.info();
    int d = 0;
    while (d + 1 < leaf.rank() && leaf.extent[d] == 1) ++d;
    Hasher hasher;
    if (info.chunks.rank() != leaf.rank() || leaf.rank() == 0) {
        add_region(hasher, source, leaf, io);
        return hasher.finish();
    }
    const std::int64_t end = leaf.start[d] + leaf.extent[d];
    Region rows = leaf;
    for (; rows.start[d] < end; rows.start[d] += rows.extent[d]) {
        rows.extent[d] = std::min(end - rows.start[d], info.chunks[d] - rows.start[d] % info.chunks[d]);
        add_region(hasher, source, rows, io);
    }
    return hasher.finish();
}

/// For variable-length elements whose leaves do not fit into memory.
std::string digest_in_parts(const ArraySource& source, const IoOptions& io) {
    const ArrayInfo info = source.info();
    const ChunkGrid leaves(info.shape, leaf_shape(info));
    const MemoryHold held(sums_memory(leaves));
    std::vector<Sha256> sums(static_cast<std::size_t>(leaves.chunk_count()));
    if (io.progress != nullptr) io.progress->start(byte_count(info.shape, info.dtype.size()), source.name());
    IoOptions each = io;
    IoOptions within = io;
    (leaves.chunk_count() < thread_count(io) || info.access != Access::any ? each : within).threads = 1;
    within.progress = nullptr;
    parallel_in_memory(leaves.chunk_count(), each, [&](std::int64_t n) {
        const Region leaf = leaves.chunk_region(leaves.index(n));
        sums[static_cast<std::size_t>(n)] = hash_leaf(source, leaf, within);
        if (io.progress != nullptr) io.progress->advance(byte_count(leaf.extent, info.dtype.size()));
    });
    return digest_of(canonical(info.dtype), info.shape, sums);
}

}  // namespace

std::string digest(const ArraySource& source, const IoOptions& io) {
    try {
        DigestSink sink(source);
        copy_array(source, sink, {.io = io, .ample = passing_block, .skip_absent = sink.sparse()});
        return sink.digest();
    } catch (const Error& e) {
        if (e.code() != ErrorCode::budget || !source.info().dtype.is_variable()) throw;
    }
    return digest_in_parts(source, io);
}

}  // namespace tessera
