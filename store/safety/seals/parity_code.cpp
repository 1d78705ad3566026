#include "parity_code.h"

#include <isa-l/erasure_code.h>
#include <tessera/error.h>

namespace tessera {

namespace {

constexpr std::size_t table_size = 32;  ///< of ISA-L, for one coefficient

std::vector<unsigned char> tables_of(std::vector<unsigned char>& matrix, std::size_t columns, std::size_t rows) {
    std::vector<unsigned char> tables(table_size * columns * rows);
    ec_init_tables(static_cast<int>(columns), static_cast<int>(rows), matrix.data(), tables.data());
    return tables;
}

}  // namespace

CauchyCode::CauchyCode(std::uint32_t rows, std::uint32_t parity) : rows_(rows), parity_(parity) {
    std::vector<unsigned char> matrix;
    for (std::uint32_t i = 0; i < parity; ++i) {
        for (std::uint32_t j = 0; j < rows; ++j) matrix.push_back(coefficient(i, j));
    }
    tables_ = tables_of(matrix, rows, parity);
}

unsigned char CauchyCode::coefficient(std::uint32_t parity, std::uint32_t row) const {
    return gf_inv(static_cast<unsigned char>((rows_ + parity) ^ row));
}

void CauchyCode::add(std::uint32_t row, ByteSpan bytes, std::span<unsigned char*> parity) const {
    // ISA-L takes none of these as const, and changes neither.
    auto* tables = const_cast<unsigned char*>(tables_.data());
    auto* data = const_cast<unsigned char*>(reinterpret_cast<const unsigned char*>(bytes.data()));
    ec_encode_data_update(static_cast<int>(bytes.size()), static_cast<int>(rows_), static_cast<int>(parity_),
                          static_cast<int>(row), tables, data, parity.data());
}

std::vector<unsigned char> CauchyCode::inverse(std::span<const std::uint32_t> erased,
                                               std::span<const std::uint32_t> good) const {
    std::vector<unsigned char> matrix;
    for (const std::uint32_t i : good) {
        for (const std::uint32_t j : erased) matrix.push_back(coefficient(i, j));
    }
    std::vector<unsigned char> inverted(matrix.size());
    // Every square part of a Cauchy matrix has an inverse.
    if (gf_invert_matrix(matrix.data(), inverted.data(), static_cast<int>(erased.size())) != 0) {
        throw corrupt("the parity's equations have no solution");
    }
    return tables_of(inverted, erased.size(), erased.size());
}

void CauchyCode::solve(std::vector<unsigned char>& tables, std::size_t length, std::span<unsigned char*> syndromes,
                       std::span<unsigned char*> blocks) {
    ec_encode_data(static_cast<int>(length), static_cast<int>(syndromes.size()), static_cast<int>(blocks.size()),
                   tables.data(), syndromes.data(), blocks.data());
}

}  // namespace tessera
