// A coordinate: the one-dimensional array of a group that says where along a dimension each index lies.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <tessera/array_io.h>
#include <tessera/calendar.h>
#include <tessera/packing.h>
#include <tessera/value.h>

namespace tessera {

/// Thread rule: one thread at a time.
class Coordinate {
public:
    /// Of a dimension of that name and length. nullopt if the group of `array` has no array of that name. Throws
    /// invalid_argument for one that is not of one dimension, or has another length.
    [[nodiscard]] static std::optional<Coordinate> find(const ArraySource& array, const std::string& dimension,
                                                        std::int64_t length);
    explicit Coordinate(std::unique_ptr<ArraySource> values);

    enum class Kind : std::uint8_t { numbers, times, texts };
    [[nodiscard]] Kind kind() const { return kind_; }
    /// Of times.
    [[nodiscard]] Calendar calendar() const { return cf_ ? cf_->calendar : Calendar::proleptic_gregorian; }
    [[nodiscard]] const std::string& name() const { return values_->name(); }
    [[nodiscard]] const ArraySource& source() const { return *values_; }
    [[nodiscard]] std::int64_t length() const { return values_->info().shape[0]; }

    template <class Key>
    using Take = std::function<void(const std::optional<Key>& key)>;
    /// Calls take(key) for each value of [first, first + count), in order; without a key for what is missing. Numbers
    /// are long doubles, times attoseconds (Int128), texts std::string. Throws what reading throws, and
    /// invalid_argument for a time that cannot be counted.
    template <class Key>
    void for_each(std::int64_t first, std::int64_t count, const Take<Key>& take) const;

    /// A number as one of the coordinate's. Throws invalid_argument.
    [[nodiscard]] long double number_of(std::string_view text) const;

private:
    void read(std::int64_t first, std::int64_t count,
              const std::function<void(const class NDArray& elements)>& take) const;

    std::unique_ptr<ArraySource> values_;
    Kind kind_ = Kind::numbers;
    std::optional<CfTime> cf_;
    Packing packing_;
};

/// The array of that name in the group of another; null: there is none.
[[nodiscard]] std::unique_ptr<ArraySource> array_beside(const ArraySource& array, const std::string& name);

struct GroupAround {
    Value attributes = Value::object();
    std::string name = {};  ///< of the array in the group
};
/// The group that an array lies in; without attributes if there is none.
[[nodiscard]] GroupAround group_around(const class Array& array);
/// Whether the group that an array lies in says that it is an image of several scales (OME-Zarr).
[[nodiscard]] bool is_below_multiscales(const class Array& array);

/// The attributes of a source, with what the format may say elsewhere: the names of its dimensions, and as _FillValue
/// the fill of Zarr v2 where it marks missing elements. That is where xarray opens the array, outside of images, and
/// zero only beside packed numbers, because it is what most programs set without a thought. Parts of the array have
/// nothing else that says so. Any thread.
[[nodiscard]] Value attributes_as_meant(const ArraySource& source);

}  // namespace tessera
