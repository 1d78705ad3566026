// What sources of keys have in common: small files, JSON, and questions to services. Private to the store module.
#pragma once

#include <tessera/error_text.h>
#include <tessera/value.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

struct HttpResponse;

/// Without blanks and ends of lines at both ends.
[[nodiscard]] std::string_view without_space_around(std::string_view text);
/// What a small file holds, such as that of a token. Throws with `what` before the reason.
[[nodiscard]] std::string small_file(const std::string& path, const std::string& what);

/// Members of a JSON object as texts; empty if they are not there. Never part of a message.
class Members {
public:
    Members(std::string_view json, const std::string& what) {
        try {
            all_ = Value::parse(json);
        } catch (const Error&) {
            throw corrupt("{}: is not JSON", what);  // which may hold secrets
        }
    }
    [[nodiscard]] std::string of(std::string_view name) const {
        const Value* value = all_.is_object() ? all_.find(name) : nullptr;
        return value != nullptr && value->is_string() ? value->as_string() : std::string();
    }
    [[nodiscard]] const Value& all() const { return all_; }

private:
    Value all_;
};

struct ServiceAnswer {
    int status = 0;
    std::string text;
    bool expired = false;
};

struct ServiceQuestion {
    std::string method = "GET";
    std::string url;
    std::vector<std::string> lines = {};
    std::string body = {};
    /// A metadata service: asked once, directly, and not waited for if it does not answer.
    std::int64_t milliseconds = 0;
};

[[nodiscard]] ServiceAnswer ask_service(ServiceQuestion question, const std::string& what);

/// Whether an answer says that the keys of its request have expired, or may mean it: that to a HEAD cannot say why.
[[nodiscard]] bool says_expired(const HttpResponse& response);

}  // namespace tessera
