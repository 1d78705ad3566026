// Access control: the token, the Host header, and pages of other origins.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "http.h"
#include "target.h"

namespace tessera::serve {

/// A request as received, before its path is looked up.
struct RawRequest {
    std::string method;
    std::string target;
    std::map<std::string, std::string, std::less<>> headers;  ///< names in lower case; repeated ones joined by ", "
    bool several_hosts = false;
    bool has_body = false;
    bool has_odd_length = false;  ///< Content-Length is no number
    bool odd_headers = false;  ///< a header's name has a character that names have not, such as the space in "Host :"
    bool incomplete = false;   ///< headers are missing, for want of memory
};

/// A request that may be answered, or the answer that refuses it.
struct Admission {
    std::optional<HttpResponse> refusal;
    HttpRequest request;
    bool head = false;
};

/// The rules of one server. Thread rule: immutable.
class Access {
public:
    /// `token` is empty if none is required. `hosts` are names without a port, beside the loopback ones. Throws
    /// invalid_argument for an origin that is not "scheme://host[:port]".
    /// `frames`: whether pages of this machine and of the origins may show the page in a frame.
    Access(std::string token, const std::vector<std::string>& hosts, const std::vector<std::string>& origins,
           bool frames = false);

    [[nodiscard]] Admission admit(const RawRequest& raw) const;
    [[nodiscard]] const std::string& token() const { return token_; }
    /// Adds the headers that tell browsers what pages may do with a response.
    void add_headers(const RawRequest& raw, HttpResponse& response) const;

private:
    [[nodiscard]] bool is_our_host(std::string_view host) const;
    [[nodiscard]] const std::string* allowed_origin(const RawRequest& raw) const;
    [[nodiscard]] bool is_cross_site(const RawRequest& raw) const;
    /// Removes the token from the front; false if it is not there.
    [[nodiscard]] bool take_token(std::vector<std::string>& segments) const;
    [[nodiscard]] HttpResponse options(const RawRequest& raw) const;
    [[nodiscard]] std::optional<HttpResponse> against_head(const RawRequest& raw) const;
    [[nodiscard]] std::optional<HttpResponse> without_token(const RawRequest& raw, const Target& target) const;
    [[nodiscard]] std::optional<HttpResponse> against_method(const RawRequest& raw) const;

    std::string token_;
    std::vector<std::string> hosts_;
    std::vector<std::string> origins_;
    bool frames_;
    std::string policy_;  ///< of content
};

/// 128 random bits as 32 hexadecimal digits. Throws io.
[[nodiscard]] std::string random_token();

}  // namespace tessera::serve
