// A page of any site can send requests to a loopback address, and the name of any site can be made to lead there (DNS
// rebinding). So the Host header of a request must be a name of this server. A page that sends requests must be the
// server's own, or of an allowed origin (Origin, Sec-Fetch-Site). Other users of the machine can connect too, but lack
// the token.
#include "access.h"

#include <errno.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <tessera/error_text.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

namespace tessera::serve {

namespace {

constexpr std::string_view page_policy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors ";

std::string lower_case(std::string_view text) {
    std::string lower(text);
    std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return lower;
}

std::string_view header(const RawRequest& raw, std::string_view name) {
    const auto found = raw.headers.find(name);
    return found == raw.headers.end() ? std::string_view() : std::string_view(found->second);
}

/// Without the port; nullopt if what follows the name is no port.
std::optional<std::string> host_name(std::string_view host) {
    const std::size_t bracket = host.rfind(']');
    const std::size_t colon = host.find(':', bracket == host.npos ? 0 : bracket);
    const std::string_view port = colon == host.npos ? std::string_view() : host.substr(colon + 1);
    if (port.size() > 5 || !std::ranges::all_of(port, [](char c) { return c >= '0' && c <= '9'; })) return {};
    return lower_case(host.substr(0, colon));
}

/// Takes the same time wherever two texts of equal length differ.
bool equal_in_constant_time(std::string_view a, std::string_view b) {
    if (a.size() != b.size()) return false;
    unsigned difference = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        difference |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]);
    }
    return difference == 0;
}

void require_origin(const std::string& origin) {
    const std::size_t scheme = origin.find("://");
    const bool known = origin.starts_with("http://") || origin.starts_with("https://");
    const std::string_view host = known ? std::string_view(origin).substr(scheme + 3) : std::string_view();
    if (!known || host.empty() || host.find_first_of("/?#@ *\t\r\n") != host.npos || origin != lower_case(origin)) {
        throw invalid_argument(
            "--allow-origin: expected an origin as browsers send it, https://viewer.example, found '{}'", origin);
    }
}

HttpResponse refused(std::string_view why) {
    return error_response(403, "refused", why);
}

}  // namespace

Access::Access(std::string token, const std::vector<std::string>& hosts, const std::vector<std::string>& origins,
               bool frames)
    : token_(std::move(token)), origins_(origins), frames_(frames), policy_(page_policy) {
    if (frames) {
        policy_ += "http://localhost:* http://127.0.0.1:* http://[::1]:*";
        for (const std::string& origin : origins) policy_ += " " + origin;
    } else {
        policy_ += "'none'";
    }
    for (const char* name : {"localhost", "127.0.0.1", "[::1]"}) hosts_.emplace_back(name);
    for (const std::string& host : hosts) {
        if (host.empty() || host.find_first_of("/ ,*\r\n\t") != host.npos || host_name(host) != lower_case(host)) {
            throw invalid_argument("--host: expected a name without a port, found '{}'", host);
        }
        hosts_.push_back(lower_case(host));
    }
    for (const std::string& origin : origins) require_origin(origin);
}

bool Access::is_our_host(std::string_view host) const {
    const auto name = host_name(host);
    return name && std::ranges::find(hosts_, *name) != hosts_.end();
}

const std::string* Access::allowed_origin(const RawRequest& raw) const {
    const auto found = std::ranges::find(origins_, header(raw, "origin"));
    return found == origins_.end() ? nullptr : &*found;
}

bool Access::is_cross_site(const RawRequest& raw) const {
    if (allowed_origin(raw) != nullptr) return false;
    const auto origin = raw.headers.find("origin");
    if (origin != raw.headers.end() && origin->second != fmt::format("http://{}", header(raw, "host"))) return true;
    const std::string_view site = header(raw, "sec-fetch-site");
    if (site.empty() || site == "none" || site == "same-origin") return false;
    // A link to the page may be followed from any other page, which sees nothing of the response.
    // Which pages may frame it, browsers learn from the policy.
    const std::string_view to = header(raw, "sec-fetch-dest");
    const bool followed =
        header(raw, "sec-fetch-mode") == "navigate" && (to == "document" || (frames_ && to == "iframe"));
    return !followed || (token_.empty() && site != "same-site");
}

bool Access::take_token(std::vector<std::string>& segments) const {
    if (token_.empty()) return true;
    if (segments.size() < 3 || segments[0] != "t" || !equal_in_constant_time(segments[1], token_)) return false;
    segments.erase(segments.begin(), segments.begin() + 2);
    return true;
}

HttpResponse Access::options(const RawRequest& raw) const {
    HttpResponse response{.status = 204, .type = ""};
    response.headers["Allow"] = "GET, HEAD, OPTIONS";
    if (allowed_origin(raw) == nullptr || !raw.headers.contains("access-control-request-method")) return response;
    response.headers["Access-Control-Allow-Methods"] = "GET, HEAD";
    response.headers["Access-Control-Allow-Headers"] = "Range, If-Match, If-None-Match, If-Range, Cache-Control";
    response.headers["Access-Control-Max-Age"] = "600";
    if (header(raw, "access-control-request-private-network") == "true") {
        response.headers["Access-Control-Allow-Private-Network"] = "true";
    }
    return response;
}

