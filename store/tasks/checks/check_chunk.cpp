#include "check_chunk.h"

#include <fmt/format.h>
#include <tessera/error.h>
#include <tessera/shard.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <new>

#include "chunk_memory.h"
#include "copy_bytes.h"

namespace tessera {

namespace {

/// Memory for a chunk or inner chunk, reused for the next.
MutableArrayView chunk_memory(const DType& dtype, const Shape& shape, NDArray& chunk) {
    // A fresh one for variable-length elements, whose arena would otherwise grow with every chunk.
    if (!(chunk.dtype() == dtype) || !(chunk.shape() == shape) || dtype.is_variable()) {
        chunk = NDArray();
        chunk = NDArray(dtype, shape);
    }
    return chunk.view();
}

void require_content(std::uint64_t size) {
    if (size == 0) {
        throw corrupt("it is empty, as after a power failure before its bytes reached the disk");
    }
}

void check_plain(const ArrayState& array, const LoadedArray& loaded, const std::string& key, CheckedChunk& result) {
    ScratchPool::Loan scratch(array.scratch);
    if (!array.store->get(key, scratch->encoded, loaded.pipeline.encoded_limit())) return;
    result.bytes = scratch->encoded.size();
    require_content(result.bytes);
    const MutableArrayView chunk = chunk_memory(loaded.metadata.dtype, loaded.grid.chunks(), scratch->chunk);
    loaded.pipeline.decode(scratch->encoded, chunk, scratch->codec);
    result.decoded = true;
    const std::uint64_t trailing = loaded.pipeline.trailing_bytes(scratch->encoded);
    if (trailing == 0) return;
    Fault fault{.text = fmt::format("{} bytes follow the encoded chunk, which ends at byte {}: something was appended; "
                                    "readers ignore it",
                                    trailing, result.bytes - trailing)};
    result.bad.push_back({.inner = std::nullopt, .fault = std::move(fault), .trailing = trailing});
}

/// Why an inner chunk cannot be decoded, if so.
std::optional<Fault> inner_fault(const ArrayState& array, const LoadedArray& loaded, const Shard& shard,
                                 const Index& inner) {
    try {
        ScratchPool::Loan scratch(array.scratch);
        const Shape& shape = loaded.pipeline.shard()->grid().chunks();
        const MutableArrayView chunk = chunk_memory(loaded.metadata.dtype, shape, scratch->chunk);
        shard.read(inner, Region::whole(shape), chunk, scratch->codec);
        return std::nullopt;
    } catch (...) {
        return current_fault();
    }
}

void check_inner_chunks(const ArrayState& array, const LoadedArray& loaded, const Shard& shard, const IoOptions& io,
                        CheckedChunk& result) {
    const Region all = Region::whole(loaded.pipeline.shard()->grid().grid());
    std::vector<std::pair<std::int64_t, Fault>> faults;
    std::mutex mutex;
    std::atomic<bool> decoded = false;
    std::vector<std::int64_t> alone;  // chunks that took too much memory beside others
    const auto check = [&](std::int64_t n, bool beside_others) {
        const Index inner = index_in(all, n);
        if (!shard.place(inner).present()) return;
        std::optional<Fault> fault = inner_fault(array, loaded, shard, inner);
        if (!fault) {
            decoded = true;
            return;
        }
        const std::lock_guard lock(mutex);
        if (fault->over_budget && beside_others) {
            alone.push_back(n);
        } else {
            faults.emplace_back(n, std::move(*fault));
        }
    };
    parallel_for(all.count(), io, [&](std::int64_t n) { check(n, true); });
    for (const std::int64_t n : alone) check(n, false);
    result.decoded = decoded;
    std::ranges::sort(faults, {}, &std::pair<std::int64_t, Fault>::first);
    for (auto& [n, fault] : faults) result.bad.push_back({.inner = index_in(all, n), .fault = std::move(fault)});
}

void check_shard(const ArrayState& array, const LoadedArray& loaded, const std::string& key, const IoOptions& io,
                 CheckedChunk& result) {
    const std::shared_ptr<const ByteSource> source = array.store->open(key);
    if (source == nullptr) return;
    result.bytes = source->size();
    require_content(result.bytes);
    // A zip checks a member's checksum only if all of it is read in order.
    if (source->sequential()) for_each_piece(*source, [](ByteSpan) {});
    check_inner_chunks(array, loaded, Shard(*loaded.pipeline.shard(), source), io, result);
}

}  // namespace

Fault current_fault() {
    try {
        throw;
    } catch (const Error& e) {
        if (e.code() == ErrorCode::cancelled) throw;
        // A chunk that cannot be read now (no permission, too many open files) may be intact, and must not be repaired.
        const bool unknown =
            e.code() == ErrorCode::unsupported || e.code() == ErrorCode::budget || e.code() == ErrorCode::io;
        return {unknown ? FindingKind::unchecked : FindingKind::damage, e.what(), e.code() == ErrorCode::budget,
                e.advice()};
    } catch (const std::bad_alloc&) {
        return {FindingKind::unchecked, "there is not enough memory for it"};
    } catch (const std::exception& e) {
        return {FindingKind::damage, e.what()};
    }
}

CheckedChunk check_chunk(const ArrayState& array, const LoadedArray& all, const Index& index, const IoOptions& io) {
    CheckedChunk result;
    const std::string key = array.chunk_key(all, index);
    try {
        const auto own = all.of(index);
        const LoadedArray& loaded = *own;
        in_chunk_memory(loaded, [&] {
            if (loaded.pipeline.shard() == nullptr) {
                check_plain(array, loaded, key, result);
            } else {
                check_shard(array, loaded, key, io, result);
            }
        });
    } catch (...) {
        result.bad.push_back({.inner = std::nullopt, .fault = current_fault()});
    }
    return result;
}

std::uint64_t memory_for_checks(const IoOptions& io) {
    constexpr std::uint64_t usual = std::uint64_t{256} << 20;
    return io.max_memory == 0 ? usual : io.max_memory;
}

std::uint64_t check_memory(const LoadedArray& loaded, std::uint64_t largest) {
    const ShardCodec* shard = loaded.pipeline.shard();
    const Shape& chunks = shard == nullptr ? loaded.grid.chunks() : shard->grid().chunks();
    const CodecPipeline& codecs = shard == nullptr ? loaded.pipeline : shard->inner();
    return static_cast<std::uint64_t>(byte_count(chunks, loaded.metadata.dtype.size())) +
           std::min(largest, codecs.encoded_limit()) + loaded.pipeline.scratch_bytes();
}

}  // namespace tessera
