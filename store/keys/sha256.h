// SHA-256, of libcrypto. Private to the store module.
#pragma once

#include <fmt/format.h>
#include <openssl/evp.h>
#include <tessera/error.h>

#include <array>
#include <cstddef>
#include <iterator>
#include <memory>
#include <string>

namespace tessera {

using Sha256 = std::array<unsigned char, 32>;

/// One SHA-256 being computed.
class Hasher {
public:
    Hasher() : context_(EVP_MD_CTX_new()) {
        if (!context_ || EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) != 1) fail();
    }
    void add(const void* data, std::size_t size) {
        if (EVP_DigestUpdate(context_.get(), data, size) != 1) fail();
    }
    [[nodiscard]] Sha256 finish() {
        Sha256 sum{};
        if (EVP_DigestFinal_ex(context_.get(), sum.data(), nullptr) != 1) fail();
        return sum;
    }

private:
    struct Free {
        void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
    };
    [[noreturn]] static void fail() { throw Error(ErrorCode::io, "SHA-256 of libcrypto failed"); }
    std::unique_ptr<EVP_MD_CTX, Free> context_;
};

/// 64 digits, as sha256sum prints them.
[[nodiscard]] inline std::string hex(const Sha256& sum) {
    std::string text;
    for (const unsigned char byte : sum) fmt::format_to(std::back_inserter(text), "{:02x}", byte);
    return text;
}

}  // namespace tessera
