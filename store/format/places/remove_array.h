// Removing an array value by value, so that whoever is killed meanwhile leaves a place that says what it was. Private
// to the store module.
#pragma once

#include <initializer_list>
#include <string_view>

#include <tessera/place.h>

namespace tessera {

/// The array at a place, complete or unfinished; the latter has no dialect.
[[nodiscard]] Node array_at(const PlaceView& place);

/// Removes the array's own values, except those in `.tessera/`, and locks of killed runs, which do not count as
/// foreign. `array` is what was there when they were written.
void erase_owned(const PlaceRef& place, const class NodeFiles& files);
/// Empties `.tessera/`, except for these keys.
void erase_own_but(const PlaceRef& place, std::initializer_list<std::string_view> kept);

/// Removes a whole array: first a marker takes note of it, then the metadata go, so that nobody opens a part of it,
/// then the rest, and the marker last.
void remove_array(const PlaceRef& place);
/// Whether remove_array() has begun there, and not ended: nobody wants what is left.
[[nodiscard]] bool is_being_removed(const PlaceView& place);

}  // namespace tessera
