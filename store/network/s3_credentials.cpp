// Where keys come from. Those of a role, a web identity, SSO, a container or a machine are fetched from services, which
// the environment variables of botocore name (AWS_ENDPOINT_URL_STS, AWS_EC2_METADATA_SERVICE_ENDPOINT, …).
#include "s3_credentials.h"

#include <fmt/format.h>
#include <openssl/evp.h>
#include <tessera/byte_io.h>
#include <tessera/error_text.h>
#include <tessera/value.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <memory>
#include <set>
#include <span>
#include <utility>

#include "aws_signature.h"
#include "http_client.h"
#include "key_services.h"
#include "sha256.h"
#include "url.h"

namespace tessera {

namespace {

using Source = std::shared_ptr<CredentialSource>;

constexpr std::int64_t refreshed_before = 300;  ///< seconds
constexpr int longest_chain = 8;                ///< of profiles that name each other

/// Adds the settings below [section] of a file to `settings`; whether the section is there.
bool add_section(const std::string& file, std::string_view section, AwsProfile& settings) {
    std::ifstream in(file);
    bool found = false;
    bool inside = false;
    for (std::string line; std::getline(in, line);) {
        const std::string_view text = without_space_around(line);
        if (text.empty() || text.front() == '#' || text.front() == ';') continue;
        if (text.front() == '[') {
            inside = without_space_around(text.substr(1, text.find(']') - 1)) == section;
            found = found || inside;
        } else if (const std::size_t equals = text.find('=');
                   inside && equals != std::string_view::npos && line.front() != ' ' && line.front() != '\t') {
            settings.insert_or_assign(std::string(without_space_around(text.substr(0, equals))),
                                      std::string(without_space_around(text.substr(equals + 1))));
        }
    }
    return found;
}

std::string setting_of(const AwsProfile& settings, std::string_view name) {
    const auto found = settings.find(name);
    return found == settings.end() ? std::string() : found->second;
}

std::string aws_file(const RemoteSettings& settings, const char* variable, const char* usual) {
    const std::string named = settings.of(variable);
    return named.empty() ? settings.of("HOME") + "/.aws/" + usual : named;
}

/// Of the file of configuration, and of the file of keys, which goes before it.
std::optional<AwsProfile> profile_named(const RemoteSettings& settings, const std::string& name) {
    AwsProfile profile;
    bool found = add_section(aws_file(settings, "AWS_CONFIG_FILE", "config"),
                             name == "default" ? name : "profile " + name, profile);
    found = add_section(aws_file(settings, "AWS_SHARED_CREDENTIALS_FILE", "credentials"), name, profile) || found;
    return found ? std::optional(std::move(profile)) : std::nullopt;
}

Error failure(const std::string& what) {
    return {ErrorCode::io, what};
}

/// "2026-11-26T02:00:00Z", in seconds since 1970; 0 for another text.
std::int64_t time_in(const std::string& text) {
    std::tm utc{};
    if (::strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &utc) == nullptr) return 0;
    return ::timegm(&utc);
}

S3Credentials checked(S3Credentials keys, const std::string& what) {
    if (keys.key_id.empty() || keys.secret.empty()) throw corrupt("{}: lacks the keys", what);
    return keys;
}

// ---- services

std::string region_for(const RemoteSettings& settings, const AwsProfile& profile) {
    for (const std::string& region :
         {settings.of("AWS_REGION"), settings.of("AWS_DEFAULT_REGION"), setting_of(profile, "region")}) {
        if (!region.empty()) return region;
    }
    return "us-east-1";
}

std::string session_name(const RemoteSettings& settings, const AwsProfile& profile) {
    for (const std::string& name : {settings.of("AWS_ROLE_SESSION_NAME"), setting_of(profile, "role_session_name")}) {
        if (!name.empty()) return name;
    }
    return "tessera";
}

/// Where the token service (STS) is asked, for a region.
Url token_service(const RemoteSettings& settings, const std::string& region) {
    for (const char* const name : {"AWS_ENDPOINT_URL_STS", "AWS_ENDPOINT_URL"}) {
        if (const std::string endpoint = settings.of(name); !endpoint.empty()) return parse_url(endpoint);
    }
    return parse_url(fmt::format("https://sts.{}.amazonaws.com", region));
}

std::string form_text(const std::map<std::string, std::string>& parameters) {
    std::string body;
    for (const auto& [name, value] : parameters) {
        if (!body.empty()) body += '&';
        body += name + '=' + percent_encoded(value, false);
    }
    return body;
}

/// Asks the token service (STS) for the keys of a role; signed with `keys`, unless null.
S3Credentials assumed(const RemoteSettings& settings, const AwsProfile& profile, const std::string& action,
                      std::map<std::string, std::string> parameters, CredentialSource* keys) {
    const std::string what = fmt::format("the role {} ({})", parameters["RoleArn"], action);
    const std::string region = region_for(settings, profile);
    const Url url = token_service(settings, region);
    parameters["Action"] = action;
    parameters["Version"] = "2011-06-15";
    const std::string body = form_text(parameters);
    HeaderLines lines{{"content-type", "application/x-www-form-urlencoded; charset=utf-8"},
                      {"x-amz-content-sha256", sha256_text(body)}};
    const AwsScope scope{url.authority, region, "sts"};
    const std::string path = url.path + '/';
    S3Credentials used = keys == nullptr ? S3Credentials() : keys->current();
    const auto send = [&] {
        return ask_service(
            {.method = "POST",
             .url = fmt::format("{}://{}{}", url.scheme, url.authority, path),
             .lines = keys == nullptr ? plain_lines(lines) : signed_lines(scope, used, "POST", path, "", lines),
             .body = body},
            what);
    };
    ServiceAnswer answer = send();
    if (answer.expired && keys != nullptr && keys->renew(used)) answer = send();
    if (answer.status != 200) {
        const std::string code = xml_element(answer.text, "Code");
        throw failure(fmt::format("{}: the token service answers {}{}", what, answer.status,
                                  code.empty() ? "" : " (" + code + ")") +
                      (answer.expired && keys != nullptr ? "; " + keys->remedy() : ""));
    }
    return checked({.key_id = xml_element(answer.text, "AccessKeyId"),
                    .secret = xml_element(answer.text, "SecretAccessKey"),
                    .token = xml_element(answer.text, "SessionToken"),
                    .expires = time_in(xml_element(answer.text, "Expiration"))},
                   what + ": the answer");
}

/// Keys that a service gives as JSON.
S3Credentials keys_in(const std::string& text, const std::string& what) {
    const Members members(text, what);
    std::string token = members.of("Token");
    if (token.empty()) token = members.of("SessionToken");
    return checked({.key_id = members.of("AccessKeyId"),
                    .secret = members.of("SecretAccessKey"),
                    .token = std::move(token),
                    .expires = time_in(members.of("Expiration"))},
                   what);
}

S3Credentials from_process(const std::string& command) {
    constexpr std::size_t most = std::size_t{1} << 20;
    const auto close = [](std::FILE* pipe) { return ::pclose(pipe); };
    std::unique_ptr<std::FILE, decltype(close)> pipe(::popen(command.c_str(), "re"), close);
    if (pipe == nullptr) throw io_error("starting the profile's", "credential_process", errno);
    std::string text;
    std::array<char, 4096> piece{};
    while (const std::size_t n = std::fread(piece.data(), 1, piece.size(), pipe.get())) {
        text.append(piece.data(), n);
        if (text.size() > most) break;
    }
    if (::pclose(pipe.release()) != 0) {
        throw failure("the credential_process of the AWS profile failed; run it by hand to see why");
    }
    return keys_in(text, "what the profile's credential_process prints");
}

S3Credentials from_web_identity(const RemoteSettings& settings, const AwsProfile& profile, const std::string& file,
                                const std::string& role) {
    // The file is read each time: whoever wrote it renews it.
    return assumed(settings, profile, "AssumeRoleWithWebIdentity",
                   {{"RoleArn", role},
                    {"RoleSessionName", session_name(settings, profile)},
                    {"WebIdentityToken", small_file(file, "the file of the web identity")}},
                   nullptr);
}

/// The keys in what AWS SSO answers.
S3Credentials role_keys_in(const std::string& answer) {
    const Members members(answer, "the answer of AWS SSO");
    const Value* keys = members.all().is_object() ? members.all().find("roleCredentials") : nullptr;
    const auto text = [&](std::string_view name) {
        const Value* value = keys != nullptr && keys->is_object() ? keys->find(name) : nullptr;
        return value != nullptr && value->is_string() ? value->as_string() : std::string();
    };
    S3Credentials found{
        .key_id = text("accessKeyId"), .secret = text("secretAccessKey"), .token = text("sessionToken")};
    const Value* end = keys != nullptr && keys->is_object() ? keys->find("expiration") : nullptr;
    if (end != nullptr && end->is_integer()) found.expires = end->as_int64() / 1000;
    return checked(std::move(found), "the answer of AWS SSO");
}

S3Credentials from_sso(const RemoteSettings& settings, AwsProfile profile) {
    const std::string session = setting_of(profile, "sso_session");
    const std::string config = aws_file(settings, "AWS_CONFIG_FILE", "config");
    if (!session.empty() && !add_section(config, "sso-session " + session, profile)) {
        throw not_found("{}: there is no [sso-session {}]", config, session);
    }
    const std::string cached = session.empty() ? setting_of(profile, "sso_start_url") : session;
    HasherOf<20, EVP_sha1> hasher;
    hasher.add(cached.data(), cached.size());
    const std::string file = fmt::format("{}/.aws/sso/cache/{}.json", settings.of("HOME"), hex(hasher.finish()));
    const std::string login = "log in again: aws sso login" + (session.empty() ? "" : " --sso-session " + session);
    if (!std::ifstream(file)) throw failure("AWS SSO: nobody is logged in; " + login);
    const Members token(small_file(file, "the session of AWS SSO"), "the session of AWS SSO");
    const std::int64_t expires = time_in(token.of("expiresAt"));
    if (expires != 0 && expires <= std::time(nullptr)) throw failure("AWS SSO: the session has expired; " + login);
    std::string endpoint = settings.of("AWS_ENDPOINT_URL_SSO");
    if (endpoint.empty()) {
        endpoint = fmt::format("https://portal.sso.{}.amazonaws.com", setting_of(profile, "sso_region"));
    }
    const ServiceAnswer answer =
        ask_service({.url = fmt::format("{}/federation/credentials?role_name={}&account_id={}", endpoint,
                                        percent_encoded(setting_of(profile, "sso_role_name"), false),
                                        percent_encoded(setting_of(profile, "sso_account_id"), false)),
                     .lines = {"x-amz-sso_bearer_token: " + token.of("accessToken")}},
                    "AWS SSO");
    if (answer.status != 200) {
        throw failure(
            fmt::format("AWS SSO: the service answers {}{}", answer.status, answer.status == 401 ? "; " + login : ""));
    }
    return role_keys_in(answer.text);
}

S3Credentials from_container(const RemoteSettings& settings) {
    const std::string relative = settings.of("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
    const std::string full = settings.of("AWS_CONTAINER_CREDENTIALS_FULL_URI");
    const std::string address = relative.empty() ? full : "http://169.254.170.2" + relative;
    const Url url = parse_url(address);
    const std::string host = url.authority.substr(0, url.authority.find_last_of(':'));
    constexpr std::array<std::string_view, 6> known{"127.0.0.1",     "localhost",      "[::1]",
                                                    "169.254.170.2", "169.254.170.23", "[fd00:ec2::23]"};
    if (url.scheme != "https" && std::ranges::find(known, host) == known.end() &&
        std::ranges::find(known, url.authority) == known.end()) {
        throw invalid_argument("AWS_CONTAINER_CREDENTIALS_FULL_URI: keys come by https, or from this machine");
    }
    std::string token = settings.of("AWS_CONTAINER_AUTHORIZATION_TOKEN");
    if (const std::string file = settings.of("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"); !file.empty()) {
        token = small_file(file, "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
    }
    ServiceQuestion question{.url = address, .milliseconds = 5'000};
    if (!token.empty()) question.lines.push_back("Authorization: " + token);
    const ServiceAnswer answer = ask_service(std::move(question), "the keys of the container");
    if (answer.status != 200) {
        throw failure(fmt::format("the keys of the container: the service answers {}", answer.status));
    }
    return keys_in(answer.text, "the keys of the container");
}

S3Credentials from_machine(const RemoteSettings& settings) {
    const std::string what = "the keys of the machine";
    std::string endpoint = settings.of("AWS_EC2_METADATA_SERVICE_ENDPOINT");
    if (endpoint.empty()) endpoint = "http://169.254.169.254";
    while (endpoint.ends_with('/')) endpoint.pop_back();
    constexpr std::int64_t patience = 1'000;
    const ServiceAnswer token = ask_service({.method = "PUT",
                                             .url = endpoint + "/latest/api/token",
                                             .lines = {"x-aws-ec2-metadata-token-ttl-seconds: 21600"},
                                             .milliseconds = patience},
                                            what);
    const auto get = [&](const std::string& path) {
        ServiceAnswer answer =
            ask_service({.url = endpoint + "/latest/meta-data/iam/security-credentials/" + path,
                         .lines = {"x-aws-ec2-metadata-token: " + std::string(without_space_around(token.text))},
                         .milliseconds = patience},
                        what);
        if (answer.status != 200) throw failure(fmt::format("{}: the service answers {}", what, answer.status));
        return answer.text;
    };
    if (token.status != 200) throw failure(fmt::format("{}: the service answers {}", what, token.status));
    const std::string roles = get("");
    const std::string role(without_space_around(std::string_view(roles).substr(0, roles.find('\n'))));
    return keys_in(get(percent_encoded(role, false)), what);
}

// ---- the chain

/// Of a service, which gives new keys whenever it is asked.
constexpr std::string_view of_service = "the service that gives them has no new ones";

Source source_of(CredentialSource::Fetch fetch, std::string_view remedy = of_service) {
    return std::make_shared<CredentialSource>(std::move(fetch), std::string(remedy));
}

Source keys_of_environment(const RemoteSettings& settings) {
    if (settings.of("AWS_ACCESS_KEY_ID").empty()) return nullptr;
    return source_of(
        [settings] {
            return S3Credentials{settings.of("AWS_ACCESS_KEY_ID"), settings.of("AWS_SECRET_ACCESS_KEY"),
                                 settings.of("AWS_SESSION_TOKEN")};
        },
        settings.is_chosen("AWS_ACCESS_KEY_ID")
            ? "give it new ones"
            : "set AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN to new ones");
}

Source keys_of_container(const RemoteSettings& settings) {
    const bool there = !settings.of("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI").empty() ||
                       !settings.of("AWS_CONTAINER_CREDENTIALS_FULL_URI").empty();
    return there ? source_of([settings] { return from_container(settings); }) : nullptr;
}

Source keys_of_profile(const RemoteSettings& settings, const std::string& name, const AwsProfile& profile,
                       std::set<std::string> passed);

/// The keys with which a profile's role is asked for.
Source keys_for_role(const RemoteSettings& settings, const std::string& name, const AwsProfile& profile,
                     std::set<std::string> passed) {
    const std::string source = setting_of(profile, "source_profile");
    const std::string kind = setting_of(profile, "credential_source");
    Source keys;
    if (!source.empty()) {
        const auto other = profile_named(settings, source);
        if (!other) throw not_found("the profile {} of AWS: its source_profile {} is not there", name, source);
        AwsProfile plain = *other;
        if (source == name) plain.erase("role_arn");  // its own keys
        if (source != name && (!passed.insert(source).second || passed.size() > longest_chain)) {
            throw invalid_argument("the profile {} of AWS: its source_profile leads back to it", name);
        }
        keys = keys_of_profile(settings, source, plain, std::move(passed));
    } else if (kind == "Environment") {
        keys = keys_of_environment(settings);
    } else if (kind == "EcsContainer") {
        keys = keys_of_container(settings);
    } else if (kind == "Ec2InstanceMetadata") {
        keys = credentials_of_machine(settings);
    } else {
        throw invalid_argument(
            "the profile {} of AWS: role_arn needs a source_profile, or a credential_source (Environment, "
            "EcsContainer, "
            "Ec2InstanceMetadata)",
            name);
    }
    if (keys == nullptr) throw failure(fmt::format("the profile {} of AWS: there are no keys for its role", name));
    return keys;
}

/// The keys of a role that other keys may take, of another profile or source.
Source assumed_role(const RemoteSettings& settings, const std::string& name, const AwsProfile& profile,
                    const std::string& role, std::set<std::string> passed) {
    if (!setting_of(profile, "mfa_serial").empty()) {
        throw unsupported(
            "the profile {} of AWS: its role wants a code (mfa_serial), for which nobody is asked here; a "
            "credential_process can ask",
            name);
    }
    const Source keys = keys_for_role(settings, name, profile, std::move(passed));
    std::map<std::string, std::string> parameters{{"RoleArn", role},
                                                  {"RoleSessionName", session_name(settings, profile)}};
    if (const std::string id = setting_of(profile, "external_id"); !id.empty()) parameters["ExternalId"] = id;
    if (const std::string time = setting_of(profile, "duration_seconds"); !time.empty()) {
        parameters["DurationSeconds"] = time;
    }
    return source_of([=] { return assumed(settings, profile, "AssumeRole", parameters, keys.get()); });
}

Source keys_of_profile(const RemoteSettings& settings, const std::string& name, const AwsProfile& profile,
                       std::set<std::string> passed) {
    const std::string role = setting_of(profile, "role_arn");
    const std::string token_file = setting_of(profile, "web_identity_token_file");
    if (!role.empty() && !token_file.empty()) {
        return source_of([=] { return from_web_identity(settings, profile, token_file, role); });
    }
    if (!role.empty()) return assumed_role(settings, name, profile, role, std::move(passed));
    if (!setting_of(profile, "sso_account_id").empty()) {
        return source_of([settings, profile] { return from_sso(settings, profile); });
    }
    if (!setting_of(profile, "aws_access_key_id").empty()) {
        return source_of(
            [settings, name, profile] {  // other programs write new ones into the files
                const AwsProfile now = profile_named(settings, name).value_or(profile);
                return S3Credentials{setting_of(now, "aws_access_key_id"), setting_of(now, "aws_secret_access_key"),
                                     setting_of(now, "aws_session_token")};
            },
            fmt::format("get new ones for the profile {} of AWS", name));
    }
    if (const std::string command = setting_of(profile, "credential_process"); !command.empty()) {
        return source_of([command] { return from_process(command); },
                         "the profile's credential_process gives no new ones; run it by hand to see why");
    }
    return nullptr;
}

Source find_anew(const RemoteSettings& settings) {
    // A profile that a program chose goes before the variables, as in botocore.
    if (!settings.is_chosen("AWS_PROFILE") || settings.is_chosen("AWS_ACCESS_KEY_ID")) {
        if (Source keys = keys_of_environment(settings)) return keys;
        const std::string file = settings.of("AWS_WEB_IDENTITY_TOKEN_FILE");
        const std::string role = settings.of("AWS_ROLE_ARN");
        if (!file.empty() && !role.empty()) {
            return source_of([=] { return from_web_identity(settings, {}, file, role); });
        }
    }
    const std::string wanted = settings.of("AWS_PROFILE");
    const std::string name = wanted.empty() ? "default" : wanted;
    if (Source keys = keys_of_profile(settings, name, settings.profile(), {name})) return keys;
    return keys_of_container(settings);
}

/// What credentials depend on, but for files.
std::string dependencies(const RemoteSettings& settings) {
    std::string all;
    for (const char* name :
         {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_CONFIG_FILE",
          "AWS_SHARED_CREDENTIALS_FILE", "HOME", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_ROLE_ARN", "AWS_ROLE_SESSION_NAME",
          "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_STS", "AWS_ENDPOINT_URL_SSO",
          "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI",
          "AWS_CONTAINER_AUTHORIZATION_TOKEN", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"}) {
        all += settings.of(name) + '\0' + (settings.is_chosen(name) ? "+" : "-");
    }
    return sha256_text(all);
}

struct Known {
    std::mutex mutex;
    std::map<std::string, Source> sources;  ///< by what they depend on; with keys that expire alone
};
Known& known_sources() {
    static auto& known = *new Known;  // never destroyed: threads may end later than main()
    return known;
}

}  // namespace

std::string environment(const char* name) {
    const char* value = std::getenv(name);
    return value == nullptr ? "" : value;
}

std::string RemoteSettings::of(const std::string& name) const {
    const auto found = options_->settings.find(name);
    return found != options_->settings.end() ? found->second : environment(name.c_str());
}

AwsProfile RemoteSettings::profile() const {
    const std::string wanted = of("AWS_PROFILE");
    auto profile = profile_named(*this, wanted.empty() ? "default" : wanted);
    if (!profile && !wanted.empty()) {
        throw not_found(
            "AWS_PROFILE is \"{}\", and neither ~/.aws/config nor ~/.aws/credentials has a profile of that name",
            wanted);
    }
    return profile ? *std::move(profile) : AwsProfile();
}

S3Credentials CredentialSource::current() {
    const std::lock_guard guard(mutex_);
    const std::int64_t now = std::time(nullptr);
    if (current_.expires != 0 && current_.expires - now < refreshed_before) {
        try {
            current_ = fetch_();
        } catch (const Error& e) {
            if (e.code() == ErrorCode::cancelled || current_.expires <= now) throw;
        }
    }
    return current_;
}

bool CredentialSource::renew(S3Credentials& used) {
    constexpr std::chrono::seconds patience{5};  // of requests that fail together, one asks
    const std::lock_guard guard(mutex_);
    const auto now = std::chrono::steady_clock::now();
    if (current_ == used && now - vain_ > patience) {
        vain_ = now;
        S3Credentials found = in_context([] { return "the server says that the keys have expired"; }, fetch_);
        if (!found.key_id.empty() || !found.token.empty()) current_ = std::move(found);
        if (!(current_ == used)) vain_ = {};
    }
    if (current_ == used) return false;
    used = current_;
    return true;
}

std::shared_ptr<CredentialSource> find_credentials(const RemoteSettings& settings) {
    return shared_source(dependencies(settings), [&] { return find_anew(settings); });
}

std::shared_ptr<CredentialSource> shared_source(const std::string& key, const std::function<Source()>& find) {
    {
        const std::lock_guard guard(known_sources().mutex);
        if (const auto found = known_sources().sources.find(key); found != known_sources().sources.end()) {
            return found->second;
        }
    }
    Source found = find();
    if (found == nullptr || found->current().expires == 0) return found;
    const std::lock_guard guard(known_sources().mutex);
    return known_sources().sources.emplace(key, std::move(found)).first->second;
}

std::shared_ptr<CredentialSource> credentials_of_machine(const RemoteSettings& settings) {
    if (settings.of("AWS_EC2_METADATA_DISABLED") == "true") return nullptr;
    return source_of_machine("machine " + settings.of("AWS_EC2_METADATA_SERVICE_ENDPOINT"),
                             [settings] { return from_machine(settings); });
}

std::shared_ptr<CredentialSource> source_of_machine(const std::string& key, const CredentialSource::Fetch& fetch) {
    const std::lock_guard guard(known_sources().mutex);  // who else wants it waits for the second at most
    if (const auto found = known_sources().sources.find(key); found != known_sources().sources.end()) {
        return found->second;
    }
    Source source;
    try {
        source = source_of(fetch);
    } catch (const Error& e) {
        if (e.code() == ErrorCode::cancelled) throw;  // else the machine has none
    }
    return known_sources().sources.emplace(key, std::move(source)).first->second;
}

}  // namespace tessera
