// The arrays that are measured. The generators are the definition: the same bytes on every machine.
#pragma once

#include <vector>

#include <tessera/ndarray.h>

#include "plain_loop.h"

namespace workloads {

/// 512³ float32 in chunks of 64³: a smooth field and noise, rounded to what an instrument resolves.
[[nodiscard]] plain::Layout w1();
/// 20,000² int32 in chunks of 1000²: elevations in millimetres with noise.
[[nodiscard]] plain::Layout w2();
/// 4096² uint16 in chunks of 64²: many small files.
[[nodiscard]] plain::Layout w3();

/// 509 x 500 x 511 float32 in chunks of 64³, which divide none of that.
[[nodiscard]] plain::Layout w9();
/// W1 with another length, the same in each dimension.
[[nodiscard]] plain::Layout cube(std::int64_t side);
/// 512³ uint8 in chunks of 64³, and 512 x 512 x 256 big-endian float64.
[[nodiscard]] plain::Layout w10_bytes();
[[nodiscard]] plain::Layout w10_doubles();

/// The elements of one of them, or of an array of another shape like it.
void fill_w1(tessera::NDArray& a);
void fill_w2(tessera::NDArray& a);
void fill_w3(tessera::NDArray& a);
void fill_w10_bytes(tessera::NDArray& a);
void fill_w10_doubles(tessera::NDArray& a);

/// The same places on every machine; `seed` for different ones.
[[nodiscard]] std::vector<plain::Box> random_boxes(const plain::Layout& a, int count, std::int64_t side,
                                                   std::uint64_t seed);

}  // namespace workloads
