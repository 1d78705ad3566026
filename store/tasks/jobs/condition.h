// A condition that elements of an array meet or not, and the chunks in which some may.
#pragma once

#include <tessera/array_io.h>
#include <tessera/chunk_grid.h>
#include <tessera/counted.h>
#include <tessera/dtype.h>
#include <tessera/ndarray.h>
#include <tessera/parallel.h>
#include <tessera/shape.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace tessera {

/// The array in the expression of a condition.
inline constexpr std::string_view condition_operand = "value";

/// An expression of calc_source(), in which `value` is an element. Thread rule: an immutable value.
class ElementCondition {
public:
    /// `elements`: what an array's elements stand for, or its codes. Throws invalid_argument for an expression that is
    /// not true or false.
    ElementCondition(const ArraySource& elements, std::string_view text);
    /// Another one about the same elements, which is not checked.
    [[nodiscard]] ElementCondition with(std::string_view text) const;

    [[nodiscard]] const std::string& text() const { return text_; }
    /// Of the elements, in host order.
    [[nodiscard]] const DType& dtype() const { return dtype_; }
    /// Whether they are integers of which some are marked as missing: these meet what NaN meets.
    [[nodiscard]] bool marks() const { return marks_; }
    /// Where it holds among elements of dtype(): Booleans of their shape. Throws unsupported where missing ones stand
    /// beside integers that no float64 is equal to.
    [[nodiscard]] NDArray holds(const NDArray& elements, const IoOptions& io = {}) const;

private:
    std::string text_;
    DType dtype_;
    bool marks_;
    std::string name_;  ///< of the array
};

/// The chunks, or inner chunks, of a region of which some elements may meet a condition.
struct CandidateChunks {
    ChunkGrid units;
    CountedVector<std::int64_t> numbers;  ///< in `units`, ascending
    std::int64_t left_out = 0;            ///< all others that the region touches
};

/// Comparisons with numbers, alone or joined by &, leave out the chunks of an indexed array (tessera/chunk_index.h)
/// that cannot match, with `by_index`; any condition leaves out what is not stored, if that cannot match. `condition`
/// is about the array's codes with `raw`, else about decoded(). nullopt: nothing is known, and all is to be read.
[[nodiscard]] std::optional<CandidateChunks> candidate_chunks(const ArraySource& array, bool raw, bool by_index,
                                                              const ElementCondition& condition, const Region& region,
                                                              const IoOptions& io);

/// Calls `each` with parts that together are a region: neighbours along the last dimension of which all are candidates,
/// or none is.
void for_each_candidate_run(const CandidateChunks& chunks, const Region& region,
                            const std::function<void(const Region& part, bool may)>& each);

/// What a part of an expression says about one operand, as an ElementCondition says it, if it consists of comparisons
/// with numbers, alone or joined by &. `operand` becomes its name.
[[nodiscard]] std::optional<std::string> condition_about_operand(const struct Expression& tree, std::string& operand);

}  // namespace tessera
