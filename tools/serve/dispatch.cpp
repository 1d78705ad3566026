#include "dispatch.h"

#include <fmt/format.h>
#include <tessera/error.h>
#include <tessera/parallel.h>

#include <exception>
#include <new>

namespace tessera::serve {

namespace {

/// How many leading segments a route names; nullopt if it does not fit.
std::optional<std::size_t> fits(const Route& route, const std::vector<std::string>& segments) {
    std::string_view path = route.path;
    std::size_t n = 0;
    while (!path.empty()) {
        const std::string_view part = path.substr(0, path.find('/'));
        if (n >= segments.size() || segments[n] != part) return {};
        path.remove_prefix(std::min(part.size() + 1, path.size()));
        ++n;
    }
    return n == segments.size() || (route.below && n < segments.size()) ? std::optional(n) : std::nullopt;
}

const Route* find_route(const std::vector<std::string>& segments) {
    const Route* best = nullptr;
    std::size_t most = 0;
    for (const auto routes : {page_routes(), api_routes(), zarr_routes(), tile_routes()}) {
        for (const Route& route : routes) {
            const auto parts = fits(route, segments);
            if (parts && (best == nullptr || *parts > most)) {
                best = &route;
                most = *parts;
            }
        }
    }
    return best;
}

struct Refusal {
    int status;
    std::string_view code;
};

Refusal refusal_of(ErrorCode code) {
    switch (code) {
        case ErrorCode::invalid_argument:
        case ErrorCode::out_of_bounds:
            return {400, code_name(code)};
        case ErrorCode::not_found:
            return {404, code_name(code)};
        case ErrorCode::unsupported:
            return {501, code_name(code)};
        case ErrorCode::budget:
        case ErrorCode::cancelled:
            return {503, code_name(code)};
        case ErrorCode::corrupt:
            return {500, code_name(code)};
        default:
            return {500, "io"};
    }
}

}  // namespace

HttpResponse response_for(const Served& served, const Error& error) {
    const Refusal refusal = refusal_of(error.code());
    HttpResponse response = error_response(refusal.status, refusal.code, served.shown_text(error.what()));
    if (refusal.status == 503) response.headers["Retry-After"] = "1";
    return response;
}

HttpResponse dispatch(Served& served, const HttpRequest& request) {
    const MemoryScope scope(served.memory());
    const StopScope stop(request.stop);
    try {
        const Route* const route = find_route(request.segments);
        return route == nullptr ? not_found_response() : route->answer(served, request);
    } catch (const Error& e) {
        return response_for(served, e);
    } catch (const std::bad_alloc&) {
        HttpResponse response = error_response(503, "budget", "not enough memory");
        response.headers["Retry-After"] = "1";
        return response;
    } catch (const std::exception& e) {
        return error_response(500, "internal", served.shown_text(e.what()));
    }
}

}  // namespace tessera::serve
