// SHA-256, SHA-512, MD5 and the like, of libcrypto. Private to the store module.
#pragma once

#include <fmt/format.h>
#include <openssl/evp.h>
#include <tessera/error.h>

#include <array>
#include <cstddef>
#include <iterator>
#include <memory>
#include <span>
#include <string>

namespace tessera {

template <std::size_t size>
using HashSum = std::array<unsigned char, size>;
using Sha256 = HashSum<32>;
using Sha512 = HashSum<64>;
using Md5 = HashSum<16>;

/// One hash being computed, of an algorithm that is chosen while the program runs.
class AnyHasher {
public:
    explicit AnyHasher(const EVP_MD* type) : context_(EVP_MD_CTX_new()) {
        if (!context_ || EVP_DigestInit_ex(context_.get(), type, nullptr) != 1) fail();
    }
    void add(const void* data, std::size_t size) {
        if (EVP_DigestUpdate(context_.get(), data, size) != 1) fail();
    }
    /// `sum` has the size of the algorithm.
    void finish(std::span<unsigned char> sum) {
        if (EVP_DigestFinal_ex(context_.get(), sum.data(), nullptr) != 1) fail();
    }

private:
    struct Free {
        void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
    };
    [[noreturn]] static void fail() { throw Error(ErrorCode::io, "a hash of libcrypto failed"); }
    std::unique_ptr<EVP_MD_CTX, Free> context_;
};

template <std::size_t sum_size, const EVP_MD* (*type)()>
class HasherOf {
public:
    void add(const void* data, std::size_t size) { hasher_.add(data, size); }
    [[nodiscard]] HashSum<sum_size> finish() {
        HashSum<sum_size> sum{};
        hasher_.finish(sum);
        return sum;
    }

private:
    AnyHasher hasher_{type()};
};
using Hasher = HasherOf<32, EVP_sha256>;
using Sha512Hasher = HasherOf<64, EVP_sha512>;
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
