// Sources that convert another source's elements to a more common dtype. Private to the library. Each refers to its
// original source, which must outlive it.
#pragma once

#include <memory>

#include <tessera/array_io.h>

namespace tessera {

/// bfloat16 as the <f4 that has the same values.
[[nodiscard]] std::unique_ptr<ArraySource> widened_bfloat16(const ArraySource& source);

/// Variable-length text as U n, bytes as S n, where n is the length of the longest element, at least 1. Reads the whole
/// source now, in blocks, to find n. Throws unsupported for an element that ends in NUL, which U and S cannot keep.
[[nodiscard]] std::unique_ptr<ArraySource> fixed_length_strings(const ArraySource& source, const IoOptions& io);

/// Text of any length as S n in UTF-8, where n is the length of the longest element, at least 1; bytes of variable
/// length, too. Reads the whole source now to find n. Throws unsupported for an element that ends in NUL.
[[nodiscard]] std::unique_ptr<ArraySource> utf8_strings(const ArraySource& source, const IoOptions& io);

/// U n as text of variable length.
[[nodiscard]] std::unique_ptr<ArraySource> variable_strings(const ArraySource& source);

}  // namespace tessera
