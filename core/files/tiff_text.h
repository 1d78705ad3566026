// The order of pages in the descriptions of TIFF files. Private to core/files.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/shape.h>

namespace tessera {

struct TiffAxes {
    std::vector<std::int64_t> lengths;  ///< in front of y and x; empty: the text says nothing that fits
    std::vector<std::string> names;     ///< "" for one without a name
    std::vector<std::size_t> pages;     ///< the page of each place, in C order; empty: in the order of the file
};

/// By OME-XML, by tifffile's {"shape": …}, or by ImageJ's list, for `count` pages of this size.
[[nodiscard]] TiffAxes tiff_axes(std::string_view description, std::int64_t count, std::int64_t height,
                                 std::int64_t width);
/// The number of images that ImageJ's list tells; 1 without one.
[[nodiscard]] std::int64_t imagej_images(std::string_view description);
/// Whether a description is OME-XML.
[[nodiscard]] bool is_ome_xml(std::string_view description);

}  // namespace tessera
