// Every codec's decoder: the first byte chooses one of the chains below, the rest is an encoded chunk.
#include <tessera/pipeline.h>

#include <array>
#include <string_view>

#include "fuzz.h"

using namespace tessera;

namespace {

struct Chain {
    std::string_view dtype;
    std::string_view codecs;  ///< as parse_codecs reads them
};

constexpr std::array chains{
    Chain{"<i4", "none"},
    Chain{"<i4", "blosc"},
    Chain{"<i4", "gzip"},
    Chain{"<i4", "zlib"},
    Chain{"<i4", "zstd"},
    Chain{"<i4", "lz4"},
    Chain{"<i4", "bz2"},
    Chain{"<i4", "lzma"},
    Chain{"<i4", R"([{"name": "numcodecs.lzma", "configuration": {"format": 2}}])"},
    Chain{"<i4", R"([{"name": "numcodecs.lzma", "configuration": {"format": 3, "filters": [{"id": 3}, {"id": 33}]}}])"},
    Chain{"<i4", R"([{"name": "numcodecs.lzma", "configuration":
                  {"format": 3, "filters": [{"id": 4611686018427387905}]}}])"},
    Chain{"<i4", "crc32c,crc32,adler32"},
    Chain{"<i4", "fletcher32"},
    Chain{"<i4", "jenkins_lookup3"},
    Chain{"<i4", "shuffle"},
    Chain{"<i4", "gzip,zstd,lz4"},
    Chain{"<i4", "delta:<i2"},
    Chain{"<f4", "fixedscaleoffset:0.5:100:<u2"},
    Chain{"<f4", "quantize:3:<f2"},
    Chain{"<f8", "bitround:5"},
    Chain{"<i2", "astype:<f8"},
    Chain{"|u1", "astype:<c16"},
    Chain{"<i8", "scale_offset:3:-1"},
    Chain{"|b1", "packbits"},
    Chain{"<U3", R"([{"name": "numcodecs.categorize", "configuration": {"labels": ["a", "bc"], "astype": "<i2"}}])"},
    Chain{"string", R"([{"name": "numcodecs.categorize", "configuration": {"labels": ["a", "bc"]}}])"},
    Chain{"string", "none"},
    Chain{"string", "zstd"},
    Chain{"string", "bz2"},
    Chain{"string", "lzma"},
    Chain{"string", "json2"},
    Chain{"bytes", "none"},
    Chain{"bytes", "vlen-array:<i4"},
    Chain{">f4", R"([{"name": "transpose", "configuration": {"order": [1, 0]}}, {"name": "bytes"}])"},
    Chain{"<f8", R"([{"name": "scale_offset", "configuration": {"offset": -10, "scale": 0.1}}, {"name": "cast_value",
                  "configuration": {"data_type": "uint8", "scalar_map": {"decode": [[0, "NaN"]]}}}])"},
    Chain{"<i2", R"([{"name": "cast_value", "configuration": {"data_type": "float32", "out_of_range": "clamp"}}])"},
    Chain{"<i4", R"([{"name": "reshape", "configuration": {"shape": [-1, 3]}}])"},
    Chain{"<c8", R"([{"name": "bitround", "configuration": {"keepbits": 3}}])"},
    Chain{"<i2", R"([{"name": "packbits", "configuration":
                  {"first_bit": 2, "last_bit": 8, "padding_encoding": "last_byte"}}])"},
    Chain{">f4", R"([{"name": "n5_default", "configuration": {"codecs":
                  [{"name": "transpose", "configuration": {"order": [1, 0]}},
                   {"name": "bytes", "configuration": {"endian": "big"}}, "gzip"]}}])"},
    Chain{"<i4", R"([{"name": "conditional", "configuration": {"codecs": ["numcodecs.shuffle", "zstd",
                  {"name": "conditional", "configuration": {"codecs": ["gzip"], "header_bits": 16}}]}}, "gzip"])"},
    Chain{"<i4", "zlib,base64"},
    Chain{"string", "msgpack2"},
    Chain{"string", "json"},
    Chain{"<f4", "data_type:float8_e5m2,zstd"},
    Chain{"|i1", R"([{"name": "data_type", "configuration": {"name": "int4"}},
                  {"name": "packbits", "configuration": {"last_bit": 3, "padding_encoding": "first_byte"}}])"},
    Chain{">c8", "data_type:complex_float16"},
    Chain{"<f4", R"([{"name": "zfp", "configuration": {"mode": "fixed_accuracy", "tolerance": 0.01}}])"},
    Chain{"<f8", R"([{"name": "zfp", "configuration": {"mode": "reversible"}}])"},
    Chain{"|u1", R"([{"name": "zfp", "configuration": {"mode": "fixed_rate", "rate": 6}}])"},
    Chain{"<i8", R"([{"name": "zfp", "configuration": {"mode": "expert", "minbits": 1, "maxbits": 16658, "maxprec": 64,
                  "minexp": -1074}}])"},
    Chain{"<f4", R"([{"name": "numcodecs.zfpy", "configuration": {"mode": 4, "tolerance": 0.01}}])"},
    Chain{"<u2", R"([{"name": "numcodecs.pcodec"}])"},
    Chain{"<i4", R"([{"name": "numcodecs.pcodec"}])"},
    Chain{"<f4", R"([{"name": "numcodecs.pcodec"}])"},
    Chain{"<f8", R"([{"name": "numcodecs.pcodec"}])"},
    Chain{"|i1", R"([{"name": "numcodecs.pcodec"}])"},
    Chain{"<i2", R"([{"name": "optional", "configuration": {"mask_codecs": ["packbits"], "data_codecs": ["bytes"]}}])"},
    Chain{"<f8", R"([{"name": "optional", "configuration": {"mask_codecs": ["packbits", "gzip"], "data_codecs":
                  [{"name": "optional", "configuration": {"mask_codecs": ["bytes"], "data_codecs": ["bytes", "zstd"]}}]}}])"},
};

/// As parse_codecs, and with codecs that are only read.
std::vector<CodecConfig> chain_of(std::string_view text) {
    if (!text.starts_with('[')) return parse_codecs(text);
    std::vector<CodecConfig> codecs;
    const Value list = Value::parse(text);
    for (const Value& codec : list.as_array()) codecs.push_back(codec_from_json(codec));
    return codecs;
}

}  // namespace

void fuzz_one(ByteSpan input) {
    if (input.empty()) return;
    const Chain& chain = chains[std::to_integer<std::size_t>(input[0]) % chains.size()];
    const DType dtype{std::string(chain.dtype)};
    const Shape shape{3, 5};
    const CodecPipeline pipeline({dtype, shape, {}},
                                 complete_codecs(dtype, shape.rank(), Order::C, chain_of(chain.codecs)));
    NDArray out(dtype, shape);
    CodecScratch scratch;
    pipeline.decode(Buffer(input.subspan(1)), out, scratch);
    // What was decoded can be encoded; lossless chains were tested elsewhere.
    (void)pipeline.encode(out, scratch);
}
