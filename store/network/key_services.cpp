#include "key_services.h"

#include <tessera/byte_io.h>
#include <tessera/error_text.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "aws_signature.h"
#include "http_client.h"

namespace tessera {

namespace {

constexpr std::uint64_t longest_file = std::uint64_t{64} << 10;

}  // namespace

std::string_view without_space_around(std::string_view text) {
    const std::size_t begin = text.find_first_not_of(" \t\r\n");
    if (begin == std::string_view::npos) return {};
    return text.substr(begin, text.find_last_not_of(" \t\r\n") + 1 - begin);
}

std::string small_file(const std::string& path, const std::string& what) {
    return in_context(
        [&] { return what; },
        [&] {
            const auto file = open_file(path);
            if (file->size() > longest_file) throw corrupt("{}: larger than expected", path);
            const Buffer bytes = read_all(*file);
            return std::string(without_space_around({reinterpret_cast<const char*>(bytes.data()), bytes.size()}));
        });
}

ServiceAnswer ask_service(ServiceQuestion question, const std::string& what) {
    HttpRequest request;
    request.method = question.method;
    request.url = std::move(question.url);
    request.name = what;
    request.limit = longest_file;
    request.follow = false;
    request.headers = [lines = std::move(question.lines)](const HttpRequest&) { return lines; };
    if (question.method != "GET") {
        request.body = std::make_shared<const Buffer>(std::as_bytes(std::span(question.body)));
    }
    request.patience = std::chrono::milliseconds(question.milliseconds);
    const HttpResponse response = HttpClient::shared().send(std::move(request));
    return {response.status, std::string(response.text()), says_expired(response)};
}

bool says_expired(const HttpResponse& response) {
    if (response.status != 400 && response.status != 401 && response.status != 403) return false;
    if (response.body.empty()) return response.status == 400;
    constexpr std::array<std::string_view, 4> codes{"ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired",
                                                    "InvalidToken"};
    return std::ranges::find(codes, xml_element(response.text(), "Code")) != codes.end();
}

}  // namespace tessera
