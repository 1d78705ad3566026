// The page: files that are part of the program.
#include <fmt/format.h>
#include <tessera/codec.h>
#include <tessera/error.h>
#include <tessera/picture.h>

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
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

/// Whether a client takes gzip. One that lists it with a weight of 0 is as good as none that does.
bool takes_gzip(const HttpRequest& request) {
    const auto found = request.headers.find("accept-encoding");
    if (found == request.headers.end()) return false;
    const std::size_t at = found->second.find("gzip");
    return at != std::string::npos && found->second.compare(at, 8, "gzip;q=0") != 0;
}

/// A file of the page, compressed at the first request for it and kept: a string, because Buffers count against the
/// memory of the request that made them.
std::string_view compressed(const PageFile& file) {
    static std::mutex mutex;
    static std::map<std::string_view, std::string> all;
    const std::lock_guard lock(mutex);
    std::string& text = all[file.name];
    if (text.empty()) {
        Buffer bytes;
        const CodecConfig gzip = parse_codec("gzip:6");
        find_codec(gzip.name)->bytes_to_bytes(gzip.configuration, 1)->encode(file.content, bytes);
        text.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    }
    return text;
}

HttpResponse file_response(std::string_view name, const HttpRequest& request) {
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
    response.headers["Vary"] = "Accept-Encoding";
    if (takes_gzip(request)) {
        const std::string_view text = compressed(*found);
        response.body = HttpBody::constant(std::as_bytes(std::span(text)));
        response.headers["Content-Encoding"] = "gzip";
        response.etag = content_tag(found->content) + "-gzip";
        return response;
    }
    response.body = HttpBody::constant(found->content);
    // Browsers ask for the page each time, because another version of the program may serve at the same address later.
    response.etag = content_tag(found->content);
    return response;
}

HttpResponse answer_index(Served& /*served*/, const HttpRequest& request) {
    return file_response("index.html", request);
}

HttpResponse answer_file(Served& /*served*/, const HttpRequest& request) {
    return request.segments.size() == 2 ? file_response(request.segments[1], request) : not_found_response();
}

/// The colour maps, six digits for each colour: the same as in pictures drawn by the library.
HttpResponse answer_colours(Served& /*served*/, const HttpRequest& /*request*/) {
    const auto text = [](Rgb colour) {
        return fmt::format("{:02x}{:02x}{:02x}", colour.red, colour.green, colour.blue);
    };
    Value value = Value::object();
    for (const std::string_view name : colour_map_names()) {
        const ColourMap map = parse_colour_map(name);
        std::string colours;
        for (int i = 0; i < 256; ++i) colours += text(map_colour(map, i / 255.0));
        value.set(std::string(name), colours);
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
