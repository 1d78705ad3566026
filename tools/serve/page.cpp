// The page: files that are part of the program.
#include <fmt/format.h>
#include <tessera/error.h>
#include <tessera/picture.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <utility>

#include "http.h"
#include "page_files.h"

namespace tessera::serve {

namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 4> types{{
    {".html", "text/html; charset=utf-8"},
    {".css", "text/css; charset=utf-8"},
    {".js", "text/javascript; charset=utf-8"},
    {".svg", "image/svg+xml"},
}};

HttpResponse file_response(std::string_view name) {
    HttpResponse response;
    for (const auto& [ending, type] : types) {
        if (name.ends_with(ending)) response.type = type;
    }
    const auto found = std::ranges::find(page_files(), name, &PageFile::name);
    if (found == page_files().end()) {
        // Without Leaflet at build time the page says so itself; an error on the console would say less.
        if (name != "leaflet.min.js" && name != "leaflet.css") return not_found_response();
        return response;
    }
    response.body = HttpBody::constant(found->content);
    // Browsers ask for the page each time, because another version of the program may serve at the same address later.
    response.etag = content_tag(found->content);
    return response;
}

HttpResponse answer_index(Served& /*served*/, const HttpRequest& /*request*/) {
    return file_response("index.html");
}

HttpResponse answer_file(Served& /*served*/, const HttpRequest& request) {
    return request.segments.size() == 2 ? file_response(request.segments[1]) : not_found_response();
}

/// The colour maps, six digits for each colour: the same as in pictures drawn by the library.
HttpResponse answer_colours(Served& /*served*/, const HttpRequest& /*request*/) {
    const auto text = [](Rgb colour) {
        return fmt::format("{:02x}{:02x}{:02x}", colour.red, colour.green, colour.blue);
    };
    Value value = Value::object();
    for (const char* name : {"viridis", "grey", "diverging"}) {
        const ColourMap map = parse_colour_map(name);
        std::string colours;
        for (int i = 0; i < 256; ++i) colours += text(map_colour(map, i / 255.0));
        value.set(name, colours);
    }
    value.set("nan", text(nan_colour));
    return json_response(value);
}

constexpr std::array routes_of_page{
    Route{.path = "", .answer = answer_index},
    Route{.path = "page", .below = true, .answer = answer_file},
    Route{.path = "api/colours", .answer = answer_colours},
};

}  // namespace

std::span<const Route> page_routes() {
    return routes_of_page;
}

}  // namespace tessera::serve
