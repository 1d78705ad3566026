#include "google_credentials.h"

#include <fmt/format.h>
#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <tessera/error_text.h>
#include <tessera/value.h>

#include <algorithm>
#include <ctime>
#include <fstream>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "aws_signature.h"
#include "base64.h"
#include "key_services.h"
#include "url.h"

namespace tessera {

namespace {

constexpr std::string_view all_of_cloud = "https://www.googleapis.com/auth/cloud-platform";

std::string base64url(std::string_view bytes) {
    std::string text = base64_encode(std::as_bytes(std::span(bytes)));
    while (text.ends_with('=')) text.pop_back();
    std::ranges::replace(text, '+', '-');
    std::ranges::replace(text, '/', '_');
    return text;
}

int no_password(char* /*out*/, int /*size*/, int /*writes*/, void* /*user*/) {
    return 0;  // nobody is asked
}

/// RSA with SHA-256 (RS256).
std::string signed_by(const std::string& private_key, std::string_view text, const std::string& what) {
    const std::unique_ptr<BIO, decltype(&::BIO_free)> bytes(
        ::BIO_new_mem_buf(private_key.data(), static_cast<int>(private_key.size())), &::BIO_free);
    const std::unique_ptr<EVP_PKEY, decltype(&::EVP_PKEY_free)> key(
        ::PEM_read_bio_PrivateKey(bytes.get(), nullptr, no_password, nullptr), &::EVP_PKEY_free);
    const std::unique_ptr<EVP_MD_CTX, decltype(&::EVP_MD_CTX_free)> context(::EVP_MD_CTX_new(), &::EVP_MD_CTX_free);
    const auto* const data = reinterpret_cast<const unsigned char*>(text.data());
    std::size_t size = 0;
    const bool begun = key != nullptr && context != nullptr &&
                       ::EVP_DigestSignInit(context.get(), nullptr, ::EVP_sha256(), nullptr, key.get()) == 1 &&
                       ::EVP_DigestSign(context.get(), nullptr, &size, data, text.size()) == 1;
    std::string signature(size, '\0');
    if (!begun || ::EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(signature.data()), &size, data,
                                   text.size()) != 1) {
        throw corrupt("{}: its private_key is no private key of RSA", what);
    }
    signature.resize(size);
    return signature;
}

/// The token of an answer.
S3Credentials bearer_in(const ServiceAnswer& answer, const std::string& what, std::string_view remedy) {
    const Members members(answer.status == 200 || answer.text.starts_with('{') ? answer.text : "{}", what);
    if (answer.status != 200) {
        const std::string why = members.of("error");
        throw Error(ErrorCode::io, fmt::format("{}: the token service answers {}{}{}", what, answer.status,
                                               why.empty() ? "" : " (" + why + ")", remedy));
    }
    const Value* life = members.all().is_object() ? members.all().find("expires_in") : nullptr;
    S3Credentials keys{.token = members.of("access_token")};
    if (keys.token.empty()) throw corrupt("{}: the answer lacks the token", what);
    if (life != nullptr && life->is_integer()) keys.expires = std::time(nullptr) + life->as_int64();
    return keys;
}

/// Asks for a token; the key goes by https only, or to this machine.
S3Credentials bearer_from(const std::string& address, const std::map<std::string, std::string>& parameters,
                          const std::string& what, std::string_view remedy) {
    const Url url = parse_url(address);
    const bool here = url.authority.starts_with("127.0.0.1:") || url.authority.starts_with("localhost:");
    if (url.scheme != "https" && !here) throw invalid_argument("{}: its token_uri is not of https", what);
    std::string body;
    for (const auto& [name, value] : parameters) {
        if (!body.empty()) body += '&';
        body += name + '=' + percent_encoded(value, false);
    }
    return bearer_in(ask_service({.method = "POST",
                                  .url = address,
                                  .lines = {"Content-Type: application/x-www-form-urlencoded"},
                                  .body = std::move(body)},
                                 what),
                     what, remedy);
}

/// For a service account, which signs that it is itself.
S3Credentials bearer_of_service(const std::string& address, const std::string& email, const std::string& key,
                                const std::string& what) {
    const std::time_t now = std::time(nullptr);
    const Value claim{{"iss", email},
                      {"scope", std::string(all_of_cloud)},
                      {"aud", address},
                      {"iat", static_cast<std::int64_t>(now)},
                      {"exp", static_cast<std::int64_t>(now + 3600)}};
    const std::string statement = base64url(R"({"alg":"RS256","typ":"JWT"})") + '.' + base64url(claim.dump());
    return bearer_from(address,
                       {{"grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer"},
                        {"assertion", statement + '.' + base64url(signed_by(key, statement, what))}},
                       what, "");
}

/// By a file of gcloud or of a service account, which is read each time.
S3Credentials bearer_of_file(const std::string& file) {
    const std::string what = "the credentials of Google in " + file;
    const Members members(small_file(file, "the credentials of Google"), what);
    const std::string type = members.of("type");
    const auto needed = [&](std::string_view name) {
        std::string value = members.of(name);
        if (value.empty()) throw corrupt("{}: lacks {}", what, name);
        return value;
    };
    std::string address = members.of("token_uri");
    if (address.empty()) address = "https://oauth2.googleapis.com/token";
    if (type == "authorized_user") {
        return bearer_from(address,
                           {{"grant_type", "refresh_token"},
                            {"client_id", needed("client_id")},
                            {"client_secret", needed("client_secret")},
                            {"refresh_token", needed("refresh_token")}},
                           what, "; log in again: gcloud auth application-default login");
    }
    if (type != "service_account") {
        throw unsupported(
            "{}: of type \"{}\"; authorized_user and service_account can be used, or a token of `gcloud auth "
            "print-access-token` in GOOGLE_OAUTH_ACCESS_TOKEN",
            what, type);
    }
    return bearer_of_service(address, needed("client_email"), needed("private_key"), what);
}

std::string google_file(const RemoteSettings& settings) {
    const std::string named = settings.of("GOOGLE_APPLICATION_CREDENTIALS");
    if (!named.empty()) return named;
    std::string folder = settings.of("CLOUDSDK_CONFIG");
    if (folder.empty()) folder = settings.of("HOME") + "/.config/gcloud";
    std::string file = folder + "/application_default_credentials.json";
    return std::ifstream(file) ? file : std::string();
}

}  // namespace

