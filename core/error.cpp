#include <tessera/error.h>

#include <tessera/secrets.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

namespace tessera {

std::string_view code_name(ErrorCode code) {
    switch (code) {
        case ErrorCode::invalid_argument:
            return "invalid_argument";
        case ErrorCode::out_of_bounds:
            return "out_of_bounds";
        case ErrorCode::not_found:
            return "not_found";
        case ErrorCode::already_exists:
            return "already_exists";
        case ErrorCode::corrupt:
            return "corrupt";
        case ErrorCode::unsupported:
            return "unsupported";
        case ErrorCode::io:
            return "io";
        case ErrorCode::budget:
            return "budget";
        case ErrorCode::cancelled:
            return "cancelled";
        case ErrorCode::recorded:
            return "recorded";
        case ErrorCode::sealed:
            return "sealed";
    }
    return "internal";
}

Error Error::advising(Action action, std::string_view effect, std::string_view value) const {
    Error more = *this;
    more.advice_.push_back({action, std::string(effect), std::string(value)});
    return more;
}

Error Error::reworded(ErrorCode code, const std::string& message) const {
    Error other(code, message);
    other.advice_ = advice_;
    return other;
}

std::vector<std::string_view> secrets_in(std::string_view text) {
    std::vector<std::string_view> found;
    for (std::size_t at = text.find(':'); at != text.npos; at = text.find(':')) {
        const bool has_query = text.substr(0, at).ends_with("http") || text.substr(0, at).ends_with("https");
        text.remove_prefix(at + 1);
        // Who mistypes the slashes has typed a password all the same.
        const std::size_t host_at = std::min(text.find_first_not_of("/\\"), text.size());
        if (host_at == 0 && !has_query) continue;
        text.remove_prefix(host_at);
        const std::size_t end = std::min(text.find_first_of(" \t\n\"'"), text.size());
        const std::string_view url = text.substr(0, end);
        const std::string_view host = url.substr(0, url.find_first_of("/?#"));
        if (const std::size_t user = host.rfind('@'); user != host.npos) {
            found.push_back(host.substr(0, user + 1));
            text.remove_prefix(user + 1);
        }
        const std::size_t query = url.find('?');
        if (!has_query || query == url.npos) continue;
        std::string_view secret = url.substr(query, url.find("::", query) - query);
        // In a message the next word follows.
        if (end < text.size() && secret.size() == end - query &&
            std::string_view(":;,.)").find(secret.back()) != text.npos) {
            secret.remove_suffix(1);
        }
        found.push_back(secret);
        text.remove_prefix(static_cast<std::size_t>(secret.data() + secret.size() - text.data()));
    }
    return found;
}

std::string without_secrets(std::string_view text) {
    std::string shown;
    for (const std::string_view secret : secrets_in(text)) {
        const auto begin = static_cast<std::size_t>(secret.data() - text.data());
        shown += text.substr(0, begin);
        text.remove_prefix(begin + secret.size());
    }
    return shown.append(text);
}

Error io_error(std::string_view doing, std::string_view path, int error_number) {
    std::string message = std::string(doing) + " " + std::string(path) + ": ";
    message += std::generic_category().message(error_number);
    if (error_number == ENOSPC || error_number == EDQUOT) {
        message += " (free some space and try again; what was there before is unchanged)";
    }
    return {error_number == ENOENT ? ErrorCode::not_found : ErrorCode::io, message};
}

}  // namespace tessera
