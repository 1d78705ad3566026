#include "s3_credentials.h"

#include <fmt/format.h>
#include <tessera/error_text.h>
#include <tessera/value.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>

namespace tessera {

namespace {

using Settings = std::map<std::string, std::string, std::less<>>;

std::string_view without_blanks(std::string_view text) {
    const std::size_t begin = text.find_first_not_of(" \t\r");
    if (begin == std::string_view::npos) return {};
    return text.substr(begin, text.find_last_not_of(" \t\r") + 1 - begin);
}

/// Adds the settings below [section] of a file to `settings`; whether the section is there.
bool add_section(const std::string& file, std::string_view section, Settings& settings) {
    std::ifstream in(file);
    bool found = false;
    bool inside = false;
    for (std::string line; std::getline(in, line);) {
        const std::string_view text = without_blanks(line);
        if (text.empty() || text.front() == '#' || text.front() == ';') continue;
        if (text.front() == '[') {
            inside = without_blanks(text.substr(1, text.find(']') - 1)) == section;
            found = found || inside;
        } else if (const std::size_t equals = text.find('=');
                   inside && equals != std::string_view::npos && line.front() != ' ' && line.front() != '\t') {
            settings.insert_or_assign(std::string(without_blanks(text.substr(0, equals))),
                                      std::string(without_blanks(text.substr(equals + 1))));
        }
    }
    return found;
}

std::string setting(const Settings& settings, std::string_view name) {
    const auto found = settings.find(name);
    return found == settings.end() ? std::string() : found->second;
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
        throw Error(ErrorCode::io, "the credential_process of the AWS profile failed; run it by hand to see why");
    }
    return in_context([] { return "what the profile's credential_process prints"; },
                      [&] {
                          const Value all = Value::parse(text);
                          const Value* token = all.find("SessionToken");
                          return S3Credentials{all.at("AccessKeyId").as_string(), all.at("SecretAccessKey").as_string(),
                                               token == nullptr ? std::string() : token->as_string()};
                      });
}

}  // namespace

std::string environment(const char* name) {
    const char* value = std::getenv(name);
    return value == nullptr ? "" : value;
}

Settings aws_profile() {
    const auto file = [](const char* variable, const char* usual) {
        const std::string named = environment(variable);
        return named.empty() ? environment("HOME") + "/.aws/" + usual : named;
    };
    const std::string wanted = environment("AWS_PROFILE");
    const std::string name = wanted.empty() ? "default" : wanted;
    Settings settings;
    bool found = add_section(file("AWS_CONFIG_FILE", "config"), name == "default" ? name : "profile " + name, settings);
    found = add_section(file("AWS_SHARED_CREDENTIALS_FILE", "credentials"), name, settings) || found;
    if (!found && !wanted.empty()) {
        throw not_found(
            "AWS_PROFILE is \"{}\", and neither ~/.aws/config nor ~/.aws/credentials has a profile of that name",
            wanted);
    }
    return settings;
}

std::optional<S3Credentials> find_credentials() {
    if (const std::string id = environment("AWS_ACCESS_KEY_ID"); !id.empty()) {
        return S3Credentials{id, environment("AWS_SECRET_ACCESS_KEY"), environment("AWS_SESSION_TOKEN")};
    }
    const Settings profile = aws_profile();
    if (const std::string id = setting(profile, "aws_access_key_id"); !id.empty()) {
        return S3Credentials{id, setting(profile, "aws_secret_access_key"), setting(profile, "aws_session_token")};
    }
    if (const std::string command = setting(profile, "credential_process"); !command.empty()) {
        return from_process(command);
    }
    return std::nullopt;
}

}  // namespace tessera
