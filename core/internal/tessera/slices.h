// Slices of a region, for sources that present another source's elements in another form.
#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>

#include <tessera/array_io.h>

namespace tessera {

/// Calls body(slice) for slices that together are `region`, in the source's order. Each takes about `slice_bytes` if an
/// element takes `item` bytes. A chunk of the source is never cut, because it would be decoded once per slice.
void for_each_slice(const ArrayInfo& source, std::int64_t item, const Region& region, const std::stop_token& stop,
                    const std::function<void(const Region& slice)>& body, std::int64_t slice_bytes = 1 << 20);

/// The most bytes that a slice of for_each_slice takes, whatever the region.
[[nodiscard]] std::int64_t slice_memory(const ArrayInfo& source, std::int64_t item, std::int64_t slice_bytes = 1 << 20);
/// The bytes that one thread takes to read the chunks of a source, beside the elements that it returns: a chunk as
/// stored and decoded, and what the source computes with.
[[nodiscard]] std::int64_t reading_memory(const ArrayInfo& source);

/// `slice` relative to the start of `region`: its place in the memory that `region` is read into.
[[nodiscard]] Region within(const Region& region, const Region& slice);

/// The dtype with every multi-byte part in the order of this machine.
[[nodiscard]] DType native_dtype(const DType& dtype);

}  // namespace tessera
