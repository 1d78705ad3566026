// A slice of an array as the bytes of a PNG file, drawn as the program's `view` does.
#include "pictures.h"

#include <pybind11/stl.h>

#include <tessera/array_file.h>
#include <tessera/picture.h>
#include <algorithm>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "handle.h"

namespace tessera::python {

namespace {

/// The arguments of `Array.view`, as the program's options of the same names.
struct Wanted {
    std::string selection;
    std::vector<std::string> axes;
    std::string with;  ///< empty: mean, unless that would decode too much
    std::string range, map, missing;
    int width = 0;
    int height = 0;
    std::int64_t limit = 0;
    bool raw = false;
};

py::bytes draw(ArrayHandle& handle, const std::string& name, const Wanted& wanted, const WorkOptions& options) {
    const auto parts = handle.parts();
    const DrawOptions drawing{
        .map = parse_colour_map(wanted.map), .range = wanted.range, .width = wanted.width, .height = wanted.height};
    PictureOptions picked{.selection = wanted.selection,
                          .axes = wanted.axes,
                          .with = std::nullopt,
                          .missing = wanted.missing,
                          .raw = wanted.raw,
                          .limit = wanted.limit};
    if (!wanted.with.empty()) picked.with = parse_coarsening(wanted.with);
    std::tie(picked.height, picked.width) = drawing_room(drawing);
    const Buffer png = Work(options).run([&](const IoOptions& io) {
        Picture picture = read_picture(parts->readable(), picked, io);
        picture.name = name;
        return encode_png(draw_picture(picture, drawing).view(), name);
    });
    return {reinterpret_cast<const char*>(png.data()), png.size()};
}

}  // namespace

void bind_pictures(py::module_& module) {
    module.def(
        "draw",
        [](ArrayHandle& handle, const std::string& name, const std::string& selection,
           const std::vector<std::string>& axes, const std::string& with, const std::string& range,
           const std::string& map, const std::string& missing, std::pair<int, int> size, std::int64_t limit, bool raw,
           const WorkOptions& options) {
            return draw(handle, name,
                        {.selection = selection,
                         .axes = axes,
                         .with = with,
                         .range = range,
                         .map = map,
                         .missing = missing,
                         .width = size.first,
                         .height = size.second,
                         .limit = limit,
                         .raw = raw},
                        options);
        },
        py::arg("handle"), py::arg("name"), py::arg("selection"), py::arg("axes"), py::arg("with_"), py::arg("range"),
        py::arg("map"), py::arg("missing"), py::arg("size"), py::arg("limit"), py::arg("raw"), py::arg("options"));
}

}  // namespace tessera::python
