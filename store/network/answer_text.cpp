#include "answer_text.h"

#include <fmt/format.h>
#include <tessera/error_text.h>

#include <algorithm>
#include <array>
#include <utility>

#include "http_work.h"
#include "node_documents.h"
#include "remote_writer.h"

namespace tessera {

namespace {

std::string_view from_first_sign(std::string_view text) {
    return text.substr(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
}

/// No document is like this: they are all JSON.
bool looks_like_page(const HttpResponse& response) {
    if (response.first != 0) return false;
    const std::string_view beginning = from_first_sign(response.text());
    return (beginning.empty() && response.total == 0) || beginning.starts_with('<') ||
           response.header("content-type").starts_with("text/html");
}

/// "gzip": how the server packed the value; empty: not at all.
std::string_view packing_of(const HttpResponse& response) {
    constexpr std::array<std::string_view, 7> packings{"gzip", "x-gzip",   "deflate",   "br",
                                                       "zstd", "compress", "x-compress"};
    const auto* const found = std::ranges::find(packings, lower(response.header("content-encoding")));
    return found == packings.end() ? std::string_view() : *found;
}

/// Whether a server says of what cannot be there that it is.
bool answers_for_nothing(const RemoteService& service) {
    HttpRequest request = service.request("tessera-looks-for-nothing-" + random_id());
    request.range = HttpRange{.first = 0, .length = 1};
    try {
        const int status = HttpClient::shared().send(std::move(request)).status;
        return status == 200 || status == 206 || status == 416;
    } catch (const Error&) {
        return false;
    }
}

}  // namespace

std::string what_came(const HttpResponse& response) {
    const std::string_view type = response.header("content-type");
    const std::string_view beginning = from_first_sign(response.text());
    const std::string looks = lower(beginning.substr(0, 9));
    const bool page = looks.starts_with("<html") || looks.starts_with("<!doctype");
    return fmt::format("{}{}{} bytes",
                       !type.empty() ? type
                       : page        ? "text/html"
                                     : "",
                       type.empty() && !page ? "" : ", ",
                       std::max<std::uint64_t>(response.total, response.body.size()));
}

void require_plain(const RemoteService& service, const HttpResponse& response, std::string_view key) {
    const bool document = document_name(key).has_value();
    const std::string_view packing = packing_of(response);
    // Programs that write to S3 store packed chunks as they are, and say so there.
    if (!packing.empty() && (document || !service.writes()) && !key.ends_with(".gz") && !key.ends_with(".tgz")) {
        throw unsupported(
            "{}: the server sends it packed, unasked (Content-Encoding: {}), so that its bytes are not "
            "those of the value; let the server send it as it is, or copy it from there and unpack it",
            service.request(key).name, packing);
    }
    if (!document || !looks_like_page(response) || !answers_for_nothing(service)) return;
    throw corrupt(
        "{}: {} came where a document was looked for: the server answers 200 for what is not there, too, so "
        "that nobody can tell what is; it should answer 404, or this is not the URL of the data",
        service.request(key).name, what_came(response));
}

}  // namespace tessera