/// What the head of a request says against it.
std::optional<HttpResponse> Access::against_head(const RawRequest& raw) const {
    if (raw.odd_headers || raw.has_odd_length) {
        return error_response(400, "invalid_argument", "a header of the request is not valid");
    }
    if (!raw.headers.contains("host")) {
        return error_response(400, "invalid_argument", "the request has no Host header");
    }
    if (raw.several_hosts || !is_our_host(header(raw, "host"))) {
        return refused(
            "the Host header names none of the hosts that this server answers for; to add one, start it with --host "
            "NAME (in Python: hosts=[NAME])");
    }
    if (count_parameters(raw.target) > most_parameters) {
        return error_response(414, "invalid_argument",
                              fmt::format("a query has at most {} parameters", most_parameters));
    }
    return std::nullopt;
}

/// What somebody without a token is told: what answers here, and nothing of what is served.
std::optional<HttpResponse> Access::without_token(const RawRequest& raw, const Target& target) const {
    const bool reads = raw.method == "GET" || raw.method == "HEAD";
    if (token_.empty() || !reads || raw.has_body) return std::nullopt;
    if (target.segments.size() == 1 && target.segments[0].empty()) {
        return HttpResponse{.type = "text/plain; charset=utf-8",
                            .body = HttpBody(std::string_view(
                                "Tessera serves arrays here. Whoever started it has the address that leads to them; "
                                "it goes on with /t/ and a token.\n"))};
    }
    if (target.segments.size() != 2) return std::nullopt;
    auto whole = target.segments;
    whole.emplace_back();
    if (!take_token(whole) || is_cross_site(raw)) return std::nullopt;
    HttpResponse response{.status = 307, .type = ""};
    response.headers["Location"] = token_ + "/";  // relative to /t/
    return response;
}

/// What is against a request from one who may ask.
std::optional<HttpResponse> Access::against_method(const RawRequest& raw) const {
    if (is_cross_site(raw)) return refused("requests of other sites are not answered");
    if (raw.has_body) return error_response(413, "invalid_argument", "requests have no body here");
    if (raw.method == "OPTIONS") return options(raw);
    if (raw.method == "GET" || raw.method == "HEAD") return std::nullopt;
    HttpResponse response = error_response(405, "invalid_argument", "this server only reads");
    response.headers["Allow"] = "GET, HEAD, OPTIONS";
    return response;
}

Admission Access::admit(const RawRequest& raw) const {
    Admission admission;
    admission.head = raw.method == "HEAD";
    admission.refusal = against_head(raw);
    auto target = admission.refusal ? std::nullopt : parse_target(raw.target);
    if (!admission.refusal && !target) {
        admission.refusal = error_response(400, "invalid_argument", "the target of the request is not valid");
    }
    if (target) admission.refusal = without_token(raw, *target);
    if (!admission.refusal && !take_token(target->segments)) admission.refusal = not_found_response();
    if (!admission.refusal) admission.refusal = against_method(raw);
    if (admission.refusal) {
        // What follows is a body, or nobody knows what: no other request.
        if (raw.has_body || raw.odd_headers) admission.refusal->headers["Connection"] = "close";
        return admission;
    }
    admission.request.segments = std::move(target->segments);
    if (admission.request.segments.back().empty() && admission.request.segments.size() == 1) {
        admission.request.segments.clear();
    }
    admission.request.query = std::move(target->query);
    admission.request.headers = raw.headers;
    return admission;
}

void Access::add_headers(const RawRequest& raw, HttpResponse& response) const {
    auto& headers = response.headers;
    headers["X-Content-Type-Options"] = "nosniff";
    headers["Referrer-Policy"] = "no-referrer";
    headers["Content-Security-Policy"] = policy_;
    headers["Cross-Origin-Resource-Policy"] = "same-origin";
    headers["Cross-Origin-Opener-Policy"] = "same-origin";
    if (origins_.empty()) return;
    headers["Vary"] = headers.contains("Vary") ? headers["Vary"] + ", Origin" : "Origin";
    const std::string* const origin = allowed_origin(raw);
    if (origin == nullptr) return;
    headers["Access-Control-Allow-Origin"] = *origin;
    headers["Access-Control-Expose-Headers"] = "Accept-Ranges, Content-Length, Content-Range, ETag";
    headers["Cross-Origin-Resource-Policy"] = "cross-origin";
}

std::string random_token() {
    std::array<unsigned char, 16> bits{};
    std::size_t filled = 0;
    while (filled < bits.size()) {
        const ssize_t got = ::getrandom(bits.data() + filled, bits.size() - filled, 0);
        if (got < 0 && errno != EINTR) throw io_error("reading", "random bits", errno);
        if (got > 0) filled += static_cast<std::size_t>(got);
    }
    std::string token;
    for (const unsigned char byte : bits) token += fmt::format("{:02x}", byte);
    return token;
}

}  // namespace tessera::serve