std::shared_ptr<CredentialSource> find_google_credentials(const RemoteSettings& settings) {
    // What a program gives itself has the names of S3.
    const bool chosen = settings.is_chosen("AWS_ACCESS_KEY_ID");
    const std::string id = settings.of(chosen ? "AWS_ACCESS_KEY_ID" : "GS_ACCESS_KEY_ID");
    if (!id.empty()) {
        const char* secret = chosen ? "AWS_SECRET_ACCESS_KEY" : "GS_SECRET_ACCESS_KEY";
        return std::make_shared<CredentialSource>(
            [settings, id, secret] { return S3Credentials{.key_id = id, .secret = settings.of(secret)}; },
            "give it new ones");
    }
    const char* token = settings.is_chosen("AWS_SESSION_TOKEN") ? "AWS_SESSION_TOKEN" : "GOOGLE_OAUTH_ACCESS_TOKEN";
    if (!settings.of(token).empty()) {
        return std::make_shared<CredentialSource>(
            [settings, token] { return S3Credentials{.token = settings.of(token)}; },
            "set GOOGLE_OAUTH_ACCESS_TOKEN to a new one (gcloud auth print-access-token)");
    }
    const std::string file = google_file(settings);
    if (file.empty()) return nullptr;
    return shared_source("google " + file, [&] {
        return std::make_shared<CredentialSource>([file] { return bearer_of_file(file); },
                                                  "the token service gives no new ones");
    });
}

std::shared_ptr<CredentialSource> google_credentials_of_machine(const RemoteSettings& settings) {
    std::string host = settings.of("GCE_METADATA_HOST");
    if (host.empty()) host = "metadata.google.internal";
    return source_of_machine("google machine " + host, [host] {
        const std::string what = "the token of the machine";
        return bearer_in(
            ask_service({.url = "http://" + host + "/computeMetadata/v1/instance/service-accounts/default/token",
                         .lines = {"Metadata-Flavor: Google"},
                         .milliseconds = 1'000},
                        what),
            what, "");
    });
}

}  // namespace tessera
