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
};

}  // namespace

void fuzz_one(ByteSpan input) {
    if (input.empty()) return;
    const Chain& chain = chains[std::to_integer<std::size_t>(input[0]) % chains.size()];
    const DType dtype{std::string(chain.dtype)};
    const Shape shape{3, 5};
    const CodecPipeline pipeline({dtype, shape, {}},
                                 complete_codecs(dtype, shape.rank(), Order::C, parse_codecs(chain.codecs)));
    NDArray out(dtype, shape);
    CodecScratch scratch;
    pipeline.decode(Buffer(input.subspan(1)), out, scratch);
    // What was decoded can be encoded; lossless chains were tested elsewhere.
    (void)pipeline.encode(out, scratch);
}
