// Requests and responses of the server, and the table of what answers them. Free of the HTTP library's types.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/buffer.h>
#include <tessera/byte_io.h>
#include <tessera/error.h>
#include <tessera/value.h>

namespace tessera::serve {

/// A request that passed access control. Its method is GET; for HEAD the body is left out later.
struct HttpRequest {
    /// The parts of the path below the token, each decoded once. None is ".", "..", or holds NUL, '\\' or an encoded
    /// '/'. A '/' at the end gives an empty last part; "/t/TOKEN/" gives none.
    std::vector<std::string> segments;
    std::map<std::string, std::string, std::less<>> query;    ///< decoded; of a repeated name the last
    std::map<std::string, std::string, std::less<>> headers;  ///< names in lower case; repeated ones joined by ", "
    std::stop_token stop;  ///< requested when the client has gone, when time is up, or when the server ends

    /// The parameter; nullopt if it is absent.
    [[nodiscard]] std::optional<std::string_view> parameter(std::string_view name) const;
    /// The same; throws invalid_argument if it is absent.
    [[nodiscard]] const std::string& required(std::string_view name) const;
    /// The parameter as an integer, `absent` if it is absent. Throws invalid_argument, naming the parameter, for
    /// anything else or a number outside of [least, most].
    [[nodiscard]] std::int64_t integer(std::string_view name, std::int64_t absent, std::int64_t least,
                                       std::int64_t most) const;
};

/// A body: bytes in memory, or a part of a source, which is read while it is sent. Buffers count against the server's
/// memory until the response is sent.
class HttpBody {
public:
    HttpBody() = default;
    HttpBody(Buffer bytes);
    HttpBody(std::string_view text);  ///< copies it
    HttpBody(std::shared_ptr<const ByteSource> source, std::uint64_t offset, std::uint64_t size);
    /// Bytes that live as long as the program.
    [[nodiscard]] static HttpBody constant(ByteSpan bytes);

    [[nodiscard]] std::uint64_t size() const { return size_; }
    /// The bytes, if they are in memory; nullopt for those of a source.
    [[nodiscard]] std::optional<ByteSpan> in_memory() const;
    /// Reads a part. Throws what ByteSource::read throws.
    void read(std::uint64_t offset, MutableByteSpan out) const;

private:
    Buffer bytes_;
    ByteSpan constant_;
    std::shared_ptr<const ByteSource> source_;
    std::uint64_t offset_ = 0;
    std::uint64_t size_ = 0;
};

/// The whole answer. The server makes 206, 304 and 416 of it where the request says so.
struct HttpResponse {
    int status = 200;
    std::string type = "application/octet-stream";
    std::map<std::string, std::string, std::less<>> headers = {};  ///< in addition to those of every response
    HttpBody body = {};
    /// Identifies the version of the body, without quotes; empty if that is not known.
    std::string etag = {};
    std::string cache_control = "no-cache";
};

/// JSON as every parser takes it: NaN and infinities as strings.
[[nodiscard]] HttpResponse json_response(const Value& value, int status = 200);
/// {"error": code, "message": text}
[[nodiscard]] HttpResponse error_response(int status, std::string_view code, std::string_view message);
[[nodiscard]] HttpResponse not_found_response();
/// Text as UTF-8: invalid bytes become \xNN.
[[nodiscard]] std::string utf8_text(std::string_view text);
/// Sets "path" to the text of a node's path. If that is not the path itself, also sets "encoded" to the path for
/// requests.
void set_path(Value& value, std::string_view path);
/// A hash of content, as an entity tag.
[[nodiscard]] std::string content_tag(ByteSpan content);

class Served;

/// A row of the table of routes. The longest row that fits is taken.
struct Route {
    std::string_view path;  ///< the first parts: "api/tile"; "" is the page itself
    bool below = false;     ///< whether further parts may follow
    /// Answers; an Error becomes a JSON document with a fitting status (not_found: 404, invalid_argument and
    /// out_of_bounds: 400, unsupported: 501, budget: 503, else 500). Runs in a worker thread, within the server's
    /// memory, beside other requests.
    HttpResponse (*answer)(Served& served, const HttpRequest& request);
};

[[nodiscard]] std::span<const Route> zarr_routes();  ///< v2/…, v3/…
[[nodiscard]] std::span<const Route> api_routes();   ///< api/tree, api/info
[[nodiscard]] std::span<const Route> tile_routes();  ///< api/tile, api/value, …
[[nodiscard]] std::span<const Route> page_routes();  ///< "", page/…

}  // namespace tessera::serve
