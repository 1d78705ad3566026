// Array files whose elements lie in plain bytes, as references lead to them. Private to the store module.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <tessera/array_file.h>
#include <tessera/chunk_grid.h>
#include <tessera/dtype.h>
#include <tessera/error.h>
#include <tessera/locate.h>
#include <tessera/shape.h>
#include <tessera/value.h>

namespace tessera {

// What one reference should cover at most, and how many there should be at most.
constexpr std::int64_t most_piece_bytes = 8 << 20;
constexpr std::int64_t most_pieces = 1 << 16;

/// Is told of what is left out, by the error that it would have been.
using OnRefusal = std::function<void(const Error&)>;
/// Calls `add`; where it throws unsupported, `refused` with that error, unless that is null.
void unless_refused(const OnRefusal& refused, const std::function<void()>& add);

/// Packed elements in a file.
struct Packed {
    DType dtype;
    Shape shape;
    Order order = Order::C;
    std::uint64_t offset = 0;
    std::int64_t row_stride = 0;  ///< bytes between indices of the first dimension; 0: packed
    Value attributes = Value::object();
    std::shared_ptr<const PackedArray> chunked = nullptr;  ///< of chunks; the order is C then
};

/// The arrays that a path of an array file names, by their names: a member, all members, or the one array under any
/// name. Throws unsupported for what does not lie in plain bytes, not_found for a member that is not there. With
/// `refused`, members that are refused are missing, and it is called with the error.
[[nodiscard]] std::vector<std::pair<std::string, Packed>> packed_arrays(const Located& at,
                                                                        const OnRefusal& refused = nullptr);

/// A URL as references name it. Throws invalid_argument if it has a query, which may be a secret.
[[nodiscard]] std::string name_elsewhere(const std::filesystem::path& url);

/// Zarr v2's `.zarray` of elements as they lie there. `array` has the shape of the whole array.
[[nodiscard]] Value packed_document(const Packed& array, const Shape& chunks);

/// The place in a grid of piece number `n`, counted in either order.
[[nodiscard]] Index piece_index(const ChunkGrid& grid, std::int64_t n, Order order);

/// Ascending.
[[nodiscard]] std::vector<std::int64_t> divisors(std::int64_t number);

}  // namespace tessera
