// Keys for Google Cloud Storage, found where Google's libraries and GDAL look for them. Private to the store module.
// Source: "How Application Default Credentials works"; RFC 7523 (a signed statement for a token).
#pragma once

#include <memory>

#include "s3_credentials.h"

namespace tessera {

/// A pair of HMAC (GS_ACCESS_KEY_ID, GS_SECRET_ACCESS_KEY), a token (GOOGLE_OAUTH_ACCESS_TOKEN), or a file that gives
/// tokens: the one that GOOGLE_APPLICATION_CREDENTIALS names, or gcloud's. Null: nothing of this is there.
[[nodiscard]] std::shared_ptr<CredentialSource> find_google_credentials(const RemoteSettings& settings);
/// Those of the machine, asked for a second at most; null if it has none.
[[nodiscard]] std::shared_ptr<CredentialSource> google_credentials_of_machine(const RemoteSettings& settings);

}  // namespace tessera
