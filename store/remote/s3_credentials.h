// Keys for S3, found where botocore and the AWS command line look for them. Private to the store module.
// Source: botocore's documentation, "Configuration" and "Credentials".
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace tessera {

/// Secret: never part of a message.
struct S3Credentials {
    std::string key_id;
    std::string secret;
    std::string token;  ///< of a session; may be empty
};

/// The settings of the profile that AWS_PROFILE names, or of "default", from ~/.aws/config and ~/.aws/credentials (or
/// the files that AWS_CONFIG_FILE and AWS_SHARED_CREDENTIALS_FILE name). Empty if there is none. Throws not_found if
/// AWS_PROFILE names one that is not there.
[[nodiscard]] std::map<std::string, std::string, std::less<>> aws_profile();
/// From the environment, then the profile: its keys, or what its credential_process prints. nullopt: read without.
/// Throws io and corrupt, without any secret, if a credential_process fails.
[[nodiscard]] std::optional<S3Credentials> find_credentials();
/// An environment variable; empty if it is not set.
[[nodiscard]] std::string environment(const char* name);

}  // namespace tessera
