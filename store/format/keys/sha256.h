// SHA-256 and MD5, of libcrypto. Private to the store module.
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

template <std::size_t size>
using HashSum = std::array<unsigned char, size>;
using Sha256 = HashSum<32>;
using Md5 = HashSum<16>;

/// One hash being computed.
template <std::size_t sum_size, const EVP_MD* (*type)()>
class HasherOf {
public:
    HasherOf() : context_(EVP_MD_CTX_new()) {
        if (!context_ || EVP_DigestInit_ex(context_.get(), type(), nullptr) != 1) fail();
    }
    void add(const void* data, std::size_t size) {
        if (EVP_DigestUpdate(context_.get(), data, size) != 1) fail();
    }
    [[nodiscard]] HashSum<sum_size> finish() {
        HashSum<sum_size> sum{};
        if (EVP_DigestFinal_ex(context_.get(), sum.data(), nullptr) != 1) fail();
        return sum;
    }

private:
    struct Free {
        void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
    };
    [[noreturn]] static void fail() {
        throw Error(ErrorCode::io, fmt::format("the hash of {} bits of libcrypto failed", 8 * sum_size));
    }
    std::unique_ptr<EVP_MD_CTX, Free> context_;
};
using Hasher = HasherOf<32, EVP_sha256>;
/// For what others compute with it: it protects from accidents only.
using Md5Hasher = HasherOf<16, EVP_md5>;

/// As sha256sum and md5sum print them.
template <std::size_t size>
[[nodiscard]] std::string hex(const HashSum<size>& sum) {
    std::string text;
    for (const unsigned char byte : sum) fmt::format_to(std::back_inserter(text), "{:02x}", byte);
    return text;
}

}  // namespace tessera
