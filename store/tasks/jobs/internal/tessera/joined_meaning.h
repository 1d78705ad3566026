// What is joined to an array, or appended to it, means there what it meant before.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <tessera/array_io.h>
#include <tessera/dimensions.h>
#include <tessera/error.h>
#include <tessera/geo_reference.h>
#include <tessera/meaning.h>

namespace tessera {

class JoinedMeaning {
public:
    /// Of what follows `first`. `way_out` is for numbers that are packed in another way.
    JoinedMeaning(const ArraySource& first, Advice way_out);

    /// The part as it is, where its elements mean the same as in `first`: by packing, markers, units and calendar. Else
    /// decoded, and packed and counted as `first` is. Throws invalid_argument, naming both arrays and what differs,
    /// where that would lose something; reading throws it for a value that does not fit. A part without attributes that
    /// is no Zarr array holds elements as `first` stores them.
    [[nodiscard]] std::unique_ptr<ArraySource> joined(std::unique_ptr<ArraySource> part) const;

    /// Throws invalid_argument unless joined() returns the part as it is, and require_place() does not throw.
    void require_same(const ArraySource& part, int axis, std::int64_t begin) const;

    /// Throws invalid_argument if a part lies elsewhere on the earth than where it comes: `begin` elements along an
    /// axis of `first`, or along a new one (-1).
    void require_place(const ArraySource& part, int axis, std::int64_t begin) const;
    /// Whether there is anything to require.
    [[nodiscard]] bool has_place() const { return place_.has_value(); }

private:
    /// Returns what the elements are to be encoded by; nullopt: they are as they should be.
    [[nodiscard]] std::optional<Meaning> encoding_for(const ArraySource& part, const Meaning& own) const;
    [[noreturn]] void refuse(const ArraySource& part, std::string_view what, const std::string& here,
                             const std::string& there, bool has_way_out = false) const;
    [[noreturn]] void refuse_attribute(const ArraySource& part, const Meaning& own, std::string_view name,
                                       bool has_way_out = false) const;

    std::string name_;
    ArrayInfo info_;
    Meaning meaning_;
    DimensionNames names_;
    std::optional<GeoReference> place_;
    Advice way_out_;
};

}  // namespace tessera
